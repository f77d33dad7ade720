"""Convolution over one, two or three spatial axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ixion import te
from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op import layout as layouts
from ixion.op.accumulate import accumulator, matmul, raised, widened
from ixion.op.axes import static_sizes
from ixion.op.call import call, per_axis, two_sided
from ixion.op.compare import Accumulation
from ixion.op.define import Infer, InferArgs, OpPattern, define
from ixion.op.extent import extents
from ixion.op.rounding import Array, narrow, wide
from ixion.op.sample import Draw, Sample, Sampler, array, choice
from ixion.op.window import SPATIAL, Window

if TYPE_CHECKING:
    from ixion.base.dim import Dim

# Largest float64 column matrix built at once, in elements (64 MB).
COLUMN_LIMIT = 1 << 23


@register_attrs("relay.attrs.Conv1DAttrs")
class Conv1DAttrs(Attrs):
    strides: tuple[int, ...] = attr((1,), "distance between windows")
    padding: tuple[int, ...] = attr((0, 0), "zeros before and after")
    dilation: tuple[int, ...] = attr((1,), "distance between taps")
    groups: int = attr(1, "independent groups of channels")
    channels: int | None = attr(None, "output channels")
    kernel_size: tuple[int, ...] | None = attr(None, "window size")
    data_layout: str = attr("NCW", "layout of the input")
    kernel_layout: str = attr("OIW", "layout of the weight")
    out_layout: str = attr("", "layout of the output; empty means the input's")
    out_dtype: str | None = attr(None, "dtype of the output; none means the input's")


@register_attrs("relay.attrs.Conv2DAttrs")
class Conv2DAttrs(Attrs):
    strides: tuple[int, ...] = attr((1, 1), "distance between windows")
    padding: tuple[int, ...] = attr((0, 0), "1, 2 or 4 values: top, left, bottom, right")
    dilation: tuple[int, ...] = attr((1, 1), "distance between taps")
    groups: int = attr(1, "independent groups of channels")
    channels: int | None = attr(None, "output channels")
    kernel_size: tuple[int, ...] | None = attr(None, "window size")
    data_layout: str = attr("NCHW", "layout of the input")
    kernel_layout: str = attr("OIHW", "layout of the weight")
    out_layout: str = attr("", "layout of the output; empty means the input's")
    out_dtype: str | None = attr(None, "dtype of the output; none means the input's")


@register_attrs("relay.attrs.Conv3DAttrs")
class Conv3DAttrs(Attrs):
    strides: tuple[int, ...] = attr((1, 1, 1), "distance between windows")
    padding: tuple[int, ...] = attr((0, 0, 0), "1, 3 or 6 values, befores then afters")
    dilation: tuple[int, ...] = attr((1, 1, 1), "distance between taps")
    groups: int = attr(1, "independent groups of channels")
    channels: int | None = attr(None, "output channels")
    kernel_size: tuple[int, ...] | None = attr(None, "window size")
    data_layout: str = attr("NCDHW", "layout of the input")
    kernel_layout: str = attr("OIDHW", "layout of the weight")
    out_layout: str = attr("", "layout of the output; empty means the input's")
    out_dtype: str | None = attr(None, "dtype of the output; none means the input's")


ConvAttrs = Conv1DAttrs | Conv2DAttrs | Conv3DAttrs


def conv_dtype(attrs: Any, data: TensorType) -> str:
    """The output dtype that the attributes ask for."""
    return attrs.out_dtype or data.dtype


def plain_layouts(rank: int) -> tuple[str, str]:
    """Channel-first layouts of data and weight over ``rank`` spatial axes."""
    return "NC" + SPATIAL[rank], "OI" + SPATIAL[rank]


def _completes(rank: int) -> Callable[[InferArgs], tuple[Type | None, ...]]:
    """The weight's type where kernel_size and channels are given."""

    def completes(args: InferArgs) -> tuple[Type | None, ...]:
        data, attrs = args.types[0], args.attrs
        if not isinstance(data, TensorType) or not attrs.kernel_size or attrs.channels is None:
            return args.types
        plain, weight_plain = plain_layouts(rank)
        channels = layouts.to_plain(data.shape, attrs.data_layout, plain)[1]
        shape = (attrs.channels, channels // attrs.groups, *attrs.kernel_size)
        return (data, TensorType(
            layouts.from_plain(shape, weight_plain, attrs.kernel_layout), data.dtype
        ))  # fmt: skip

    return completes


def _infer(rank: int) -> Infer:
    def infer(args: InferArgs) -> Type:
        data, weight, attrs = args.tensor(0), args.tensor(1), args.attrs
        plain, weight_plain = plain_layouts(rank)
        check_rank(args, data, attrs.data_layout, weight, attrs.kernel_layout)
        x = layouts.to_plain(data.shape, attrs.data_layout, plain)
        w = layouts.to_plain(weight.shape, attrs.kernel_layout, weight_plain)
        _check_channels(args, x, w)
        check_kernel(args, w[2:])
        window = Window.of(w[2:], attrs.strides, attrs.dilation, attrs.padding)
        out = (x[0], w[0], *window.out_shape(x[2:]))
        check_positive(args, out, x)
        target = attrs.out_layout or attrs.data_layout
        return TensorType(layouts.from_plain(out, plain, target), conv_dtype(attrs, data))

    return infer


def check_rank(
    args: InferArgs, data: TensorType, layout: str, weight: TensorType, kernel_layout: str
) -> None:
    for what, kind, text in (("data", data, layout), ("weight", weight, kernel_layout)):
        if len(kind.shape) != len(layouts.parse(text).parts):
            args.fail(f"{what} does not have the rank of its layout", expected=text, found=kind)


def check_kernel(args: InferArgs, found: Sequence[Dim]) -> None:
    wanted = args.attrs.kernel_size
    if not dims.is_static(found):
        args.fail("the window size must be known", found=found)
    if wanted and any(a != b for a, b in zip(wanted, found, strict=True)):
        args.fail("weight does not have the window size", expected=wanted, found=tuple(found))


def check_positive(args: InferArgs, out: Sequence[Dim], data: Sequence[Dim]) -> None:
    if any(isinstance(d, int) and d < 0 for d in out) or any(
        isinstance(d, int) and d == 0 and s != 0 for d, s in zip(out[2:], data[2:], strict=True)
    ):
        args.fail("the window is larger than the padded input", expected="size >= 1", found=out)
    for d in out[2:]:
        if not isinstance(d, int):
            args.at_most(1, d, "the window is larger than the padded input")


def _check_channels(args: InferArgs, x: Sequence[Dim], w: Sequence[Dim]) -> None:
    groups, channels = args.attrs.groups, args.attrs.channels
    args.agree(
        x[1], w[1] * groups, "weight's input channels times groups must be the data's channels",
        expected=x[1], found=f"{w[1]} * {groups}",
    )  # fmt: skip
    if channels is not None:
        args.agree(channels, w[0], "weight does not have the output channels")
    if isinstance(w[0], int) and w[0] % groups:
        args.fail("groups must divide the output channels", expected=groups, found=w[0])


def convolve(x: Array, w: Array, window: Window, groups: int, dtype: str) -> Array:
    """Channel-first convolution: x (N, C, ...), w (O, C/groups, ...) to (N, O, ...) of ``dtype``.

    One matrix product per sample, group and block of rows, over columns gathered from the windows.
    """
    counts = static_sizes(window.out_shape(x.shape[2:]))
    if w.shape[1] == 1 and groups > 1:
        return narrow(_depthwise(x, w, window, counts), dtype)
    depth = w.shape[1] * int(np.prod(window.size))
    matrix = w.reshape(groups, w.shape[0] // groups, depth)
    padded = window.padded(x, counts, 0)
    out = np.empty((len(x), w.shape[0], *counts), dtype=dtypes.to_numpy(dtype))
    row = max(int(np.prod(counts[1:])) * x.shape[1] * int(np.prod(window.size)), 1)
    rows = max(COLUMN_LIMIT // row, 1)
    for n in range(len(x)):
        for start in range(0, counts[0], rows):
            some = [min(rows, counts[0] - start), *counts[1:]]
            block = padded[n, :, start * window.strides[0] :]
            columns = _columns(block, window, some, groups)
            part = matmul(matrix, columns, dtype)
            out[n, :, start : start + rows] = part.reshape(w.shape[0], *some)
    return out


def _depthwise(x: Array, w: Array, window: Window, counts: Sequence[int]) -> Array:
    """One input channel per group: taps times weights, added up."""
    x, w = widened(x), widened(w)
    padded = window.padded(x, counts, 0)
    weights = w.reshape(x.shape[1], w.shape[0] // x.shape[1], -1)
    out = np.zeros((len(x), *weights.shape[:2], *counts), x.dtype)
    for k, offset in enumerate(window.offsets()):
        tap = window.element(padded, offset, counts)[:, :, None]
        out += tap * weights[:, :, k].reshape(*weights.shape[:2], *[1] * len(counts))
    return out.reshape(len(x), w.shape[0], *counts)


def _columns(block: Array, window: Window, counts: Sequence[int], groups: int) -> Array:
    """(groups, channels/groups * window, pixels) from one padded sample (C, ...)."""
    offsets = window.offsets()
    out = np.empty((block.shape[0], len(offsets), *counts), dtype=block.dtype)
    for i, offset in enumerate(offsets):
        out[:, i] = window.element(block, offset, counts)
    return out.reshape(groups, block.shape[0] // groups * len(offsets), int(np.prod(counts)))


def _reference(rank: int) -> Callable[..., Array]:
    def reference(attrs: ConvAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
        plain, weight_plain = plain_layouts(rank)
        x = layouts.array_to_plain(wide(inputs[0]), attrs.data_layout, plain)
        w = layouts.array_to_plain(wide(inputs[1]), attrs.kernel_layout, weight_plain)
        window = Window.of(w.shape[2:], attrs.strides, attrs.dilation, attrs.padding)
        out = convolve(x, w, window, attrs.groups, out_type.dtype)
        return layouts.array_from_plain(out, plain, attrs.out_layout or attrs.data_layout)

    return reference


def _compute(rank: int) -> Callable[..., te.Tensor]:
    def compute(attrs: ConvAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
        plain, weight_plain = plain_layouts(rank)
        x, w = ins
        read_x = layouts.reader(x, attrs.data_layout, plain)
        read_w = layouts.reader(w, attrs.kernel_layout, weight_plain)
        sizes = layouts.to_plain(x.shape, attrs.data_layout, plain)
        taps = layouts.to_plain(w.shape, attrs.kernel_layout, weight_plain)
        window = Window.of(taps[2:], attrs.strides, attrs.dilation, attrs.padding)
        dtype = accumulator(out_type.dtype)
        per_group = taps[0] // attrs.groups

        def body(n: te.Expr, o: te.Expr, *at: te.Expr) -> te.Expr:
            c = te.reduce_axis(taps[1], "rc")
            k = [te.reduce_axis(size, "rk") for size in window.size]
            inside = [a.var for a in k]
            channel = c.var if attrs.groups == 1 else o // per_group * taps[1] + c.var
            zero = te.const(0, dtype)
            value = window.read(read_x, (n, channel), at, inside, sizes[2:], zero)
            weight = raised(read_w(o, c.var, *inside), dtype)
            return te.cast(te.sum(value * weight, [c, *k]), out_type.dtype)

        target = attrs.out_layout or attrs.data_layout
        return layouts.compute_as(extents(out_type), target, plain, body, f"conv{rank}d")

    return compute


def _macs(rank: int) -> Callable[..., Dim]:
    def macs(attrs: ConvAttrs, types: Sequence[Type], out_type: Any) -> Dim:
        weight = layouts.to_plain(types[1].shape, attrs.kernel_layout, plain_layouts(rank)[1])  # type: ignore[attr-defined]
        return dims.prod(out_type.shape) * dims.prod(weight[1:])

    return macs


def draw_window(draw: Draw, rank: int) -> tuple[list[int], list[int], dict[str, Any]]:
    """Sizes of input and window, and stride, dilation and padding that fit them."""
    size = [draw.integer(1, 3) for _ in range(rank)]
    dilation = [draw.integer(1, 2) for _ in range(rank)]
    pad = [draw.integer(0, 2) for _ in range(choice(draw, (rank, 2 * rank)))]
    span = [(k - 1) * d + 1 for k, d in zip(size, dilation, strict=True)]
    spatial = [s + draw.integer(0, 4) for s in span]
    strides = [draw.integer(1, 3) for _ in range(rank)]
    return spatial, size, {"strides": strides, "dilation": dilation, "padding": pad}


_SAMPLE_LAYOUTS = {
    1: [("NCW", "OIW"), ("NWC", "WIO")],
    2: [("NCHW", "OIHW"), ("NHWC", "HWIO"), ("NCHW2c", "OIHW1i2o")],
    3: [("NCDHW", "OIDHW"), ("NDHWC", "DHWIO")],
}


def _samples(rank: int) -> Sampler:
    def samples(draw: Draw) -> Sample:
        spatial, size, attrs = draw_window(draw, rank)
        groups, inner, outer = draw.integer(1, 3), draw.integer(1, 3), draw.integer(1, 3)
        data, kernel = choice(draw, _SAMPLE_LAYOUTS[rank])
        scale = 2 if "2" in data else 1
        if scale == 2:
            groups, inner, outer = 1, 2 * inner, 2 * outer
        dtype = choice(draw, ("float32", "float32", "float64", "int8"))
        x = array(draw, (draw.integer(1, 2), groups * inner, *spatial), dtype)
        w = array(draw, (groups * outer, inner, *size), dtype)
        plain, weight_plain = plain_layouts(rank)
        attrs |= {"groups": groups, "data_layout": data, "kernel_layout": kernel}
        if dtype == "int8":
            attrs["out_dtype"] = "int32"
        pair = (
            layouts.array_from_plain(x, plain, data),
            layouts.array_from_plain(w, weight_plain, kernel),
        )
        return Sample(pair, attrs)

    return samples


for _rank, _attrs in ((1, Conv1DAttrs), (2, Conv2DAttrs), (3, Conv3DAttrs)):
    define(
        f"nn.conv{_rank}d",
        attrs=_attrs,
        inputs=("data", "weight"),
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
        level=2,
        infer=_infer(_rank),
        completes=_completes(_rank),
        reference=_reference(_rank),
        compute=_compute(_rank),
        compare=Accumulation(),
        macs=_macs(_rank),
        samples=_samples(_rank),
        doc=f"Cross-correlation over {_rank} spatial axes, zero padding, optional groups.",
    )


def _build(rank: int, data: Expr, weight: Expr, attrs: dict[str, Any]) -> Call:
    for key in ("strides", "dilation"):
        attrs[key] = per_axis(attrs[key], rank)
    if attrs["kernel_size"] is not None:
        attrs["kernel_size"] = per_axis(attrs["kernel_size"], rank)
    attrs["padding"] = two_sided(attrs["padding"], rank)
    attrs["out_dtype"] = attrs["out_dtype"] or None
    return call(f"nn.conv{rank}d", data, weight, **attrs)


def conv1d(
    data: Expr,
    weight: Expr,
    strides: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    channels: Any = None,
    kernel_size: Any = None,
    data_layout: str = "NCW",
    kernel_layout: str = "OIW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """Relay's builder; ints stand for one value per spatial axis."""
    attrs = dict(locals())
    return _build(1, attrs.pop("data"), attrs.pop("weight"), attrs)


def conv2d(
    data: Expr,
    weight: Expr,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    groups: int = 1,
    channels: Any = None,
    kernel_size: Any = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """Relay's builder; padding of 1, 2 or 4 values becomes 4."""
    attrs = dict(locals())
    return _build(2, attrs.pop("data"), attrs.pop("weight"), attrs)


def conv3d(
    data: Expr,
    weight: Expr,
    strides: Any = (1, 1, 1),
    padding: Any = (0, 0, 0),
    dilation: Any = (1, 1, 1),
    groups: int = 1,
    channels: Any = None,
    kernel_size: Any = None,
    data_layout: str = "NCDHW",
    kernel_layout: str = "OIDHW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """Relay's builder; padding of 1, 3 or 6 values becomes 6."""
    attrs = dict(locals())
    return _build(3, attrs.pop("data"), attrs.pop("weight"), attrs)
