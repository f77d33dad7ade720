"""Elements chosen by a mask: compress and nonzero, with as many results as the mask has marks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op.axes import checked_axis
from ixion.op.bounds import Shapes
from ixion.op.call import call, unary_builder
from ixion.op.compare import Exact
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.rounding import Array
from ixion.op.sample import FLOATS, Draw, Sample, array, axis, choice, flag, shape
from ixion.op.scheduled import numbered


@register_attrs("ixion.attrs.CompressAttrs")
class CompressAttrs(Attrs):
    axis: int | None = attr(None, "the axis whose slices are chosen; none flattens the data")


def _infer_compress(args: InferArgs) -> Type:
    data, condition, at = args.tensor(0), args.tensor(1), args.attrs.axis
    if len(condition.shape) != 1 or not dtypes.is_bool(condition.dtype):
        args.fail("the condition is a vector of bools", found=condition)
    if at is None:
        return TensorType((dims.Any(),), data.dtype)
    at = checked_axis(args, at, len(data.shape))
    return TensorType((*data.shape[:at], dims.Any(), *data.shape[at + 1 :]), data.dtype)


def _compress_bound(args: InferArgs) -> Shapes:
    data, condition, at = args.tensor(0).shape, args.tensor(1).shape, args.attrs.axis
    if at is None:
        return ((dims.minimum(dims.prod(data), condition[0]),),)
    at %= len(data)
    return ((*data[:at], dims.minimum(data[at], condition[0]), *data[at + 1 :]),)


def _compress_reference(attrs: CompressAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    data, condition = inputs
    size = data.size if attrs.axis is None else data.shape[attrs.axis]
    return np.asarray(np.compress(condition[:size], data, axis=attrs.axis))


def _compress_samples(draw: Draw) -> Sample:
    x = array(draw, shape(draw, 1), choice(draw, (*FLOATS, "int32", "bool")))
    at = axis(draw, x.ndim) if flag(draw) else None
    size = x.size if at is None else x.shape[at]
    return Sample((x, array(draw, (draw.integer(0, size + 1),), "bool")), {"axis": at})


define(
    "compress",
    attrs=CompressAttrs,
    inputs=("data", "condition"),
    pattern=OpPattern.OPAQUE,
    level=10,
    infer=_infer_compress,
    reference=_compress_reference,
    compare=Exact(),
    samples=_compress_samples,
    FScheduled=numbered,
    FResultBound=_compress_bound,
    doc="Slices along an axis where the condition holds; what lies past its end is left out.",
)


define(
    "nonzero",
    inputs=("data",),
    pattern=OpPattern.OPAQUE,
    level=10,
    infer=lambda args: TensorType((len(args.tensor().shape), dims.Any()), "int64"),
    reference=lambda attrs, ins, out: np.argwhere(ins[0]).astype(np.int64).T,
    compare=Exact(),
    samples=lambda draw: Sample(
        (array(draw, shape(draw, 0, 3), choice(draw, ("bool", "float32")), -1, 1).round(),)
    ),
    FScheduled=numbered,
    FResultBound=lambda args: ((len(args.tensor().shape), dims.prod(args.tensor().shape)),),
    doc="Positions of nonzero elements in row-major order, one row per axis.",
)


def compress(data: Expr, condition: Expr, axis: int | None = None) -> Call:
    return call("compress", data, condition, axis=axis)


nonzero = unary_builder("nonzero")
