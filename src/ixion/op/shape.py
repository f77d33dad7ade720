"""Axes moved, added and dropped: transpose, expand_dims, squeeze."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ixion import te
from ixion.base import dim as dims
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op.axes import checked_axes, checked_axis, shape_text
from ixion.op.call import call, known_ints
from ixion.op.compare import Exact
from ixion.op.define import InferArgs, OpPattern, define, moves
from ixion.op.extent import extents
from ixion.op.reshapes import reshape_compute, shaped_by
from ixion.op.rounding import Array
from ixion.op.sample import FLOATS, Draw, Sample, array, axes, choice, flag, shape

if TYPE_CHECKING:
    from ixion.base.dim import Dim


@register_attrs("relay.attrs.TransposeAttrs")
class TransposeAttrs(Attrs):
    axes: tuple[int, ...] | None = attr(None, "new order; none reverses all axes")


@register_attrs("relay.attrs.ExpandDimsAttrs")
class ExpandDimsAttrs(Attrs):
    axis: int = attr(doc="where the new axes go; negative counts from the end of the result")
    num_newaxis: int = attr(1, "how many")


@register_attrs("relay.attrs.SqueezeAttrs")
class SqueezeAttrs(Attrs):
    axis: tuple[int, ...] | None = attr(None, "axes of size 1 to drop; none drops all of them")


def permutation(axes: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Axes counted from the front; all reversed when none are given."""
    return tuple(range(rank))[::-1] if not axes else tuple(a % rank for a in axes)


def _infer_transpose(args: InferArgs) -> Type:
    data = args.tensor()
    rank = len(data.shape)
    if args.attrs.axes:
        if len(args.attrs.axes) != rank:
            args.fail("axes must name every axis once", expected=rank, found=args.attrs.axes)
        checked_axes(args, args.attrs.axes, rank)
    return TensorType([data.shape[a] for a in permutation(args.attrs.axes, rank)], data.dtype)


def _transpose_compute(
    attrs: TransposeAttrs, ins: tuple[te.Tensor, ...], out_type: Any
) -> te.Tensor:
    (x,) = ins
    order = permutation(attrs.axes, x.ndim)

    def body(*i: te.Expr) -> te.Expr:
        return x(*(i[order.index(a)] for a in range(x.ndim)))

    return te.compute(extents(out_type), body, "transpose")


def _transpose_samples(draw: Draw) -> Sample:
    dims = shape(draw, 1, 5)
    order = list(range(len(dims)))
    for i in range(len(order) - 1, 0, -1):
        j = draw.integer(0, i)
        order[i], order[j] = order[j], order[i]
    if flag(draw):
        order[0] -= len(order)
    attrs = {"axes": order} if draw.integer(0, 4) else {}
    return Sample((array(draw, dims, choice(draw, FLOATS)),), attrs)


define(
    "transpose",
    attrs=TransposeAttrs,
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=3,
    infer=_infer_transpose,
    reference=lambda attrs, ins, out: ins[0].transpose(permutation(attrs.axes, ins[0].ndim)),
    compute=_transpose_compute,
    compare=Exact(),
    symbolic=moves(),
    samples=_transpose_samples,
    doc="Axes in another order.",
)


def _infer_expand(args: InferArgs) -> Type:
    data, count = args.tensor(), args.attrs.num_newaxis
    rank = len(data.shape)
    if not -rank - 1 <= args.attrs.axis <= rank:
        args.fail("axis is out of range", expected=f"[-{rank + 1}, {rank}]", found=args.attrs.axis)
    at = args.attrs.axis + (rank + 1 if args.attrs.axis < 0 else 0)
    return TensorType((*data.shape[:at], *(1,) * count, *data.shape[at:]), data.dtype)


define(
    "expand_dims",
    attrs=ExpandDimsAttrs,
    inputs=("data",),
    pattern=OpPattern.BROADCAST,
    level=1,
    infer=_infer_expand,
    reference=shaped_by(_infer_expand),
    compute=reshape_compute,
    compare=Exact(),
    symbolic=moves(),
    samples=lambda draw: Sample(
        (array(draw, shape(draw, 2, 2)),),
        {"axis": draw.integer(-3, 2), "num_newaxis": draw.integer(0, 2)},
    ),
    TReshapeOp=True,
    doc="New axes of size 1.",
)


def _squeezed(args: InferArgs, shape: Sequence[Dim], axis: Sequence[int] | None) -> list[Dim]:
    if axis is None:
        return [d for d in shape if not (isinstance(d, int) and d == 1)]
    gone = checked_axes(args, axis, len(shape))
    for a in gone:
        args.agree(1, shape[a], "only axes of size 1 can be squeezed")
    return [d for i, d in enumerate(shape) if i not in gone]


