"""Transposed convolution over one, two or three spatial axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ixion import te
from ixion.base import dim as dims
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op import layout as layouts
from ixion.op.accumulate import accumulator, integer_matmul, raised
from ixion.op.call import call, per_axis, two_sided
from ixion.op.compare import Accumulation
from ixion.op.conv import COLUMN_LIMIT, check_kernel, check_rank, conv_dtype, draw_window
from ixion.op.define import Infer, InferArgs, OpPattern, define
from ixion.op.extent import extents
from ixion.op.rounding import Array, narrow, wide
from ixion.op.sample import Draw, Sample, Sampler, array, choice
from ixion.op.window import SPATIAL, Window

if TYPE_CHECKING:
    from ixion.base.dim import Dim


@register_attrs("relay.attrs.Conv1DTransposeAttrs")
class Conv1DTransposeAttrs(Attrs):
    channels: int | None = attr(None, "output channels")
    kernel_size: tuple[int, ...] | None = attr(None, "window size")
    strides: tuple[int, ...] = attr((1,), "distance between windows in the output")
    output_padding: tuple[int, ...] = attr((0,), "extra size at the end of the output")
    padding: tuple[int, ...] = attr((0,), "cropped from the output")
    dilation: tuple[int, ...] = attr((1,), "distance between taps")
    groups: int = attr(1, "independent groups of channels")
    data_layout: str = attr("NCW", "layout of the input")
    kernel_layout: str = attr("IOW", "layout of the weight")
    out_layout: str = attr("", "layout of the output; empty means the input's")
    out_dtype: str | None = attr(None, "dtype of the output; none means the input's")


@register_attrs("relay.attrs.Conv2DTransposeAttrs")
class Conv2DTransposeAttrs(Attrs):
    channels: int | None = attr(None, "output channels")
    kernel_size: tuple[int, ...] | None = attr(None, "window size")
    strides: tuple[int, ...] = attr((1, 1), "distance between windows in the output")
    output_padding: tuple[int, ...] = attr((0, 0), "extra size at the end of the output")
    padding: tuple[int, ...] = attr((0, 0), "cropped from the output")
    dilation: tuple[int, ...] = attr((1, 1), "distance between taps")
    groups: int = attr(1, "independent groups of channels")
    data_layout: str = attr("NCHW", "layout of the input")
    kernel_layout: str = attr("IOHW", "layout of the weight")
    out_layout: str = attr("", "layout of the output; empty means the input's")
    out_dtype: str | None = attr(None, "dtype of the output; none means the input's")


@register_attrs("relay.attrs.Conv3DTransposeAttrs")
class Conv3DTransposeAttrs(Attrs):
    channels: int | None = attr(None, "output channels")
    kernel_size: tuple[int, ...] | None = attr(None, "window size")
    strides: tuple[int, ...] = attr((1, 1, 1), "distance between windows in the output")
    output_padding: tuple[int, ...] = attr((0, 0, 0), "extra size at the end of the output")
    padding: tuple[int, ...] = attr((0, 0, 0), "cropped from the output")
    dilation: tuple[int, ...] = attr((1, 1, 1), "distance between taps")
    groups: int = attr(1, "independent groups of channels")
    data_layout: str = attr("NCDHW", "layout of the input")
    kernel_layout: str = attr("IODHW", "layout of the weight")
    out_layout: str = attr("", "layout of the output; empty means the input's")
    out_dtype: str | None = attr(None, "dtype of the output; none means the input's")


def _plain(rank: int) -> tuple[str, str]:
    return "NC" + SPATIAL[rank], "IO" + SPATIAL[rank]


def _completes(rank: int) -> Callable[[InferArgs], tuple[Type | None, ...]]:
    def completes(args: InferArgs) -> tuple[Type | None, ...]:
        data, attrs = args.types[0], args.attrs
        if not isinstance(data, TensorType) or not attrs.kernel_size or attrs.channels is None:
            return args.types
        plain, weight_plain = _plain(rank)
        channels = layouts.to_plain(data.shape, attrs.data_layout, plain)[1]
        shape = (channels, attrs.channels // attrs.groups, *attrs.kernel_size)
        weight = layouts.from_plain(shape, weight_plain, attrs.kernel_layout)
        return (data, TensorType(weight, data.dtype))

    return completes


def _out_dim(window: Window, axis: int, size: Dim, extra: int) -> Dim:
    cropped = window.before[axis] + window.after[axis]
    return (size - 1) * window.strides[axis] + window.span(axis) - cropped + extra


def _infer(rank: int) -> Infer:
    def infer(args: InferArgs) -> Type:
        data, weight, attrs = args.tensor(0), args.tensor(1), args.attrs
        plain, weight_plain = _plain(rank)
        check_rank(args, data, attrs.data_layout, weight, attrs.kernel_layout)
        x = layouts.to_plain(data.shape, attrs.data_layout, plain)
        w = layouts.to_plain(weight.shape, attrs.kernel_layout, weight_plain)
        args.agree(x[1], w[0], "weight does not have the data's channels")
        check_kernel(args, w[2:])
        if attrs.channels is not None:
            args.agree(
                w[1] * attrs.groups, attrs.channels,
                "weight's channels times groups must be the output channels",
                expected=attrs.channels, found=f"{w[1]} * {attrs.groups}",
            )  # fmt: skip
        window = Window.of(w[2:], attrs.strides, attrs.dilation, attrs.padding)
        extra = per_axis(attrs.output_padding, rank)
        spatial = [_out_dim(window, a, x[2 + a], extra[a]) for a in range(rank)]
        out = (x[0], w[1] * attrs.groups, *spatial)
        target = attrs.out_layout or attrs.data_layout
        return TensorType(layouts.from_plain(out, plain, target), conv_dtype(attrs, data))

    return infer


def _scatter(x: Array, w: Array, window: Window, groups: int, size: Sequence[int]) -> Array:
    """Input x (N, C, ...), w (C, O/groups, ...) added tap by tap into (N, O, *size)."""
    batch, channels, spatial = x.shape[0], x.shape[1], x.shape[2:]
    pixels = x.reshape(batch, groups, channels // groups, -1)
    taps = w.reshape(groups, channels // groups, w.shape[1], *window.size)
    product = integer_matmul if x.dtype.kind in "biu" else np.matmul
    room = [
        max((n - 1) * s + window.span(a), window.before[a] + size[a])
        for a, (n, s) in enumerate(zip(spatial, window.strides, strict=True))
    ]
    kind = np.int64 if x.dtype.kind in "biu" else np.float64
    out = np.zeros((batch, groups * w.shape[1], *room), dtype=kind)
    # Rows of one matrix per group are (tap, output channel); several taps share a product.
    flat = taps.reshape(*taps.shape[:3], -1).transpose(0, 3, 2, 1)
    offsets, rows = window.offsets(), w.shape[1]
    step = max(COLUMN_LIMIT // max(batch * groups * rows * pixels.shape[3], 1), 1)
    for start in range(0, len(offsets), step):
        some = offsets[start : start + step]
        matrix = np.ascontiguousarray(flat[:, start : start + step]).reshape(
            groups, -1, flat.shape[3]
        )
        parts = product(matrix, pixels).reshape(batch, groups, len(some), rows, *spatial)
        for k, offset in enumerate(some):
            place = window.element(out, offset, spatial)
            place += parts[:, :, k].reshape(batch, groups * rows, *spatial)
    crop = (slice(b, b + n) for b, n in zip(window.before, size, strict=True))
    return np.asarray(out[(slice(None), slice(None), *crop)])


def _reference(rank: int) -> Callable[..., Array]:
    def reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
        plain, weight_plain = _plain(rank)
        x = layouts.array_to_plain(wide(inputs[0]), attrs.data_layout, plain)
        w = layouts.array_to_plain(wide(inputs[1]), attrs.kernel_layout, weight_plain)
        window = Window.of(w.shape[2:], attrs.strides, attrs.dilation, attrs.padding)
        extra = per_axis(attrs.output_padding, rank)
        size = [int(_out_dim(window, a, x.shape[2 + a], extra[a])) for a in range(rank)]  # type: ignore[arg-type]
        out = narrow(_scatter(x, w, window, attrs.groups, size), out_type.dtype)
        return layouts.array_from_plain(out, plain, attrs.out_layout or attrs.data_layout)

    return reference


def _compute(rank: int) -> Callable[..., te.Tensor]:
    def compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
        plain, weight_plain = _plain(rank)
        x, w = ins
        read_x = layouts.reader(x, attrs.data_layout, plain)
        read_w = layouts.reader(w, attrs.kernel_layout, weight_plain)
        sizes = layouts.to_plain(x.shape, attrs.data_layout, plain)
        taps = layouts.to_plain(w.shape, attrs.kernel_layout, weight_plain)
        window = Window.of(taps[2:], attrs.strides, attrs.dilation, attrs.padding)
        dtype = accumulator(out_type.dtype)
        per_group = sizes[1] // attrs.groups

        def body(n: te.Expr, o: te.Expr, *at: te.Expr) -> te.Expr:
            c = te.reduce_axis(per_group, "rc")
            k = [te.reduce_axis(size, "rk") for size in window.size]
            channel = c.var + o // taps[1] * per_group if attrs.groups > 1 else c.var
            value = _tap(window, read_x, n, channel, at, [a.var for a in k], sizes[2:], dtype)
            weight = raised(read_w(channel, o % taps[1], *(a.var for a in k)), dtype)
            return te.cast(te.sum(value * weight, [c, *k]), out_type.dtype)

        target = attrs.out_layout or attrs.data_layout
        return layouts.compute_as(extents(out_type), target, plain, body, f"conv{rank}d_transpose")

    return compute


def _tap(
    window: Window, x: Any, n: te.Expr, c: te.Expr, at: Sequence[te.Expr],
    k: Sequence[te.Expr], sizes: Sequence[Any], dtype: str,
) -> te.Expr:  # fmt: skip
    """The input element that tap ``k`` of output ``at`` sees, or 0 between and outside inputs."""
    index, guard = [], None
    for a, (i, tap) in enumerate(zip(at, k, strict=True)):
        spread = i + window.before[a] - tap * window.dilation[a]
        stride = window.strides[a]
        index.append(spread // stride if stride > 1 else spread)
        tests = [te.compare("ge", spread, 0), te.compare("lt", index[-1], sizes[a])]
        if stride > 1:
            tests.append(te.compare("eq", spread % stride, 0))
        for test in tests:
            guard = test if guard is None else te.logical_and(guard, test)
    value = raised(x(n, c, *index), dtype)
    return value if guard is None else te.select(guard, value, te.const(0, dtype))


def _macs(rank: int) -> Callable[..., Dim]:
    def macs(attrs: Any, types: Sequence[Any], out_type: Any) -> Dim:
        plain, weight_plain = _plain(rank)
        data = layouts.to_plain(types[0].shape, attrs.data_layout, plain)
        weight = layouts.to_plain(types[1].shape, attrs.kernel_layout, weight_plain)
        return dims.prod(data) * dims.prod(weight[1:])

    return macs


def _samples(rank: int) -> Sampler:
    layouts_here = {1: ("NCW", "IOW"), 2: ("NCHW", "IOHW"), 3: ("NCDHW", "IODHW")}

    def samples(draw: Draw) -> Sample:
        spatial, size, attrs = draw_window(draw, rank)
        spatial = [min(n, 4) for n in spatial]
        spans = [(k - 1) * d + 1 for k, d in zip(size, attrs["dilation"], strict=True)]
        pad = two_sided(attrs["padding"], rank)
        if any(pad[a] + pad[rank + a] >= spans[a] for a in range(rank)):
            attrs["padding"] = [0] * rank
        groups, inner, outer = draw.integer(1, 2), draw.integer(1, 3), draw.integer(1, 3)
        attrs["output_padding"] = [draw.integer(0, s - 1) for s in attrs["strides"]]
        dtype = choice(draw, ("float32", "float32", "float64", "int8"))
        attrs |= {"groups": groups, "out_dtype": "int32" if dtype == "int8" else None}
        x = array(draw, (draw.integer(1, 2), groups * inner, *spatial), dtype)
        w = array(draw, (groups * inner, outer, *size), dtype)
        if rank == 2 and draw.integer(0, 3) == 0:
            attrs |= {"data_layout": "NHWC", "kernel_layout": "HWOI"}
            plain, weight_plain = layouts_here[rank]
            x = layouts.array_from_plain(x, plain, "NHWC")
            w = layouts.array_from_plain(w, weight_plain, "HWOI")
        return Sample((x, w), attrs)

    return samples


for _rank, _attrs in (
    (1, Conv1DTransposeAttrs), (2, Conv2DTransposeAttrs), (3, Conv3DTransposeAttrs)
):  # fmt: skip
    define(
        f"nn.conv{_rank}d_transpose",
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
        doc="The transpose of a convolution: each input adds a scaled window to the output.",
    )


def _build(rank: int, data: Expr, weight: Expr, attrs: dict[str, Any]) -> Call:
    for key in ("strides", "dilation", "output_padding"):
        attrs[key] = per_axis(attrs[key], rank)
    if attrs["kernel_size"] is not None:
        attrs["kernel_size"] = per_axis(attrs["kernel_size"], rank)
    attrs["padding"] = two_sided(attrs["padding"], rank)
    attrs["out_dtype"] = attrs["out_dtype"] or None
    return call(f"nn.conv{rank}d_transpose", data, weight, **attrs)


def conv1d_transpose(
    data: Expr,
    weight: Expr,
    strides: Any = (1,),
    padding: Any = (0,),
    dilation: Any = (1,),
    groups: int = 1,
    channels: Any = None,
    kernel_size: Any = None,
    data_layout: str = "NCW",
    kernel_layout: str = "IOW",
    out_layout: str = "",
    output_padding: Any = (0,),
    out_dtype: str = "",
) -> Call:
    """Relay's builder."""
    attrs = dict(locals())
    return _build(1, attrs.pop("data"), attrs.pop("weight"), attrs)


def conv2d_transpose(
    data: Expr,
    weight: Expr,
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
    out_dtype: str = "",
) -> Call:
    """Relay's builder."""
    attrs = dict(locals())
    return _build(2, attrs.pop("data"), attrs.pop("weight"), attrs)


def conv3d_transpose(
    data: Expr,
    weight: Expr,
    strides: Any = (1, 1, 1),
    padding: Any = (0, 0, 0),
    dilation: Any = (1, 1, 1),
    groups: int = 1,
    channels: Any = None,
    kernel_size: Any = None,
    data_layout: str = "NCDHW",
    kernel_layout: str = "IODHW",
    out_layout: str = "",
    output_padding: Any = (0, 0, 0),
    out_dtype: str = "",
) -> Call:
    """Relay's builder."""
    attrs = dict(locals())
    return _build(3, attrs.pop("data"), attrs.pop("weight"), attrs)
