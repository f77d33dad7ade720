"""Transform matrices of Winograd convolution F(m, 3), and linear maps as expression code.

Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015.  An ``m x m``
output tile needs ``(m + 2)^2`` products per channel pair instead of ``9 m^2``.  The interpolation
points are 0, 1, -1, 2, -2 (and 1/2, -1/2 for m = 6) and infinity.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from ixion.te.expr import Const, Expr, binary, intrinsic

Array = np.ndarray[Any, np.dtype[Any]]
Matrix = tuple[tuple[Fraction, ...], ...]
_POINTS = (0, 1, -1, 2, -2, Fraction(1, 2), Fraction(-1, 2))


@cache
def matrices(m: int) -> tuple[Matrix, Matrix, Matrix]:
    """``(A^T, G, B^T)`` with ``y = A^T [(G g) * (B^T d)]`` for m outputs and 3 taps (Toom-Cook)."""
    n = m + 2
    points = [Fraction(p) for p in _POINTS[: n - 1]]
    a_t = tuple((*(p**i for p in points), Fraction(int(i == m - 1))) for i in range(m))
    scale = [_product([p - q for q in points if q != p]) for p in points]
    finite = (tuple(p**i / s for i in range(3)) for p, s in zip(points, scale, strict=True))
    g = (*finite, (Fraction(0), Fraction(0), Fraction(1)))
    rows = [_coefficients([q for q in points if q != p], n) for p in points]
    b_t = (*rows, _coefficients(points, n))
    return _balanced(a_t, g, b_t)


def _product(values: Sequence[Fraction]) -> Fraction:
    total = Fraction(1)
    for v in values:
        total *= v
    return total


def _coefficients(roots: Sequence[Fraction], size: int) -> tuple[Fraction, ...]:
    """Coefficients of ``prod(x - root)``, lowest power first, padded to ``size``."""
    poly = [Fraction(1)]
    for r in roots:
        shifted = [Fraction(0), *poly]
        poly = [s - r * p for s, p in zip(shifted, [*poly, Fraction(0)], strict=True)]
    return tuple(poly + [Fraction(0)] * (size - len(poly)))


def _balanced(a_t: Matrix, g: Matrix, b_t: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Moves signs and the denominators of B^T into G: cheap transforms of data, weights once."""
    new_g, new_b = [], []
    for g_row, b_row in zip(g, b_t, strict=True):
        lead = next(v for v in b_row if v)
        denominators = 1
        for v in b_row:
            denominators = denominators * v.denominator // _gcd(denominators, v.denominator)
        factor = Fraction(denominators) * (1 if lead > 0 else -1)
        new_b.append(tuple(v * factor for v in b_row))
        new_g.append(tuple(v / factor for v in g_row))
    return a_t, tuple(new_g), tuple(new_b)


def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


def transformed_weights(weight: Array, m: int) -> Array:
    """``(O, I, 3, 3)`` as ``((m+2)^2, O, I)``, computed in float64."""
    _, g, _ = matrices(m)
    g64 = np.array([[float(v) for v in row] for row in g])
    out = np.einsum("ai,ocij,bj->aboc", g64, weight.astype(np.float64), g64, optimize=True)
    return np.ascontiguousarray(out.reshape(-1, *weight.shape[:2])).astype(weight.dtype)


def combine(row: Sequence[Fraction], values: Sequence[Expr]) -> Expr:
    """``sum(row[i] * values[i])`` with as few operations as the coefficients allow."""
    parts = [(c, v) for c, v in zip(row, values, strict=True) if c]
    parts.sort(key=lambda part: part[0] != 1)  # start from a plain term where there is one
    total: Expr | None = None
    for c, v in parts:
        if total is None:
            total = v if c == 1 else binary("mul", v, _splat(float(c), v))
        elif c == 1:
            total = binary("add", total, v)
        elif c == -1:
            total = binary("sub", total, v)
        else:
            total = intrinsic("fma", v, _splat(float(c), v), total)
    assert total is not None
    return total


def _splat(value: float, like: Expr) -> Expr:
    return Const(value, like.dtype, like.lanes)
