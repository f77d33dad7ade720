"""Between floats and scaled integers: qnn.quantize, qnn.dequantize, qnn.requantize."""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion import te
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op.call import call
from ixion.op.compare import Exact, Ulp
from ixion.op.define import Completes, InferArgs, OpPattern, define
from ixion.op.extent import extents
from ixion.op.rounding import Array, integer_range, narrow, wide
from ixion.op.sample import Draw, Sample, array, choice, flag, shape

_INTEGERS = ("int8", "uint8", "int16", "int32")


@register_attrs("relay.attrs.QuantizeAttrs")
class QuantizeAttrs(Attrs):
    out_dtype: str = attr(doc="integer dtype of the result", choices=_INTEGERS)
    axis: int = attr(-1, "the axis that scale and zero point belong to")


@register_attrs("relay.attrs.DequantizeAttrs")
class DequantizeAttrs(Attrs):
    out_dtype: str | None = attr(None, "float dtype of the result; none means float32")
    axis: int = attr(-1, "the axis that scale and zero point belong to")


@register_attrs("relay.attrs.RequantizeAttrs")
class RequantizeAttrs(Attrs):
    axis: int = attr(-1, "the axis that the input's scale and zero point belong to")
    rounding: str = attr("None", "of halves", choices=("None", "UPWARD", "TONEAREST"))
    out_dtype: str | None = attr(None, "integer dtype of the result; none means int8")


def along(parameter: Array, axis: int, rank: int) -> Array:
    """A scale or zero point shaped to broadcast against data of ``rank``."""
    if parameter.size == 1:
        return parameter.reshape(())
    line = [1] * rank
    line[axis] = -1
    return parameter.reshape(line)


def saturate(x: Array, dtype: str) -> Array:
    """Whole numbers clipped to an integer dtype; NaN becomes the least."""
    info = integer_range(dtype)
    low = np.where(np.isnan(x), float(info.min), x) if x.dtype.kind == "f" else x
    return np.clip(low, info.min, info.max).astype(dtype)


def check_parameters(args: InferArgs, data: TensorType, axis: int, *positions: int) -> None:
    """Scales and zero points are scalars, or vectors along the axis."""
    for i in positions:
        found = args.tensor(i)
        if len(found.shape) > 1:
            args.fail("scale and zero point are scalars or vectors", found=found)
        one = not found.shape or found.shape[0] == 1 or not data.shape
        if not one:
            size = data.shape[axis % len(data.shape)]
            rule = f"argument {i} does not fit axis {axis}"
            args.agree(found.shape[0], size, rule, expected=data, found=found)


def completes_scales(*kinds: str) -> Completes:
    """Untyped scale and zero point arguments are scalars of these dtypes, in order after data."""

    def completes(args: InferArgs) -> tuple[Type | None, ...]:
        scalars = (TensorType((), kind) for kind in kinds)
        return (args.types[0], *(t or s for t, s in zip(args.types[1:], scalars, strict=True)))

    return completes


def parameter_at(x: te.Tensor, index: tuple[te.Expr, ...], axis: int) -> te.Expr:
    """The element of a scale or zero point that belongs to the data element at ``index``."""
    if x.ndim == 0:
        return x()
    return x(te.const(0, "int64") if x.shape[0] == 1 else index[axis % len(index)])


def _infer_quantize(args: InferArgs) -> Type:
    data = args.tensor(0)
    check_parameters(args, data, args.attrs.axis, 1, 2)
    return TensorType(data.shape, args.attrs.out_dtype)


def quantized(x: Array, scale: Array, zero: Array, dtype: str) -> Array:
    """round(x / scale) + zero, saturated; the division is rounded to float32 as kernels do."""
    ratio = x.astype(np.float32) / scale.astype(np.float32)
    return saturate(np.rint(ratio).astype(np.float64) + zero.astype(np.float64), dtype)


