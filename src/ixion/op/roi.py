"""Regions of interest resampled to one size: roi_align, roi_pool; and yolo_reorg."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ixion import te
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op import layout as layouts
from ixion.op.accumulate import accumulator
from ixion.op.call import call, per_axis
from ixion.op.compare import Accumulation, Exact
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.extent import NoLoopsError, extents, index
from ixion.op.index import check_range
from ixion.op.pool import check_pool_rank, lowest
from ixion.op.rounding import Array, narrow, wide
from ixion.op.sample import Draw, Sample, array, choice, flag


@register_attrs("relay.attrs.ROIAlignAttrs")
class ROIAlignAttrs(Attrs):
    pooled_size: tuple[int, ...] = attr(doc="height and width of the result")
    spatial_scale: float = attr(doc="feature map size over image size")
    sample_ratio: int = attr(-1, "samples per bin and axis; below 1 as many as a bin has pixels")
    layout: str = attr("NCHW", "layout of the data", choices=("NCHW", "NHWC"))
    mode: str = attr("avg", "how samples combine", choices=("avg", "max"))


@register_attrs("ixion.attrs.ROIAlignHalfPixelAttrs")
class ROIAlignHalfPixelAttrs(ROIAlignAttrs):
    pass


@register_attrs("relay.attrs.ROIPoolAttrs")
class ROIPoolAttrs(Attrs):
    pooled_size: tuple[int, ...] = attr(doc="height and width of the result")
    spatial_scale: float = attr(doc="feature map size over image size")
    layout: str = attr("NCHW", "layout of the data", choices=("NCHW", "NHWC"))


@register_attrs("relay.attrs.YoloReorgAttrs")
class YoloReorgAttrs(Attrs):
    stride: int = attr(1, "side of a block")


def _infer(args: InferArgs) -> Type:
    data, rois, attrs = args.tensor(0), args.tensor(1), args.attrs
    check_pool_rank(args, data, attrs.layout)
    if len(rois.shape) != 2 or rois.shape[1] not in (4, 5) or len(attrs.pooled_size) != 2:
        args.fail("rois are rows of (batch, x1, y1, x2, y2)", found=rois)
    channels = layouts.to_plain(data.shape, attrs.layout, "NCHW")[1]
    out = (rois.shape[0], channels, *attrs.pooled_size)
    return TensorType(layouts.from_plain(out, "NCHW", attrs.layout), data.dtype)


def _half_pixel(attrs: Any) -> bool:
    """Whether pixel centres lie at half coordinates, and small regions keep their size."""
    return isinstance(attrs, ROIAlignHalfPixelAttrs)


def _bins(attrs: Any, start: float, end: float, count: int) -> tuple[Array, int]:
    """Sample positions (count, samples) along one axis of a region, and samples per bin."""
    shift = 0.5 if _half_pixel(attrs) else 0.0
    low, high = start * attrs.spatial_scale - shift, end * attrs.spatial_scale - shift
    length = high - low if _half_pixel(attrs) else max(high - low, 1.0)
    size = length / count
    samples = attrs.sample_ratio if attrs.sample_ratio > 0 else max(math.ceil(length / count), 1)
    inside = (np.arange(samples) + 0.5) * size / samples
    return low + np.arange(count)[:, None] * size + inside, samples


def _weights(at: Array, size: int) -> Array:
    """(positions, size): bilinear weights of every pixel; zero more than one pixel outside."""
    outside = (at < -1) | (at > size)
    clipped = np.clip(at, 0, size - 1)
    low = np.floor(clipped).astype(np.int64)
    t = clipped - low
    out = np.zeros((at.size, size))
    rows = np.arange(at.size)
    out[rows, low] += 1 - t
    inside = low + 1 < size
    out[rows[inside], low[inside] + 1] += t[inside]
    out[outside] = 0.0
    return out


def _align_one(attrs: Any, image: Array, box: Sequence[float]) -> Array:
    x1, y1, x2, y2 = box
    height, width = attrs.pooled_size
    ys, down = _bins(attrs, y1, y2, height)
    xs, across = _bins(attrs, x1, x2, width)
    rows, columns = _weights(ys.ravel(), image.shape[1]), _weights(xs.ravel(), image.shape[2])
    found = np.einsum("yh,chw,xw->cyx", rows, image, columns, optimize=True)
    found = found.reshape(len(image), height, down, width, across)
    fold = np.max if attrs.mode == "max" else np.mean
    return np.asarray(fold(found, axis=(2, 4)))


def _align_reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x = layouts.array_to_plain(wide(inputs[0]).astype(np.float64), attrs.layout, "NCHW")
    rois = wide(inputs[1])
    owners = check_range("roi_align", rois[:, 0].astype(np.int64), len(x))
    out = np.empty((len(rois), x.shape[1], *attrs.pooled_size))
    for i, (owner, roi) in enumerate(zip(owners, rois, strict=True)):
        out[i] = _align_one(attrs, x[owner], roi[1:])
    return layouts.array_from_plain(narrow(out, out_type.dtype), "NCHW", attrs.layout)


def _position(
    attrs: Any, low: te.Expr, high: te.Expr, bin_index: te.Expr, sample: te.Expr, count: int
) -> te.Expr:
    """Where one sample lies along an axis, in float64."""
    scale, shift = attrs.spatial_scale, 0.5 if _half_pixel(attrs) else 0.0
    start, end = te.cast(low, "float64") * scale - shift, te.cast(high, "float64") * scale - shift
    length = end - start
    if not _half_pixel(attrs):
        length = te.maximum(length, te.const(1.0, "float64"))
    size = length / float(count)
    inside = (te.cast(sample, "float64") + 0.5) * size / float(attrs.sample_ratio)
    at: te.Expr = start + te.cast(bin_index, "float64") * size + inside
    return at


def _two_taps(at: te.Expr, size: Any, dtype: str) -> list[tuple[te.Expr, te.Expr]]:
    """Pixel indices and weights around a position; weight 0 where it is outside."""
    last = te.cast(index(size) - 1, "float64")
    outside = te.logical_or(at < -1.0, at > last + 1.0)
    clipped = te.minimum(te.maximum(at, te.const(0.0, "float64")), last)
    low = te.cast(te.intrinsic("floor", clipped), "int64")
    t = te.cast(clipped - te.intrinsic("floor", clipped), dtype)
    zero = te.const(0.0, dtype)
    after = te.minimum(low + 1, index(size) - 1)
    return [(low, te.select(outside, zero, 1.0 - t)), (after, te.select(outside, zero, t))]


def _align_compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    if attrs.sample_ratio < 1:
        raise NoLoopsError("roi_align: the number of samples depends on data")
    x, rois = ins
    read, dtype = layouts.reader(x, attrs.layout, "NCHW"), accumulator(x.dtype)
    _, _, height, width = layouts.to_plain(x.shape, attrs.layout, "NCHW")

    def body(r: te.Expr, c: te.Expr, py: te.Expr, px: te.Expr) -> te.Expr:
        ky, kx = (te.reduce_axis(attrs.sample_ratio, "rk") for _ in range(2))
        y = _position(attrs, rois(r, 2), rois(r, 4), py, ky.var, attrs.pooled_size[0])
        z = _position(attrs, rois(r, 1), rois(r, 3), px, kx.var, attrs.pooled_size[1])
        owner = te.cast(rois(r, 0), "int64")
        total: te.Expr = te.const(0, dtype)
        for yi, wy in _two_taps(y, height, dtype):
            for xi, wx in _two_taps(z, width, dtype):
                total = total + te.cast(read(owner, c, yi, xi), dtype) * (wy * wx)
        if attrs.mode == "max":
            return te.cast(te.max(total, [ky, kx]), out_type.dtype)
        mean = te.sum(total, [ky, kx]) / float(attrs.sample_ratio**2)
        return te.cast(mean, out_type.dtype)

    return layouts.compute_as(extents(out_type), attrs.layout, "NCHW", body, "roi_align")


def _align_scale(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
    largest = 4 * np.abs(wide(inputs[0])).max(initial=0)
    channels = layouts.to_plain(inputs[0].shape, attrs.layout, "NCHW")[1]
    out = (len(inputs[1]), channels, *attrs.pooled_size)
    return np.full([int(n) for n in layouts.from_plain(out, "NCHW", attrs.layout)], largest)


def _rois(draw: Draw, count: int) -> Array:
    corner = array(draw, (count, 2), "float32", -1, 5)
    size = array(draw, (count, 2), "float32", 0, 6)
    owner = array(draw, (count, 1), "int32", 0, 1).astype(np.float32)
    return np.concatenate([owner, corner, corner + size], axis=1)


def _align_samples(draw: Draw) -> Sample:
    data = array(draw, (2, 2, draw.integer(1, 6), draw.integer(1, 6)))
    attrs: dict[str, Any] = {
        "pooled_size": (draw.integer(1, 3), draw.integer(1, 3)),
        "spatial_scale": choice(draw, (1.0, 0.5)),
        "sample_ratio": choice(draw, (1, 2, -1)),
        "mode": choice(draw, ("avg", "max")),
    }
    if flag(draw):
        attrs["layout"] = "NHWC"
        data = layouts.array_from_plain(data, "NCHW", "NHWC")
    return Sample((data, _rois(draw, draw.integer(1, 3))), attrs)


for _name, _attrs, _doc in (
    ("vision.roi_align", ROIAlignAttrs, "pixel centres at whole coordinates"),
    ("vision.roi_align_half_pixel", ROIAlignHalfPixelAttrs, "pixel centres at half coordinates"),
):
    define(
        _name,
        attrs=_attrs,
        inputs=("data", "rois"),
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
        level=5,
        infer=_infer,
        reference=_align_reference,
        compute=_align_compute,
        compare=Accumulation(16, _align_scale),
        samples=_align_samples,
        doc=f"Bilinear samples of regions, combined per bin; {_doc}.",
    )


def _pool_reference(attrs: ROIPoolAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x = layouts.array_to_plain(inputs[0], attrs.layout, "NCHW")
    rois = inputs[1]
    owners = check_range("roi_pool", rois[:, 0].astype(np.int64), len(x))
    out = np.zeros((len(rois), x.shape[1], *attrs.pooled_size), x.dtype)
    for i, (owner, roi) in enumerate(zip(owners, rois, strict=True)):
        x1, y1, x2, y2 = (int(np.rint(v * attrs.spatial_scale)) for v in wide(roi[1:]))
        rows = _pool_bins(y1, y2, attrs.pooled_size[0], x.shape[2])
        columns = _pool_bins(x1, x2, attrs.pooled_size[1], x.shape[3])
        for py, (top, bottom) in enumerate(rows):
            for px, (left, right) in enumerate(columns):
                if bottom > top and right > left:
                    block = x[owner, :, top:bottom, left:right]
                    out[i, :, py, px] = block.max(axis=(1, 2), initial=lowest(out_type.dtype))
    return layouts.array_from_plain(out, "NCHW", attrs.layout)


def _pool_bins(start: int, end: int, count: int, size: int) -> list[tuple[int, int]]:
    step = max(end - start + 1, 1) / count
    return [
        (
            min(max(math.floor(i * step) + start, 0), size),
            min(max(math.ceil((i + 1) * step) + start, 0), size),
        )
        for i in range(count)
    ]


def _pool_samples(draw: Draw) -> Sample:
    data = array(draw, (2, 2, draw.integer(1, 6), draw.integer(1, 6)))
    attrs = {"pooled_size": (draw.integer(1, 3), draw.integer(1, 3)), "spatial_scale": 1.0}
    return Sample((data, _rois(draw, draw.integer(1, 3))), attrs)


define(
    "vision.roi_pool",
    attrs=ROIPoolAttrs,
    inputs=("data", "rois"),
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=5,
    infer=_infer,
    reference=_pool_reference,
    compare=Exact(),
    samples=_pool_samples,
    doc="Largest pixel of every bin of a region; 0 for empty bins.",
)


def _infer_reorg(args: InferArgs) -> Type:
    data, s = args.tensor(), args.attrs.stride
    if len(data.shape) != 4:
        args.fail("data has rank 4", found=data)
    n, c, h, w = data.shape
    return TensorType((n, c * (s * s), h // s, w // s), data.dtype)


def _reorg_reference(attrs: YoloReorgAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    """Darknet's reorg: the flat order of a (batch, c / s^2, h * s, w * s) view."""
    x, s = inputs[0], attrs.stride
    batch, channels, height, width = x.shape
    deep = channels // (s * s)
    b, c, h, w = np.ix_(*(np.arange(n) for n in x.shape))
    offset = c // deep
    row = h * s + offset // s + height * s * (c % deep + deep * b)
    flat = x.ravel()[np.broadcast_to(w * s + offset % s + width * s * row, x.shape)]
    return np.asarray(flat.reshape(batch, channels * s * s, height // s, width // s))


define(
    "vision.yolo_reorg",
    attrs=YoloReorgAttrs,
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=5,
    infer=_infer_reorg,
    reference=_reorg_reference,
    compare=Exact(),
    samples=lambda draw: Sample((array(draw, (2, 8, 4, 4)),), {"stride": 2}),
    doc="Darknet's reorganisation of blocks of pixels into channels.",
)


def roi_align(
    data: Expr,
    rois: Expr,
    pooled_size: Any,
    spatial_scale: float,
    sample_ratio: int = -1,
    layout: str = "NCHW",
    mode: str = "avg",
) -> Call:
    return call(
        "vision.roi_align", data, rois, pooled_size=per_axis(pooled_size, 2),
        spatial_scale=spatial_scale, sample_ratio=sample_ratio, layout=layout, mode=mode,
    )  # fmt: skip


def roi_align_half_pixel(
    data: Expr,
    rois: Expr,
    pooled_size: Any,
    spatial_scale: float,
    sample_ratio: int = -1,
    layout: str = "NCHW",
    mode: str = "avg",
) -> Call:
    """roi_align as ONNX's half_pixel mode and torchvision's ``aligned=True`` define it."""
    return call(
        "vision.roi_align_half_pixel", data, rois, pooled_size=per_axis(pooled_size, 2),
        spatial_scale=spatial_scale, sample_ratio=sample_ratio, layout=layout, mode=mode,
    )  # fmt: skip


def roi_pool(
    data: Expr, rois: Expr, pooled_size: Any, spatial_scale: float, layout: str = "NCHW"
) -> Call:
    return call(
        "vision.roi_pool", data, rois, pooled_size=per_axis(pooled_size, 2),
        spatial_scale=spatial_scale, layout=layout,
    )  # fmt: skip


def yolo_reorg(data: Expr, stride: int) -> Call:
    return call("vision.yolo_reorg", data, stride=stride)
