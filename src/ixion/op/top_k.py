"""ONNX's TopK with a k computed at run time: any k up to the axis, also 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.base.errors import KernelError
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Expr, TupleWrapper
from ixion.ir.types import TensorType, TupleType, Type
from ixion.op.axes import checked_axis
from ixion.op.bounds import Shapes
from ixion.op.call import call
from ixion.op.compare import Exact
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.ordering import stable_order
from ixion.op.rounding import Array
from ixion.op.sample import FLOATS, Draw, Sample, array, axis, choice, flag, shape
from ixion.op.scheduled import plain_tensors


@register_attrs("ixion.attrs.TopKOfAttrs")
class TopKOfAttrs(Attrs):
    axis: int = attr(-1, "the axis to order")
    is_ascend: bool = attr(False, "smallest first")
    dtype: str = attr("int64", "dtype of positions")


def _infer(args: InferArgs) -> Type:
    data, k = args.tensor(0), args.value(1)
    at = checked_axis(args, args.attrs.axis, len(data.shape))
    size, count = data.shape[at], dims.Any() if k is None else k.ravel()[0]
    if isinstance(count, int) and (count < 0 or (isinstance(size, int) and count > size)):
        args.fail("k must lie within the axis", expected=f"0 to {size}", found=count)
    out = (*data.shape[:at], count, *data.shape[at + 1 :])
    return TupleType((TensorType(out, data.dtype), TensorType(out, args.attrs.dtype)))


def _bound(args: InferArgs) -> Shapes:
    shape_, k = list(args.tensor(0).shape), args.ints(1)
    if k:
        shape_[args.attrs.axis] = k[0]
    return tuple(shape_), tuple(shape_)


def _reference(attrs: TopKOfAttrs, inputs: tuple[Array, ...], out_type: Any) -> Any:
    x, k = inputs[0], int(inputs[1].ravel()[0])
    if not 0 <= k <= x.shape[attrs.axis]:
        raise KernelError(f"top_k: k = {k} of an axis of {x.shape[attrs.axis]}", index=k)
    order = stable_order(x, attrs.axis, attrs.is_ascend).take(range(k), axis=attrs.axis)
    values = np.take_along_axis(x, order, axis=attrs.axis)
    return values, order.astype(dtypes.to_numpy(attrs.dtype))


def _samples(draw: Draw) -> Sample:
    x = array(draw, shape(draw), choice(draw, (*FLOATS, "int32", "uint8")))
    at = axis(draw, x.ndim)
    attrs = {"axis": at, "is_ascend": flag(draw), "dtype": choice(draw, ("int32", "int64"))}
    return Sample((x.round(), np.array(draw.integer(0, x.shape[at]), np.int64)), attrs)


define(
    "top_k",
    attrs=TopKOfAttrs,
    inputs=("data", "k"),
    pattern=OpPattern.OPAQUE,
    level=10,
    infer=_infer,
    reference=_reference,
    compare=Exact(),
    samples=_samples,
    num_outputs=2,
    FResultBound=_bound,
    FScheduled=plain_tensors,
    doc="The k largest (or smallest) elements along an axis in order, and their positions.",
)


def top_k(
    data: Expr, k: Expr, axis: int = -1, is_ascend: bool = False, dtype: str = "int64"
) -> TupleWrapper:
    made = call("top_k", data, k, axis=axis, is_ascend=is_ascend, dtype=dtype)
    return TupleWrapper(made, 2)
