"""Programs on disk: a JSON header, then machine code and constants as aligned raw bytes.

    0   magic and version, 8 bytes
    8   length of the header, length of the file: little-endian uint64
    24  SHA-256 of the header, 32 bytes
    56  header, JSON; then zeros up to a multiple of 64
        sections at multiples of 64: object files, then one block of constants

The header tells where sections lie and their SHA-256. Everything but the constants is verified at
each load, those on request; they are mapped, not read. No part of a file is ever executed by
Python.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import struct
from collections.abc import Sequence
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ixion.base import dtype as dtypes
from ixion.base.errors import CacheError, IxionError
from ixion.runtime.atomic_file import replacing
from ixion.runtime.outline import Outline
from ixion.runtime.outline_text import decode_outline, encode_outline
from ixion.runtime.program import (
    ALIGNMENT,
    HostStep,
    Program,
    Slot,
    StateSpec,
    Step,
    TensorSpec,
    aligned,
)

Array = npt.NDArray[Any]

_MAGIC = b"IXPROG\x00\x01"
_PREFIX = struct.Struct("<8sQQ32s")
# What reading a header raises when it does not say what it should.
MALFORMED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


def save_program(program: Program | Outline, path: str | Path) -> None:
    """Write a program or outline; the file appears whole or not at all. Raises CacheError."""
    path = Path(path)
    try:
        with replacing(path) as file:
            write_program(program, file)
    except OSError as error:
        raise CacheError(f"cannot write program: {error}", where=str(path)) from error


def write_program(program: Program | Outline, file: BinaryIO) -> None:
    """Write the bytes of a program's file."""
    rows, block, digest = constant_rows(program.constants)
    sections = {
        "objects": [[len(o), hashlib.sha256(o).hexdigest()] for o in program.objects],
        "constants": rows,
        "constants_size": block,
        "constants_hash": digest,
    }
    size = block + sum(aligned(len(image)) for image in program.objects)
    file.write(header_bytes(_MAGIC, {**sections, **_encode(program)}, size))
    for image in program.objects:
        _write(file, image)
    for array in program.constants:
        _write(file, raw_bytes(array))


def header_bytes(magic: bytes, header: dict[str, Any], rest: int) -> bytes:
    """A file's beginning up to its first section; `rest`: bytes of all sections."""
    text = json.dumps(header, separators=(",", ":")).encode()
    start = _PREFIX.size + len(text)
    prefix = _PREFIX.pack(magic, len(text), aligned(start) + rest, hashlib.sha256(text).digest())
    return prefix + text + bytes(-start % ALIGNMENT)


def constant_rows(arrays: Sequence[Array]) -> tuple[list[list[Any]], int, str]:
    """Dtype, shape and place of each array in one block, the block's size, and the hash."""
    digest = hashlib.sha256()
    rows: list[list[Any]] = []
    offset = 0
    for array in arrays:
        rows.append(_describe(array, offset))
        digest.update(raw_bytes(array))
        offset += aligned(array.nbytes)
    return rows, offset, digest.hexdigest()


def load_program(path: str | Path, verify: bool = False) -> Program | Outline:
    """Read a program or outline; constants are views of the mapped file, `verify` checks them too.

    Raises CacheError for a file that is missing, truncated, altered or of another version.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return read_program(memoryview(data), verify)
    except (IxionError, OSError, *MALFORMED) as error:
        message = error.message if isinstance(error, IxionError) else f"{error!r}"
        raise CacheError(f"not a usable program file: {message}", where=str(path)) from error


def _write(file: BinaryIO, data: bytes | memoryview) -> None:
    file.write(data)
    file.write(bytes(-len(data) % ALIGNMENT))


def raw_bytes(array: Array) -> memoryview:
    """An array's elements, row by row."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _encode(program: Program | Outline) -> dict[str, Any]:
    if isinstance(program, Outline):
        return {"outline": encode_outline(program)}
    slots = _Slots()
    return {
        "target_key": program.target_key,
        "arena_size": program.arena_size,
        "scratch_size": program.scratch_size,
        "steps": [slots.encode(step) for step in program.steps],
        "slots": slots.rows,
        "inputs": [asdict(spec) for spec in program.inputs],
        "outputs": [asdict(spec) for spec in program.outputs],
        "states": [asdict(spec) for spec in program.states],
        "hosts": [asdict(host) for host in program.hosts],
        "output_places": [p and [p.kind, p.index, p.offset] for p in program.output_places],
        "meta": program.meta,
    }


