"""Questions about constant expressions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion.base.dtype import to_numpy
from ixion.ir import Call, Constant, Expr, Op, Tuple

__all__ = [
    "check_constant",
    "equal_scalars",
    "is_non_negative",
    "is_scalar_constant",
    "scalar",
    "scalar_value",
]

# Operators that only move elements: what holds for all elements of the input holds for the output.
_MOVES = frozenset({"expand_dims", "reshape", "transpose", "squeeze", "repeat"})


def scalar(dtype: str, value: float) -> Constant:
    """A 0-d constant."""
    return Constant(np.array(value, dtype=to_numpy(dtype)))


def check_constant(expr: Expr) -> bool:
    """Whether ``expr`` is a constant or a tuple of such, at any depth."""
    pending = [expr]
    while pending:
        part = pending.pop()
        if isinstance(part, Tuple):
            pending.extend(part.fields)
        elif not isinstance(part, Constant):
            return False
    return True


def is_scalar_constant(expr: Expr) -> bool:
    return isinstance(expr, Constant) and expr.data.ndim == 0


def equal_scalars(left: Expr, right: Expr) -> bool:
    """Whether both are 0-d constants of one dtype and value."""
    if not isinstance(left, Constant) or not isinstance(right, Constant):
        return False
    a, b = left.data, right.data
    return a.ndim == b.ndim == 0 and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def scalar_value(expr: Expr) -> Any:
    """The number in a 0-d constant; None for anything else."""
    if not isinstance(expr, Constant) or expr.data.ndim:
        return None
    value = expr.data[()]
    return value.item() if isinstance(value, (np.number, np.bool_)) else float(value)


def is_non_negative(expr: Expr) -> bool:
    """Whether ``expr`` is a constant with no element below zero, moved around or not."""
    data = moved_constant(expr)
    return data is not None and bool((data >= 0).all())


def moved_constant(expr: Expr) -> np.ndarray[Any, Any] | None:
    """The constant below operators that only move its elements, or None."""
    while isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in _MOVES:
        expr = expr.args[0]
    return expr.data if isinstance(expr, Constant) else None
