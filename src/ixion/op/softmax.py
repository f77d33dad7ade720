"""Softmax and its logarithm along one axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion import te
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import Type
from ixion.op.accumulate import accumulator, raised
from ixion.op.axes import checked_axis
from ixion.op.call import call
from ixion.op.compare import Accumulation
from ixion.op.define import InferArgs, Names, OpPattern, define
from ixion.op.extent import extents
from ixion.op.rounding import Array, narrow, wide
from ixion.op.sample import FLOATS, Draw, Sample, array, axis, choice, shape


@register_attrs("relay.attrs.SoftmaxAttrs")
class SoftmaxAttrs(Attrs):
    axis: int = attr(-1, "the axis that sums to 1")


def _infer(args: InferArgs) -> Type:
    data = args.tensor()
    checked_axis(args, args.attrs.axis, len(data.shape))
    return data


def _parts(x: Array, axis: int) -> tuple[Array, Array]:
    """X less its maximum, and the sum of exponentials of that."""
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted, np.sum(np.exp(shifted), axis=axis, keepdims=True)


def softmax_reference(attrs: SoftmaxAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    shifted, total = _parts(wide(inputs[0]), attrs.axis)
    return narrow(np.exp(shifted) / total, out_type.dtype)


def _log_reference(attrs: SoftmaxAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    shifted, total = _parts(wide(inputs[0]), attrs.axis)
    return narrow(shifted - np.log(total), out_type.dtype)


def _scale(attrs: SoftmaxAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    """Rounding x - max moves exp of it by |x - max| times its value."""
    shifted, total = _parts(wide(inputs[0]), attrs.axis)
    return np.asarray((2 + np.abs(shifted)) * np.exp(shifted) / total)


def _log_scale(attrs: SoftmaxAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    shifted, total = _parts(wide(inputs[0]), attrs.axis)
    return np.asarray(np.abs(shifted) + np.log(total) + 1)


def _stages(attrs: SoftmaxAttrs, x: te.Tensor) -> tuple[te.Tensor, te.Tensor, int, str]:
    """Maximum and sum of exponentials per row (tensors without the axis), the axis, the dtype."""
    at, dtype = attrs.axis % x.ndim, accumulator(x.dtype)
    rest = x.shape[:at] + x.shape[at + 1 :]

    def largest(*i: te.Expr) -> te.Expr:
        k = te.reduce_axis(x.shape[at], "rk")
        return te.max(x(*i[:at], k.var, *i[at:]), [k])

    top = te.compute(rest, largest, "row_max")

    def total(*i: te.Expr) -> te.Expr:
        k = te.reduce_axis(x.shape[at], "rk")
        shifted = raised(x(*i[:at], k.var, *i[at:]), dtype) - raised(top(*i), dtype)
        return te.sum(te.intrinsic("exp", shifted), [k])

    return top, te.compute(rest, total, "row_sum"), at, dtype


def _compute(attrs: SoftmaxAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    (x,) = ins
    top, total, at, dtype = _stages(attrs, x)

    def body(*i: te.Expr) -> te.Expr:
        row = i[:at] + i[at + 1 :]
        shifted = raised(x(*i), dtype) - raised(top(*row), dtype)
        return te.cast(te.intrinsic("exp", shifted) / total(*row), out_type.dtype)

    return te.compute(extents(out_type), body, "softmax")


def _log_compute(attrs: SoftmaxAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    (x,) = ins
    top, total, at, dtype = _stages(attrs, x)

    def body(*i: te.Expr) -> te.Expr:
        row = i[:at] + i[at + 1 :]
        shifted = raised(x(*i), dtype) - raised(top(*row), dtype)
        return te.cast(shifted - te.intrinsic("log", total(*row)), out_type.dtype)

    return te.compute(extents(out_type), body, "log_softmax")


def _samples(draw: Draw) -> Sample:
    x = array(draw, shape(draw, 1), choice(draw, FLOATS), -8, 8)
    return Sample((x,), {"axis": axis(draw, x.ndim)})


_SOFTMAX = Names((), "softmax", ())
_LOG_SOFTMAX = Names((), "log_softmax", ())

for _name, _reference, _te, _size, _names in (
    ("nn.softmax", softmax_reference, _compute, _scale, _SOFTMAX),
    ("nn.fast_softmax", softmax_reference, _compute, _scale, None),
    ("nn.log_softmax", _log_reference, _log_compute, _log_scale, _LOG_SOFTMAX),
):
    define(
        _name,
        attrs=SoftmaxAttrs,
        inputs=("data",),
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
        level=1,
        infer=_infer,
        reference=_reference,
        compute=_te,
        compare=Accumulation(16, _size),
        names=_names,
        samples=_samples,
        doc="exp(x - max) over its sum along an axis" + (", logarithm." if "log" in _name else "."),
    )


def softmax(data: Expr, axis: int = -1) -> Call:
    return call("nn.softmax", data, axis=axis)


def fast_softmax(data: Expr, axis: int = -1) -> Call:
    return call("nn.fast_softmax", data, axis=axis)


def log_softmax(data: Expr, axis: int = -1) -> Call:
    return call("nn.log_softmax", data, axis=axis)
