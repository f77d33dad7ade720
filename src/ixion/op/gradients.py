"""Ops that only gradients need: max_pool2d_grad, avg_pool2d_grad, conv2d_backward_weight."""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op import layout as layouts
from ixion.op.call import call, per_axis, two_sided
from ixion.op.compare import Accumulation
from ixion.op.conv import Conv2DAttrs, conv_dtype
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.pool import AvgPool2DAttrs, MaxPool2DAttrs, lowest, pool_window, tap_counts
from ixion.op.rounding import Array, narrow, wide
from ixion.op.sample import Draw, Sample, array, flag
from ixion.op.window import Window


def _infer_second(args: InferArgs) -> Type:
    args.tensor(0)
    return args.tensor(1)


def _collect(
    window: Window, parts: list[Array], shape: tuple[int, ...], counts: list[int]
) -> Array:
    """Per-tap values (N, C, *counts) added back into an input-shaped array."""
    room = window.padded(np.zeros(shape), counts, 0.0)
    total = room.copy() if room.base is None else np.array(room)
    for offset, part in zip(window.offsets(), parts, strict=True):
        place = window.element(total, offset, counts)
        place += part
    top, left = window.before
    return total[:, :, top : top + shape[2], left : left + shape[3]]


def _max_reference(attrs: MaxPool2DAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    grad = layouts.array_to_plain(wide(inputs[0]), attrs.layout, "NCHW")
    x = layouts.array_to_plain(wide(inputs[1]), attrs.layout, "NCHW")
    window, counts = pool_window(attrs), list(grad.shape[2:])
    padded = window.padded(x, counts, lowest("float64"))
    taps = np.stack([window.element(padded, o, counts) for o in window.offsets()])
    winner = np.argmax(taps, axis=0)
    parts = [np.where(winner == k, grad, 0.0) for k in range(len(taps))]
    out = _collect(window, parts, x.shape, counts)
    return layouts.array_from_plain(narrow(out, out_type.dtype), "NCHW", attrs.layout)


def _avg_reference(attrs: AvgPool2DAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    grad = layouts.array_to_plain(wide(inputs[0]), attrs.layout, "NCHW")
    shape = layouts.array_to_plain(inputs[1], attrs.layout, "NCHW").shape
    window, counts = pool_window(attrs), list(grad.shape[2:])
    lines = [
        tap_counts(window, a, shape[2 + a], counts[a], attrs.count_include_pad) for a in (0, 1)
    ]
    share = grad / np.maximum(lines[0][:, None] * lines[1], 1)
    out = _collect(window, [share] * len(window.offsets()), shape, counts)
    return layouts.array_from_plain(narrow(out, out_type.dtype), "NCHW", attrs.layout)


def _pool_samples(average: bool) -> Any:
    def samples(draw: Draw) -> Sample:
        size, strides = (draw.integer(1, 3), draw.integer(1, 3)), (draw.integer(1, 2), 2)
        pad = [draw.integer(0, (k - 1) // 2) for k in size]
        attrs: dict[str, Any] = {"pool_size": size, "strides": strides, "padding": pad}
        if average:
            attrs["count_include_pad"] = flag(draw)
        x = array(draw, (1, 2, draw.integer(3, 6), draw.integer(3, 6)))
        window = Window.of(size, strides, (1, 1), pad)
        counts = [int(n) for n in window.out_shape(x.shape[2:])]  # type: ignore[arg-type]
        return Sample((array(draw, (1, 2, *counts)), x), attrs)

    return samples


for _name, _attrs, _reference in (
    ("nn.max_pool2d_grad", MaxPool2DAttrs, _max_reference),
    ("nn.avg_pool2d_grad", AvgPool2DAttrs, _avg_reference),
):
    define(
        _name,
        attrs=_attrs,
        inputs=("data", "grad"),
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
        level=2,
        infer=_infer_second,
        reference=_reference,
        compare=Accumulation(),
        samples=_pool_samples(_attrs is AvgPool2DAttrs),
        doc="Gradient of the pool for its input, from (output gradient, input).",
    )


def _kernel_size(args: InferArgs, attrs: Conv2DAttrs) -> tuple[int, ...]:
    if not attrs.kernel_size:
        args.fail("kernel_size is required: it does not follow from the arguments")
    return tuple(attrs.kernel_size)


def _infer_weight(args: InferArgs) -> Type:
    grad, data, attrs = args.tensor(0), args.tensor(1), args.attrs
    g = layouts.to_plain(grad.shape, _grad_layout(attrs), "NCHW")
    x = layouts.to_plain(data.shape, attrs.data_layout, "NCHW")
    channels = attrs.channels if attrs.channels is not None else g[1]
    shape = (channels, x[1] // attrs.groups, *_kernel_size(args, attrs))
    target = attrs.out_layout or attrs.kernel_layout
    return TensorType(layouts.from_plain(shape, "OIHW", target), conv_dtype(attrs, data))


def _grad_layout(attrs: Conv2DAttrs) -> str:
    """Relay stores the output gradient's layout where a convolution stores its weight's."""
    return attrs.kernel_layout if set(attrs.kernel_layout) == set("NCHW") else attrs.data_layout


def _weight_reference(attrs: Conv2DAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    grad = layouts.array_to_plain(wide(inputs[0]), _grad_layout(attrs), "NCHW")
    x = layouts.array_to_plain(wide(inputs[1]), attrs.data_layout, "NCHW")
    size, groups = tuple(attrs.kernel_size or ()), attrs.groups
    window = Window.of(size, attrs.strides, attrs.dilation, attrs.padding)
    counts = list(grad.shape[2:])
    padded = window.padded(x, counts, 0.0)
    rows = grad.reshape(len(x), groups, grad.shape[1] // groups, -1)
    taps = []
    for offset in window.offsets():
        seen = window.element(padded, offset, counts)
        columns = seen.reshape(len(x), groups, x.shape[1] // groups, -1)
        taps.append(np.matmul(rows, columns.swapaxes(2, 3)).sum(axis=0))
    out = np.stack(taps, axis=-1).reshape(grad.shape[1], x.shape[1] // groups, *size)
    target = attrs.out_layout or "OIHW"
    return layouts.array_from_plain(narrow(out, out_type.dtype), "OIHW", target)


def _weight_samples(draw: Draw) -> Sample:
    groups, inner, outer = draw.integer(1, 2), draw.integer(1, 2), draw.integer(1, 2)
    size, strides = (draw.integer(1, 3), draw.integer(1, 3)), (draw.integer(1, 2),) * 2
    pad = [draw.integer(0, 1), draw.integer(0, 1)]
    x = array(draw, (2, groups * inner, 5, 6))
    counts = Window.of(size, strides, (1, 1), pad).out_shape((5, 6))
    grad = array(draw, (2, groups * outer, *(int(n) for n in counts)))  # type: ignore[arg-type]
    attrs = {"kernel_size": size, "strides": strides, "padding": pad, "groups": groups,
             "kernel_layout": "NCHW", "out_layout": "OIHW"}  # fmt: skip
    return Sample((grad, x), attrs)


define(
    "nn.conv2d_backward_weight",
    attrs=Conv2DAttrs,
    inputs=("grad", "data"),
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=2,
    infer=_infer_weight,
    reference=_weight_reference,
    compare=Accumulation(),
    samples=_weight_samples,
    doc="Gradient of conv2d for its weight, from (output gradient, input).",
)


def _pool_grad(name: str, out_grad: Expr, data: Expr, attrs: dict[str, Any]) -> Call:
    for key in ("pool_size", "strides"):
        attrs[key] = per_axis(attrs[key], 2)
    attrs["padding"] = two_sided(attrs["padding"], 2)
    return call(name, out_grad, data, **attrs)


def max_pool2d_grad(
    out_grad: Expr,
    data: Expr,
    pool_size: Any = (1, 1),
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Call:
    attrs = dict(locals())
    return _pool_grad("nn.max_pool2d_grad", attrs.pop("out_grad"), attrs.pop("data"), attrs)


def avg_pool2d_grad(
    out_grad: Expr,
    data: Expr,
    pool_size: Any = (1, 1),
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Call:
    attrs = dict(locals())
    return _pool_grad("nn.avg_pool2d_grad", attrs.pop("out_grad"), attrs.pop("data"), attrs)


def conv2d_backward_weight(
    grad: Expr,
    data: Expr,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    groups: int = 1,
    channels: Any = None,
    kernel_size: Any = None,
    grad_layout: str = "NCHW",
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_dtype: str = "",
) -> Call:
    """Relay's builder: the gradient's layout goes where a convolution has its weight's."""
    return call(
        "nn.conv2d_backward_weight", grad, data, strides=per_axis(strides, 2),
        padding=two_sided(padding, 2), dilation=per_axis(dilation, 2), groups=groups,
        channels=channels, kernel_size=None if kernel_size is None else per_axis(kernel_size, 2),
        data_layout=data_layout, kernel_layout=grad_layout, out_layout=kernel_layout,
        out_dtype=out_dtype or None,
    )  # fmt: skip
