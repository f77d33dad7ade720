"""Ops on scaled integers defined through real numbers: dequantize, compute, requantize."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ixion import te
from ixion.base import dtype as dtypes
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.op import Op
from ixion.ir.types import TensorType, TupleType, Type
from ixion.op import special
from ixion.op.activation import LeakyReluAttrs
from ixion.op.axes import checked_axis
from ixion.op.broadcast import broadcast_shapes, read_broadcast, same_dtype
from ixion.op.call import as_tuple_expr, call, per_axis, two_sided
from ixion.op.compare import Exact
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.extent import extents
from ixion.op.join import ConcatenateAttrs
from ixion.op.pool import AvgPool2DAttrs
from ixion.op.qnn_scale import (
    completes_scales,
    dequantized,
    parameter_at,
    rounded,
    saturate,
    saturate_expr,
)
from ixion.op.rounding import Array, wide
from ixion.op.sample import Draw, Sample, array, broadcastable, choice, shape
from ixion.op.softmax import SoftmaxAttrs


@register_attrs("relay.attrs.BroadcastAttrs")
class BroadcastAttrs(Attrs):
    lhs_axis: int = attr(-1, "axis of lhs that its scale and zero point belong to")
    rhs_axis: int = attr(-1, "axis of rhs that its scale and zero point belong to")


_PARAMETERS = ("input_scale", "input_zero_point", "output_scale", "output_zero_point")


def requantized(x: Array, scale: Array, zero: Array, dtype: str) -> Array:
    """Real numbers as scaled integers, halves up, saturated."""
    whole = rounded(x / wide(scale).reshape(()), "UPWARD")
    return saturate(whole + zero.reshape(()).astype(np.float64), dtype)


def _requantize_expr(real: te.Expr, scale: te.Tensor, zero: te.Tensor, dtype: str) -> te.Expr:
    value = real / te.cast(parameter_at(scale, (), 0), "float64")
    whole = te.intrinsic("floor", value + 0.5) + te.cast(parameter_at(zero, (), 0), "float64")
    return saturate_expr(whole, dtype)


def _real(x: te.Expr, scale: te.Expr, zero: te.Expr) -> te.Expr:
    apart = te.cast(x, "int64") - te.cast(zero, "int64")
    return te.cast(apart, "float64") * te.cast(scale, "float64")


def _hardswish(x: Array) -> Array:
    return np.asarray(x * np.clip(x + 3.0, 0.0, 6.0) / 6.0)


_UNARY: dict[str, Callable[[Array], Any]] = {
    "tanh": np.tanh,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "erf": special.erf,
    "sigmoid": special.sigmoid,
    "hardswish": _hardswish,
    "log": np.log,
    "abs": np.abs,
}


def _unary_reference(fn: Callable[[Array], Any]) -> Callable[..., Array]:
    def reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
        x, scale, zero, out_scale, out_zero = inputs
        real = np.asarray(fn(dequantized(x, scale, zero)))
        return requantized(real, out_scale, out_zero, out_type.dtype)

    return reference


def _quantized_input(draw: Draw) -> tuple[Array, Array, Array, Array, Array]:
    x = array(draw, shape(draw, 1), choice(draw, ("int8", "uint8")), -120, 120)
    scales = (np.array(0.03, np.float32), np.array(0.05, np.float32))
    zeros = (np.array(draw.integer(-3, 3), np.int32), np.array(draw.integer(-3, 3), np.int32))
    return x, scales[0], zeros[0], scales[1], zeros[1]


for _name, _fn in _UNARY.items():
    define(
        f"qnn.{_name}",
        inputs=("x", "scale", "zero_point", "output_scale", "output_zero_point"),
        pattern=None,
        level=11,
        infer=lambda args: args.tensor(0),
        completes=completes_scales("float32", "int32", "float32", "int32"),
        reference=_unary_reference(_fn),
        compare=Exact(),
        samples=lambda draw: Sample(_quantized_input(draw)),
        doc=f"{_name} of a scaled integer, as a scaled integer.",
    )


def _leaky_reference(attrs: LeakyReluAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x, scale, zero, out_scale, out_zero = inputs
    real = dequantized(x, scale, zero)
    real = np.where(real > 0, real, real * attrs.alpha)
    return requantized(real, out_scale, out_zero, out_type.dtype)


define(
    "qnn.leaky_relu",
    attrs=LeakyReluAttrs,
    inputs=("data", *_PARAMETERS),
    pattern=None,
    level=11,
    infer=lambda args: args.tensor(0),
    completes=completes_scales("float32", "int32", "float32", "int32"),
    reference=_leaky_reference,
    compare=Exact(),
    samples=lambda draw: Sample(_quantized_input(draw), {"alpha": 0.3}),
    doc="leaky_relu of a scaled integer, as a scaled integer.",
)


def _softmax_reference(attrs: SoftmaxAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x, scale, zero, out_scale, out_zero = inputs
    kind = TensorType(x.shape, "float64")
    real = Op.get("nn.softmax").get_attr("FReference")(attrs, (dequantized(x, scale, zero),), kind)
    return requantized(real, out_scale, out_zero, out_type.dtype)


define(
    "qnn.softmax",
    attrs=SoftmaxAttrs,
    inputs=("data", "scale", "zero_point", "output_scale", "output_zero_point"),
    pattern=None,
    level=11,
    infer=lambda args: args.tensor(0),
    completes=completes_scales("float32", "int32", "float32", "int32"),
    reference=_softmax_reference,
    compare=Exact(),
    samples=lambda draw: Sample(_quantized_input(draw)),
    doc="softmax of scaled integers, as scaled integers.",
)


def _infer_pool(args: InferArgs) -> Type:
    inner = InferArgs(args.op, args.types[:1], args.attrs, (None,))
    found: Type = Op.get("nn.avg_pool2d").get_attr("FInfer")(inner).type
    return found


def _pool_reference(attrs: AvgPool2DAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x, scale, zero, out_scale, out_zero = inputs
    kind = TensorType((), "float64")
    pool = Op.get("nn.avg_pool2d").get_attr("FReference")
    real = pool(attrs, (dequantized(x, scale, zero),), kind)
    return requantized(real, out_scale, out_zero, out_type.dtype)


define(
    "qnn.avg_pool2d",
    attrs=AvgPool2DAttrs,
    inputs=("data", *_PARAMETERS),
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=11,
    infer=_infer_pool,
    completes=completes_scales("float32", "int32", "float32", "int32"),
    reference=_pool_reference,
    compare=Exact(),
    samples=lambda draw: Sample(
        (array(draw, (1, 2, 4, 4), "int8", -90, 90), *_quantized_input(draw)[1:]),
        {"pool_size": (2, 2), "strides": (2, 2)},
    ),
    doc="Mean of every window of scaled integers, as a scaled integer.",
)

_BINARY_INPUTS = (
    "lhs", "rhs", "lhs_scale", "lhs_zero_point", "rhs_scale", "rhs_zero_point", "output_scale",
    "output_zero_point",
)  # fmt: skip


def _infer_binary(args: InferArgs) -> Type:
    a, b = args.tensor(0), args.tensor(1)
    return TensorType(broadcast_shapes(args, a.shape, b.shape), same_dtype(args, a, b))


def _binary_reference(fn: Callable[[Any, Any], Any]) -> Callable[..., Array]:
    def reference(attrs: BroadcastAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
        a, b, sa, za, sb, zb, so, zo = inputs
        real = fn(dequantized(a, sa, za, attrs.lhs_axis), dequantized(b, sb, zb, attrs.rhs_axis))
        return requantized(np.asarray(real), so, zo, out_type.dtype)

    return reference


def _binary_compute(fn: Callable[[te.Expr, te.Expr], te.Expr]) -> Callable[..., te.Tensor]:
    def compute(attrs: BroadcastAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
        a, b, sa, za, sb, zb, so, zo = ins
        dims_ = extents(out_type)

        def side(x: te.Tensor, s: te.Tensor, z: te.Tensor, axis: int, i: Any) -> te.Expr:
            own = i[len(i) - x.ndim :]
            element = read_broadcast(x, i, dims_)
            return _real(element, parameter_at(s, own, axis), parameter_at(z, own, axis))

        def body(*i: te.Expr) -> te.Expr:
            real = fn(side(a, sa, za, attrs.lhs_axis, i), side(b, sb, zb, attrs.rhs_axis, i))
            return _requantize_expr(real, so, zo, out_type.dtype)

        return te.compute(dims_, body, "qnn_binary")

    return compute


def _binary_samples(draw: Draw) -> Sample:
    full, dtype = shape(draw, 1), choice(draw, ("int8", "uint8"))
    pair = (
        array(draw, full, dtype, -90, 90),
        array(draw, broadcastable(draw, full), dtype, -90, 90),
    )
    parameters: list[Array] = []
    for scale in (0.11, 0.07, 0.19):
        parameters += [np.array(scale, np.float32), np.array(draw.integer(-3, 3), np.int32)]
    return Sample((*pair, *parameters))


_BINARY: dict[str, tuple[Callable[[Any, Any], Any], Callable[[te.Expr, te.Expr], te.Expr]]] = {
    "qnn.add": (np.add, lambda a, b: a + b),
    "qnn.subtract": (np.subtract, lambda a, b: a - b),
    "qnn.mul": (np.multiply, lambda a, b: a * b),
}

for _name, (_np, _te_fn) in _BINARY.items():
    define(
        _name,
        attrs=BroadcastAttrs,
        inputs=_BINARY_INPUTS,
        pattern=OpPattern.BROADCAST,
        level=11,
        infer=_infer_binary,
        reference=_binary_reference(_np),
        compute=_binary_compute(_te_fn),
        compare=Exact(),
        samples=_binary_samples,
        doc=f"{_name.removeprefix('qnn.')} of scaled integers, as a scaled integer.",
    )


def _infer_concatenate(args: InferArgs) -> Type:
    inner = InferArgs(args.op, args.types[:1], args.attrs, (None,))
    parts = args.fields(0)
    checked_axis(args, args.attrs.axis, len(parts[0].shape))
    for i in (1, 2):
        kind = args.types[i]
        if not isinstance(kind, TupleType) or len(kind.fields) != len(parts):
            args.fail("one scale and zero point per tensor", expected=len(parts), found=kind)
    found: Type = Op.get("concatenate").get_attr("FInfer")(inner).type
    return found


def _concatenate_reference(
    attrs: ConcatenateAttrs, inputs: tuple[Array, ...], out_type: Any
) -> Array:
    n = (len(inputs) - 2) // 3
    scale, zero = inputs[-2:]
    parts = [
        requantized(dequantized(x, s, z), scale, zero, dtypes.from_numpy(x.dtype))
        for x, s, z in zip(inputs[:n], inputs[n : 2 * n], inputs[2 * n : 3 * n], strict=True)
    ]
    return np.concatenate(parts, axis=attrs.axis)


def _concatenate_samples(draw: Draw) -> Sample:
    n = draw.integer(1, 3)
    parts = tuple(array(draw, (2, draw.integer(1, 3)), "int8", -90, 90) for _ in range(n))
    scales = tuple(np.array(0.05 * (i + 1), np.float32) for i in range(n))
    zeros = tuple(np.array(i - 1, np.int32) for i in range(n))
    out = (np.array(0.08, np.float32), np.array(2, np.int32))
    return Sample((parts, scales, zeros, *out), {"axis": 1})


define(
    "qnn.concatenate",
    attrs=ConcatenateAttrs,
    inputs=("data", "input_scales", "input_zero_points", "output_scale", "output_zero_point"),
    pattern=OpPattern.INJECTIVE,
    level=11,
    infer=_infer_concatenate,
    reference=_concatenate_reference,
    compare=Exact(),
    samples=_concatenate_samples,
    doc="Tensors of scaled integers one after another, at one scale.",
)


def _unary(name: str) -> Callable[..., Call]:
    def build(
        x: Expr, scale: Expr, zero_point: Expr, output_scale: Expr, output_zero_point: Expr
    ) -> Call:
        return call(f"qnn.{name}", x, scale, zero_point, output_scale, output_zero_point)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"A call of operator ``qnn.{name}``."
    return build


tanh, exp, sqrt, rsqrt = map(_unary, ("tanh", "exp", "sqrt", "rsqrt"))
erf, sigmoid, hardswish, log = map(_unary, ("erf", "sigmoid", "hardswish", "log"))
abs = _unary("abs")


def leaky_relu(x: Expr, alpha: float, *parameters: Expr) -> Call:
    """``parameters``: scale and zero point of the input, then of the output."""
    return call("qnn.leaky_relu", x, *parameters, alpha=alpha)


def softmax(x: Expr, *parameters: Expr, axis: int = -1) -> Call:
    """``parameters``: scale and zero point of the input, then of the output."""
    return call("qnn.softmax", x, *parameters, axis=axis)


def _binary(name: str) -> Callable[..., Call]:
    def build(
        lhs: Expr, rhs: Expr, *parameters: Expr, lhs_axis: int = -1, rhs_axis: int = -1
    ) -> Call:
        return call(f"qnn.{name}", lhs, rhs, *parameters, lhs_axis=lhs_axis, rhs_axis=rhs_axis)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = "``parameters``: scale and zero point of lhs, of rhs, then of the output."
    return build


add, subtract, mul = map(_binary, ("add", "subtract", "mul"))


def concatenate(
    data: Expr | Sequence[Expr],
    input_scales: Expr | Sequence[Expr],
    input_zero_points: Expr | Sequence[Expr],
    output_scale: Expr,
    output_zero_point: Expr,
    axis: int,
) -> Call:
    tuples = (as_tuple_expr(t) for t in (data, input_scales, input_zero_points))
    return call("qnn.concatenate", *tuples, output_scale, output_zero_point, axis=axis)


def avg_pool2d(
    data: Expr,
    input_scale: Expr,
    input_zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    pool_size: Any,
    strides: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    layout: str = "NHWC",
    out_layout: str = "",
) -> Call:
    operands = (data, input_scale, input_zero_point, output_scale, output_zero_point)
    return call(
        "qnn.avg_pool2d", *operands, pool_size=per_axis(pool_size, 2),
        strides=per_axis(strides, 2), padding=two_sided(padding, 2),
        dilation=per_axis(dilation, 2), ceil_mode=ceil_mode,
        count_include_pad=count_include_pad, layout=layout, out_layout=out_layout,
    )  # fmt: skip
