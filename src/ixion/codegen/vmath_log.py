"""Logarithms and what is made of them: log, log2, log10, log1p, softplus, asinh, acosh, atanh.

``x = 2^e m`` with m between sqrt(1/2) and sqrt(2), and ``log m = f + y`` with ``f = m - 1`` exact.
In float64 y comes from ``s = f / (2 + f)``, as in W. J. Cody and W. Waite's and fdlibm's logarithm.
"""

from __future__ import annotations

from typing import NamedTuple

from ixion.codegen import vmath_coefficients as tables
from ixion.codegen.vmath_build import (
    bits,
    fma,
    format_of,
    horner,
    like,
    magnitude,
    op,
    real,
    with_sign_of,
    word_of,
)
from ixion.codegen.vmath_exp import LN2, exp_negative
from ixion.te.expr import Expr, cast, intrinsic, maximum, select

LN_2 = 0.6931471805599453
SQRT_HALF = 0.7071067811865476
# log2(e), log10(e), log10(2): leading part and the rest.
LOG2_E = {
    "float32": (1.4426950216293335, 1.9259629911266175e-08),
    "float64": (1.4426950408889634, 2.0355273740931033e-17),
}
LOG10_E = {
    "float32": (0.4342944920063019, -1.0103050052231683e-08),
    "float64": (0.4342944819032518, 1.098319650216765e-17),
}
LOG10_2 = {
    "float32": (0.301025390625, 4.605038811771306e-06),
    "float64": (0.3010299955494702, 1.1451100898021838e-10),
}


class Split(NamedTuple):
    """``log x = exponent * ln 2 + f + y``; f is exact and y small."""

    exponent: Expr
    f: Expr
    y: Expr


def split(x: Expr) -> Split:
    """For positive finite x, denormals included."""
    tiny = x < format_of(x).smallest
    up = format_of(x).fraction
    word, mantissa = exponent_and_mantissa(select(tiny, x * 2.0**up, x))
    exponent = as_float(word, x) + select(tiny, like(x, float(-up)), like(x, 0.0))
    f = mantissa - 1.0
    return Split(exponent, f, correction(f))


def exponent_and_mantissa(x: Expr) -> tuple[Expr, Expr]:
    """(e as a word, m) of a positive normal x."""
    fraction = format_of(x).fraction
    word = op("shr", bits(x) - word_of(SQRT_HALF, x.dtype), fraction)
    return word, real(bits(x) - op("shl", word, fraction))


def as_float(word: Expr, x: Expr) -> Expr:
    """A small signed word as a float of x's dtype."""
    if x.dtype == "float32":
        return cast(word, x.dtype)
    shifter = format_of(x).shifter
    return real(word + word_of(shifter, x.dtype)) - shifter


def correction(f: Expr) -> Expr:
    """``log(1 + f) - f``"""
    if f.dtype == "float32":
        return f * f * horner(f, tables.LOG["float32"])
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    return s * fma(z, horner(z, tables.LOG_RATIO["float64"]), half_square) - half_square


def ends(x: Expr, result: Expr) -> Expr:
    """``result`` for positive finite x; what logarithms give elsewhere."""
    infinity = float("inf")
    outside = select(x.equal(0.0), like(x, -infinity), like(x, float("nan")))
    return select(x > 0.0, select(x < infinity, result, x), outside)


def log(x: Expr) -> Expr:
    return ends(x, natural(split(x)))


def natural(parts: Split) -> Expr:
    high, low = LN2[parts.f.dtype]
    return fma(parts.exponent, high, parts.f + fma(parts.exponent, low, parts.y))


def log2(x: Expr) -> Expr:
    parts = split(x)
    return ends(x, based(parts, LOG2_E[x.dtype]) + parts.exponent)


def log10(x: Expr) -> Expr:
    parts = split(x)
    high, low = LOG10_2[x.dtype]
    small = fma(parts.exponent, low, based(parts, LOG10_E[x.dtype]))
    return ends(x, fma(parts.exponent, high, small))


def based(parts: Split, factor: tuple[float, float]) -> Expr:
    """``(f + y) * factor`` with the rounding error of the sum carried along."""
    total = parts.f + parts.y
    rest = (parts.f - total) + parts.y
    return fma(total, factor[0], fma(rest, factor[0], total * factor[1]))


def log1p(x: Expr) -> Expr:
    """The rounding error of ``1 + x`` is added to the fraction, scaled as the fraction is."""
    parts = split_plus_one(x)
    infinity, minus_one = float("inf"), -1.0
    outside = select(x.equal(minus_one), like(x, -infinity), like(x, float("nan")))
    inside = with_sign_of(natural(parts), x)
    return select(x > minus_one, select(x < infinity, inside, x), outside)


def split_plus_one(x: Expr) -> Split:
    """Parts of ``log(1 + x)`` for finite x > -1."""
    f = format_of(x)
    total = x + 1.0
    lost = x - (total - 1.0)
    word, mantissa = exponent_and_mantissa(total)
    down = real(op("shl", maximum(f.bias - word, 0), f.fraction))
    fraction = fma(lost, down, mantissa - 1.0)
    return Split(as_float(word, x), fraction, correction(fraction))


def softplus(x: Expr) -> Expr:
    """``log(1 + e^x)`` as ``max(x, 0) + log1p(e^-|x|)``."""
    return maximum(x, 0.0) + natural(split_plus_one(exp_negative(-magnitude(x))))


def asinh(x: Expr) -> Expr:
    """``log1p(|x| + x^2 / (1 + sqrt(1 + x^2)))``; beyond 2^28 ``log(2 |x|)``."""
    size = magnitude(x)
    square = size * size
    small = log1p(size + square / (intrinsic("sqrt", square + 1.0) + 1.0))
    return with_sign_of(select(size < 2.0**28, small, log(size) + LN_2), x)


def acosh(x: Expr) -> Expr:
    """``log1p(t + sqrt(2 t + t^2))`` with ``t = x - 1``; beyond 2^28 ``log(2 x)``."""
    t = x - 1.0
    small = log1p(t + intrinsic("sqrt", fma(t, t, t * 2.0)))
    result = select(x < 2.0**28, small, log(x) + LN_2)
    return select(x < 1.0, like(x, float("nan")), result)


def atanh(x: Expr) -> Expr:
    """``log1p(2 |x| / (1 - |x|)) / 2``"""
    size = magnitude(x)
    return with_sign_of(log1p(size * 2.0 / (1.0 - size)) * 0.5, x)
