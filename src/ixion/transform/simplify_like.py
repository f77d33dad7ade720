"""SimplifyExpr: operators that take a shape or dtype from another tensor, where it is known.

Without the other tensor as an operand the program has fewer dependencies and fuses better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ixion.base.dim import Dim, is_static
from ixion.ir import Call, Constant, Expr, Op, TensorType
from ixion.op.call import call
from ixion.op.reshapes import reshape_to
from ixion.transform.rewriting import Place, Rule
from ixion.transform.type_writer import is_known_type

__all__ = ["LIKE_RULES"]

_Make = Callable[[Sequence[Expr], Sequence[Dim], str], Expr | None]


def _concrete(make: _Make) -> Rule:
    def rule(like: Call, place: Place) -> Expr | None:
        kind = like.checked_type
        if not isinstance(kind, TensorType) or not is_known_type(kind):
            return None
        return make(like.args, kind.shape, kind.dtype)

    return rule


def _collapse_sum_to(args: Sequence[Expr], shape: Sequence[Dim], dtype: str) -> Expr | None:
    if not is_static(shape):
        return None
    target = Constant(np.array(shape, dtype=np.int32))
    op = Op.get("collapse_sum_to")
    attrs = None if op.attrs_type is None else op.attrs_type(shape=shape)
    return Call(op, (args[0], target), attrs)


def _cast_like(like: Call, place: Place) -> Expr | None:
    kind: Any = like.checked_type
    return call("cast", like.args[0], dtype=kind.dtype) if isinstance(kind, TensorType) else None


LIKE_RULES: dict[str, Rule] = {
    "zeros_like": _concrete(lambda args, shape, dtype: call("zeros", shape=shape, dtype=dtype)),
    "ones_like": _concrete(lambda args, shape, dtype: call("ones", shape=shape, dtype=dtype)),
    "full_like": _concrete(
        lambda args, shape, dtype: call("full", args[1], shape=shape, dtype=dtype)
    ),
    "reshape_like": _concrete(lambda args, shape, _: reshape_to(args[0], shape)),
    "collapse_sum_like": _concrete(_collapse_sum_to),
    "broadcast_to_like": _concrete(
        lambda args, shape, _: call("broadcast_to", args[0], shape=shape)
    ),
    "cast_like": _cast_like,
}
