"""Questions about constant expressions."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ixion.base import dtype as dtypes
from ixion.ir import Call, Constant, Expr, Op, Tuple

__all__ = [
    "check_constant",
    "equal_scalars",
    "is_non_negative",
    "is_scalar_constant",
    "scalar",
    "scalar_value",
    "value_range",
]

# Operators that only move elements: what holds for all elements of the input holds for the output.
_MOVES = frozenset({"expand_dims", "reshape", "transpose", "squeeze", "repeat"})


def scalar(dtype: str, value: float) -> Constant:
    """A 0-d constant."""
    return Constant(np.array(value, dtype=dtypes.to_numpy(dtype)))


def value_range(dtype: str) -> tuple[float, float]:
    """Least and largest finite number of a dtype; bool counts as 0 and 1."""
    if dtypes.is_bool(dtype):
        return 0.0, 1.0
    if dtypes.is_integer(dtype):
        low = -(2 ** (dtypes.bits(dtype) - 1)) if dtypes.is_signed(dtype) else 0
        return float(low), float(low + 2 ** dtypes.bits(dtype) - 1)
    storage = dtypes.to_numpy(dtype)
    # numpy's own are not looked up elsewhere: importing ml_dtypes can take a second.
    limits: Any = np.finfo(storage) if storage.isbuiltin == 1 else _foreign_limits(storage)
    return float(limits.min), float(limits.max)


def _foreign_limits(storage: np.dtype[Any]) -> Any:
    return importlib.import_module("ml_dtypes").finfo(storage)


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
    value = expr.data.item()
    # The small float types of ml_dtypes stay scalars of their own.
    return value if isinstance(value, (bool, int, float, complex)) else float(value)


def is_non_negative(expr: Expr) -> bool:
    """Whether ``expr`` is a constant with no element below zero, moved around or not."""
    data = moved_constant(expr)
    return data is not None and bool((data >= 0).all())


def moved_constant(expr: Expr) -> np.ndarray[Any, Any] | None:
    """The constant below operators that only move its elements, or None."""
    while isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in _MOVES:
        expr = expr.args[0]
    return expr.data if isinstance(expr, Constant) else None
