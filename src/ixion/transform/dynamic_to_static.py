"""DynamicToStatic: sizes that turn out to be constants go from operands into attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ixion.ir import Call, Constant, Expr, Function, IRModule, rewrite
from ixion.op.define import VALUE_LIMIT
from ixion.op.value import is_concrete
from ixion.transform.context import PassContext
from ixion.transform.dynamic_ops import static_call
from ixion.transform.fold_constant import fold_constant_expr
from ixion.transform.infer_type import infer_expr
from ixion.transform.known_values import KnownValues
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import FunctionPass
from ixion.transform.registry import register_pass

__all__ = ["DynamicToStatic"]


@register_pass("DynamicToStatic")
@dataclass(frozen=True)
class DynamicToStatic(FunctionPass):
    """Relay's pass: a ``dyn.*`` operator whose size operands are constants, or computed from
    constants and static shapes, becomes the operator without ``dyn.``. Constants are folded and
    types inferred on the way, so the function may come without types.
    """

    info = PassInfo(3, "DynamicToStatic", ["InferType"])

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        while True:
            typed = infer_expr(fold_constant_expr(func, mod), mod)
            func = _rewritten(typed, mod)  # type: ignore[arg-type]  # a function stays one
            if func is typed:
                return func


def _rewritten(func: Function, mod: IRModule) -> Function:
    known = KnownValues(func, mod)

    def visit(old: Expr, new: Expr) -> Expr:
        if not isinstance(old, Call) or not isinstance(new, Call):
            return new
        return static_call(new, [_number(arg, known) for arg in old.args]) or new

    return rewrite(func, visit)  # type: ignore[return-value]  # a function stays one


def _number(arg: Expr, known: KnownValues) -> Any:
    """A size operand in numbers; a constant may hold them as floats."""
    if isinstance(arg, Constant) and arg.data.size <= VALUE_LIMIT and arg.data.dtype.kind in "iuf":
        return arg.data.astype(np.int64).astype(object)
    value = known.of(arg)
    return value if value is not None and is_concrete(value) else None
