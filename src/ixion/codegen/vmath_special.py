"""erf, pow, and small functions: rsqrt, sign, floored division, rounding without an instruction."""

from __future__ import annotations

from ixion.codegen import vmath_coefficients as tables
from ixion.codegen.vmath_build import (
    all_of,
    any_of,
    bits,
    fma,
    format_of,
    horner,
    like,
    magnitude,
    negate,
    product_error,
    sum_error,
    with_sign_of,
)
from ixion.codegen.vmath_exp import exp2_sum, exp_negative, reduced, scaled_normal, tail
from ixion.codegen.vmath_log import LOG2_E, Split, ends, log2, split
from ixion.te.expr import Expr, intrinsic, maximum, minimum, select

_INFINITY = float("inf")


def erf(x: Expr) -> Expr:
    """Odd polynomial below 1; ``1 - erfc`` above, where erfc need not be exact to its last bit."""
    z, size = x * x, magnitude(x)
    small = fma(x, horner(z, tables.ERF[x.dtype]), x)
    large = 1.0 - (_erfc_single(size) if x.dtype == "float32" else _erfc_double(size))
    return select(size < 1.0, small, with_sign_of(large, x))


def _erfc_single(size: Expr) -> Expr:
    r, word = reduced(-horner(minimum(size, 4.0), tables.ERFC_LOG["float32"]))
    return scaled_normal(tail(r) + 1.0, word)


def _erfc_double(size: Expr) -> Expr:
    t = minimum(maximum(size, 1.0), 6.0)
    return exp_negative(-(t * t)) * horner((t - 2.0) / (t + 2.0), tables.ERFC["float64"])


def rsqrt(x: Expr) -> Expr:
    return 1.0 / intrinsic("sqrt", x)


def sign(x: Expr) -> Expr:
    zero_or_nan = select(x.equal(0.0), like(x, 0.0), x)
    return select(x > 0.0, like(x, 1.0), select(x < 0.0, like(x, -1.0), zero_or_nan))


# --- power ------------------------------------------------------------------------------------


def pow_single(x: Expr, y: Expr) -> Expr:
    """``x^y`` in float64, good to well below float32's last bit."""
    exponent = minimum(maximum(y * log2(magnitude(x)), -1076.0), 1025.0)
    return _signed_power(x, y, exp2_sum(exponent, None))


def pow_double(x: Expr, y: Expr) -> Expr:
    """``x^y`` with the logarithm and its product by y carried in two float64."""
    size = magnitude(x)
    high, low = _long_log2(size)
    product = y * high
    small = product_error(y, high, product) + y * low
    exponent = minimum(maximum(product, -1076.0), 1025.0)
    # Beyond the clamp the error is meaningless (and NaN for infinities).
    small = select(magnitude(product) < 1025.0, small, like(x, 0.0))
    return _signed_power(x, y, exp2_sum(exponent, small))


def _long_log2(x: Expr) -> tuple[Expr, Expr]:
    """log2 of a positive x as a sum of two; what log2 gives at 0, infinity and NaN."""
    parts = split(x)
    high, low = _long_mantissa_log(parts)
    factor, factor_rest = (like(x, v) for v in LOG2_E["float64"])
    main = high * factor
    rest = product_error(high, factor, main) + fma(high, factor_rest, low * factor)
    total = parts.exponent + main
    rest = rest + sum_error(parts.exponent, main, total)
    return ends(x, total), select(all_of(x > 0.0, x < _INFINITY), rest, like(x, 0.0))


def _long_mantissa_log(parts: Split) -> tuple[Expr, Expr]:
    """``log(1 + f) = 2 s + s R(s^2)``, ``s = f / (2 + f)``, the quotient with its remainder."""
    f = parts.f
    below = f + 2.0
    below_rest = f - (below - 2.0)
    s = f / below
    product = s * below
    left = ((f - product) - product_error(s, below, product)) - s * below_rest
    z = s * s
    high = s * 2.0
    low = fma(s * z, horner(z, tables.LOG_RATIO["float64"]), left / below * 2.0)
    total = high + low
    return total, (high - total) + low


def _signed_power(x: Expr, y: Expr, power: Expr) -> Expr:
    """The rules of IEEE 754 pow around ``|x|^y``."""
    whole = intrinsic("trunc", y).equal(y)
    half = y * 0.5
    odd = all_of(whole, intrinsic("trunc", half).not_equal(half))
    power = select(all_of(bits(x) < 0, odd), -power, power)
    undefined = all_of(x < 0.0, x > -_INFINITY, negate(whole))
    power = select(undefined, like(x, float("nan")), power)
    turning = all_of(x.equal(-1.0), magnitude(y).equal(_INFINITY))
    return select(any_of(y.equal(0.0), x.equal(1.0), turning), like(x, 1.0), power)


# --- division that floors ---------------------------------------------------------------------


def floordiv(a: Expr, b: Expr) -> Expr:
    """Python's ``//`` as numpy has it for floats: from the exact remainder, so never one off."""
    rest = intrinsic("fmod", a, b)
    quotient = (a - rest) / b
    adjusted = select(all_of(rest.not_equal(0.0), _differ(rest, b)), quotient - 1.0, quotient)
    floor = intrinsic("floor", adjusted)
    floor = select(adjusted - floor > 0.5, floor + 1.0, floor)
    whole = select(adjusted.equal(0.0), with_sign_of(like(a, 0.0), a / b), floor)
    return select(b.equal(0.0), a / b, whole)


def floormod(a: Expr, b: Expr) -> Expr:
    """Python's ``%``: the remainder with the divisor's sign."""
    rest = intrinsic("fmod", a, b)
    nonzero = select(_differ(rest, b), rest + b, rest)
    return select(rest.equal(0.0), select(b.equal(0.0), rest, with_sign_of(rest, b)), nonzero)


def _differ(a: Expr, b: Expr) -> Expr:
    return (a < 0.0).not_equal(b < 0.0)


def truncdiv(a: Expr, b: Expr) -> Expr:
    return intrinsic("trunc", a / b)


def truncmod(a: Expr, b: Expr) -> Expr:
    return intrinsic("fmod", a, b)


# --- rounding -----------------------------------------------------------------------------------


def _rounded(x: Expr) -> Expr:
    """Nearest integer, ties to even, of the magnitude of x; x itself when it has no fraction."""
    size, limit = magnitude(x), 2.0 ** format_of(x).fraction
    return select(size < limit, (size + limit) - limit, size)


def round_even(x: Expr) -> Expr:
    return with_sign_of(_rounded(x), x)


def trunc(x: Expr) -> Expr:
    near = _rounded(x)
    return with_sign_of(select(near > magnitude(x), near - 1.0, near), x)


def floor(x: Expr) -> Expr:
    near = round_even(x)
    return with_sign_of(select(near > x, near - 1.0, near), x)


def ceil(x: Expr) -> Expr:
    near = round_even(x)
    return with_sign_of(select(near < x, near + 1.0, near), x)
