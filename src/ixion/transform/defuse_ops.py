"""DefuseOps: put the bodies of primitive functions back in place of calls to them."""

from __future__ import annotations

from dataclasses import dataclass

from ixion.ir import Call, Expr, Function, IRModule, bind_vars, rewrite
from ixion.transform.context import PassContext
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import FunctionPass
from ixion.transform.registry import register_pass

__all__ = ["DefuseOps"]


@register_pass("DefuseOps")
@dataclass(frozen=True)
class DefuseOps(FunctionPass):
    """The inverse of FuseOps: the program before and after is the same."""

    info = PassInfo(3, "DefuseOps", ["InferType"])

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        return rewrite(func, _inline)  # type: ignore[return-value]  # a function stays one


def _inline(old: Expr, new: Expr) -> Expr:
    if not isinstance(new, Call) or not isinstance(new.op, Function):
        return new
    callee = new.op
    if callee.attrs is None or not callee.attrs.get("Primitive", 0):
        return new
    return bind_vars(callee.body, dict(zip(callee.params, new.args, strict=True)))
