"""Small floats (bfloat16, float16, float8) to and from float32 by integer arithmetic.

``bits.T``: float32 to the bits of the nearest T (ties to even), as uint32. ``value.T``: bits of a T
in a uint32 to float32, exact. A NaN stays a NaN (quiet); infinities stay where T has them.
"""

from __future__ import annotations

from collections.abc import Callable

from ixion.te.expr import Bitcast, Const, Expr, binary, compare, intrinsic, select

U32 = "uint32"
Builder = tuple[str, Callable[[Expr], Expr]]


def _u32(x: Expr) -> Expr:
    return Bitcast(x, U32)


def _f32(x: Expr) -> Expr:
    return Bitcast(x, "float32")


def _op(name: str, a: Expr, b: Expr | int) -> Expr:
    return binary(name, a, b)


def bfloat16_bits(x: Expr) -> Expr:
    """The upper half after adding just under half a unit, one more when the upper half is odd."""
    bits = _u32(x)
    odd = _op("and", _op("shr", bits, 16), 1)
    near = _op("shr", bits + odd + 0x7FFF, 16)
    quiet = _op("or", _op("shr", bits, 16), 0x40)
    return select(intrinsic("isnan", x), quiet, near)


def bfloat16_value(bits: Expr) -> Expr:
    return _f32(_op("shl", bits, 16))


CONVERSIONS: dict[str, Builder] = {
    "bits.bfloat16": ("float32", bfloat16_bits),
    "value.bfloat16": (U32, bfloat16_value),
}
