"""Fractions of symbolic sizes: exporters scale shapes in floating point and round them again.

A float tensor that type inference follows has whole elements (ints and symbolic dims) and
``Ratio``s. Rounding one gives a whole number again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ixion.base import dim as dims
from ixion.base.dim import Dim, SymExpr
from ixion.op.value import Array, Value

__all__ = ["Ratio", "add", "divide", "multiply", "subtract", "whole"]

# Within it float32 computes the quotient of a size so that it rounds to the same whole number.
_LARGEST = 1024


@dataclass(frozen=True)
class Ratio:
    """``top / bottom``, not a whole number for every size."""

    top: Dim
    bottom: int


def _parts(value: Any) -> tuple[Dim, int] | None:
    """Numerator and denominator; None for an unknown number or one without a short fraction."""
    if isinstance(value, Ratio):
        return value.top, value.bottom
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            return None
        exact = Fraction(float(value))
        return (exact.numerator, exact.denominator) if exact.denominator <= _LARGEST else None
    if isinstance(value, (int, np.integer, SymExpr)):
        return (value if isinstance(value, SymExpr) else int(value)), 1
    return None


def _made(top: Dim, bottom: int) -> Dim | Ratio | None:
    if not 0 < bottom <= _LARGEST:
        return None
    quotient = dims.floordiv(top, bottom)
    return quotient if dims.same(dims.multiply(quotient, bottom), top) else Ratio(top, bottom)


def add(a: Any, b: Any) -> Dim | Ratio | None:
    """The sum; None where it is not known."""
    left, right = _parts(a), _parts(b)
    if left is None or right is None:
        return None
    top = dims.add(dims.multiply(left[0], right[1]), dims.multiply(right[0], left[1]))
    return _made(top, left[1] * right[1])


def subtract(a: Any, b: Any) -> Dim | Ratio | None:
    """The difference."""
    return add(a, multiply(-1, b))


def multiply(a: Any, b: Any) -> Dim | Ratio | None:
    """The product."""
    left, right = _parts(a), _parts(b)
    if left is None or right is None:
        return None
    return _made(dims.multiply(left[0], right[0]), left[1] * right[1])


def divide(a: Any, b: Any) -> Dim | Ratio | None:
    """The quotient; by a symbol only where it is a whole number."""
    left, right = _parts(a), _parts(b)
    if left is None or right is None or right[0] == 0:
        return None
    top, bottom = dims.multiply(left[0], right[1]), dims.multiply(right[0], left[1])
    if isinstance(bottom, int):
        return _made(dims.multiply(top, 1 if bottom > 0 else -1), abs(bottom))
    quotient = dims.floordiv(top, bottom)
    return quotient if dims.same(dims.multiply(quotient, bottom), top) else None


def rounded(value: Any, rule: str) -> Dim | None:
    """A number made whole by ``floor``, ``ceil``, or ``trunc`` (of what is never negative)."""
    parts = _parts(value)
    if parts is None:
        return None
    top, bottom = parts
    if rule == "ceil":
        return dims.ceil_div(top, bottom)
    least = dims.lower_bound(top)
    negative = bottom > 1 and rule == "trunc" and (least is None or least < 0)
    return None if negative else dims.floordiv(top, bottom)


def whole(value: Array, rule: str) -> Value:
    """Every element made whole by a rule; None where one is not known."""
    out = np.empty(value.shape, object)
    for at in np.ndindex(*value.shape):
        one = rounded(value[at], rule)
        if one is None:
            return None
        out[at] = one
    return out
