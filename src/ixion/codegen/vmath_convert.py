"""Small floats (bfloat16, float16, float8) to and from float32 by integer arithmetic.

``bits`` takes a float32 to the bits of the nearest small float (ties to even) in a uint32;
``value`` takes such bits back, exactly. A NaN stays a NaN, an infinity does where there is one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from ixion.base.errors import CodegenError
from ixion.codegen.vmath_build import op, word_of
from ixion.te.expr import Bitcast, Const, Expr, cast, intrinsic, select

WORD = "uint32"
_INFINITY = 0x7F800000


class SmallFloat(NamedTuple):
    """Stored fraction bits, exponent bias, width, and what the top patterns mean.

    ``ieee``: the largest exponent holds infinity and NaNs. ``fn``: only all ones is NaN.
    ``fnuz``: NaN is the pattern of -0, which therefore does not exist.
    """

    fraction: int
    bias: int
    width: int
    kind: str

    @property
    def magnitude(self) -> int:
        return (1 << (self.width - 1)) - 1

    @property
    def infinity(self) -> int:
        return self.magnitude & ~((1 << self.fraction) - 1)

    @property
    def most(self) -> int:
        """The bits of the largest finite value."""
        return {"ieee": self.infinity - 1, "fn": self.magnitude - 1, "fnuz": self.magnitude}[
            self.kind
        ]

    @property
    def nan(self) -> int:
        quiet = self.infinity | 1 << (self.fraction - 1)
        return {"ieee": quiet, "fn": self.magnitude, "fnuz": self.magnitude + 1}[self.kind]


_FORMATS = {
    "float16": SmallFloat(10, 15, 16, "ieee"),
    "float8_e4m3": SmallFloat(3, 7, 8, "ieee"),
    "float8_e4m3fn": SmallFloat(3, 7, 8, "fn"),
    "float8_e4m3fnuz": SmallFloat(3, 8, 8, "fnuz"),
    "float8_e4m3b11fnuz": SmallFloat(3, 11, 8, "fnuz"),
    "float8_e5m2": SmallFloat(2, 15, 8, "ieee"),
    "float8_e5m2fnuz": SmallFloat(2, 16, 8, "fnuz"),
}


def conversion(direction: str, dtype: str) -> tuple[str, Callable[[Expr], Expr]]:
    """(dtype of the operand, builder) of ``bits`` or ``value`` for a small float dtype.

    Raises CodegenError for other dtypes.
    """
    operand = "float32" if direction == "bits" else WORD
    if dtype == "bfloat16":
        return operand, bfloat16_bits if direction == "bits" else bfloat16_value
    if dtype not in _FORMATS:
        raise CodegenError(f"'{dtype}' is not a small float", where="codegen")
    function = small_bits if direction == "bits" else small_value
    return operand, functools.partial(function, _FORMATS[dtype])


def _word(x: Expr) -> Expr:
    return Bitcast(x, WORD)


def _real(x: Expr) -> Expr:
    return Bitcast(x, "float32")


def bfloat16_bits(x: Expr) -> Expr:
    """The upper half after adding just under half a unit, one more when the upper half is odd."""
    word = _word(x)
    upper = op("shr", word, 16)
    near = op("shr", word + op("and", upper, 1) + 0x7FFF, 16)
    return select(intrinsic("isnan", x), op("or", upper, 0x40), near)


def bfloat16_value(bits: Expr) -> Expr:
    return _real(op("shl", bits, 16))


def small_bits(f: SmallFloat, x: Expr) -> Expr:
    word = _word(x)
    size = op("and", word, 0x7FFFFFFF)
    sign = op("shl", op("shr", word, 31), f.width - 1)
    drop = 23 - f.fraction
    odd = op("and", op("shr", size, drop), 1)
    near = op("shr", size + odd + ((1 << (drop - 1)) - 1), drop)
    normal = near - ((127 - f.bias) << f.fraction)
    # Below the normal range, adding this constant rounds to whole units of the last place.
    unit = 2.0 ** (24 - f.bias - f.fraction)
    denormal = _word(_real(size) + unit) - word_of(unit, "float32")
    least = word_of(2.0 ** (1 - f.bias), "float32")
    result = select(size < least, denormal, normal)
    beyond = Const(f.infinity if f.kind == "ieee" else f.nan, WORD, x.lanes)
    result = select(_overflows(f, size), beyond, result)
    result = select(size > _INFINITY, Const(f.nan, WORD, x.lanes), result)
    if f.kind == "fnuz":
        return select(
            op("or", result.equal(0), result.equal(f.nan)), result, op("or", result, sign)
        )
    return op("or", result, sign)


def _overflows(f: SmallFloat, size: Expr) -> Expr:
    """Whether the float32 of magnitude bits ``size`` rounds beyond the largest finite value."""
    drop = 23 - f.fraction
    most = (f.most + ((127 - f.bias) << f.fraction)) << drop
    half = 1 << (drop - 1)
    # A tie goes to the even neighbour: away from an odd largest value.
    return size >= most + half if f.most & 1 else size > most + half


def small_value(f: SmallFloat, bits: Expr) -> Expr:
    """Exponent and fraction moved into place, then scaled; a denormal is a whole number, scaled.

    Its bits in place would be a denormal float32, which a run takes for zero.
    """
    size = op("and", bits, f.magnitude)
    sign = op("shl", op("shr", bits, f.width - 1), 31)
    normal = _real(op("shl", size, 23 - f.fraction)) * 2.0 ** (127 - f.bias)
    whole = cast(Bitcast(size, "int32"), "float32") * 2.0 ** (1 - f.bias - f.fraction)
    value = _word(select(size < 1 << f.fraction, whole, normal))
    if f.kind == "ieee":
        special = op("or", op("shl", size, 23 - f.fraction), _INFINITY)
        value = select(size >= f.infinity, special, value)
    else:
        is_nan = size.equal(f.magnitude) if f.kind == "fn" else bits.equal(f.nan)
        value = select(is_nan, Const(0x7FC00000, WORD, bits.lanes), value)
    return _real(op("or", value, sign))