def _infer_squeeze(args: InferArgs) -> Type:
    data = args.tensor()
    if args.attrs.axis is None and not dims.is_static(data.shape):
        args.fail("axes must be listed when a dim is unknown", found=shape_text(data.shape))
    return TensorType(_squeezed(args, data.shape, args.attrs.axis), data.dtype)


def _squeeze_reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
    axis = attrs.axis if len(inputs) == 1 else tuple(int(a) for a in inputs[1].ravel())
    return np.squeeze(inputs[0], axis=None if axis is None else tuple(axis))


def _squeeze_samples(draw: Draw) -> Sample:
    dims = [choice(draw, (1, 1, 3)) for _ in range(draw.integer(1, 4))]
    ones = [i for i, d in enumerate(dims) if d == 1]
    picked = [ones[i] for i in axes(draw, len(ones))]
    attrs = {"axis": [i - len(dims) if flag(draw) else i for i in picked]} if flag(draw) else {}
    return Sample((array(draw, dims),), attrs)


define(
    "squeeze",
    attrs=SqueezeAttrs,
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=3,
    infer=_infer_squeeze,
    reference=_squeeze_reference,
    compute=reshape_compute,
    compare=Exact(),
    symbolic=moves(),
    samples=_squeeze_samples,
    TReshapeOp=True,
    doc="Axes of size 1 dropped.",
)


@register_attrs("relay.attrs.DynExpandDimsAttrs")
class DynExpandDimsAttrs(Attrs):
    num_newaxis: int = attr(1, "how many")


def _infer_dyn_expand(args: InferArgs) -> Type | None:
    axis, data = args.ints(1), args.tensor(0)
    if axis is None:
        return TensorType((dims.Any(),) * (len(data.shape) + args.attrs.num_newaxis), data.dtype)
    at = checked_axis(args, axis[0], len(data.shape) + 1)
    ones = (1,) * args.attrs.num_newaxis
    return TensorType((*data.shape[:at], *ones, *data.shape[at:]), data.dtype)


define(
    "dyn.expand_dims",
    attrs=DynExpandDimsAttrs,
    inputs=("data", "axis"),
    pattern=OpPattern.INJECTIVE,
    level=3,
    infer=_infer_dyn_expand,
    reference=shaped_by(_infer_dyn_expand),
    compute=reshape_compute,
    compare=Exact(),
    samples=lambda draw: Sample((array(draw, (2, 3)), np.array(draw.integer(-3, 2), np.int64))),
    doc="New axes of size 1 at a place computed at run time.",
)


def _infer_dyn_squeeze(args: InferArgs) -> Type | None:
    data, listed = args.tensor(0), args.tensor(1)
    axis = args.ints(1)
    if axis is not None:
        return TensorType(_squeezed(args, data.shape, axis), data.dtype)
    if len(listed.shape) != 1 or not isinstance(listed.shape[0], int):
        args.fail("axes must be a vector of known length", found=shape_text(listed.shape))
    return TensorType((dims.Any(),) * (len(data.shape) - listed.shape[0]), data.dtype)


define(
    "dyn.squeeze",
    attrs=SqueezeAttrs,
    inputs=("data", "axes"),
    pattern=OpPattern.INJECTIVE,
    level=3,
    infer=_infer_dyn_squeeze,
    reference=_squeeze_reference,
    compute=reshape_compute,
    compare=Exact(),
    samples=lambda draw: Sample((array(draw, (1, 3, 1)), np.array([0, -1], np.int64))),
    doc="Axes of size 1, listed at run time, dropped.",
)


def transpose(data: Expr, axes: Sequence[int] | None = None) -> Call:
    return call("transpose", data, axes=axes or None)


def expand_dims(data: Expr, axis: Any, num_newaxis: int = 1) -> Call:
    axis = known_ints(axis)
    if isinstance(axis, Expr):
        return call("dyn.expand_dims", data, axis, num_newaxis=num_newaxis)
    at = axis[0] if isinstance(axis, (list, tuple)) else axis
    return call("expand_dims", data, axis=at, num_newaxis=num_newaxis)


def squeeze(data: Expr, axis: Any = None) -> Call:
    axis = known_ints(axis)
    if isinstance(axis, Expr):
        return call("dyn.squeeze", data, axis)
    return call("squeeze", data, axis=[axis] if isinstance(axis, int) else axis)
