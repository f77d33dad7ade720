"""put_slice: a tensor with some neighbours along one axis replaced, from a position that is data.

What loops write their results with, a row at a time: the kernel writes only the part where the old
tensor is not needed any more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion.base import dim as dims
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op.axes import checked_axis
from ixion.op.broadcast import same_dtype
from ixion.op.call import call
from ixion.op.compare import Exact
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.index import check_integer, check_range
from ixion.op.rounding import Array
from ixion.op.sample import Draw, Sample, array, axis, choice, shape

__all__ = ["put_slice"]


@register_attrs("ixion.attrs.PutSliceAttrs")
class PutSliceAttrs(Attrs):
    axis: int = attr(0, "axis along which the part is put")


def _infer(args: InferArgs) -> Type:
    data, part, begin = args.tensor(0), args.tensor(1), args.tensor(2)
    check_integer(args, 2)
    same_dtype(args, data, part)
    at = checked_axis(args, args.attrs.axis, len(data.shape))
    if begin.shape:
        args.fail("the position is a scalar", found=begin)
    rule = "data and part agree but for the axis"
    old, new = ([d for i, d in enumerate(kind.shape) if i != at] for kind in (data, part))
    args.agree_all(old, new, rule, expected=data, found=part)
    sizes = part.shape[at], data.shape[at]
    if isinstance(sizes[0], int) and isinstance(sizes[1], int) and sizes[0] > sizes[1]:
        args.fail("the part fits into data", expected=f"at most {sizes[1]}", found=sizes[0])
    # Other sizes are no assumption: a position that leaves no room is an error when it is met.
    return data


def _reference(attrs: PutSliceAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    data, part, begin = inputs
    at = attrs.axis % data.ndim
    room = data.shape[at] - part.shape[at] + 1
    first = int(check_range("put_slice", np.asarray(begin).reshape(1).astype(np.int64), room)[0])
    out = data.copy()
    out[(slice(None),) * at + (slice(first, first + part.shape[at]),)] = part
    return out


def _scheduled(attrs: PutSliceAttrs, kinds: tuple[TensorType, ...], out: TensorType) -> bool:
    """Whether there is a kernel: none for sizes that depend on data, nor for complex numbers."""
    known = not any(isinstance(d, dims.Any) for kind in kinds[:2] for d in kind.shape)
    return known and not out.dtype.startswith("complex")


def _samples(draw: Draw) -> Sample:
    data = array(draw, shape(draw, 1), choice(draw, ("float32", "int64", "int8")))
    at = axis(draw, data.ndim)
    size = draw.integer(1, data.shape[at])
    inner = [size if i == at % data.ndim else n for i, n in enumerate(data.shape)]
    begin = np.array(draw.integer(0, data.shape[at] - size), choice(draw, ("int32", "int64")))
    return Sample((data, array(draw, inner, data.dtype.name), begin), {"axis": at})


define(
    "put_slice",
    attrs=PutSliceAttrs,
    inputs=("data", "part", "begin"),
    pattern=OpPattern.OPAQUE,
    level=10,
    infer=_infer,
    reference=_reference,
    compare=Exact(),
    samples=_samples,
    FScheduled=_scheduled,
    doc="data with part in place of as many neighbours along an axis, from position begin on.",
)


def put_slice(data: Expr, part: Expr, begin: Expr, axis: int = 0) -> Call:
    return call("put_slice", data, part, begin, axis=axis)
