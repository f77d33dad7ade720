"""Fast algorithms for short correlations: matrices, and linear maps as expression code.

Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015.  ``m`` neighbouring
outputs of an ``r``-tap correlation take ``m + r - 1`` products instead of ``m r``.  With step 2 the
even and the odd inputs are correlated with the even and the odd taps, each by its own algorithm.
Two axes nest: a 3x3 convolution takes 36 products for 4x4 outputs, or 64 for 6x6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from ixion.te.expr import Const, Expr, binary, intrinsic

Array = np.ndarray[Any, np.dtype[Any]]
Row = tuple[Fraction, ...]
Matrix = tuple[Row, ...]
Algorithm = tuple[Matrix, Matrix, Matrix]
# In order of use, the last point at infinity.  Signed pairs share most of their work; powers of
# these are exact in binary and stay small, which keeps rounding errors at 1e-6 to 6e-6 of the
# largest output for all sizes in use.
_POINTS = (0, 1, -1, 2, -2, Fraction(1, 2), Fraction(-1, 2), Fraction(3, 2), Fraction(-3, 2))
MOST_POINTS = len(_POINTS) + 1


@dataclass(frozen=True, eq=False)
class Axis:
    """``y = a ((g w) * (b x))`` for ``m`` outputs, ``side`` inputs; tiles are ``hop`` apart."""

    m: int
    taps: int
    step: int
    a: Matrix
    g: Matrix
    b: Matrix

    @property
    def points(self) -> int:
        return len(self.b)

    @property
    def side(self) -> int:
        return self.step * (self.m - 1) + self.taps

    @property
    def hop(self) -> int:
        return self.step * self.m

    @property
    def plain(self) -> bool:
        """Whether inputs and outputs pass through unchanged."""
        return self.taps == 1 and self.step == 1


@cache
def axis(m: int, taps: int, step: int) -> Axis:
    """The algorithm for ``m`` outputs of a window of ``taps`` that moves by ``step``.

    ``step`` is 1, or 2 with at least 2 taps.
    """
    if step == 1:
        return Axis(m, taps, step, *_toom_cook(m, taps))
    side = step * (m - 1) + taps
    a0, g0, b0 = _spread(_toom_cook(m, (taps + 1) // 2), 0, side, taps)
    a1, g1, b1 = _spread(_toom_cook(m, taps // 2), 1, side, taps)
    a = tuple(x + y for x, y in zip(a0, a1, strict=True))
    return Axis(m, taps, step, a, g0 + g1, b0 + b1)


def _toom_cook(m: int, taps: int) -> Algorithm:
    n = m + taps - 1
    if taps == 1:
        unit = tuple(tuple(Fraction(int(i == j)) for j in range(m)) for i in range(m))
        return unit, ((Fraction(1),),) * m, unit
    points = [Fraction(p) for p in _POINTS[: n - 1]]
    a = tuple((*(p**i for p in points), Fraction(int(i == m - 1))) for i in range(m))
    scale = [_product([p - q for q in points if q != p]) for p in points]
    finite = (tuple(p**i / s for i in range(taps)) for p, s in zip(points, scale, strict=True))
    g = (*finite, (*(Fraction(0),) * (taps - 1), Fraction(1)))
    rows = [_coefficients([q for q in points if q != p], n) for p in points]
    return a, g, (*rows, _coefficients(points, n))


def _spread(algorithm: Algorithm, first: int, side: int, taps: int) -> Algorithm:
    """The algorithm on every second input and tap, from ``first`` on, of longer lines."""
    a, g, b = algorithm
    return (
        a, tuple(_placed(row, first, taps) for row in g),
        tuple(_placed(row, first, side) for row in b),
    )  # fmt: skip


def _placed(row: Row, first: int, size: int) -> Row:
    out = [Fraction(0)] * size
    out[first : first + 2 * len(row) : 2] = row
    return tuple(out)


def _product(values: Sequence[Fraction]) -> Fraction:
    total = Fraction(1)
    for v in values:
        total *= v
    return total


def _coefficients(roots: Sequence[Fraction], size: int) -> Row:
    """Coefficients of ``prod(x - root)``, lowest power first, padded to ``size``."""
    poly = [Fraction(1)]
    for r in roots:
        shifted = [Fraction(0), *poly]
        poly = [s - r * p for s, p in zip(shifted, [*poly, Fraction(0)], strict=True)]
    return tuple(poly + [Fraction(0)] * (size - len(poly)))


def transformed_weights(weight: Array, rows: Axis, cols: Axis) -> Array:
    """``(O, I, kh, kw)`` as ``(O, I, points)``, computed in float64."""
    g, h = (np.array([[float(v) for v in row] for row in x.g]) for x in (rows, cols))
    outs, ins, kh, kw = weight.shape
    flat = weight.reshape(outs * ins, kh * kw).astype(np.float64)
    return (flat @ np.kron(g, h).T).astype(weight.dtype).reshape(outs, ins, -1)


Name = Callable[[Expr], Expr]


def linear_map(matrix: Matrix, values: Sequence[Expr], name: Name) -> list[Expr]:
    """``matrix @ values``; ``name`` binds a value that is used more than once.

    Columns that are equal up to signs go through their sum and difference, and so do the parts
    that two rows have in common up to sign.
    """
    matrix, values = _paired_columns(matrix, values, name)
    out: list[Expr | None] = [None] * len(matrix)
    for i, j in _paired_rows(matrix):
        same = tuple((p + q) / 2 for p, q in zip(matrix[i], matrix[j], strict=True))
        other = tuple((p - q) / 2 for p, q in zip(matrix[i], matrix[j], strict=True))
        u, w = name(combine(same, values)), name(combine(other, values))
        out[i], out[j] = binary("add", u, w), binary("sub", u, w)
    return [
        name(combine(matrix[i], values) if made is None else made) for i, made in enumerate(out)
    ]


def _paired_columns(
    matrix: Matrix, values: Sequence[Expr], name: Name
) -> tuple[Matrix, Sequence[Expr]]:
    columns = list(zip(*matrix, strict=True))
    new_columns: list[Row] = []
    new_values: list[Expr] = []
    used: set[int] = set()
    for i, column in enumerate(columns):
        if i in used:
            continue
        j = next(
            (j for j in range(i + 1, len(columns)) if j not in used and _alike(column, columns[j])),
            None,
        )
        if j is None:
            new_columns.append(column)
            new_values.append(values[i])
            continue
        used.add(j)
        zero = Fraction(0)
        pairs = list(zip(column, columns[j], strict=True))
        new_columns.append(tuple(p if p == q else zero for p, q in pairs))
        new_values.append(name(binary("add", values[i], values[j])))
        new_columns.append(tuple(p if p != q else zero for p, q in pairs))
        new_values.append(name(binary("sub", values[i], values[j])))
    return tuple(zip(*new_columns, strict=True)), new_values


def _alike(a: Row, b: Row) -> bool:
    """Equal up to signs, in more than one place, with both signs."""
    alike = all(abs(p) == abs(q) for p, q in zip(a, b, strict=True))
    same = sum(p == q != 0 for p, q in zip(a, b, strict=True))
    other = sum(p == -q != 0 for p, q in zip(a, b, strict=True))
    return alike and same + other > 2 and other > 0 and same > 0


def _paired_rows(matrix: Matrix) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    used: set[int] = set()
    for i, row in enumerate(matrix):
        for j in range(i + 1, len(matrix)):
            if i not in used and j not in used and _alike(row, matrix[j]):
                pairs.append((i, j))
                used |= {i, j}
    return pairs


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


@cache
def map_cost(which: str, algorithm: Axis) -> int:
    """Arithmetic operations of ``b`` or ``a`` on one line."""
    from ixion.te.expr import Var

    matrix = algorithm.b if which == "b" else algorithm.a
    count = 0
    seen: set[int] = set()

    def note(value: Expr) -> Expr:
        nonlocal count
        stack = [value]
        while stack:
            node = stack.pop()
            if id(node) in seen or isinstance(node, (Var, Const)):
                continue
            seen.add(id(node))
            keep.append(node)
            count += 1
            stack.extend(node.children())
        return value

    keep: list[Expr] = []
    values = [Var(f"x{i}", "float32", 4) for i in range(len(matrix[0]))]
    linear_map(matrix, values, note)
    return count


def _splat(value: float, like: Expr) -> Expr:
    return Const(value, like.dtype, like.lanes)
