"""Elements as unsigned integers of the same order, in loop nests (``ixion.op.order_key``).

Elements are moved as bits, by a *carrier* dtype: nothing rounds, quiets a NaN or flushes a small
number on the way.  Zeros of both signs have one key; so have all NaNs, the largest.
"""

from __future__ import annotations

from ixion.base import dtype as dtypes
from ixion.te.expr import Const, Expr, binary, cast, compare, select

# The bits of the largest number or infinity of a float dtype: above them are NaNs.
_LAST = {
    "float64": 0x7FF << 52, "float32": 0xFF << 23, "float16": 0x1F << 10, "bfloat16": 0xFF << 7,
    "float8_e4m3fn": 0x7E, "float8_e5m2": 0x7C,
}  # fmt: skip


def bits_of(dtype: str) -> int:
    """Bits of an element in memory."""
    return 8 * dtypes.itemsize(dtype)


def carrier(dtype: str) -> str:
    """The unsigned integer dtype that is as wide."""
    return f"uint{bits_of(dtype)}"


def has_order(dtype: str) -> bool:
    """Whether there are keys for a dtype."""
    plain = dtypes.is_bool(dtype) or (dtypes.is_integer(dtype) and dtypes.bits(dtype) >= 8)
    return plain or dtype in _LAST


def key_of(raw: Expr, dtype: str, descending: bool = False) -> Expr:
    """The key of elements whose bits are ``raw``; larger for what comes later in the order."""
    key = _rising(raw, dtype)
    if not descending:
        return key
    return binary("xor", key, _all(raw, (1 << bits_of(dtype)) - 1))


def _all(like: Expr, value: int) -> Expr:
    return Const(value, like.dtype, like.lanes)


def _rising(raw: Expr, dtype: str) -> Expr:
    if dtypes.is_bool(dtype) or (dtypes.is_integer(dtype) and not dtypes.is_signed(dtype)):
        return raw
    sign = 1 << (bits_of(dtype) - 1)
    top = _all(raw, sign)
    if dtypes.is_integer(dtype):
        return binary("xor", raw, top)
    size = binary("and", raw, _all(raw, sign - 1))
    every = _all(raw, 2 * sign - 1)
    key = select(compare("ge", raw, top), binary("xor", raw, every), binary("or", raw, top))
    key = select(compare("eq", size, _all(raw, 0)), top, key)
    return select(compare("gt", size, _all(raw, _LAST[dtype])), every, key)


def digit_of(key: Expr, shift: int, bits: int) -> Expr:
    """``bits`` bits of a key from ``shift`` on, as an index."""
    moved = binary("lshr", key, _all(key, shift)) if shift else key
    return cast(binary("and", moved, _all(key, (1 << bits) - 1)), "int64")

