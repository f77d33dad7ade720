"""Numbers as unsigned integers of the same order: how sorting sees every dtype.

Zeros of both signs have one key, and so have all NaNs, the largest: the order of ``sort``.
"""

from __future__ import annotations

import numpy as np

from ixion.base import dtype as dtypes
from ixion.op.rounding import Array


def order_keys(x: Array) -> Array:
    """Unsigned integers, as wide as the elements, that compare as the elements do."""
    name = dtypes.from_numpy(x.dtype)
    bits = 8 if dtypes.is_bool(name) else dtypes.bits(name)
    unsigned = np.dtype(f"u{bits // 8}")
    raw = np.ascontiguousarray(x).view(unsigned)
    if dtypes.is_bool(name) or (dtypes.is_integer(name) and not dtypes.is_signed(name)):
        return np.asarray(raw)
    top = unsigned.type(1 << (bits - 1))
    if dtypes.is_integer(name):
        return np.asarray(raw ^ top)
    raw = np.where(x == 0, unsigned.type(0), raw)
    keys = np.where(raw & top, ~raw, raw | top)
    return np.where(np.isnan(x), unsigned.type((1 << bits) - 1), keys)
