"""Convolutions and matrix products of scaled integers; the sums stay int32.

As in Relay the arguments after the operands are both zero points, then both scales; the scales do
not change the result, which is scaled by their product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ixion import te
from ixion.ir.expr import Call, Expr
from ixion.ir.op import Op
from ixion.ir.types import TensorType, Type
from ixion.op import layout as layouts
from ixion.op.call import call, per_axis, two_sided
from ixion.op.compare import Exact
from ixion.op.conv import Conv2DAttrs
from ixion.op.conv_transpose import Conv2DTransposeAttrs
from ixion.op.define import Infer, InferArgs, Inferred, OpPattern, define
from ixion.op.dense import BatchMatmulAttrs, DenseAttrs
from ixion.op.rounding import Array
from ixion.op.sample import Draw, Sample, Sampler, array

_INPUTS = ("data", "weight", "input_scale", "input_zero_point", "weight_scale", "weight_zero_point")


def _weight_axis(attrs: Any) -> int:
    """Axis of the weight that a vector of zero points belongs to."""
    if isinstance(attrs, (Conv2DAttrs, Conv2DTransposeAttrs)):
        return layouts.parse(attrs.kernel_layout).index("O")
    return 0 if isinstance(attrs, DenseAttrs) else -1


def _infer(name: str) -> Infer:
    def infer(args: InferArgs) -> Type | Inferred | None:
        inner = InferArgs(args.op, args.types[:2], args.attrs, (None, None))
        found = Op.get(name).get_attr("FInfer")(inner)
        if found is None:
            return None
        kind = found.type
        return TensorType(kind.shape, args.attrs.out_dtype or "int32")

    return infer


def _completes(name: str) -> Callable[[InferArgs], tuple[Type | None, ...]]:
    def completes(args: InferArgs) -> tuple[Type | None, ...]:
        inner = InferArgs(args.op, args.types[:2], args.attrs, (None, None))
        pair = args.types[:2]
        if args.types[1] is None:
            found = Op.get(name).get_attr("FInfer")(inner)
            pair = pair if found is None or found.arg_types is None else found.arg_types
        scalars = [TensorType((), k) for k in ("int32", "int32", "float32", "float32")]
        return (*pair, *(t or s for t, s in zip(args.types[2:], scalars, strict=True)))

    return completes


def _shifted(x: Array, zero: Array, axis: int) -> Array:
    """X - zero as int32, the zero points along ``axis``."""
    line = [1] * x.ndim
    line[axis] = -1
    offset = zero.reshape(line) if zero.size > 1 else zero.reshape(())
    return np.asarray(x.astype(np.int32) - offset.astype(np.int32))


def _reference(name: str) -> Callable[..., Array]:
    def reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
        x = _shifted(inputs[0], inputs[2], 0)
        w = _shifted(inputs[1], inputs[3], _weight_axis(attrs))
        out: Array = Op.get(name).get_attr("FReference")(attrs, (x, w), out_type)
        return out

    return reference


def _shift_tensor(x: te.Tensor, zero: te.Tensor, axis: int) -> te.Tensor:
    def body(*i: te.Expr) -> te.Expr:
        one = zero.ndim == 0 or zero.shape[0] == 1
        at = [te.const(0, "int64") if one else i[axis]] * zero.ndim
        return te.cast(x(*i), "int32") - te.cast(zero(*at), "int32")

    return te.compute(x.shape, body, "shifted")


def _compute(name: str) -> Callable[..., te.Tensor]:
    def compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
        x = _shift_tensor(ins[0], ins[2], 0)
        w = _shift_tensor(ins[1], ins[3], _weight_axis(attrs))
        out: te.Tensor = Op.get(name).get_attr("FTVMCompute")(attrs, (x, w), out_type)
        return out

    return compute


def _samples(name: str, channels: Callable[[Sample], int] | None) -> Sampler:
    """Calls of the plain op on integers, with zero points and scales."""

    def samples(draw: Draw) -> Sample:
        made = Op.get(name).get_attr("FSamples")(draw)
        x, w = (array(draw, a.shape, "int8", -100, 100) for a in made.args)
        lead = (channels(made),) if channels is not None and draw.integer(0, 1) else ()
        parameters = (
            array(draw, (), "int32", -3, 3), array(draw, lead, "int32", -3, 3),
            np.array(0.1, np.float32), np.full(lead, 0.2, np.float32),
        )  # fmt: skip
        attrs = {k: v for k, v in made.attrs.items() if k != "out_dtype"}
        return Sample((x, w, *parameters), {**attrs, "out_dtype": "int32"})

    return samples


def _conv_channels(made: Sample) -> int:
    layout = layouts.parse(made.attrs.get("kernel_layout", "OIHW"))
    return int(made.args[1].shape[layout.index("O")])


def _samples_plain(draw: Draw) -> Sample:
    """Blocked layouts hold channels in two axes, which one vector of zero points does not fit."""
    while True:
        made = _samples("nn.conv2d", _conv_channels)(draw)
        if "2" not in made.attrs.get("data_layout", ""):
            return made


for _name, _plain, _attrs, _sampler in (
    ("qnn.conv2d", "nn.conv2d", Conv2DAttrs, _samples_plain),
    ("qnn.conv2d_transpose", "nn.conv2d_transpose", Conv2DTransposeAttrs,
     _samples("nn.conv2d_transpose", None)),
    ("qnn.dense", "nn.dense", DenseAttrs,
     _samples("nn.dense", lambda made: int(made.args[1].shape[0]))),
    ("qnn.batch_matmul", "nn.batch_matmul", BatchMatmulAttrs, _samples("nn.batch_matmul", None)),
):  # fmt: skip
    define(
        _name,
        attrs=_attrs,
        inputs=("x", "y", "x_scale", "x_zero_point", "y_scale", "y_zero_point")
        if _name == "qnn.batch_matmul"
        else _INPUTS,
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
        level=11,
        infer=_infer(_plain),
        completes=_completes(_plain),
        reference=_reference(_plain),
        compute=_compute(_plain),
        compare=Exact(),
        macs=Op.get(_plain).get_attr("FMacCount"),
        samples=_sampler,
        doc=f"{_plain} of integers less their zero points.",
    )


def conv2d(
    data: Expr,
    kernel: Expr,
    input_zero_point: Expr,
    kernel_zero_point: Expr,
    input_scale: Expr,
    kernel_scale: Expr,
    kernel_size: Any,
    channels: Any,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "int32",
) -> Call:
    operands: Sequence[Expr] = (
        data, kernel, input_zero_point, kernel_zero_point, input_scale, kernel_scale,
    )  # fmt: skip
    return call(
        "qnn.conv2d", *operands, kernel_size=kernel_size, channels=channels,
        strides=per_axis(strides, 2), padding=two_sided(padding, 2),
        dilation=per_axis(dilation, 2), groups=groups, data_layout=data_layout,
        kernel_layout=kernel_layout, out_layout=out_layout, out_dtype=out_dtype,
    )  # fmt: skip


def conv2d_transpose(
    data: Expr,
    weight: Expr,
    input_zero_point: Expr,
    kernel_zero_point: Expr,
    input_scale: Expr,
    kernel_scale: Expr,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    groups: int = 1,
    channels: Any = None,
    kernel_size: Any = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "IOHW",
    out_layout: str = "",
    output_padding: Any = (0, 0),
    out_dtype: str = "int32",
) -> Call:
    operands: Sequence[Expr] = (
        data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale,
    )  # fmt: skip
    return call(
        "qnn.conv2d_transpose", *operands, kernel_size=kernel_size, channels=channels,
        strides=per_axis(strides, 2), padding=two_sided(padding, 2),
        dilation=per_axis(dilation, 2), groups=groups, data_layout=data_layout,
        kernel_layout=kernel_layout, out_layout=out_layout, out_dtype=out_dtype,
        output_padding=per_axis(output_padding, 2),
    )  # fmt: skip


def dense(
    data: Expr,
    weight: Expr,
    input_zero_point: Expr,
    kernel_zero_point: Expr,
    input_scale: Expr,
    kernel_scale: Expr,
    units: Any,
    out_dtype: str = "int32",
) -> Call:
    operands = (data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale)
    return call("qnn.dense", *operands, units=units, out_dtype=out_dtype)


def batch_matmul(
    x: Expr,
    y: Expr,
    x_zero_point: Expr,
    y_zero_point: Expr,
    x_scale: Expr,
    y_scale: Expr,
    out_dtype: str = "int32",
) -> Call:
    """Relay's builder: ``y`` holds transposed matrices."""
    operands = (x, y, x_zero_point, y_zero_point, x_scale, y_scale)
    return call("qnn.batch_matmul", *operands, out_dtype=out_dtype, transpose_b=True)
