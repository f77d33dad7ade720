"""Max and average pooling over one, two or three spatial axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ixion import te
from ixion.base import dtype as dtypes
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op import layout as layouts
from ixion.op.accumulate import accumulator, widened
from ixion.op.call import call, per_axis, two_sided
from ixion.op.compare import Accumulation, Exact
from ixion.op.conv import check_positive, draw_window
from ixion.op.define import Infer, InferArgs, OpPattern, define
from ixion.op.extent import Extent, extents, index
from ixion.op.rounding import Array, integer_range, narrow
from ixion.op.sample import Draw, Sample, Sampler, array, choice, flag
from ixion.op.window import SPATIAL, Window


@register_attrs("relay.attrs.MaxPool1DAttrs")
class MaxPool1DAttrs(Attrs):
    pool_size: tuple[int, ...] = attr(doc="window size")
    strides: tuple[int, ...] = attr((1,), "distance between windows")
    dilation: tuple[int, ...] = attr((1,), "distance between taps")
    padding: tuple[int, ...] = attr((0,), "1 or 2 values")
    layout: str = attr("NCW", "layout of the input")
    out_layout: str = attr("", "layout of the output; empty means the input's")
    ceil_mode: bool = attr(False, "let the last window hang over the end")


@register_attrs("relay.attrs.MaxPool2DAttrs")
class MaxPool2DAttrs(Attrs):
    pool_size: tuple[int, ...] = attr(doc="window size")
    strides: tuple[int, ...] = attr((1, 1), "distance between windows")
    dilation: tuple[int, ...] = attr((1, 1), "distance between taps")
    padding: tuple[int, ...] = attr((0, 0), "1, 2 or 4 values: top, left, bottom, right")
    layout: str = attr("NCHW", "layout of the input")
    out_layout: str = attr("", "layout of the output; empty means the input's")
    ceil_mode: bool = attr(False, "let the last window hang over the end")


@register_attrs("relay.attrs.MaxPool3DAttrs")
class MaxPool3DAttrs(Attrs):
    pool_size: tuple[int, ...] = attr(doc="window size")
    strides: tuple[int, ...] = attr((1, 1, 1), "distance between windows")
    dilation: tuple[int, ...] = attr((1, 1, 1), "distance between taps")
    padding: tuple[int, ...] = attr((0, 0, 0), "1, 3 or 6 values, befores then afters")
    layout: str = attr("NCDHW", "layout of the input")
    out_layout: str = attr("", "layout of the output; empty means the input's")
    ceil_mode: bool = attr(False, "let the last window hang over the end")


@register_attrs("relay.attrs.AvgPool1DAttrs")
class AvgPool1DAttrs(MaxPool1DAttrs):
    count_include_pad: bool = attr(False, "padding counts in the divisor")


@register_attrs("relay.attrs.AvgPool2DAttrs")
class AvgPool2DAttrs(MaxPool2DAttrs):
    count_include_pad: bool = attr(False, "padding counts in the divisor")


@register_attrs("relay.attrs.AvgPool3DAttrs")
class AvgPool3DAttrs(MaxPool3DAttrs):
    count_include_pad: bool = attr(False, "padding counts in the divisor")


def pool_window(attrs: Any) -> Window:
    return Window.of(attrs.pool_size, attrs.strides, attrs.dilation, attrs.padding)


def _plain(rank: int) -> str:
    return "NC" + SPATIAL[rank]


def check_pool_rank(args: InferArgs, data: TensorType, layout: str) -> None:
    if len(data.shape) != len(layouts.parse(layout).parts):
        args.fail("data does not have the rank of its layout", expected=layout, found=data)


def _infer(rank: int) -> Infer:
    def infer(args: InferArgs) -> Type:
        data, attrs = args.tensor(), args.attrs
        check_pool_rank(args, data, attrs.layout)
        x = layouts.to_plain(data.shape, attrs.layout, _plain(rank))
        if not len(attrs.pool_size) == len(attrs.strides) == rank:
            args.fail("pool_size and strides have one value per spatial axis", expected=rank)
        out = (*x[:2], *pool_window(attrs).out_shape(x[2:], attrs.ceil_mode))
        check_positive(args, out, x)
        target = attrs.out_layout or attrs.layout
        return TensorType(layouts.from_plain(out, _plain(rank), target), data.dtype)

    return infer


def lowest(dtype: str) -> Any:
    """The neutral element of max, as a Python number."""
    if dtypes.is_float(dtype):
        return -np.inf
    return False if dtypes.is_bool(dtype) else int(integer_range(dtype).min)


def _taps(window: Window, x: Array, ceil_mode: bool, fill: Any) -> tuple[list[Array], list[int]]:
    """Views of every tap of all windows over a channel-first array, and the window counts."""
    counts = [int(n) for n in window.out_shape(x.shape[2:], ceil_mode)]  # type: ignore[arg-type]
    padded = window.padded(x, counts, fill)
    return [window.element(padded, offset, counts) for offset in window.offsets()], counts


def _max_reference(rank: int) -> Callable[..., Array]:
    def reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
        x = layouts.array_to_plain(inputs[0], attrs.layout, _plain(rank))
        fill = np.asarray(lowest(out_type.dtype)).astype(x.dtype)
        taps, _ = _taps(pool_window(attrs), x, attrs.ceil_mode, fill)
        out = taps[0].copy()
        for tap in taps[1:]:
            np.maximum(out, tap, out=out)
        return layouts.array_from_plain(out, _plain(rank), attrs.out_layout or attrs.layout)

    return reference


def tap_counts(window: Window, axis: int, size: int, count: int, include_pad: bool) -> Array:
    """Cells per window along one axis that the divisor counts.

    Cells beyond the padded end, which only ceil mode reaches, never count.
    """
    start = np.arange(count)[:, None] * window.strides[axis] - window.before[axis]
    at = start + np.arange(window.size[axis]) * window.dilation[axis]
    low = -window.before[axis] if include_pad else 0
    high = size + (window.after[axis] if include_pad else 0)
    return np.asarray(((at >= low) & (at < high)).sum(axis=1))


def _avg_reference(rank: int) -> Callable[..., Array]:
    def reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
        window = pool_window(attrs)
        x = widened(layouts.array_to_plain(inputs[0], attrs.layout, _plain(rank)))
        taps, counts = _taps(window, x, attrs.ceil_mode, 0)
        total = np.zeros(taps[0].shape, x.dtype)
        for tap in taps:
            total += tap
        cells = np.ones([1] * rank, np.int64)
        for a, n in enumerate(counts):
            line = tap_counts(window, a, x.shape[2 + a], n, attrs.count_include_pad)
            cells = cells * line.reshape([-1 if i == a else 1 for i in range(rank)])
        mean = np.trunc(total / cells).astype(np.int64) if x.dtype.kind == "i" else total / cells
        out = narrow(mean, out_type.dtype)
        return layouts.array_from_plain(out, _plain(rank), attrs.out_layout or attrs.layout)

    return reference


def _compute(rank: int, average: bool) -> Callable[..., te.Tensor]:
    def compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
        window, plain = pool_window(attrs), _plain(rank)
        read = layouts.reader(ins[0], attrs.layout, plain)
        sizes = layouts.to_plain(ins[0].shape, attrs.layout, plain)[2:]
        target = attrs.out_layout or attrs.layout
        counts = layouts.to_plain(extents(out_type), target, plain)[2:]
        hang = counts if attrs.ceil_mode else ()
        dtype = accumulator(out_type.dtype) if average else out_type.dtype
        fill = te.const(0 if average else lowest(dtype), dtype)

        def body(n: te.Expr, c: te.Expr, *at: te.Expr) -> te.Expr:
            k = [te.reduce_axis(size, "rk") for size in window.size]
            value = window.read(read, (n, c), at, [a.var for a in k], sizes, fill, hang)
            if not average:
                return te.max(value, k)
            total = te.sum(value, k)
            cells = _cells(window, at, sizes, attrs.count_include_pad, hang)
            return _divided(total, cells, dtype, out_type.dtype)

        return layouts.compute_as(extents(out_type), target, plain, body, "pool")

    return compute


def _divided(total: te.Expr, cells: te.Expr, dtype: str, out: str) -> te.Expr:
    divisor = te.cast(cells, dtype)
    mean = total / divisor if dtypes.is_float(dtype) else te.binary("truncdiv", total, divisor)
    return te.cast(mean, out)


def _cells(
    window: Window, at: Sequence[te.Expr], sizes: Sequence[Extent], include_pad: bool,
    hang: Sequence[Extent],
) -> te.Expr:  # fmt: skip
    """Number of cells the divisor counts, as an int64 expression."""
    total: te.Expr = te.const(1, "int64")
    for a, (i, n) in enumerate(zip(at, sizes, strict=True)):
        k, d = window.size[a], window.dilation[a]
        clipped_low = window.before[a] > 0 and not include_pad
        clipped_high = bool(hang) or (window.after[a] > 0 and not include_pad)
        start = i * window.strides[a] - window.before[a]
        high: te.Expr = te.const(k, "int64")
        if clipped_high:
            limit = index(n) + (window.after[a] if include_pad else 0)
            high = te.minimum(high, (limit - start + (d - 1)) // d)
        if clipped_low:
            high = high - te.maximum((d - 1 - start) // d, 0)
        total = total * high
    return total


def _samples(rank: int, average: bool) -> Sampler:
    def samples(draw: Draw) -> Sample:
        spatial, size, attrs = draw_window(draw, rank)
        pad = two_sided(attrs["padding"], rank)
        span = [(k - 1) * d + 1 for k, d in zip(size, attrs["dilation"], strict=True)]
        # A window wholly inside the padding has no mean and no maximum.
        attrs["padding"] = [min(p, (span[i % rank] - 1) // 2) for i, p in enumerate(pad)]
        attrs |= {"pool_size": size, "ceil_mode": flag(draw)}
        if average:
            attrs["count_include_pad"] = flag(draw)
        dtype = choice(draw, ("float32", "float64", "float16", "int32"))
        x = array(draw, (draw.integer(1, 2), draw.integer(1, 3), *spatial), dtype, -9, 9)
        if rank == 2 and flag(draw):
            attrs["layout"] = "NHWC"
            x = layouts.array_from_plain(x, "NCHW", "NHWC")
        return Sample((x,), attrs)

    return samples


_MAX = {1: MaxPool1DAttrs, 2: MaxPool2DAttrs, 3: MaxPool3DAttrs}
_AVG = {1: AvgPool1DAttrs, 2: AvgPool2DAttrs, 3: AvgPool3DAttrs}

for _rank in (1, 2, 3):
    define(
        f"nn.max_pool{_rank}d",
        attrs=_MAX[_rank],
        inputs=("data",),
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
        level=2,
        infer=_infer(_rank),
        reference=_max_reference(_rank),
        compute=_compute(_rank, average=False),
        compare=Exact(),
        samples=_samples(_rank, average=False),
        doc="Largest element of every window; padding never wins, NaN always does.",
    )
    define(
        f"nn.avg_pool{_rank}d",
        attrs=_AVG[_rank],
        inputs=("data",),
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
        level=2,
        infer=_infer(_rank),
        reference=_avg_reference(_rank),
        compute=_compute(_rank, average=True),
        compare=Accumulation(),
        samples=_samples(_rank, average=True),
        doc="Mean of every window, over the cells inside the input unless count_include_pad.",
    )


def _build(name: str, rank: int, data: Expr, given: dict[str, Any]) -> Call:
    for key in ("pool_size", "strides", "dilation"):
        given[key] = per_axis(given[key], rank)
    given["padding"] = two_sided(given["padding"], rank)
    return call(name, data, **given)


def max_pool1d(
    data: Expr,
    pool_size: Any = (1,),
    strides: Any = (1,),
    dilation: Any = (1,),
    padding: Any = (0,),
    layout: str = "NCW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Call:
    attrs = dict(locals())
    return _build("nn.max_pool1d", 1, attrs.pop("data"), attrs)


def max_pool2d(
    data: Expr,
    pool_size: Any = (1, 1),
    strides: Any = (1, 1),
    dilation: Any = (1, 1),
    padding: Any = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Call:
    attrs = dict(locals())
    return _build("nn.max_pool2d", 2, attrs.pop("data"), attrs)


def max_pool3d(
    data: Expr,
    pool_size: Any = (1, 1, 1),
    strides: Any = (1, 1, 1),
    dilation: Any = (1, 1, 1),
    padding: Any = (0, 0, 0),
    layout: str = "NCDHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Call:
    attrs = dict(locals())
    return _build("nn.max_pool3d", 3, attrs.pop("data"), attrs)


def avg_pool1d(
    data: Expr,
    pool_size: Any = (1,),
    strides: Any = (1,),
    dilation: Any = (1,),
    padding: Any = (0,),
    layout: str = "NCW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Call:
    attrs = dict(locals())
    return _build("nn.avg_pool1d", 1, attrs.pop("data"), attrs)


def avg_pool2d(
    data: Expr,
    pool_size: Any = (1, 1),
    strides: Any = (1, 1),
    dilation: Any = (1, 1),
    padding: Any = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Call:
    attrs = dict(locals())
    return _build("nn.avg_pool2d", 2, attrs.pop("data"), attrs)


def avg_pool3d(
    data: Expr,
    pool_size: Any = (1, 1, 1),
    strides: Any = (1, 1, 1),
    dilation: Any = (1, 1, 1),
    padding: Any = (0, 0, 0),
    layout: str = "NCDHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Call:
    attrs = dict(locals())
    return _build("nn.avg_pool3d", 3, attrs.pop("data"), attrs)
