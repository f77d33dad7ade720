"""sin, cos, tan and their inverses.

Arguments below 2^15 (float32) or 2^20 (float64) are reduced by subtracting multiples of pi/2 in
parts (Cody and Waite). Larger ones are multiplied by the digits of 2/pi that matter (Payne and
Hanek 1983), in code that runs only when a lane needs it.
"""

from __future__ import annotations

from ixion.codegen import vmath_coefficients as tables
from ixion.codegen.emit_plan import Rare
from ixion.codegen.vmath_build import (
    all_of,
    bits,
    flip_sign,
    fma,
    format_of,
    horner,
    integer_part,
    like,
    magnitude,
    nearest,
    op,
    real,
    sum_error,
    windows,
    with_sign_of,
)
from ixion.te.expr import Expr, cast, intrinsic, maximum, minimum, select

TWO_OVER_PI = 0.6366197723675814
HALF_PI = 1.5707963267948966
HALF_PI_REST = 6.123233995736766e-17
HALF_PI_PARTS = {
    "float32": (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    "float64": (
        1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32,
    ),
}  # fmt: skip
_FAR = {"float32": 2.0**15, "float64": 2.0**20}
_TAN_EIGHTH = 0.4142135623730951  # tan(pi/8)


def sin(x: Expr, exponent: int = 1023) -> Expr:
    """``exponent``: the largest binary exponent that an argument can have."""
    return select(x.equal(0.0), x, _quarter_wave(x, 0, exponent))


def cos(x: Expr, exponent: int = 1023) -> Expr:
    return _quarter_wave(x, 1, exponent)


def tan(x: Expr, exponent: int = 1023) -> Expr:
    def ratio(r: Expr, word: Expr) -> Expr:
        s, c = _sine(r), _cosine(r)
        odd = op("and", word, 1).not_equal(0)
        return select(odd, -c, s) / select(odd, s, c)

    usual = ratio(*_near(x))
    far = magnitude(x) >= _FAR[x.dtype]
    return select(x.equal(0.0), x, Rare(far, ratio(*_far(x, exponent)), usual))


def _quarter_wave(x: Expr, ahead: int, exponent: int) -> Expr:
    """The sine of x moved by ``ahead`` quarter turns."""
    usual = _turned(*_near(x), ahead)
    far = magnitude(x) >= _FAR[x.dtype]
    if x.dtype == "float32":
        r, word = _far(cast(x, "float64"), 127)
        seldom = _turned(cast(r, "float32"), cast(word, "int32"), ahead)
    else:
        seldom = _turned(*_far(x, exponent), ahead)
    return Rare(far, seldom, usual)


def _turned(r: Expr, word: Expr, ahead: int) -> Expr:
    """The sine of r and as many quarter turns as the low two bits of ``word`` say."""
    turns = word + ahead if ahead else word
    odd = op("and", turns, 1).not_equal(0)
    shift = 30 if word.dtype == "int32" else 62
    sign = op("shl", op("and", turns, 2), shift)
    return flip_sign(select(odd, _cosine(r), _sine(r)), sign)


def _sine(r: Expr) -> Expr:
    z = r * r
    return fma(r * z, horner(z, tables.SIN[r.dtype]), r)


def _cosine(r: Expr) -> Expr:
    z = r * r
    return fma(z * z, horner(z, tables.COS[r.dtype]), fma(z, -0.5, 1.0))


def _near(x: Expr) -> tuple[Expr, Expr]:
    """(r, word) with ``x = n pi/2 + r``, |r| <= pi/4, n in the low bits of word."""
    n, word = nearest(x, TWO_OVER_PI)
    r = x
    for part in HALF_PI_PARTS[x.dtype]:
        r = fma(n, -part, r)
    return r, word


def _far(x: Expr, exponent: int) -> tuple[Expr, Expr]:
    """As ``_near`` for a float64 of any size (below ``2^(exponent + 1)``).

    Pieces of 2/pi so high that they add whole turns are left out, the next nine count.
    """
    word = op("and", op("shr", bits(x), 52), 0x7FF) - 1023
    skipped = op("floordiv", maximum(word - 55, 0), 24)
    most = max((exponent - 55) // 24, 0)
    table = [like(x, p * 2.0**-24) for p in tables.TWO_OVER_PI[: most + 9]]
    pieces = windows(table, skipped, 9)
    start = real(bits(x) - op("shl", skipped * 24, 52))
    high = real(op("and", bits(start), ~((1 << 27) - 1)))
    total, rest = x * 0.0, like(x, 0.0)  # NaN for infinity
    for i, piece in enumerate(pieces):
        for half in (high, start - high):
            term = half * (piece * 2.0 ** (-24 * i))
            if i < 5:
                term = term - intrinsic("round", term * 0.25) * 4.0
            following = total + term
            rest = rest + sum_error(total, term, following)
            total = following
    n = integer_part(total)
    fraction = (total - n) + rest
    turn = integer_part(fraction)
    fraction = fraction - turn
    shifter = format_of(x).shifter
    return fma(fraction, HALF_PI, fraction * HALF_PI_REST), bits(n + turn + shifter)


# --- inverses ---------------------------------------------------------------------------------


def _arcsine(x: Expr, z: Expr) -> Expr:
    """The arcsine of |x| <= 1/2, ``z = x^2``."""
    return fma(x * z, horner(z, tables.ASIN[x.dtype]), x)


def asin(x: Expr) -> Expr:
    """Above one half it is ``pi/2`` less twice the arcsine of ``sqrt((1 - x) / 2)``."""
    size = magnitude(x)
    z = (1.0 - size) * 0.5
    root = intrinsic("sqrt", z)
    large = HALF_PI - (_arcsine(root, z) * 2.0 - HALF_PI_REST)
    return with_sign_of(select(size <= 0.5, _arcsine(size, size * size), large), x)


def acos(x: Expr) -> Expr:
    size = magnitude(x)
    z = (1.0 - size) * 0.5
    twice = _arcsine(intrinsic("sqrt", z), z) * 2.0
    large = select(x < 0.0, HALF_PI * 2.0 - (twice - HALF_PI_REST * 2.0), twice)
    small = HALF_PI - (_arcsine(x, x * x) - HALF_PI_REST)
    return select(size <= 0.5, small, large)


def atan(x: Expr) -> Expr:
    return with_sign_of(_arctangent(magnitude(x), like(x, 1.0)), x)


def _arctangent(y: Expr, x: Expr) -> Expr:
    """The angle of (x, y) in the first quadrant; the smaller over the larger, then by pi/8."""
    small, large = minimum(y, x), maximum(y, x)
    turned = small > large * _TAN_EIGHTH
    top = select(turned, small - large, small)
    bottom = select(turned, small + large, large)
    t = top / bottom
    z = t * t
    angle = fma(t * z, horner(z, tables.ATAN[t.dtype]), t)
    angle = select(turned, angle + HALF_PI_REST * 0.5, angle) + select(
        turned, like(t, HALF_PI / 2), like(t, 0.0)
    )
    return select(y > x, HALF_PI - (angle - HALF_PI_REST), angle)


def atan2(y: Expr, x: Expr) -> Expr:
    """The angle of (x, y); signed zeros and infinities as IEEE 754 has them."""
    infinity = float("inf")
    a, b = magnitude(y), magnitude(x)
    # Two infinities make 45 degrees, two zeros make 0.
    both = all_of(a.equal(infinity), b.equal(infinity))
    none = all_of(a.equal(0.0), b.equal(0.0))
    a = select(both, like(y, 1.0), a)
    b = select(both, like(y, 1.0), select(none, like(y, 1.0), b))
    angle = _arctangent(a, b)
    behind = bits(x) < 0
    angle = select(behind, HALF_PI * 2.0 - (angle - HALF_PI_REST * 2.0), angle)
    return with_sign_of(angle, y)
