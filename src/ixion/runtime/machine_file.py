"""Machine programs on disk: a header as in `program_file.py`, then constants and segments.

    0   magic and version, 8 bytes
    8   length of the header, length of the file: little-endian uint64
    24  SHA-256 of the header, 32 bytes
    56  header, JSON; then zeros up to a multiple of 64
        one block of constants, then each compiled segment as a whole program file, at multiples
        of 64

Constants and segments' constants are mapped, not read. Nothing in a file is executed by Python: a
segment without a program is IR, which is read like any other.
"""

from __future__ import annotations

import io
import mmap
from pathlib import Path
from typing import Any, TypeAlias

from ixion.base.errors import CacheError, IxionError
from ixion.runtime.atomic_file import replacing
from ixion.runtime.machine_program import (
    ConstantSpec,
    HostOp,
    Instruction,
    MachineFunction,
    MachineProgram,
    Segment,
)
from ixion.runtime.outline import Outline
from ixion.runtime.program import ALIGNMENT, Program
from ixion.runtime.program_file import (
    MALFORMED,
    constant_rows,
    header_bytes,
    load_program,
    raw_bytes,
    read_constants,
    read_header,
    read_program,
    save_program,
    section,
    write_program,
)
from ixion.runtime.value_kind import (
    ConstructorSpec,
    TensorKind,
    kind_from_json,
    kind_to_json,
)

__all__ = ["AnyProgram", "load_any", "load_machine", "save_any", "save_machine"]

AnyProgram: TypeAlias = "Program | Outline | MachineProgram"
_MAGIC = b"IXMACH\x00\x01"
_PLAIN = Instruction("")


def save_machine(program: MachineProgram, path: str | Path) -> None:
    """Write a program; the file appears whole or not at all. Raises CacheError."""
    path = Path(path)
    sizes = [_file_size(s.program) for s in program.segments]
    rows, size, digest = constant_rows(program.arrays)
    header = _encode(program)
    header["arrays"], header["arrays_size"], header["arrays_hash"] = rows, size, digest
    header["sizes"] = sizes
    try:
        with replacing(path) as file:
            file.write(header_bytes(_MAGIC, header, size + sum(sizes)))
            for array in program.arrays:
                data = raw_bytes(array)
                file.write(data)
                file.write(bytes(-len(data) % ALIGNMENT))
            for segment in program.segments:
                if segment.program is not None:
                    write_program(segment.program, file)
    except OSError as error:
        raise CacheError(f"cannot write program: {error}", where=str(path)) from error


def load_machine(path: str | Path, verify: bool = False) -> MachineProgram:
    """Read a program; ``verify`` checks its constants too.

    Raises CacheError for a file that is missing, truncated, altered or of another version.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        program = _decode(memoryview(data), verify)
        program.check()
        return program
    except (IxionError, OSError, *MALFORMED) as error:
        message = error.message if isinstance(error, IxionError) else f"{error!r}"
        raise CacheError(f"not a usable program file: {message}", where=str(path)) from error


def save_any(program: AnyProgram, path: str | Path) -> None:
    """Write a program of either kind. Raises CacheError."""
    if isinstance(program, MachineProgram):
        save_machine(program, path)
    else:
        save_program(program, path)


def load_any(path: str | Path, verify: bool = False) -> AnyProgram:
    """Read a program of either kind. Raises CacheError as the loader of its kind does."""
    try:
        with Path(path).open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise CacheError(f"not a usable program file: {error}", where=str(path)) from error
    return load_machine(path, verify) if magic == _MAGIC else load_program(path, verify)


class _Counter(io.RawIOBase):
    """Takes bytes and only counts them: a segment's weights need not be there twice."""

    def __init__(self) -> None:
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = len(data)
        self.size += size
        return size


def _file_size(program: Program | Outline | None) -> int:
    """Bytes of a segment's part of the file; its sections end at multiples of 64."""
    counter = _Counter()
    if program is not None:
        write_program(program, counter)  # type: ignore[arg-type]  # only written to
    return counter.size


