"""CanonicalizeOps: bias_add as expand_dims and add, so that later passes know one form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ixion.ir import Call, Expr, Function, IRModule, Op, TensorType, rewrite
from ixion.op.call import call
from ixion.transform.channel_axes import expand_to_axes
from ixion.transform.context import PassContext
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import FunctionPass
from ixion.transform.registry import register_pass

__all__ = ["CanonicalizeOps"]


@register_pass("CanonicalizeOps")
@dataclass(frozen=True)
class CanonicalizeOps(FunctionPass):
    """Rewrites ``nn.bias_add(data, bias)`` as ``add(data, expand_dims(bias))``."""

    info = PassInfo(3, "CanonicalizeOps", ["InferType"])

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        return rewrite(func, _canonical)  # type: ignore[return-value]  # a function stays one


def _canonical(old: Expr, new: Expr) -> Expr:
    if not isinstance(new, Call) or not isinstance(new.op, Op) or new.op.name != "nn.bias_add":
        return new
    assert isinstance(old, Call)
    kind = old.args[0].checked_type
    assert isinstance(kind, TensorType)
    attrs: Any = new.attrs
    axis = attrs.axis + len(kind.shape) if attrs.axis < 0 else attrs.axis
    bias = expand_to_axes(new.args[1], kind.shape, (axis,))
    assert bias is not None
    return call("add", new.args[0], bias, span=new.span)
