"""Exponential functions: exp, exp2, expm1, sigmoid, gate, tanh, sinh, cosh.

``e^x = 2^n e^r`` with ``|r| <= ln(2)/2``: ln 2 is subtracted in two parts, the first of which has
zeros enough at its end to make ``n * part`` exact with or without FMA. ``2^n`` is multiplied in two
halves, so that results that overflow or are denormal are rounded once and rightly.
"""

from __future__ import annotations

from ixion.codegen import vmath_coefficients as tables
from ixion.codegen.vmath_build import (
    Format,
    bits,
    fma,
    format_of,
    horner,
    like,
    magnitude,
    nearest,
    op,
    real,
    with_sign_of,
)
from ixion.te.expr import Expr, maximum, minimum, select

LOG2_E = 1.4426950408889634
LN2 = {
    "float32": (0.693145751953125, 1.428606765330187e-06),
    "float64": (0.6931471803691238, 1.9082149292705877e-10),
}
# Beyond these the result is 0 or infinity.
_LEAST = {"float32": -104.0, "float64": -746.0}
_MOST = {"float32": 89.0, "float64": 710.0}
# From here on a sigmoid is 1.
_WHOLE = {"float32": 18.0, "float64": 38.0}
_LEAST2 = {"float32": -151.0, "float64": -1076.0}
_MOST2 = {"float32": 129.0, "float64": 1025.0}


def reduced(x: Expr) -> tuple[Expr, Expr]:
    """(r, word) with ``x = n ln 2 + r`` and n in the low bits of word."""
    n, word = nearest(x, LOG2_E)
    high, low = LN2[x.dtype]
    return fma(n, -low, fma(n, -high, x)), word


def tail(r: Expr) -> Expr:
    """``e^r - 1`` for reduced r."""
    return fma(r * r, horner(r, tables.EXP[r.dtype]), r)


def scaled(p: Expr, word: Expr, extra: int = 0) -> Expr:
    """``p * 2^(n + extra)`` for any n that a clamped argument gives; p is near 1."""
    f = format_of(p)
    half = op("shl", op("lshr", word, 1), f.fraction)
    first = half + (f.bias << f.fraction)
    rest = op("shl", word, f.fraction) - half + ((f.bias + extra) << f.fraction)
    return p * real(first) * real(rest)


def scaled_normal(p: Expr, word: Expr) -> Expr:
    """``p * 2^n`` when the result is known to be normal."""
    return p * power_of_two(word, format_of(p))


def power_of_two(word: Expr, f: Format, extra: int = 0) -> Expr:
    """``2^(n + extra)``, a normal number."""
    return real(op("shl", word, f.fraction) + ((f.bias + extra) << f.fraction))


def exp(x: Expr, extra: int = 0) -> Expr:
    """``e^x * 2^extra``"""
    clamped = minimum(maximum(x, _LEAST[x.dtype]), _MOST[x.dtype] - extra)
    r, word = reduced(clamped)
    return scaled(tail(r) + 1.0, word, extra)


def exp_negative(x: Expr) -> Expr:
    """``e^x`` for x <= 0."""
    r, word = reduced(maximum(x, _LEAST[x.dtype]))
    return scaled(tail(r) + 1.0, word)


def exp2(x: Expr) -> Expr:
    return exp2_sum(minimum(maximum(x, _LEAST2[x.dtype]), _MOST2[x.dtype]), None)


def exp2_sum(x: Expr, small: Expr | None) -> Expr:
    """``2^(x + small)`` for x within the clamps of exp2 and |small| far below 1."""
    n, word = nearest(x, 1.0)
    r = x - n if small is None else (x - n) + small
    return scaled(fma(horner(r, tables.EXP2[x.dtype]), r, 1.0), word)


def expm1(x: Expr) -> Expr:
    """``2 (s (e^r - 1) + s - 1/2)`` with ``s = 2^(n-1)``: no cancellation, no early overflow."""
    clamped = minimum(maximum(x, -50.0), _MOST[x.dtype])
    r, word = reduced(clamped)
    s = power_of_two(word, format_of(x), -1)
    result = fma(s, tail(r), s - 0.5) * 2.0
    return with_sign_of(select(magnitude(x) < format_of(x).smallest, x, result), x)


def sigmoid(x: Expr) -> Expr:
    """``s / (s + s e^-x)`` with s small enough that no finite result makes the sum overflow."""
    f = format_of(x)
    extra = -(f.bias // 2)
    clamped = minimum(maximum(x, _LEAST[x.dtype]), _WHOLE[x.dtype])
    n, word = nearest(clamped, -LOG2_E)
    high, low = LN2[x.dtype]
    r = fma(n, -low, fma(n, -high, -clamped))
    e = fma(tail(r) + 1.0, power_of_two(word, f, extra), 2.0**extra)
    return like(x, 2.0**extra) / e


def gate(x: Expr) -> Expr:
    """``2 / (1 + 2^x)``, in float32 with an error below 2e-7: for sums that lose small digits.

    The shifter holds the exponent's bias too, so that its sum with x has the bits of ``2^n``; those
    of ``2^128`` are infinity's.
    """
    if x.dtype == "float64":
        return like(x, 2.0) / (exp2(x) + 1.0)
    f = format_of(x)
    within, shifter = minimum(maximum(x, -125.0), 128.0), f.shifter + f.bias
    shifted = within + shifter
    r = within - (shifted - shifter)
    power = fma(horner(r, tables.EXP2_SHORT[x.dtype]), r, 1.0)
    return like(x, 2.0) / fma(real(op("shl", bits(shifted), f.fraction)), power, 1.0)


def tanh(x: Expr) -> Expr:
    size = magnitude(x)
    if x.dtype == "float64":
        e = expm1(minimum(size, 22.0) * 2.0)
        return with_sign_of(e / (e + 2.0), x)
    z = x * x
    small = fma(x * z, horner(z, tables.TANH[x.dtype]), x)
    r, word = reduced(minimum(size, 10.0) * 2.0)
    large = 1.0 - like(x, 2.0) / (scaled_normal(tail(r) + 1.0, word) + 1.0)
    return with_sign_of(select(size < 0.625, small, large), x)


def sinh(x: Expr) -> Expr:
    size = magnitude(x)
    e = expm1(minimum(size, 2.0))
    small = (e + e / (e + 1.0)) * 0.5
    half = exp(size, -1)
    return with_sign_of(select(size < 2.0, small, half - like(x, 0.25) / half), x)


def cosh(x: Expr) -> Expr:
    half = exp(magnitude(x), -1)
    return half + like(x, 0.25) / half
