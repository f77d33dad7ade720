"""SplitToSlices: each field that is taken from a ``split`` becomes a strided slice.

A slice has one result, so it can be fused with what reads it, or be a view.
"""

from __future__ import annotations

from dataclasses import dataclass

from ixion.base import dim as dims
from ixion.ir import Call, Expr, Function, IRModule, Op, TupleGetItem, rewrite
from ixion.op.call import call as make_call
from ixion.op.typed import attrs_of, field_types, op_name
from ixion.transform.context import PassContext
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import FunctionPass
from ixion.transform.registry import register_pass


@register_pass("SplitToSlices")
@dataclass(frozen=True)
class SplitToSlices(FunctionPass):
    """Rewrites ``split(x, ...).i``."""

    info = PassInfo(0, "SplitToSlices", ["InferType"])

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        body = rewrite(func.body, _slice)
        return func if body is func.body else func.copy(body=body)


def _slice(old: Expr, new: Expr) -> Expr:
    if not isinstance(new, TupleGetItem) or not isinstance(new.tuple_value, Call):
        return new
    source = new.tuple_value
    if not isinstance(source.op, Op) or op_name(source) != "split":
        return new
    assert isinstance(old, TupleGetItem)
    sizes = [f.shape for f in field_types(old.tuple_value)]
    axis = int(attrs_of(source).axis) % len(sizes[0])
    along = [s[axis] for s in sizes]
    if any(isinstance(n, dims.Any) for n in along):
        return new
    begin: dims.Dim = 0
    for size in along[: new.index]:
        begin = dims.add(begin, size)
    end = dims.add(begin, along[new.index])
    return make_call(
        "strided_slice", source.args[0], begin=(begin,), end=(end,), strides=(1,), axes=(axis,),
        span=new.span or source.span,
    )  # fmt: skip
