"""torch's type promotion: tensors over scalar tensors over Python numbers.

A number of a lower rank changes the dtype only by its category (bool, integer, float, complex):
an int64 tensor plus 0.5 is float32, a float16 tensor plus 0.5 stays float16.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.base.errors import ModelFormatError
from ixion.frontend.emitter import Emitter
from ixion.frontend.term import Term

#: A tensor, a Python number, or a dim (a size known only symbolically).
Item = Any

TORCH_DTYPES = {
    "torch.float": "float32", "torch.float32": "float32", "torch.double": "float64",
    "torch.float64": "float64", "torch.half": "float16", "torch.float16": "float16",
    "torch.bfloat16": "bfloat16", "torch.long": "int64", "torch.int64": "int64",
    "torch.int": "int32", "torch.int32": "int32", "torch.short": "int16", "torch.int16": "int16",
    "torch.char": "int8", "torch.int8": "int8", "torch.uint8": "uint8", "torch.bool": "bool",
    "torch.complex64": "complex64", "torch.complex128": "complex128",
}  # fmt: skip

_SIGNED = ("int8", "int16", "int32", "int64")
_FLOATS = ("float16", "float32", "float64")
_NO_DTYPE = ""


def torch_dtype(name: str) -> str:
    """Relay's name of a torch dtype; ModelFormatError for an unknown one."""
    if name not in TORCH_DTYPES:
        raise ModelFormatError(f"unknown dtype {name!r}")
    return TORCH_DTYPES[name]


def promote(a: str, b: str) -> str:
    """The dtype of an operation on tensors of two dtypes."""
    if a == b or not b:
        return a
    if not a:
        return b
    if dtypes.is_complex(a) or dtypes.is_complex(b):
        return "complex128" if {a, b} & {"complex128", "float64"} else "complex64"
    if dtypes.is_float(a) and dtypes.is_float(b):
        return _wider_float(a, b)
    if dtypes.is_float(a) or dtypes.is_float(b):
        return a if dtypes.is_float(a) else b
    if "bool" in (a, b):
        return b if a == "bool" else a
    if "uint8" in (a, b):
        other = b if a == "uint8" else a
        return "int16" if other == "int8" else other
    return max(a, b, key=_SIGNED.index)


def _wider_float(a: str, b: str) -> str:
    if "bfloat16" in (a, b):
        other = b if a == "bfloat16" else a
        return "float32" if other == "float16" else other
    return max(a, b, key=_FLOATS.index)


def _number_dtype(number: Any) -> str:
    if isinstance(number, bool):
        return "bool"
    if isinstance(number, complex):
        return "complex64"
    return "float32" if isinstance(number, float) else "int64"


def _lifted(high: str, low: str) -> str:
    """A dtype of higher rank after one of lower rank: only a higher category changes it."""
    if not high:
        return low
    if not low or dtypes.is_complex(high):
        return high
    if dtypes.is_float(high):
        return promote(high, low) if dtypes.is_complex(low) else high
    if high == "bool" or dtypes.is_float(low) or dtypes.is_complex(low):
        return promote(high, low)
    return high


def result_dtype(items: Sequence[Item]) -> str:
    """The dtype of an elementwise operation on tensors and numbers."""
    tensors = scalars = numbers = _NO_DTYPE
    for item in items:
        if not isinstance(item, Term):
            numbers = promote(numbers, _number_dtype(item))
        elif item.rank:
            tensors = promote(tensors, item.dtype)
        else:
            scalars = promote(scalars, item.dtype)
    return _lifted(tensors, _lifted(scalars, numbers))


def cast(emit: Emitter, x: Term, dtype: str) -> Term:
    """`x` in another dtype; x itself if it has it."""
    return x if x.dtype == dtype else emit.call("cast", x, dtype=dtype)


def as_term(emit: Emitter, item: Item, dtype: str | None = None) -> Term:
    """A tensor of an item: a number becomes a scalar of `dtype` (default: torch's for it)."""
    if isinstance(item, Term):
        return item if dtype is None else cast(emit, item, dtype)
    if isinstance(item, str):
        item = float(item) if item in ("inf", "-inf", "nan") else item
    if isinstance(item, dims.SymExpr):
        return cast(emit, emit.sizes(item), dtype or "int64")
    if not isinstance(item, (int, float, complex)):
        _refuse(item)
    return emit.constant(item, dtype or _number_dtype(item))


def _refuse(item: Item) -> NoReturn:
    raise ModelFormatError("a tensor or a number is needed here", found=repr(item))


def promoted(emit: Emitter, items: Sequence[Item], floating: bool = False) -> list[Term]:
    """Items as tensors of their common dtype; integers become float32 if `floating`."""
    dtype = result_dtype(items)
    if floating and not (dtypes.is_float(dtype) or dtypes.is_complex(dtype)):
        dtype = "float32"
    return [as_term(emit, item, dtype) for item in items]
