"""Relatives of convolution: deformable, correlation, morphological dilation, packed layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ixion.base import dim as dims
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.op import Op
from ixion.ir.types import TensorType, Type
from ixion.op import layout as layouts
from ixion.op.accumulate import matmul
from ixion.op.axes import static_sizes
from ixion.op.call import call, per_axis, two_sided
from ixion.op.compare import Accumulation
from ixion.op.conv import Conv2DAttrs, conv_dtype, draw_window
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.rounding import Array, narrow, wide
from ixion.op.sample import Draw, Sample, array, flag
from ixion.op.window import Window


@register_attrs("relay.attrs.DeformableConv2DAttrs")
class DeformableConv2DAttrs(Attrs):
    strides: tuple[int, ...] = attr((1, 1), "distance between windows")
    padding: tuple[int, ...] = attr((0, 0), "1, 2 or 4 values: top, left, bottom, right")
    dilation: tuple[int, ...] = attr((1, 1), "distance between taps")
    deformable_groups: int = attr(1, "groups of channels that share offsets")
    groups: int = attr(1, "independent groups of channels")
    channels: int | None = attr(None, "output channels")
    kernel_size: tuple[int, ...] | None = attr(None, "window size")
    data_layout: str = attr("NCHW", "layout of the input")
    kernel_layout: str = attr("OIHW", "layout of the weight")
    out_layout: str = attr("", "layout of the output; empty means the input's")
    out_dtype: str | None = attr(None, "dtype of the output; none means the input's")


@register_attrs("relay.attrs.CorrelationAttrs")
class CorrelationAttrs(Attrs):
    kernel_size: int = attr(1, "side of the compared patches, odd")
    max_displacement: int = attr(1, "how far patches of the second map are looked for")
    stride1: int = attr(1, "distance between patches of the first map")
    stride2: int = attr(1, "distance between displacements")
    padding: tuple[int, ...] = attr((0, 0), "zeros around both maps")
    is_multiply: bool = attr(True, "products, else absolute differences")
    layout: str = attr("NCHW", "layout of both maps", choices=("NCHW",))


@register_attrs("relay.attrs.Dilation2DAttrs")
class Dilation2DAttrs(Attrs):
    strides: tuple[int, ...] = attr((1, 1), "distance between windows")
    padding: tuple[int, ...] = attr((0, 0), "1, 2 or 4 values: top, left, bottom, right")
    dilations: tuple[int, ...] = attr((1, 1), "distance between taps")
    data_layout: str = attr("NCHW", "layout of the input", choices=("NCHW", "NHWC"))
    kernel_layout: str = attr("IHW", "layout of the weight", choices=("IHW", "HWI"))
    out_dtype: str | None = attr(None, "dtype of the output; none means the input's")


def _deform_completes(args: InferArgs) -> tuple[Type | None, ...]:
    """The weight as a convolution's, the offsets from the number of windows."""
    data, offset, weight = args.types
    attrs = args.attrs
    if not isinstance(data, TensorType):
        return args.types
    if weight is None and attrs.kernel_size and attrs.channels is not None:
        channels = layouts.to_plain(data.shape, attrs.data_layout, "NCHW")[1]
        shape = (attrs.channels, channels // attrs.groups, *attrs.kernel_size)
        weight = TensorType(layouts.from_plain(shape, "OIHW", attrs.kernel_layout), data.dtype)
    if offset is None and isinstance(weight, TensorType):
        x = layouts.to_plain(data.shape, attrs.data_layout, "NCHW")
        taps = layouts.to_plain(weight.shape, attrs.kernel_layout, "OIHW")[2:]
        window = Window.of(taps, attrs.strides, attrs.dilation, attrs.padding)
        depth = 2 * dims.prod(taps) * attrs.deformable_groups
        shape = (x[0], depth, *window.out_shape(x[2:]))
        offset = TensorType(layouts.from_plain(shape, "NCHW", attrs.data_layout), data.dtype)
    return (data, offset, weight)


def _infer_deform(args: InferArgs) -> Type:
    data, offset, weight, attrs = args.tensor(0), args.tensor(1), args.tensor(2), args.attrs
    x = layouts.to_plain(data.shape, attrs.data_layout, "NCHW")
    w = layouts.to_plain(weight.shape, attrs.kernel_layout, "OIHW")
    at = layouts.to_plain(offset.shape, attrs.data_layout, "NCHW")
    window = Window.of(w[2:], attrs.strides, attrs.dilation, attrs.padding)
    depth = 2 * w[2] * w[3] * attrs.deformable_groups
    args.agree(depth, at[1], "two offsets per tap and deformable group")
    rule = "weight does not fit the data's channels"
    args.agree(x[1], w[1] * attrs.groups, rule, expected=x[1], found=w[1])
    out = (x[0], w[0], *window.out_shape(x[2:]))
    target = attrs.out_layout or attrs.data_layout
    return TensorType(layouts.from_plain(out, "NCHW", target), conv_dtype(attrs, data))


def _bilinear(image: Array, y: Array, x: Array) -> Array:
    """(C, H, W) read at positions y, x; 0 outside, pixels outside count as 0."""
    low_y, low_x = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
    out = np.zeros((len(image), *y.shape))
    for dy in (0, 1):
        for dx in (0, 1):
            py, px = low_y + dy, low_x + dx
            weight = (1 - np.abs(y - py)) * (1 - np.abs(x - px))
            inside = (py >= 0) & (py < image.shape[1]) & (px >= 0) & (px < image.shape[2])
            safe_y, safe_x = np.clip(py, 0, image.shape[1] - 1), np.clip(px, 0, image.shape[2] - 1)
            out += image[:, safe_y, safe_x] * np.where(inside, weight, 0.0)
    return out


def _deform_reference(
    attrs: DeformableConv2DAttrs, inputs: tuple[Array, ...], out_type: Any
) -> Array:
    x = layouts.array_to_plain(wide(inputs[0]), attrs.data_layout, "NCHW")
    at = layouts.array_to_plain(wide(inputs[1]), attrs.data_layout, "NCHW")
    w = layouts.array_to_plain(wide(inputs[2]), attrs.kernel_layout, "OIHW")
    window = Window.of(w.shape[2:], attrs.strides, attrs.dilation, attrs.padding)
    counts, groups = static_sizes(window.out_shape(x.shape[2:])), attrs.deformable_groups
    base = [
        np.arange(n) * s - b for n, s, b in zip(counts, window.strides, window.before, strict=True)
    ]
    per, taps = x.shape[1] // groups, window.offsets()
    columns = np.empty((len(x), x.shape[1], len(taps), *counts))
    for n in range(len(x)):
        for g in range(groups):
            for k, (ky, kx) in enumerate(taps):
                shift = at[n, 2 * (g * len(taps) + k) :][:2]
                y = base[0][:, None] + ky * window.dilation[0] + shift[0]
                z = base[1][None] + kx * window.dilation[1] + shift[1]
                columns[n, g * per : (g + 1) * per, k] = _bilinear(
                    x[n, g * per : (g + 1) * per], y, z
                )
    matrix = w.reshape(attrs.groups, w.shape[0] // attrs.groups, -1)
    flat = columns.reshape(len(x), attrs.groups, matrix.shape[2], -1)
    out = matmul(matrix, flat, out_type.dtype).reshape(len(x), w.shape[0], *counts)
    return layouts.array_from_plain(out, "NCHW", attrs.out_layout or attrs.data_layout)


def _deform_samples(draw: Draw) -> Sample:
    spatial, size, attrs = draw_window(draw, 2)
    groups, per = draw.integer(1, 2), draw.integer(1, 2)
    x = array(draw, (1, groups * per, *spatial))
    w = array(draw, (draw.integer(1, 3), groups * per, *size))
    window = Window.of(size, attrs["strides"], attrs["dilation"], attrs["padding"])
    counts = static_sizes(window.out_shape(spatial))
    offset = array(draw, (1, 2 * size[0] * size[1] * groups, *counts), "float32", -1, 1)
    return Sample((x, offset, w), {**attrs, "deformable_groups": groups})


define(
    "nn.deformable_conv2d",
    attrs=DeformableConv2DAttrs,
    inputs=("data", "offset", "weight"),
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=5,
    infer=_infer_deform,
    completes=_deform_completes,
    reference=_deform_reference,
    compare=Accumulation(),
    samples=_deform_samples,
    doc="Convolution whose taps read at positions moved by computed offsets.",
)


def _correlation_sizes(attrs: CorrelationAttrs, shape: Sequence[Any]) -> tuple[Any, ...]:
    """Result shape: displacements as channels, then patches."""
    pad = two_sided(attrs.padding, 2)
    border = attrs.max_displacement + (attrs.kernel_size - 1) // 2
    rows = (shape[2] + pad[0] + pad[2] - 2 * border + attrs.stride1 - 1) // attrs.stride1
    columns = (shape[3] + pad[1] + pad[3] - 2 * border + attrs.stride1 - 1) // attrs.stride1
    side = 2 * (attrs.max_displacement // attrs.stride2) + 1
    return (shape[0], side * side, rows, columns)


def _correlation_reference(
    attrs: CorrelationAttrs, inputs: tuple[Array, ...], out_type: Any
) -> Array:
    pad = two_sided(attrs.padding, 2)
    widths = ((0, 0), (0, 0), (pad[0], pad[2]), (pad[1], pad[3]))
    a, b = (np.pad(wide(x), widths) for x in inputs)
    _, depth, rows, columns = _correlation_sizes(attrs, inputs[0].shape)
    radius = attrs.max_displacement // attrs.stride2
    out = np.zeros((len(a), depth, rows, columns))
    start, s = attrs.max_displacement, attrs.stride1

    def patch(x: Array, y0: int, x0: int) -> Array:
        return x[:, :, y0 : y0 + (rows - 1) * s + 1 : s, x0 : x0 + (columns - 1) * s + 1 : s]

    for q in range(depth):
        dy = (q // (2 * radius + 1) - radius) * attrs.stride2
        dx = (q % (2 * radius + 1) - radius) * attrs.stride2
        for h in range(attrs.kernel_size):
            for w in range(attrs.kernel_size):
                one = patch(a, start + h, start + w)
                two = patch(b, start + dy + h, start + dx + w)
                both = one * two if attrs.is_multiply else np.abs(one - two)
                out[:, q] += both.sum(axis=1)
    return narrow(out / (attrs.kernel_size**2 * a.shape[1]), out_type.dtype)


define(
    "nn.correlation",
    attrs=CorrelationAttrs,
    inputs=("data1", "data2"),
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=2,
    infer=lambda args: TensorType(
        _correlation_sizes(args.attrs, args.tensor(0).shape), args.tensor(0).dtype
    ),
    reference=_correlation_reference,
    compare=Accumulation(),
    samples=lambda draw: Sample(
        (array(draw, (1, 2, 6, 7)), array(draw, (1, 2, 6, 7))),
        {"kernel_size": 1 + 2 * draw.integer(0, 1), "max_displacement": 2, "padding": (2, 2),
         "stride2": draw.integer(1, 2), "is_multiply": flag(draw)},
    ),
    doc="Similarity of patches of two maps over displacements (FlowNet).",
)  # fmt: skip


def _dilation_plain(attrs: Dilation2DAttrs, weight: Sequence[Any]) -> tuple[Any, ...]:
    return layouts.to_plain(weight, attrs.kernel_layout, "IHW")


def _dilation_window(attrs: Dilation2DAttrs, size: Sequence[Any]) -> Window:
    strides, dilations = attrs.strides[-2:], attrs.dilations[-2:]
    if len(attrs.strides) == 4:
        strides, dilations = attrs.strides[1:3], attrs.dilations[1:3]
    return Window.of(size, strides, dilations, attrs.padding)


def _infer_dilation(args: InferArgs) -> Type:
    data, weight, attrs = args.tensor(0), args.tensor(1), args.attrs
    x = layouts.to_plain(data.shape, attrs.data_layout, "NCHW")
    w = _dilation_plain(attrs, weight.shape)
    args.agree(x[1], w[0], "weight has the data's channels")
    out = (*x[:2], *_dilation_window(attrs, w[1:]).out_shape(x[2:]))
    return TensorType(layouts.from_plain(out, "NCHW", attrs.data_layout), conv_dtype(attrs, data))


def _dilation_reference(attrs: Dilation2DAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x = layouts.array_to_plain(wide(inputs[0]), attrs.data_layout, "NCHW")
    w = layouts.array_to_plain(wide(inputs[1]), attrs.kernel_layout, "IHW")
    window = _dilation_window(attrs, w.shape[1:])
    counts = static_sizes(window.out_shape(x.shape[2:]))
    padded = window.padded(x, counts, -np.inf)
    out = np.full((*x.shape[:2], *counts), -np.inf)
    for offset in window.offsets():
        tap = window.element(padded, offset, counts) + w[:, offset[0], offset[1], None, None]
        np.maximum(out, tap, out=out)
    return layouts.array_from_plain(narrow(out, out_type.dtype), "NCHW", attrs.data_layout)


define(
    "image.dilation2d",
    attrs=Dilation2DAttrs,
    inputs=("data", "weight"),
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=2,
    infer=_infer_dilation,
    reference=_dilation_reference,
    compare=Accumulation(),
    samples=lambda draw: Sample(
        (array(draw, (1, 2, 5, 6)), array(draw, (2, 2, 3))),
        {"strides": (1, draw.integer(1, 2)), "padding": (0, draw.integer(0, 1))},
    ),
    doc="Largest sum of window element and weight, per channel (morphological dilation).",
)

for _name, _doc in (
    ("nn.contrib_conv2d_NCHWc", "conv2d on blocked layouts."),
    ("nn.contrib_depthwise_conv2d_NCHWc", "Depthwise conv2d on blocked layouts."),
):
    define(
        _name,
        attrs=Conv2DAttrs,
        inputs=("data", "weight"),
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
        level=10,
        infer=Op.get("nn.conv2d").get_attr("FInfer"),
        reference=Op.get("nn.conv2d").get_attr("FReference"),
        compute=Op.get("nn.conv2d").get_attr("FTVMCompute"),
        compare=Accumulation(),
        macs=Op.get("nn.conv2d").get_attr("FMacCount"),
        doc=_doc,
    )


def _blocked_builder(name: str) -> Callable[..., Call]:
    def build(
        data: Expr, kernel: Expr, strides: Any = (1, 1), padding: Any = (0, 0),
        dilation: Any = (1, 1), groups: int = 1, channels: Any = None, kernel_size: Any = None,
        data_layout: str = "NCHW8c", kernel_layout: str = "OIHW", out_layout: str = "",
        out_dtype: str = "",
    ) -> Call:  # fmt: skip
        return call(
            name, data, kernel, strides=per_axis(strides, 2), padding=two_sided(padding, 2),
            dilation=per_axis(dilation, 2), groups=groups, channels=channels,
            kernel_size=None if kernel_size is None else per_axis(kernel_size, 2),
            data_layout=data_layout, kernel_layout=kernel_layout, out_layout=out_layout,
            out_dtype=out_dtype or None,
        )  # fmt: skip

    build.__name__ = build.__qualname__ = name.rpartition(".")[2].lower()
    build.__doc__ = f"A call of operator ``{name}``, as Relay's builder makes it."
    return build


contrib_conv2d_nchwc = _blocked_builder("nn.contrib_conv2d_NCHWc")
contrib_depthwise_conv2d_nchwc = _blocked_builder("nn.contrib_depthwise_conv2d_NCHWc")


def deformable_conv2d(
    data: Expr,
    offset: Expr,
    weight: Expr,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    deformable_groups: int = 1,
    groups: int = 1,
    channels: Any = None,
    kernel_size: Any = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    return call(
        "nn.deformable_conv2d", data, offset, weight, strides=per_axis(strides, 2),
        padding=two_sided(padding, 2), dilation=per_axis(dilation, 2),
        deformable_groups=deformable_groups, groups=groups, channels=channels,
        kernel_size=None if kernel_size is None else per_axis(kernel_size, 2),
        data_layout=data_layout, kernel_layout=kernel_layout, out_layout=out_layout,
        out_dtype=out_dtype or None,
    )  # fmt: skip


def correlation(
    data1: Expr,
    data2: Expr,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: Any,
    is_multiply: bool,
    layout: str,
) -> Call:
    attrs = {
        "kernel_size": kernel_size, "max_displacement": max_displacement, "stride1": stride1,
        "stride2": stride2, "padding": per_axis(padding, 1), "is_multiply": is_multiply,
    }  # fmt: skip
    return call("nn.correlation", data1, data2, **attrs, layout=layout)


def dilation2d(
    data: Expr,
    weight: Expr,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilations: Any = (1, 1),
    data_layout: str = "NCHW",
    kernel_layout: str = "IHW",
    out_dtype: str = "",
) -> Call:
    return call(
        "image.dilation2d", data, weight, strides=strides, padding=two_sided(padding, 2),
        dilations=dilations, data_layout=data_layout, kernel_layout=kernel_layout,
        out_dtype=out_dtype or None,
    )  # fmt: skip
