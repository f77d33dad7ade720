"""Sums of products: which dtype they run in, and exact products of integer matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion import te
from ixion.base import dtype as dtypes
from ixion.op.rounding import Array, narrow, wide

# Below this magnitude every integer is a float64.
_EXACT_FLOAT = 2.0**53


def accumulator(dtype: str) -> str:
    """The dtype in which a sum destined for ``dtype`` is kept while it grows."""
    if dtypes.is_float(dtype):
        return "float32" if dtypes.bits(dtype) < 32 else dtype
    if dtypes.is_bool(dtype) or dtypes.bits(dtype) < 32:
        return "int32"
    return dtype


def raised(x: te.Expr, dtype: str) -> te.Expr:
    """``x`` in an accumulator's dtype."""
    return te.cast(x, dtype)


def matmul(a: Array, b: Array, dtype: str) -> Array:
    """``a @ b`` (batched as numpy's) in float64, or exactly for integers; rounded to ``dtype``.

    Integer products that fit float64 exactly go through it, because numpy multiplies integer
    matrices without BLAS; others wrap around in int64 as the kernels do.
    """
    if a.dtype.kind not in "biu":
        return narrow(np.matmul(wide(a), wide(b)), dtype)
    return wrap(integer_matmul(a, b), dtype)


def integer_matmul(a: Array, b: Array) -> Array:
    """``a @ b`` of integers as int64, wrapping."""
    depth = a.shape[-1]
    if depth and a.size and b.size:
        bound = float(np.abs(a.astype(np.float64)).max()) * float(
            np.abs(b.astype(np.float64)).max()
        )
        if bound * depth < _EXACT_FLOAT:
            product = np.matmul(a.astype(np.float64), b.astype(np.float64))
            return np.asarray(product.astype(np.int64))
    return np.asarray(np.matmul(a.astype(np.int64), b.astype(np.int64)))


def wrap(x: Array, dtype: str) -> Array:
    """Integers reduced modulo the range of ``dtype``; or as a float dtype."""
    return x.astype(dtypes.to_numpy(dtype))


def widened(x: Array) -> Any:
    """Floats as float64, integers as int64."""
    return wide(x) if x.dtype.kind not in "biu" else x.astype(np.int64)