class _Slots:
    """Slot windows, each distinct one written once."""

    def __init__(self) -> None:
        self.rows: list[list[list[Any]]] = []
        self._known: dict[tuple[Slot, ...], int] = {}

    def encode(self, step: Step) -> dict[str, Any]:
        """A step's fields that differ from the defaults, its slots by number."""
        if step.slots not in self._known:
            self._known[step.slots] = len(self.rows)
            self.rows.append([[slot.kind, slot.index, slot.offset] for slot in step.slots])
        fields = {
            name: getattr(step, name)
            for name in Step.__dataclass_fields__
            if name != "slots" and getattr(step, name) != getattr(_PLAIN, name)
        }
        return {**fields, "slots": self._known[step.slots]}


_PLAIN = Step()


def _describe(array: Array, offset: int) -> list[Any]:
    return [dtypes.from_numpy(array.dtype), list(array.shape), offset]


def read_program(view: memoryview, verify: bool) -> Program | Outline:
    """The program or outline in the bytes of a file, its constants views of them.

    Raises IxionError, and what `MALFORMED` lists, for bytes that are none.
    """
    header, offset = read_header(view, _MAGIC)
    objects = []
    for size, digest in header["objects"]:
        image = section(view, offset, size)
        _verify(digest, image, "machine code")
        objects.append(bytes(image))
        offset += aligned(size)
    block = section(view, offset, header["constants_size"])
    digest = header["constants_hash"] if verify else None
    constants = read_constants(block, header["constants"], digest)
    if "outline" in header:
        return decode_outline(header["outline"], objects, constants)
    return _program(header, objects, constants)


def read_constants(block: memoryview, rows: Sequence[Any], digest: str | None) -> list[Array]:
    """Arrays in a block; with `digest` their bytes are verified."""
    constants = [_constant(block, *row) for row in rows]
    if digest is not None:
        _verify(digest, *(raw_bytes(array) for array in constants), "constants")
    return constants


def read_header(data: memoryview, wanted: bytes) -> tuple[dict[str, Any], int]:
    """The header and where the first section begins."""
    if len(data) < _PREFIX.size:
        raise CacheError("truncated")
    magic, length, size, digest = _PREFIX.unpack(data[: _PREFIX.size])
    if magic != wanted:
        raise CacheError("not a program file of this version")
    if size != len(data) or length > size - _PREFIX.size:
        raise CacheError("truncated", expected=size, found=len(data))
    text = bytes(data[_PREFIX.size : _PREFIX.size + length])
    if hashlib.sha256(text).digest() != digest:
        raise CacheError("altered header")
    header = json.loads(text)
    return header, aligned(_PREFIX.size + length)


def section(view: memoryview, offset: int, size: int) -> memoryview:
    """Part of a file; CacheError where it does not lie in it."""
    if not 0 <= offset <= offset + size <= len(view):
        raise CacheError("section outside the file")
    return view[offset : offset + size]


def _verify(digest: str, *parts: Any) -> None:
    *data, what = parts
    found = hashlib.sha256()
    for part in data:
        found.update(part)
    if found.hexdigest() != digest:
        raise CacheError(f"altered {what}")


def _constant(block: memoryview, dtype: str, shape: list[int], offset: int) -> Array:
    size = prod(shape) * dtypes.itemsize(dtype)
    part = section(block, offset, size)
    if size == 0:
        return np.zeros(shape, dtypes.to_numpy(dtype))
    return np.ndarray(tuple(shape), dtypes.to_numpy(dtype), buffer=part)


def _program(header: dict[str, Any], objects: list[bytes], constants: list[Array]) -> Program:
    windows = [tuple(Slot(*slot) for slot in row) for row in header["slots"]]
    steps = [Step(**{**row, "slots": windows[row["slots"]]}) for row in header["steps"]]
    program = Program(
        steps=steps,
        constants=constants,
        arena_size=header["arena_size"],
        scratch_size=header["scratch_size"],
        inputs=[_spec(row) for row in header["inputs"]],
        outputs=[_spec(row) for row in header["outputs"]],
        target_key=header["target_key"],
        objects=objects,
        hosts=[_host(row) for row in header["hosts"]],
        states=[StateSpec(**{**row, "shape": tuple(row["shape"])}) for row in header["states"]],
        output_places=[place and Slot(*place) for place in header["output_places"]],
        meta=header["meta"],
    )
    program.check()
    return program


def _spec(row: dict[str, Any]) -> TensorSpec:
    return TensorSpec(row["name"], tuple(row["shape"]), row["dtype"])


def _host(row: dict[str, Any]) -> HostStep:
    inputs, outputs = ([_spec(spec) for spec in row[key]] for key in ("inputs", "outputs"))
    return HostStep(row["op"], row["attrs"], tuple(inputs), tuple(outputs))
