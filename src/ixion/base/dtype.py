"""Element types, as the plain strings Relay uses: ``float32``, ``bfloat16``, ``int64``, ``bool``.

Strings compare, hash and print without help, which is all most rooms need. This module holds the
table of what each name means, and the bridge to numpy; ``ml_dtypes`` is imported only when a name
needs it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from ixion.base.errors import IxionError, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class DTypeError(IxionError, TypeError):
    """A dtype name that is unknown or has no numpy counterpart."""


class _Info(NamedTuple):
    kind: str  # i signed, u unsigned, f float, b bool, c complex, h handle
    bits: int
    foreign: bool = False  # numpy gets it from ml_dtypes


_TABLE: dict[str, _Info] = {
    "bool": _Info("b", 1),
    "int4": _Info("i", 4, True),
    "uint4": _Info("u", 4, True),
    "int8": _Info("i", 8),
    "int16": _Info("i", 16),
    "int32": _Info("i", 32),
    "int64": _Info("i", 64),
    "uint8": _Info("u", 8),
    "uint16": _Info("u", 16),
    "uint32": _Info("u", 32),
    "uint64": _Info("u", 64),
    "float16": _Info("f", 16),
    "float32": _Info("f", 32),
    "float64": _Info("f", 64),
    "bfloat16": _Info("f", 16, True),
    "float8_e4m3": _Info("f", 8, True),
    "float8_e4m3fn": _Info("f", 8, True),
    "float8_e4m3fnuz": _Info("f", 8, True),
    "float8_e4m3b11fnuz": _Info("f", 8, True),
    "float8_e5m2": _Info("f", 8, True),
    "float8_e5m2fnuz": _Info("f", 8, True),
    "complex64": _Info("c", 64),
    "complex128": _Info("c", 128),
    "handle": _Info("h", 64),
}

_ALIASES = {
    "float": "float32",
    "int": "int32",
    "uint": "uint32",
    "uint1": "bool",
    "half": "float16",
    "double": "float64",
    "e4m3_float8": "float8_e4m3fn",
    "e5m2_float8": "float8_e5m2",
}

NAMES: frozenset[str] = frozenset(_TABLE)


def normalize(name: object) -> str:
    """The canonical name for a dtype given as a string, alias, numpy dtype or numpy scalar type.

    A string that is not in the table is kept where it reads as a type with an odd width or lanes
    (``int3``, ``custom[x]32``, ``float32x4``): Relay programs may mention such types; only
    computing with one is an error.
    """
    if type(name) is str:
        if name in _TABLE:
            return name
        return _ALIASES.get(name) or _odd_name(name)
    if name is bool:
        return "bool"
    if name is int:
        return "int32"
    if name is float:
        return "float32"
    if isinstance(name, str):
        return normalize(str(name))
    import numpy as np

    try:
        return from_numpy(np.dtype(name))  # type: ignore[call-overload, no-any-return, unused-ignore]
    except TypeError as error:
        raise DTypeError(f"not a dtype: {name!r}") from error


def _odd_name(name: str) -> str:
    stem = name.rstrip("0123456789x")
    if stem in ("int", "uint", "float", "bfloat", "bool", "complex", "handle", "", "void"):
        return name
    if stem.startswith("custom[") or stem.endswith("]"):
        return name
    raise DTypeError(f"unknown dtype {name!r}", hint=did_you_mean(name, _TABLE))


def _info(name: str) -> _Info:
    found = _TABLE.get(name) or _TABLE.get(_ALIASES.get(name, ""))
    if found is None:
        raise DTypeError(f"unknown dtype {name!r}", hint=did_you_mean(name, _TABLE))
    return found


@functools.cache
def to_numpy(name: str) -> np.dtype[np.generic]:
    """The numpy dtype of a name; bfloat16, float8 and 4-bit integers come from ``ml_dtypes``."""
    import numpy as np

    info = _info(name)
    if info.kind == "h":
        raise DTypeError("a handle has no numpy dtype")
    if info.foreign:
        import ml_dtypes

        found: np.dtype[np.generic] = np.dtype(getattr(ml_dtypes, _ALIASES.get(name, name)))
        return found
    return np.dtype("bool" if info.bits == 1 else _ALIASES.get(name, name))


@functools.cache
def from_numpy(dtype: npt.DTypeLike) -> str:
    """The name of a numpy dtype, byte order aside; DTypeError for strings, objects and records."""
    import numpy as np

    name = np.dtype(dtype).name
    if name not in _TABLE:
        raise DTypeError(f"no Ixion dtype for numpy dtype {name!r}")
    return name


def bits(name: str) -> int:
    """Bits of one element (1 for bool, 4 for int4)."""
    return _info(name).bits


def itemsize(name: str) -> int:
    """Bytes of one element in memory, as numpy stores it: bool and 4-bit integers take one byte."""
    return max(1, _info(name).bits // 8)


def is_float(name: str) -> bool:
    """Real floating point, bfloat16 and float8 included."""
    return _info(name).kind == "f"


def is_integer(name: str) -> bool:
    """Signed or unsigned integer; bool is not one."""
    return _info(name).kind in "iu"


def is_signed(name: str) -> bool:
    """Can hold negative values: signed integers, floats and complex numbers."""
    return _info(name).kind in "ifc"


def is_bool(name: str) -> bool:
    """True for bool only."""
    return _info(name).kind == "b"


def is_complex(name: str) -> bool:
    """True for complex64 and complex128."""
    return _info(name).kind == "c"
