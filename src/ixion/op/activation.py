"""Activations and other elementwise ops with attributes: relu, leaky_relu, prelu, clip."""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion import te
from ixion.base import dtype as dtypes
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op.broadcast import elementwise, infer_same, read_broadcast
from ixion.op.call import call, unary_builder
from ixion.op.compare import Exact, Ulp
from ixion.op.define import InferArgs, Names, OpPattern, define
from ixion.op.extent import extents
from ixion.op.rounding import Array, integer_range, narrow, wide
from ixion.op.sample import FLOATS, Draw, Sample, array, choice, flag, shape, unary_sampler


@register_attrs("relay.attrs.LeakyReluAttrs")
class LeakyReluAttrs(Attrs):
    alpha: float = attr(0.25, "slope for negative input")


@register_attrs("relay.attrs.PReluAttrs")
class PReluAttrs(Attrs):
    axis: int = attr(1, "the axis the slopes belong to")


@register_attrs("relay.attrs.ClipAttrs")
class ClipAttrs(Attrs):
    a_min: float = attr(doc="lower bound")
    a_max: float = attr(doc="upper bound")


define(
    "nn.relu",
    inputs=("data",),
    pattern=OpPattern.ELEMWISE,
    level=1,
    infer=infer_same,
    reference=lambda attrs, ins, out: np.maximum(ins[0], np.zeros_like(ins[0])),
    compute=elementwise(lambda x: te.maximum(x, te.const(0, x.dtype))),
    compare=Exact(),
    names=Names("Relu", "relu", ("nn.ReLU", "F.relu", "torch.relu")),
    samples=unary_sampler(types=(*FLOATS, "int32", "int8")),
    doc="max(x, 0); NaN stays NaN.",
)


def _leaky_reference(attrs: LeakyReluAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x = wide(inputs[0])
    return narrow(np.where(x > 0, x, x * attrs.alpha), out_type.dtype)


def _leaky_compute(attrs: LeakyReluAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    def body(x: te.Expr) -> te.Expr:
        return te.select(x > 0, x, x * te.const(attrs.alpha, x.dtype))

    return elementwise(body)(attrs, ins, out_type)


def _leaky_samples(draw: Draw) -> Sample:
    return unary_sampler(alpha=choice(draw, (0.01, 0.25, 0.5)))(draw)


define(
    "nn.leaky_relu",
    attrs=LeakyReluAttrs,
    inputs=("data",),
    pattern=OpPattern.ELEMWISE,
    level=3,
    infer=infer_same,
    reference=_leaky_reference,
    compute=_leaky_compute,
    compare=Ulp(2),
    names=Names("LeakyRelu"),
    samples=_leaky_samples,
    doc="x where x > 0, else alpha * x.",
)


def _prelu_completes(args: InferArgs) -> tuple[Type | None, ...]:
    data = args.types[0]
    if not isinstance(data, TensorType):
        return (data, None)
    return (data, TensorType((data.shape[args.attrs.axis],), data.dtype))


def _infer_prelu(args: InferArgs) -> Type:
    data, alpha = args.tensor(0), args.tensor(1)
    channels = data.shape[args.attrs.axis]
    if len(alpha.shape) != 1 or (isinstance(channels, int) and alpha.shape[0] != channels):
        args.fail("one slope per channel", expected=f"({channels},)", found=alpha.shape)
    return data


def _infer_prelu_at_run_time(args: InferArgs) -> Type:
    """As Relay's shape function: where inference could not count the channels, one slope may serve
    all of them.
    """
    single = args.tensor(1).shape == (1,)
    return args.tensor(0) if single else _infer_prelu(args)


def _along(axis: int, rank: int, vector: Array) -> Array:
    dims = [1] * rank
    dims[axis] = -1
    return vector.reshape(dims)


def _prelu_reference(attrs: PReluAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x, slope = wide(inputs[0]), wide(inputs[1])
    negative = x * _along(attrs.axis, x.ndim, slope)
    return narrow(np.where(x > 0, x, negative), out_type.dtype)


def _prelu_compute(attrs: PReluAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    x, slope = ins
    axis, full = attrs.axis % x.ndim, extents(out_type)

    def body(*i: te.Expr) -> te.Expr:
        factor = read_broadcast(slope, (i[axis],), (full[axis],))
        return te.select(x(*i) > 0, x(*i), x(*i) * factor)

    return te.compute(full, body, "prelu")


def _prelu_samples(draw: Draw) -> Sample:
    dtype, dims = choice(draw, FLOATS), shape(draw, 2)
    axis = draw.integer(0, len(dims) - 1)
    pair = (array(draw, dims, dtype), array(draw, (dims[axis],), dtype))
    return Sample(pair, {"axis": axis - len(dims) if flag(draw) else axis})


define(
    "nn.prelu",
    attrs=PReluAttrs,
    inputs=("data", "alpha"),
    pattern=OpPattern.BROADCAST,
    level=3,
    infer=_infer_prelu,
    completes=_prelu_completes,
    FShapeFunc=_infer_prelu_at_run_time,
    reference=_prelu_reference,
    compute=_prelu_compute,
    compare=Ulp(1),
    samples=_prelu_samples,
    doc="x where x > 0, else x times the slope of its channel.",
)


def _bound(value: float, dtype: str) -> float | int:
    """A clip bound as a number of ``dtype``: integers saturate at their range."""
    if not dtypes.is_integer(dtype):
        return value
    info = integer_range(dtype)
    return int(min(max(value, float(info.min)), float(info.max)))


def _clip_reference(attrs: ClipAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x, dtype = inputs[0], out_type.dtype
    low, high = (
        narrow(np.float64(v), dtype)
        if dtypes.is_float(dtype)
        else np.asarray(_bound(v, dtype), x.dtype)
        for v in (attrs.a_min, attrs.a_max)
    )
    return np.minimum(np.maximum(x, low), high)


def _clip_compute(attrs: ClipAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    low, high = (_bound(v, out_type.dtype) for v in (attrs.a_min, attrs.a_max))

    def body(x: te.Expr) -> te.Expr:
        return te.minimum(te.maximum(x, te.const(low, x.dtype)), te.const(high, x.dtype))

    return elementwise(body)(attrs, ins, out_type)


def _clip_samples(draw: Draw) -> Sample:
    low = draw.integer(-2, 1)
    attrs = {"a_min": float(low), "a_max": float(low + draw.integer(0, 3))}
    return unary_sampler(types=(*FLOATS, "int32", "uint8"), **attrs)(draw)


define(
    "clip",
    attrs=ClipAttrs,
    inputs=("data",),
    pattern=OpPattern.ELEMWISE,
    level=3,
    infer=infer_same,
    reference=_clip_reference,
    compute=_clip_compute,
    compare=Exact(),
    samples=_clip_samples,
    doc="min(max(x, a_min), a_max); NaN stays NaN.",
)

relu = unary_builder("nn.relu")


def leaky_relu(data: Expr, alpha: float = 0.01) -> Call:
    """Relay's builder: its default slope is 0.01 where the attribute's is 0.25."""
    return call("nn.leaky_relu", data, alpha=alpha)


def prelu(data: Expr, alpha: Expr, axis: int = 1) -> Call:
    return call("nn.prelu", data, alpha, axis=axis)


def clip(a: Expr, a_min: float, a_max: float) -> Call:
    return call("clip", a, a_min=a_min, a_max=a_max)
