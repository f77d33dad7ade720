"""The `.pnnx.param` text: one operator a line, with operands, parameters, weights and shapes.

    type name n_in n_out in... out... key=value @weight=(4,8)f32 $argument=operand #operand=(1,?)f32

The first character of a key says what it is, so any order is taken. There is no quoting: a blank
inside a name or value breaks the line, and such a file is refused.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG

from ixion.base.errors import ModelFormatError
from ixion.frontend.pnnx.value import Value, parse_value

MAGIC = "7767517"

#: pnnx's dtype codes, those of the KuiperInfer era included, to Relay's names ("" is unknown).
DTYPES = {
    "f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16",
    "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8", "bool": "bool",
    "c64": "complex64", "c128": "complex128", "c32": "complex32",
    "cp64": "complex64", "cp128": "complex128", "cp32": "complex32", "null": "",
}  # fmt: skip

#: Kept as text: these hold expressions, which are not parameter values.
_RAW_KEYS = ("expr", "equation")
_SHAPE = re.compile(r"\(([^()]*)\)([a-z0-9]*)")
_MOST_BYTES = 1 << 28
_MOST_DIMS = 32


@dataclass(frozen=True, slots=True)
class Shape:
    """Shape and dtype of an operand or a weight; a dim that varies is None."""

    dims: tuple[int | None, ...]
    dtype: str

    @property
    def size(self) -> int:
        """Number of elements; a varying dim counts 1."""
        return math.prod(1 if dim is None else dim for dim in self.dims)


@dataclass(slots=True)
class Operator:
    """One line.

    `arguments` maps a torch keyword to the operand bound to it, `positional` are the inputs bound
    to none; `shapes` holds what the line says of its operands (nothing for scalars).
    """

    kind: str
    name: str
    line: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    params: dict[str, Value] = field(default_factory=dict)
    weights: dict[str, Shape] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)
    positional: tuple[str, ...] = ()
    shapes: dict[str, Shape] = field(default_factory=dict)


@dataclass(slots=True)
class Network:
    """The operators of a file in its order."""

    path: str
    operators: list[Operator]


def read_param(path: str | Path) -> Network:
    """The operators of a `.param` file; ModelFormatError if it is missing or broken."""
    path = Path(path)
    try:
        status = path.stat()
        if not S_ISREG(status.st_mode):
            raise ModelFormatError("not a regular file", where=str(path))
        if status.st_size > _MOST_BYTES:
            raise ModelFormatError("too large for a .param file", where=str(path))
        text = path.read_bytes().decode()
    except OSError as error:
        raise ModelFormatError(
            f"cannot read the file: {error.strerror or error}", where=str(path)
        ) from error
    except UnicodeDecodeError as error:
        raise _broken(str(path), 0, "the file is not text", _WRONG_FILE) from error
    return parse_param(text, str(path))


def parse_param(text: str, path: str = "<text>") -> Network:
    """The operators of a `.param` text; ModelFormatError with the line number if it is broken."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != MAGIC:
        raise _broken(path, 1, f"the first line is not {MAGIC}", _WRONG_FILE)
    counts = lines[1].split() if len(lines) > 1 else []
    if len(counts) != 2 or not all(_is_count(count) for count in counts):
        raise _broken(path, 2, "the second line does not hold two counts", _WRONG_FILE)
    operators = []
    for number, line in enumerate(lines[2:], 3):
        if line.strip():
            operators.append(_operator(line, number, path))
    if len(operators) != int(counts[0]):
        raise ModelFormatError(
            "the number of operators is not the one in line 2",
            where=path,
            expected=f"{counts[0]} operators",
            found=str(len(operators)),
            hint="the file is truncated or was edited; export it again",
        )
    return Network(path, operators)


_WRONG_FILE = "is it a .pnnx.param file? ncnn's .ncnn.param and .pnnx.bin are other formats"
_BLANK = "a blank inside a name or a value breaks the line: rename the module and export again"


def _broken(path: str, line: int, message: str, hint: str | None = None) -> ModelFormatError:
    return ModelFormatError(message, where=f"{path}:{line}" if line else path, hint=hint)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _operator(text: str, number: int, path: str) -> Operator:
    words = text.split()
    if len(words) < 4 or not (_is_count(words[2]) and _is_count(words[3])):
        message = "expected: type name number-of-inputs number-of-outputs"
        raise _broken(path, number, message, _BLANK)
    n_in, n_out = int(words[2]), int(words[3])
    operands = words[4 : 4 + n_in + n_out]
    if len(operands) != n_in + n_out:
        raise _broken(path, number, "fewer operands than the line announces", _BLANK)
    op = Operator(words[0], words[1], number, tuple(operands[:n_in]), tuple(operands[n_in:]))
    for word in words[4 + n_in + n_out :]:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise _broken(path, number, f"{word!r} is no key=value", _BLANK)
        _entry(op, key, value, path)
    named = set(op.arguments.values())
    op.positional = tuple(name for name in op.inputs if name not in named)
    return op


def _entry(op: Operator, key: str, value: str, path: str) -> None:
    mark, name = key[0], key[1:]
    if mark == "@":
        op.weights[name] = _shape(op, value, path)
        if None in op.weights[name].dims:
            raise _broken(path, op.line, f"weight {name!r} of unknown size: {value}")
    elif mark == "$":
        if value not in op.inputs:
            raise _broken(path, op.line, f"argument {name!r} is bound to {value!r}, not an input")
        op.arguments[name] = value
    elif mark == "#":
        op.shapes[name] = _shape(op, value, path)
    else:
        op.params[key] = value if key in _RAW_KEYS else parse_value(value)


def _shape(op: Operator, text: str, path: str) -> Shape:
    match = _SHAPE.fullmatch(text)
    if match is None or match[2] not in DTYPES:
        raise _broken(path, op.line, f"{text!r} is no shape such as (1,3,?,?)f32")
    words = [word.strip() for word in match[1].split(",") if word.strip()]
    dims = tuple(None if word == "?" else _size(op, word, path) for word in words)
    shape = Shape(dims, DTYPES[match[2]])
    if len(dims) > _MOST_DIMS or shape.size >= 1 << 62:
        raise _broken(path, op.line, f"impossible shape {text!r}")
    return shape


def _size(op: Operator, text: str, path: str) -> int | None:
    if text.startswith("%") or text == "-1":
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise _broken(path, op.line, f"{text!r} is no size")
    return int(text)
