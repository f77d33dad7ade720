"""Which calls a schedule of the op's own can do: what ops without a compute give as FScheduled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.ir.types import TensorType, TupleType, Type

Scheduled = Callable[[Any, "tuple[Type, ...]", Type], bool]


# Float dtypes whose values kernels know.
FLOATS = frozenset(
    ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
)


def has_bits(dtype: str) -> bool:
    """Whether elements are whole bytes that have an order: no complex numbers, no half bytes."""
    if dtypes.is_bool(dtype) or dtype in FLOATS:
        return True
    return dtypes.is_integer(dtype) and dtypes.bits(dtype) >= 8


def plain_tensors(attrs: Any, types: tuple[Type, ...], out: Type) -> bool:
    """All arguments and results are tensors of such dtypes."""
    results = out.fields if isinstance(out, TupleType) else (out,)
    return all(isinstance(t, TensorType) and has_bits(t.dtype) for t in (*types, *results))


def numbered(attrs: Any, types: tuple[Type, ...], out: Type) -> bool:
    """Such tensors, whose elements an int32 can number."""
    sizes = [dims.prod(t.shape) for t in types if isinstance(t, TensorType)]
    few = all(not isinstance(n, int) or n < 1 << 31 for n in sizes)
    return few and plain_tensors(attrs, types, out)
