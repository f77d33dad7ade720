"""How references leave and re-enter an op's dtype: widen to float64, round once at the end."""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion.base import dtype as dtypes

Array = np.ndarray[Any, Any]


def wide(x: Array) -> Array:
    """Floats of any width as float64 (exact); integers and bools unchanged."""
    if x.dtype == np.float64 or x.dtype.kind in "biuOc":
        return x
    return x.astype(np.float64)


def narrow(x: Any, dtype: str) -> Array:
    """``x`` rounded to nearest-even once into ``dtype``.

    float64 to bfloat16 or an 8-bit float goes through a float32 rounded to odd, because a plain
    float32 in between would round twice (Boldo and Melquiond, 2008).
    """
    x = np.asarray(x)
    target = dtypes.to_numpy(dtype)
    if x.dtype == target:
        return np.asarray(x)
    small = dtypes.is_float(dtype) and target.itemsize <= 2 and target != np.float16
    if small and x.dtype == np.float64:
        return np.asarray(_round_to_odd(x).astype(target))
    return np.asarray(x.astype(target))


def _round_to_odd(x: Array) -> Array:
    near = np.array(x, dtype=np.float32)
    back = near.astype(np.float64)
    inexact = (back != x) & np.isfinite(x)
    bits = near.view(np.uint32)
    bits -= (inexact & (np.abs(back) > np.abs(x))).astype(np.uint32)
    bits |= inexact.astype(np.uint32)
    return near


def integer_range(dtype: str) -> np.iinfo[Any]:
    """Least and largest value of an integer dtype."""
    return np.iinfo(dtypes.to_numpy(dtype))


def ulp(x: Array, dtype: str) -> Array:
    """Distance between neighbouring ``dtype`` values around ``x``, as float64."""
    digits, smallest = _FORMATS[dtype]
    exponent = np.frexp(np.abs(np.where(np.isfinite(x), x, 0.0)).astype(np.float64))[1]
    return np.asarray(np.ldexp(1.0, np.maximum(exponent - digits, smallest)))


def epsilon(dtype: str) -> float:
    """Half the relative spacing of ``dtype``: the largest relative rounding error."""
    return float(np.ldexp(1.0, -_FORMATS[dtype][0]))


# dtype: (significant bits, exponent of the smallest denormal)
_FORMATS = {
    "float64": (53, -1074),
    "float32": (24, -149),
    "float16": (11, -24),
    "bfloat16": (8, -133),
    "float8_e4m3fn": (4, -9),
    "float8_e5m2": (3, -16),
}
