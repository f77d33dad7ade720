"""A small integer tensor whose elements are sizes: what is left of an exporter's shape arithmetic
where a program uses the numbers themselves.
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


def sizes(value: Any, dtype: str = "int64") -> Call:
    """The tensor of a symbolic value: a dim, or a nested sequence or object array of dims."""
    array = as_objects(value)
    flat: Sequence[Dim] = array.reshape(-1).tolist()
    return call("sizes", values=flat, shape=array.shape, dtype=dtype)
