"""Integer tensors that follow from sizes alone: what is left of an exporter's shape arithmetic
where a program uses the numbers themselves. They have no operands, so any kernel can make its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ixion import te
from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.base.dim import Dim
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call
from ixion.ir.types import TensorType
from ixion.op.call import call
from ixion.op.compare import Exact
from ixion.op.define import VALUE_LIMIT, InferArgs, Inferred, OpPattern, define
from ixion.op.extent import extent, index
from ixion.op.reshapes import flat_index
from ixion.op.rounding import Array
from ixion.op.sample import Draw, Sample, choice, shape
from ixion.op.value import as_objects


@register_attrs("ixion.attrs.SizesAttrs")
class SizesAttrs(Attrs):
    values: tuple[Dim, ...] = attr(doc="the elements in row-major order, numbers or symbols")
    shape: tuple[int, ...] = attr((), "shape of the tensor; none is a scalar")
    dtype: str = attr("int64", "an integer dtype")


def _infer(args: InferArgs) -> Inferred:
    attrs = args.attrs
    count = math.prod(attrs.shape)
    if len(attrs.values) != count or count > VALUE_LIMIT:
        args.fail("one value for each element", expected=min(count, VALUE_LIMIT),
                  found=len(attrs.values))  # fmt: skip
    if not dtypes.is_integer(attrs.dtype):
        args.fail("sizes are integers", found=attrs.dtype)
    value = np.empty(count, object)
    value[:] = attrs.values
    return Inferred(TensorType(attrs.shape, attrs.dtype), value.reshape(attrs.shape))


def _reference(attrs: SizesAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    values = [dims.evaluate(value, {}) for value in attrs.values]
    return np.array(values, dtypes.to_numpy(attrs.dtype)).reshape(attrs.shape)


def _compute(attrs: SizesAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    values = [te.cast(index(extent(value)), attrs.dtype) for value in attrs.values]

    def body(*i: te.Expr) -> te.Expr:
        at = flat_index(i, attrs.shape)
        out = values[-1] if values else te.const(0, attrs.dtype)
        for place in range(len(values) - 2, -1, -1):
            out = te.select(te.compare("eq", at, place), values[place], out)
        return out

    return te.compute(attrs.shape, body, "sizes")


def _samples(draw: Draw) -> Sample:
    dims_ = shape(draw, 0, 2, 1, 3)
    values = [draw.integer(-5, 100) for _ in range(math.prod(dims_))]
    dtype = choice(draw, ("int64", "int32"))
    return Sample((), {"values": values, "shape": dims_, "dtype": dtype})


define(
    "sizes",
    attrs=SizesAttrs,
    inputs=(),
    pattern=OpPattern.ELEMWISE,
    level=10,
    infer=_infer,
    reference=_reference,
    compute=_compute,
    compare=Exact(),
    samples=_samples,
    doc="A tensor of sizes, which may be symbols of the program's types.",
)


@register_attrs("ixion.attrs.IotaAttrs")
class IotaAttrs(Attrs):
    length: Dim = attr(doc="number of elements")
    start: Dim = attr(0, "the first element")
    step: int = attr(1, "what each has more than the one before")
    dtype: str = attr("int64", "an integer dtype")


def _infer_iota(args: InferArgs) -> Inferred:
    attrs = args.attrs
    if not dtypes.is_integer(attrs.dtype):
        args.fail("counting gives integers", found=attrs.dtype)
    args.at_most(0, attrs.length, "a range has no negative length")
    value = None
    if isinstance(attrs.length, int) and attrs.length <= VALUE_LIMIT:
        value = np.empty(attrs.length, object)
        value[:] = [attrs.start + attrs.step * i for i in range(attrs.length)]
    return Inferred(TensorType((attrs.length,), attrs.dtype), value)


def _iota_reference(attrs: IotaAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    length, start = (dims.evaluate(d, {}) for d in (attrs.length, attrs.start))
    return (start + attrs.step * np.arange(length)).astype(dtypes.to_numpy(attrs.dtype))


def _iota_compute(attrs: IotaAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    start = index(extent(attrs.start))
    length = extent(attrs.length)
    return te.compute((length,), lambda i: te.cast(start + i * attrs.step, attrs.dtype), "iota")


def _iota_samples(draw: Draw) -> Sample:
    step = choice(draw, (1, 2, -3))
    attrs = {"length": draw.integer(0, 9), "start": draw.integer(-4, 4), "step": step}
    return Sample((), {**attrs, "dtype": choice(draw, ("int64", "int32"))})


define(
    "iota",
    attrs=IotaAttrs,
    inputs=(),
    pattern=OpPattern.ELEMWISE,
    level=10,
    infer=_infer_iota,
    reference=_iota_reference,
    compute=_iota_compute,
    compare=Exact(),
    samples=_iota_samples,
    doc="start, start + step, ...: an arange whose length is a size of the program's types.",
)


def iota(length: Dim, start: Dim = 0, step: int = 1, dtype: str = "int64") -> Call:
    """``length`` integers from ``start`` on."""
    return call("iota", length=length, start=start, step=step, dtype=dtype)


def sizes(value: Any, dtype: str = "int64") -> Call:
    """The tensor of a symbolic value: a dim, or a nested sequence or object array of dims."""
    array = as_objects(value)
    flat: Sequence[Dim] = array.reshape(-1).tolist()
    return call("sizes", values=flat, shape=array.shape, dtype=dtype)
