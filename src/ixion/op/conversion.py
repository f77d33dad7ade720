"""Changes of dtype: cast, cast_like, reinterpret."""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion import te
from ixion.base import dtype as dtypes
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op.broadcast import elementwise
from ixion.op.call import call
from ixion.op.compare import Exact
from ixion.op.define import InferArgs, Names, OpPattern, Reference, define, follows_floats
from ixion.op.ratio import whole
from ixion.op.rounding import Array, integer_range, narrow, wide
from ixion.op.sample import Draw, Sample, array, choice, shape
from ixion.op.value import Value, is_concrete
from ixion.te.expr import Bitcast

_KINDS = ("float32", "float64", "float16", "int32", "int64", "uint8", "bool")


@register_attrs("relay.attrs.CastAttrs")
class CastAttrs(Attrs):
    dtype: str = attr(doc="target dtype")


def convert(x: Array, dtype: str) -> Array:
    """``x`` as ``dtype``: floats round to nearest even, float to integer truncates and saturates
    (NaN becomes 0), wider integers wrap, anything nonzero is true.
    """
    if dtypes.is_bool(dtype):
        return np.asarray(x != 0)
    if x.dtype.kind in "biuc" or not dtypes.is_integer(dtype):
        return narrow(wide(x), dtype)
    info = integer_range(dtype)
    whole = np.trunc(np.nan_to_num(wide(x), nan=0.0, posinf=np.inf, neginf=-np.inf))
    low, high = whole <= float(info.min), whole >= float(info.max)
    inside = np.where(low | high, 0.0, whole).astype(dtypes.to_numpy(dtype))
    return np.where(low, info.min, np.where(high, info.max, inside)).astype(inside.dtype)


def cast_expr(x: te.Expr, dtype: str) -> te.Expr:
    """The tensor-expression form of ``convert``."""
    if dtypes.is_bool(dtype) and not dtypes.is_bool(x.dtype):
        return te.compare("ne", x, 0)
    return te.cast(x, dtype)


def _reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
    return convert(inputs[0], out_type.dtype)


def _compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    return elementwise(lambda x: cast_expr(x, out_type.dtype))(attrs, ins[:1], out_type)


def _value(args: InferArgs, out: Type, reference: Reference | None) -> Value:
    """Dims survive casts among wide integers and through floats; anything else needs numbers."""
    value = args.followed(0)
    if value is None or not isinstance(out, TensorType):
        return None
    from_float = dtypes.is_float(args.tensor(0).dtype)
    if out.dtype in ("int32", "int64"):
        return whole(value, "trunc") if from_float else value
    if out.dtype in ("float32", "float64"):
        return value
    if from_float or not is_concrete(value):
        return None
    return convert(value.astype(np.int64), out.dtype)


def _cast_samples(draw: Draw) -> Sample:
    x = array(draw, shape(draw, 0), choice(draw, _KINDS), -4, 4)
    return Sample((x,), {"dtype": choice(draw, _KINDS)})


define(
    "cast",
    attrs=CastAttrs,
    inputs=("data",),
    pattern=OpPattern.ELEMWISE,
    level=3,
    infer=lambda args: TensorType(args.tensor().shape, args.attrs.dtype),
    reference=_reference,
    compute=_compute,
    compare=Exact(),
    symbolic=follows_floats(_value),
    samples=_cast_samples,
    doc="Value conversion; float to integer truncates and saturates.",
)

define(
    "cast_like",
    inputs=("data", "dtype_like"),
    pattern=OpPattern.ELEMWISE,
    level=3,
    infer=lambda args: TensorType(args.tensor(0).shape, args.tensor(1).dtype),
    reference=_reference,
    compute=_compute,
    compare=Exact(),
    names=Names("CastLike"),
    samples=lambda draw: Sample(
        (array(draw, shape(draw, 0), choice(draw, _KINDS)), array(draw, (2,), choice(draw, _KINDS)))
    ),
    doc="The first argument in the dtype of the second.",
)


def _infer_reinterpret(args: InferArgs) -> Type:
    data, dtype = args.tensor(), args.attrs.dtype
    if dtypes.bits(data.dtype) != dtypes.bits(dtype):
        args.fail("both dtypes must have the same width", expected=data.dtype, found=dtype)
    return TensorType(data.shape, dtype)


define(
    "reinterpret",
    attrs=CastAttrs,
    inputs=("data",),
    pattern=OpPattern.ELEMWISE,
    level=3,
    infer=_infer_reinterpret,
    reference=lambda attrs, ins, out: (
        np.ascontiguousarray(ins[0]).view(dtypes.to_numpy(out.dtype)).reshape(ins[0].shape)
    ),
    compute=lambda attrs, ins, out: elementwise(lambda x: Bitcast(x, out.dtype))(attrs, ins, out),
    compare=Exact(),
    samples=lambda draw: Sample((array(draw, shape(draw), "float32"),), {"dtype": "int32"}),
    doc="The same bits read as another dtype.",
)


def cast(data: Expr, dtype: str) -> Call:
    return call("cast", data, dtype=dtype)


def cast_like(data: Expr, dtype_like: Expr) -> Call:
    return call("cast_like", data, dtype_like)


def reinterpret(data: Expr, dtype: str) -> Call:
    return call("reinterpret", data, dtype=dtype)
