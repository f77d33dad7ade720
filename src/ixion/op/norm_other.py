"""Normalisation without parameters: l2_normalize, lrn; and dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion import te
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr, TupleGetItem, TupleWrapper
from ixion.ir.types import TupleType, Type
from ixion.op.accumulate import accumulator, raised
from ixion.op.axes import checked_axes
from ixion.op.broadcast import infer_same
from ixion.op.call import call
from ixion.op.compare import Accumulation
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.extent import extents
from ixion.op.rounding import Array, narrow, wide
from ixion.op.sample import FLOATS, Draw, Sample, array, axes, choice, shape


@register_attrs("relay.attrs.LRNAttrs")
class LRNAttrs(Attrs):
    size: int = attr(5, "channels in the window")
    axis: int = attr(1, "the channel axis")
    bias: float = attr(2.0, "added before the power")
    alpha: float = attr(0.0001, "scale of the mean square")
    beta: float = attr(0.75, "exponent")


@register_attrs("relay.attrs.L2NormalizeAttrs")
class L2NormalizeAttrs(Attrs):
    eps: float = attr(doc="least sum of squares")
    axis: tuple[int, ...] | None = attr(None, "axes to normalise over; none means all")


@register_attrs("relay.attrs.DropoutAttrs")
class DropoutAttrs(Attrs):
    rate: float = attr(0.5, "probability of zero while training")


def _infer_l2(args: InferArgs) -> Type:
    data = args.tensor()
    checked_axes(args, args.attrs.axis or (), len(data.shape))
    return data


def _l2_axes(attrs: L2NormalizeAttrs, rank: int) -> tuple[int, ...]:
    return tuple(sorted(a % rank for a in attrs.axis)) if attrs.axis else tuple(range(rank))


def _l2_reference(attrs: L2NormalizeAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x = wide(inputs[0])
    total = np.sum(x * x, axis=_l2_axes(attrs, x.ndim), keepdims=True)
    return narrow(x / np.sqrt(np.maximum(total, attrs.eps)), out_type.dtype)


def _l2_compute(attrs: L2NormalizeAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    (x,) = ins
    over, dtype = _l2_axes(attrs, x.ndim), accumulator(x.dtype)
    kept = [d for d in range(x.ndim) if d not in over]

    def squares(*i: te.Expr) -> te.Expr:
        k = {d: te.reduce_axis(x.shape[d], "rk") for d in over}
        outer = iter(i)
        value = raised(x(*(k[d].var if d in k else next(outer) for d in range(x.ndim))), dtype)
        return te.sum(value * value, list(k.values()))

    total = te.compute([x.shape[d] for d in kept], squares, "squares")

    def body(*i: te.Expr) -> te.Expr:
        floor = te.maximum(total(*(i[d] for d in kept)), te.const(attrs.eps, dtype))
        return te.cast(raised(x(*i), dtype) / te.intrinsic("sqrt", floor), out_type.dtype)

    return te.compute(extents(out_type), body, "l2_normalize")


def _l2_samples(draw: Draw) -> Sample:
    x = array(draw, shape(draw, 1), choice(draw, FLOATS))
    return Sample((x,), {"eps": 1e-6, "axis": axes(draw, x.ndim) or None})


define(
    "nn.l2_normalize",
    attrs=L2NormalizeAttrs,
    inputs=("data",),
    pattern=None,
    level=2,
    infer=_infer_l2,
    reference=_l2_reference,
    compute=_l2_compute,
    compare=Accumulation(16),
    samples=_l2_samples,
    doc="x / sqrt(max(sum of squares, eps)).",
)


def _lrn_window(attrs: LRNAttrs) -> tuple[int, int]:
    """Channels before and after; an even window has one more after (ONNX's rule)."""
    return (attrs.size - 1) // 2, attrs.size // 2


def _lrn_reference(attrs: LRNAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x = wide(inputs[0])
    before, after = _lrn_window(attrs)
    at = attrs.axis % x.ndim
    widths = [(before, after) if d == at else (0, 0) for d in range(x.ndim)]
    padded, total = np.pad(x * x, widths), np.zeros_like(x)
    for k in range(attrs.size):
        total += padded.take(range(k, k + x.shape[at]), axis=at)
    return narrow(x / (attrs.bias + attrs.alpha * total / attrs.size) ** attrs.beta, out_type.dtype)


def _lrn_compute(attrs: LRNAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    (x,) = ins
    before, _ = _lrn_window(attrs)
    at, dtype = attrs.axis % x.ndim, accumulator(x.dtype)

    def squares(*i: te.Expr) -> te.Expr:
        k = te.reduce_axis(attrs.size, "rk")
        c = i[at] + k.var - before
        value = raised(x(*i[:at], c, *i[at + 1 :]), dtype)
        inside = te.logical_and(te.compare("ge", c, 0), te.compare("lt", c, x.shape[at]))
        return te.sum(te.select(inside, value * value, te.const(0, dtype)), [k])

    total = te.compute(x.shape, squares, "squares")

    def body(*i: te.Expr) -> te.Expr:
        mean = total(*i) * te.const(attrs.alpha / attrs.size, dtype)
        base = mean + te.const(attrs.bias, dtype)
        power = te.intrinsic("pow", base, te.const(attrs.beta, dtype))
        return te.cast(raised(x(*i), dtype) / power, out_type.dtype)

    return te.compute(extents(out_type), body, "lrn")


def _lrn_samples(draw: Draw) -> Sample:
    x = array(draw, shape(draw, 4, 4), choice(draw, FLOATS))
    attrs = {"size": draw.integer(1, 5), "axis": choice(draw, (1, 3)), "alpha": 0.1, "bias": 1.5}
    return Sample((x,), attrs)


define(
    "nn.lrn",
    attrs=LRNAttrs,
    inputs=("data",),
    pattern=OpPattern.OPAQUE,
    level=2,
    infer=infer_same,
    reference=_lrn_reference,
    compute=_lrn_compute,
    compare=Accumulation(16),
    samples=_lrn_samples,
    doc="x / (bias + alpha * mean square of neighbouring channels) ** beta.",
)


def _infer_dropout(args: InferArgs) -> Type:
    data = args.tensor()
    return TupleType((data, data))


define(
    "nn.dropout",
    attrs=DropoutAttrs,
    inputs=("data",),
    pattern=OpPattern.OPAQUE,
    level=1,
    infer=_infer_dropout,
    reference=lambda attrs, ins, out: (ins[0], np.ones_like(ins[0])),
    compute=lambda attrs, ins, out: (
        te.compute(ins[0].shape, ins[0], "dropout"),
        te.compute(ins[0].shape, lambda *i: te.const(1, ins[0].dtype), "mask"),
    ),
    samples=lambda draw: Sample((array(draw, shape(draw)),)),
    num_outputs=2,
    TOpIsStateful=True,
    doc="The input and a mask of ones: what dropout is at inference.",
)


def lrn(
    data: Expr,
    size: int = 5,
    axis: int = 1,
    bias: float = 2,
    alpha: float = 0.00001,
    beta: float = 0.75,
) -> Call:
    """Relay's builder: its alpha is 1e-5 where the attribute's is 1e-4."""
    return call("nn.lrn", data, size=size, axis=axis, bias=bias, alpha=alpha, beta=beta)


def l2_normalize(data: Expr, eps: float, axis: Any = None) -> Call:
    return call("nn.l2_normalize", data, eps=eps, axis=axis)


def dropout_raw(data: Expr, rate: float = 0.5) -> Call:
    return call("nn.dropout", data, rate=rate)


def dropout(data: Expr, rate: float = 0.5) -> TupleGetItem:
    """The data half of the op's result."""
    return TupleWrapper(dropout_raw(data, rate), 2)[0]
