"""The vocabulary in which vector functions are written: bits, constants, polynomials, lookups."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from ixion.te.expr import Bitcast, Const, Expr, ExprLike, binary, intrinsic, select


class Format(NamedTuple):
    """An IEEE binary format: its dtype, the integer of its size, stored fraction bits, bias."""

    dtype: str
    word: str
    fraction: int
    bias: int

    @property
    def shifter(self) -> float:
        """1.5 * 2^fraction: adding it leaves the nearest integer in the low bits of the sum."""
        return 1.5 * 2.0**self.fraction

    @property
    def smallest(self) -> float:
        """The least normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def sign(self) -> int:
        """The sign bit, as a value of ``word``."""
        return -(1 << (31 if self.word == "int32" else 63))


FORMATS = {
    "float32": Format("float32", "int32", 23, 127),
    "float64": Format("float64", "int64", 52, 1023),
}


def format_of(x: Expr) -> Format:
    return FORMATS[x.dtype]


def like(x: Expr, value: float) -> Expr:
    """A constant of x's dtype and width."""
    return Const(value, x.dtype, x.lanes)


def bits(x: Expr) -> Expr:
    return Bitcast(x, format_of(x).word)


def real(word: Expr) -> Expr:
    """The float that has these bits."""
    return Bitcast(word, "float32" if word.dtype == "int32" else "float64")


def word_of(value: float, dtype: str) -> int:
    """The bits of a float constant."""
    if dtype == "float32":
        return int(struct.unpack("<i", struct.pack("<f", value))[0])
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def op(name: str, a: Expr, b: ExprLike) -> Expr:
    return binary(name, a, b)


def fma(a: Expr, b: ExprLike, c: ExprLike) -> Expr:
    return intrinsic("fma", a, b, c)


def magnitude(x: Expr) -> Expr:
    return intrinsic("abs", x)


def horner(x: Expr, coefficients: Sequence[float]) -> Expr:
    """``c0 + c1 x + c2 x^2 + ...``"""
    total = like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = fma(total, x, c)
    return total


def with_sign_of(size: Expr, x: Expr) -> Expr:
    """``size`` (its own sign ignored) with the sign of ``x``."""
    sign = format_of(x).sign
    return real(op("or", op("and", bits(size), ~sign), op("and", bits(x), sign)))


def flip_sign(x: Expr, where: Expr) -> Expr:
    """``x`` with its sign bit xor-ed by ``where`` (a word that has the sign bit or nothing)."""
    return real(op("xor", bits(x), where))


def nearest(x: Expr, factor: float) -> tuple[Expr, Expr]:
    """The integer nearest to ``x * factor`` as a float, and a word with it in the low bits.

    Only for products far below 2^(fraction - 1).
    """
    shifter = format_of(x).shifter
    shifted = fma(x, factor, shifter)
    return shifted - shifter, bits(shifted)


def integer_part(x: Expr) -> Expr:
    """The nearest integer to a float far below 2^(fraction - 1), ties to even."""
    shifter = format_of(x).shifter
    return (x + shifter) - shifter


def any_of(*conditions: Expr) -> Expr:
    result = conditions[0]
    for c in conditions[1:]:
        result = op("or", result, c)
    return result


def all_of(*conditions: Expr) -> Expr:
    result = conditions[0]
    for c in conditions[1:]:
        result = op("and", result, c)
    return result


def negate(condition: Expr) -> Expr:
    return intrinsic("not", condition)


def windows(table: Sequence[Expr], start: Expr, width: int) -> list[Expr]:
    """``table[start : start + width]``, the start differing by lane: a barrel of selects."""
    steps = max(len(table) - width, 0).bit_length()
    current = list(table)
    for power in reversed([1 << i for i in range(steps)]):
        chosen = op("and", start, power).not_equal(0)
        need = power - 1 + width
        last = len(current) - 1
        current = [
            select(chosen, current[min(i + power, last)], current[i])
            for i in range(min(need, len(current)))
        ]
    return current[:width]


def product_error(a: Expr, b: Expr, product: Expr) -> Expr:
    """``a * b - product`` exactly, for the rounded float64 ``a * b`` as product (Dekker 1971)."""
    a1, a2 = _halves(a)
    b1, b2 = _halves(b)
    return ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(x: Expr) -> tuple[Expr, Expr]:
    """Upper 26 bits of a float64 and the rest."""
    high = real(op("and", bits(x), ~((1 << 27) - 1)))
    return high, x - high


def sum_error(a: Expr, b: Expr, total: Expr) -> Expr:
    """``a + b - total`` exactly, where total is the rounded ``a + b`` (Knuth)."""
    back = total - a
    return (a - (total - back)) + (b - back)
