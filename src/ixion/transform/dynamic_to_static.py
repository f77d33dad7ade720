"""DynamicToStatic: sizes that turn out to be constants go from operands into attributes."""

from __future__ import annotations

from dataclasses import dataclass

from ixion.ir import Call, Expr, Function, IRModule, rewrite
from ixion.op.value import is_concrete
from ixion.transform.context import PassContext
from ixion.transform.dynamic_ops import static_call
from ixion.transform.known_values import KnownValues
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import FunctionPass
from ixion.transform.registry import register_pass

__all__ = ["DynamicToStatic"]


@register_pass("DynamicToStatic")
@dataclass(frozen=True)
class DynamicToStatic(FunctionPass):
    """Relay's pass: a ``dyn.*`` operator whose size operands are constants, or computed from
    constants and static shapes, becomes the operator without ``dyn.``.
    """

    info = PassInfo(3, "DynamicToStatic", ["InferType"])

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        known = KnownValues(func, mod)

        def visit(old: Expr, new: Expr) -> Expr:
            if not isinstance(old, Call) or not isinstance(new, Call):
                return new
            values = [known.of(arg) for arg in old.args]
            numbers = [v if v is not None and is_concrete(v) else None for v in values]
            return static_call(new, numbers) or new

        return rewrite(func, visit)  # type: ignore[return-value]  # a function stays one