def _encode(program: MachineProgram) -> dict[str, Any]:
    return {
        "target_key": program.target_key,
        "options": program.options,
        "entry": program.entry,
        "functions": [_function_row(f) for f in program.functions],
        "constructors": [
            [c.name_hint, c.tag, c.belong_to, [kind_to_json(k) for k in c.fields]]
            for c in program.constructors
        ],
        "segments": [
            [
                s.name, [[n, kind_to_json(k)] for n, k in s.inputs],
                [kind_to_json(k) for k in s.outputs], s.source, s.mode,
            ]
            for s in program.segments
        ],
        "hosts": [
            [h.op, h.attrs, list(h.groups), [kind_to_json(k) for k in h.outputs]]
            for h in program.hosts
        ],
        "checks": [[[n, kind_to_json(k)] for n, k in row] for row in program.checks],
        "inputs": [[n, kind_to_json(k)] for n, k in program.inputs],
        "output": kind_to_json(program.output),
        "output_names": program.output_names,
    }  # fmt: skip


def _function_row(function: MachineFunction) -> list[Any]:
    return [
        function.name, function.params, function.registers,
        [[c.kind, c.index] for c in function.constants],
        [_instruction_row(one) for one in function.code],
    ]  # fmt: skip


def _instruction_row(one: Instruction) -> dict[str, Any]:
    """The fields that differ from the defaults."""
    names = Instruction.__dataclass_fields__
    return {n: v for n in names if (v := getattr(one, n)) != getattr(_PLAIN, n)}


def _decode(view: memoryview, verify: bool) -> MachineProgram:
    header, offset = read_header(view, _MAGIC)
    block = section(view, offset, header["arrays_size"])
    arrays = read_constants(block, header["arrays"], header["arrays_hash"] if verify else None)
    offset += header["arrays_size"]
    segments = []
    for row, size in zip(header["segments"], header["sizes"], strict=True):
        segments.append(_segment(row, section(view, offset, size), verify))
        offset += size
    constructors = [
        ConstructorSpec(str(n), int(t), str(b), tuple(kind_from_json(k) for k in fields))
        for n, t, b, fields in header["constructors"]
    ]
    hosts = [
        HostOp(str(op), str(attrs), tuple(map(int, groups)), tuple(_tensor(k) for k in outputs))
        for op, attrs, groups, outputs in header["hosts"]
    ]
    return MachineProgram(
        [_function(row) for row in header["functions"]], header["entry"], arrays, constructors,
        segments, hosts,
        [tuple((str(n), _tensor(k)) for n, k in row) for row in header["checks"]],
        [(str(n), kind_from_json(k)) for n, k in header["inputs"]],
        kind_from_json(header["output"]), [str(n) for n in header["output_names"]],
        header["target_key"], header["options"],
    )  # fmt: skip


def _tensor(row: list[Any]) -> TensorKind:
    kind = kind_from_json(row)
    if not isinstance(kind, TensorKind):
        raise ValueError("expected the kind of a tensor")
    return kind


def _segment(row: list[Any], image: memoryview, verify: bool) -> Segment:
    name, inputs, outputs, source, mode = row
    modes = ("compiled", "bounded", "specialise", "reference")
    if mode not in modes or (mode in modes[:2]) != bool(image):
        raise ValueError(f"segment {name!r} has no program")
    program = read_program(image, verify) if image else None
    return Segment(
        str(name), tuple((str(n), _tensor(k)) for n, k in inputs),
        tuple(_tensor(k) for k in outputs), program, str(source), mode,
    )  # fmt: skip


def _function(row: list[Any]) -> MachineFunction:
    name, params, registers, constants, code = row
    specs = []
    for kind, index in constants:
        if kind not in ("array", "closure", "value", "empty"):
            raise ValueError(f"no constant is of kind {kind!r}")
        specs.append(ConstantSpec(kind, int(index)))
    return MachineFunction(
        str(name), int(params), int(registers), tuple(specs), tuple(map(_instruction, code))
    )


def _instruction(row: dict[str, Any]) -> Instruction:
    fields: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in row.items()}
    one = Instruction(**fields)
    numbers = (*one.args, *one.results, *one.targets, *one.tags, *one.dead, one.number)
    if not all(type(n) is int for n in numbers) or one.number < 0:
        raise ValueError("registers and places are numbers")
    return one
