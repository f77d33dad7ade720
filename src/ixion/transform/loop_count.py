"""Loops whose number of rounds is known before the first: a counter runs up or down to a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ixion.ir import Call, Constant, Expr, Op, TensorType, Var
from ixion.op.call import call as make_call
from ixion.transform.control_values import Held, Region

if TYPE_CHECKING:
    from ixion.transform.loop_form import Loop

__all__ = ["count_of"]

# A comparison as (direction, inclusive): the counter is on the left.
_UP, _UP_TO, _DOWN, _DOWN_TO = (1, False), (1, True), (-1, False), (-1, True)
_RELATIONS = {"less": _UP, "less_equal": _UP_TO, "greater": _DOWN, "greater_equal": _DOWN_TO}
_TURNED = {"less": "greater", "less_equal": "greater_equal", "greater": "less",
           "greater_equal": "less_equal"}  # fmt: skip
_DENIED = {"less": "greater_equal", "less_equal": "greater", "greater": "less_equal",
           "greater_equal": "less"}  # fmt: skip


def count_of(loop: Loop) -> Expr | None:
    """The number of rounds as an expression of the region around the loop (scalar int64).

    None where no integer counter with a constant step decides alone, against a bound that stays.
    """
    asked = _comparison(loop.go)
    if asked is None:
        return None
    name, left, right = asked
    if left not in loop.variables:
        name, left, right = _TURNED[name], right, left
    if left not in loop.variables or not _is_counter(left):
        return None
    direction, inclusive = _RELATIONS[name]
    k = loop.variables.index(left)
    step, bound = _step(loop, k), _bound(loop, right)
    if step is None or bound is None or step * direction <= 0:
        return None
    return _rounds(loop.outer, bound, loop.start[k], step, inclusive)


def _comparison(go: Expr) -> tuple[str, Expr, Expr] | None:
    denied = False
    while _name(go) == "logical_not":
        assert isinstance(go, Call)
        go, denied = go.args[0], not denied
    name = _name(go)
    if name not in _RELATIONS:
        return None
    assert isinstance(go, Call)
    return _DENIED[name] if denied else name, go.args[0], go.args[1]


def _is_counter(expr: Expr) -> bool:
    kind = expr.checked_type
    return isinstance(kind, TensorType) and not kind.shape and kind.dtype in ("int32", "int64")


def _step(loop: Loop, k: int) -> int | None:
    """What a round adds to the counter, if that is a constant."""
    new, captured = loop.new[k], loop.body.captured.get(loop.variables[k])
    name = _name(new)
    if captured is None or name not in ("add", "subtract"):
        return None
    assert isinstance(new, Call)
    first, second = new.args
    if name == "add" and second is captured[0]:
        first, second = second, first
    if first is not captured[0] or not isinstance(second, Constant) or second.data.size != 1:
        return None
    step = int(second.data.reshape(-1)[0])
    return -step if name == "subtract" else step


def _bound(loop: Loop, expr: Expr) -> Held | None:
    """What the counter is compared with, if no round changes it."""
    if isinstance(expr, Constant):
        return Held(expr, None)
    if isinstance(expr, Var) and expr in loop.variables:
        k = loop.variables.index(expr)
        return loop.start[k] if loop.keeps(k) else None
    return next((value for var, value in loop.head.captured.values() if var is expr), None)


def _rounds(region: Region, bound: Held, start: Held, step: int, inclusive: bool) -> Expr:
    """Rounds from start to bound, as many as a positive quotient rounded up says."""
    far, near = (bound, start) if step > 0 else (start, bound)
    extra = abs(step) - 1 + inclusive
    if isinstance(far.expr, Constant) and isinstance(near.expr, Constant):
        distance = int(far.expr.data.item()) - int(near.expr.data.item())
        return _number((distance + extra) // abs(step))
    count = _wide(region.use(far))
    if not (isinstance(near.expr, Constant) and near.expr.data.item() == 0):
        count = make_call("subtract", count, _wide(region.use(near)))
    if extra:
        count = make_call("add", count, _number(extra))
    return count if abs(step) == 1 else make_call("floor_divide", count, _number(abs(step)))


def _wide(expr: Expr) -> Expr:
    from ixion.transform.control_values import type_of

    kind = type_of(expr)
    assert isinstance(kind, TensorType)
    return expr if kind.dtype == "int64" else make_call("cast", expr, dtype="int64")


def _number(value: int) -> Constant:
    return Constant(np.array(value, np.int64))


def _name(expr: Expr) -> str:
    return expr.op.name if isinstance(expr, Call) and isinstance(expr.op, Op) else ""