def _quantize_reference(attrs: QuantizeAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x, scale, zero = inputs
    step, offset = along(scale, attrs.axis, x.ndim), along(zero, attrs.axis, x.ndim)
    return quantized(x, step, offset, out_type.dtype)


def saturate_expr(x: te.Expr, dtype: str) -> te.Expr:
    info = integer_range(dtype)
    low, high = te.const(float(info.min), x.dtype), te.const(float(info.max), x.dtype)
    return te.cast(te.minimum(te.maximum(x, low), high), dtype)


def _quantize_compute(attrs: QuantizeAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    x, scale, zero = ins
    wide_enough = "float64" if attrs.out_dtype == "int32" else "float32"

    def body(*i: te.Expr) -> te.Expr:
        step = te.cast(parameter_at(scale, i, attrs.axis), "float32")
        ratio = te.intrinsic("round", te.cast(x(*i), "float32") / step)
        offset = te.cast(parameter_at(zero, i, attrs.axis), wide_enough)
        return saturate_expr(te.cast(ratio, wide_enough) + offset, out_type.dtype)

    return te.compute(extents(out_type), body, "quantize")


def draw_parameters(draw: Draw, size: int) -> tuple[Array, Array]:
    """A scale and an int32 zero point, per tensor or per channel."""
    lead = (size,) if flag(draw) else ()
    return array(draw, lead, "float32", 0.02, 0.2), array(draw, lead, "int32", 0, 5)


def _quantize_samples(draw: Draw) -> Sample:
    x = array(draw, shape(draw, 1), "float32", -9, 9)
    axis = draw.integer(-x.ndim, x.ndim - 1)
    dtype = choice(draw, ("int8", "uint8", "int32"))
    return Sample((x, *draw_parameters(draw, x.shape[axis])), {"out_dtype": dtype, "axis": axis})


define(
    "qnn.quantize",
    attrs=QuantizeAttrs,
    inputs=("data", "output_scale", "output_zero_point"),
    pattern=OpPattern.ELEMWISE,
    level=11,
    infer=_infer_quantize,
    completes=completes_scales("float32", "int32"),
    reference=_quantize_reference,
    compute=_quantize_compute,
    compare=Exact(),
    samples=_quantize_samples,
    doc="round(data / scale) + zero point, saturated; halves go to even.",
)


def _infer_dequantize(args: InferArgs) -> Type:
    data = args.tensor(0)
    check_parameters(args, data, args.attrs.axis, 1, 2)
    return TensorType(data.shape, args.attrs.out_dtype or "float32")


def dequantized(x: Array, scale: Array, zero: Array, axis: int = -1) -> Array:
    """(x - zero) * scale in float64."""
    apart = x.astype(np.int64) - along(zero, axis, x.ndim).astype(np.int64)
    return np.asarray(apart * along(wide(scale), axis, x.ndim))


def _dequantize_reference(
    attrs: DequantizeAttrs, inputs: tuple[Array, ...], out_type: Any
) -> Array:
    x, scale, zero = inputs
    return narrow(dequantized(x, scale, zero, attrs.axis), out_type.dtype)


def _dequantize_compute(
    attrs: DequantizeAttrs, ins: tuple[te.Tensor, ...], out_type: Any
) -> te.Tensor:
    x, scale, zero = ins

    def body(*i: te.Expr) -> te.Expr:
        apart = te.cast(x(*i), "int32") - te.cast(parameter_at(zero, i, attrs.axis), "int32")
        step = te.cast(parameter_at(scale, i, attrs.axis), "float32")
        return te.cast(te.cast(apart, "float32") * step, out_type.dtype)

    return te.compute(extents(out_type), body, "dequantize")


def _dequantize_samples(draw: Draw) -> Sample:
    x = array(draw, shape(draw, 1), choice(draw, ("int8", "uint8", "int32")), -90, 90)
    axis = draw.integer(-x.ndim, x.ndim - 1)
    return Sample((x, *draw_parameters(draw, x.shape[axis])), {"axis": axis})


define(
    "qnn.dequantize",
    attrs=DequantizeAttrs,
    inputs=("data", "input_scale", "input_zero_point"),
    pattern=OpPattern.ELEMWISE,
    level=11,
    infer=_infer_dequantize,
    completes=completes_scales("float32", "int32"),
    reference=_dequantize_reference,
    compute=_dequantize_compute,
    compare=Ulp(1),
    samples=_dequantize_samples,
    doc="(data - zero point) * scale.",
)


def _infer_requantize(args: InferArgs) -> Type:
    data = args.tensor(0)
    check_parameters(args, data, args.attrs.axis, 1, 2)
    return TensorType(data.shape, args.attrs.out_dtype or "int8")


def rounded(x: Array, rule: str) -> Array:
    """To whole numbers, halves up or (TONEAREST) away from zero."""
    if rule == "TONEAREST":
        return np.asarray(np.trunc(x + np.copysign(0.5, x)))
    return np.asarray(np.floor(x + 0.5))


def _requantize_reference(
    attrs: RequantizeAttrs, inputs: tuple[Array, ...], out_type: Any
) -> Array:
    x, scale, zero, out_scale, out_zero = inputs
    value = dequantized(x, scale, zero, attrs.axis) / wide(out_scale).reshape(())
    whole = rounded(value, attrs.rounding) + out_zero.reshape(()).astype(np.float64)
    return saturate(whole, out_type.dtype)


def _requantize_compute(
    attrs: RequantizeAttrs, ins: tuple[te.Tensor, ...], out_type: Any
) -> te.Tensor:
    x, scale, zero, out_scale, out_zero = ins

    def body(*i: te.Expr) -> te.Expr:
        apart = te.cast(x(*i), "int64") - te.cast(parameter_at(zero, i, attrs.axis), "int64")
        real = te.cast(apart, "float64") * te.cast(parameter_at(scale, i, attrs.axis), "float64")
        value = real / te.cast(parameter_at(out_scale, i, 0), "float64")
        up = te.intrinsic("floor", value + 0.5)
        if attrs.rounding == "TONEAREST":
            up = te.select(value < 0.0, te.intrinsic("ceil", value - 0.5), up)
        whole = up + te.cast(parameter_at(out_zero, i, 0), "float64")
        return saturate_expr(whole, out_type.dtype)

    return te.compute(extents(out_type), body, "requantize")


def _requantize_samples(draw: Draw) -> Sample:
    x = array(draw, shape(draw, 1), choice(draw, ("int32", "int8")), -90, 90)
    axis = draw.integer(-x.ndim, x.ndim - 1)
    out = (np.array(0.07, np.float32), np.array(draw.integer(-3, 3), np.int32))
    attrs = {
        "axis": axis,
        "rounding": choice(draw, ("None", "UPWARD", "TONEAREST")),
        "out_dtype": choice(draw, ("int8", "uint8")),
    }
    return Sample((x, *draw_parameters(draw, x.shape[axis]), *out), attrs)


define(
    "qnn.requantize",
    attrs=RequantizeAttrs,
    inputs=("data", "input_scale", "input_zero_point", "output_scale", "output_zero_point"),
    pattern=OpPattern.ELEMWISE,
    level=11,
    infer=_infer_requantize,
    completes=completes_scales("float32", "int32", "float32", "int32"),
    reference=_requantize_reference,
    compute=_requantize_compute,
    compare=Exact(),
    samples=_requantize_samples,
    doc="Scaled integers at another scale and zero point, saturated.",
)


def quantize(
    data: Expr, output_scale: Expr, output_zero_point: Expr, axis: int = -1, out_dtype: str = "int8"
) -> Call:
    attrs = {"out_dtype": out_dtype, "axis": axis}
    return call("qnn.quantize", data, output_scale, output_zero_point, **attrs)


def dequantize(
    data: Expr,
    input_scale: Expr,
    input_zero_point: Expr,
    axis: int = -1,
    out_dtype: str = "float32",
) -> Call:
    attrs = {"out_dtype": out_dtype, "axis": axis}
    return call("qnn.dequantize", data, input_scale, input_zero_point, **attrs)


def requantize(
    data: Expr,
    input_scale: Expr,
    input_zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    axis: int = -1,
    rounding: str = "None",
    compute_dtype: str = "None",
    out_dtype: str = "int8",
) -> Call:
    """Relay's builder; ``compute_dtype`` chooses a lowering there and changes nothing here."""
    return call(
        "qnn.requantize", data, input_scale, input_zero_point, output_scale, output_zero_point,
        axis=axis, rounding=rounding, out_dtype=out_dtype,
    )  # fmt: skip
