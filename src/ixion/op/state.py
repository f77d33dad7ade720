"""State kept between runs: new elements written into a buffer with room for more."""

from __future__ import annotations

from typing import Any

from ixion.base import dim as dims
from ixion.base.dim import Dim  # attribute types are read at run time
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import Type
from ixion.op.axes import shape_text
from ixion.op.call import call
from ixion.op.compare import Exact
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.rounding import Array
from ixion.op.sample import FLOATS, Draw, Sample, array, choice, shape


@register_attrs("ixion.attrs.StateAppendAttrs")
class StateAppendAttrs(Attrs):
    axis: int = attr(doc="the axis along which elements are added, counted from the front")
    offset: Dim = attr(doc="the first position that is written")


def _infer(args: InferArgs) -> Type:
    buffer, new = args.tensor(0), args.tensor(1)
    axis = args.attrs.axis
    if buffer.dtype != new.dtype or len(buffer.shape) != len(new.shape):
        args.fail("new elements must be like the state's", expected=buffer, found=new)
    if not 0 <= axis < len(buffer.shape):
        args.fail("axis is out of range", expected=f"[0, {len(buffer.shape)})", found=axis)
    for d, (a, b) in enumerate(zip(buffer.shape, new.shape, strict=True)):
        if d != axis and dims.same(a, b) is False:
            args.fail("shapes differ beside the axis", expected=shape_text(buffer.shape),
                      found=shape_text(new.shape))  # fmt: skip
    return buffer


def _reference(attrs: StateAppendAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    buffer, new = inputs
    out = buffer.copy()
    start = dims.evaluate(attrs.offset, {})
    place: list[Any] = [slice(None)] * out.ndim
    place[attrs.axis] = slice(start, start + new.shape[attrs.axis])
    out[tuple(place)] = new
    return out


def _samples(draw: Draw) -> Sample:
    sizes = shape(draw, 1, 4, 2, 4)
    axis, dtype = draw.integer(0, len(sizes) - 1), choice(draw, FLOATS)
    offset = draw.integer(0, sizes[axis] - 1)
    new = list(sizes)
    new[axis] = draw.integer(1, sizes[axis] - offset)
    operands = (array(draw, sizes, dtype), array(draw, new, dtype))
    return Sample(operands, {"axis": axis, "offset": offset})


def _scheduled(attrs: StateAppendAttrs, args: Any, out: Any) -> bool:
    return True


define(
    "state.append",
    attrs=StateAppendAttrs,
    inputs=("buffer", "new"),
    pattern=OpPattern.OPAQUE,
    level=10,
    infer=_infer,
    reference=_reference,
    compare=Exact(),
    samples=_samples,
    FScheduled=_scheduled,
    # The result is the first operand's memory, which nobody may need as it was.
    TWritesOperand=0,
    doc="The buffer with new elements from a position on; compiled code writes them in place.",
)


def append(buffer: Expr, new: Expr, axis: int, offset: Dim) -> Call:
    return call("state.append", buffer, new, axis=axis, offset=offset)


__all__ = ["StateAppendAttrs", "append"]
