"""SimplifyExpr: ``a x x + b x y + c y y`` as ``a (x + p y) (x + q y)``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ixion.analysis.constants import scalar, scalar_value
from ixion.base.dtype import is_float
from ixion.ir import Call, Constant, Expr, Op, TensorType
from ixion.op.call import call
from ixion.transform.rewriting import Place

__all__ = ["factored_binomial"]

_DTYPES = ("int32", "float32", "float64")
_TINY = 10e-5


class _Term(NamedTuple):
    """``factor * left * right``."""

    factor: float
    left: Expr
    right: Expr

    @property
    def is_square(self) -> bool:
        return self.left is self.right


def factored_binomial(total: Call, place: Place) -> Expr | None:
    """The factors over the real numbers, where they exist (and are whole for integers)."""
    kind = total.checked_type
    if not isinstance(kind, TensorType) or kind.dtype not in _DTYPES:
        return None
    terms = _three_terms(total, place)
    if terms is None:
        return None
    found = _x_y_cross(terms)
    return None if found is None else _factored(*found, kind.dtype)


def _is(expr: Expr, name: str) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == name


def _three_terms(total: Call, place: Place) -> list[_Term] | None:
    """The terms of a sum of three, the one added last at the end."""
    for inner, last in (total.args, total.args[::-1]):
        if isinstance(inner, Call) and _is(inner, "add") and place.only_here(inner):
            terms = [_term(expr, place) for expr in (*inner.args, last)]
            if all(term is not None for term in terms):
                return [term for term in terms if term is not None]
    return None


def _term(expr: Expr, place: Place) -> _Term | None:
    """A product of two values and at most one constant."""
    if not isinstance(expr, Call) or not _is(expr, "multiply") or not place.only_here(expr):
        return None
    factors: list[Expr] = []
    for arg in expr.args:
        nested = isinstance(arg, Call) and _is(arg, "multiply") and place.only_here(arg)
        factors.extend(arg.args if nested and isinstance(arg, Call) else (arg,))
    constants = [factor for factor in factors if isinstance(factor, Constant)]
    values = [factor for factor in factors if not isinstance(factor, Constant)]
    if len(values) != 2 or len(constants) > 1:
        return None
    factor = scalar_value(constants[0]) if constants else 1.0
    return None if factor is None else _Term(float(factor), values[0], values[1])


def _x_y_cross(terms: Sequence[_Term]) -> tuple[_Term, _Term, _Term] | None:
    """The squares and the product of both, in Relay's order: what is added last is ``y``'s."""
    squares = [term for term in terms if term.is_square]
    crosses = [term for term in terms if not term.is_square]
    if len(squares) != 2 or len(crosses) != 1:
        return None
    (x, y), cross = squares, crosses[0]
    if {id(cross.left), id(cross.right)} != {id(x.left), id(y.left)}:
        return None
    return x, y, cross


def _factored(x: _Term, y: _Term, cross: _Term, dtype: str) -> Expr | None:
    if y.factor == 1 and x.factor > 1:
        x, y = y, x
    a, b, c = x.factor, cross.factor, y.factor
    square = b * b - 4 * a * c
    if square < 0 or a == 0:
        return None
    root = math.sqrt(square)
    p, q = (b + root) / (2 * a), (b - root) / (2 * a)
    if not is_float(dtype) and not (p.is_integer() and q.is_integer()):
        return None
    first = _sum(x.left, y.left, p, dtype)
    second = first if square < _TINY else _sum(x.left, y.left, q, dtype)
    return call("multiply", scalar(dtype, a), call("multiply", first, second))


def _sum(x: Expr, y: Expr, factor: float, dtype: str) -> Expr:
    return call("add", x, call("multiply", y, scalar(dtype, factor)))
