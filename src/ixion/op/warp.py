"""Images read at computed coordinates: grid_sample, affine_grid, crop_and_resize."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ixion import te
from ixion.base.dim import Dim
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op import layout as layouts
from ixion.op.accumulate import accumulator
from ixion.op.call import call
from ixion.op.compare import Accumulation
from ixion.op.conversion import convert
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.extent import extents, index
from ixion.op.index import check_range
from ixion.op.pool import check_pool_rank
from ixion.op.rounding import Array, narrow, wide
from ixion.op.sample import Draw, Sample, array, choice, flag
from ixion.op.sampling import cubic_weights

_METHODS = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")
# torch's coefficient for bicubic sampling.
_ALPHA = -0.75


@register_attrs("relay.attrs.GridSampleAttrs")
class GridSampleAttrs(Attrs):
    method: str = attr("bilinear", "interpolation", choices=_METHODS)
    layout: str = attr("NCHW", "layout of the data", choices=("NCHW", "NCDHW"))
    padding_mode: str = attr("zeros", "what lies outside", choices=_PADDINGS)
    align_corners: bool = attr(True, "-1 and 1 are the centres of the corner pixels")


@register_attrs("relay.attrs.AffineGridAttrs")
class AffineGridAttrs(Attrs):
    target_shape: tuple[Dim, ...] = attr(doc="height and width of the grid")


@register_attrs("relay.attrs.CropAndResizeAttrs")
class CropAndResizeAttrs(Attrs):
    crop_size: tuple[Dim, ...] | None = attr(None, "height and width of a crop")
    layout: str = attr("NCHW", "layout of the data")
    method: str = attr("bilinear", "interpolation", choices=("bilinear", "nearest_neighbor"))
    extrapolation_value: float = attr(0.0, "value outside the image")
    out_dtype: str | None = attr(None, "dtype of the output; none means the input's")


def _infer_grid(args: InferArgs) -> Type:
    data, grid, attrs = args.tensor(0), args.tensor(1), args.attrs
    rank = len(attrs.layout)
    if len(data.shape) != rank or len(grid.shape) != rank:
        args.fail("data and grid have the layout's rank", expected=rank, found=f"{data}, {grid}")
    wanted = (data.shape[0], rank - 2)
    rule = "the grid is (batch, axes, ...)"
    args.agree_all(wanted, grid.shape[:2], rule, expected=wanted, found=grid)
    return TensorType((*data.shape[:2], *grid.shape[2:]), data.dtype)


class _Numpy:
    """The arithmetic of grid sampling on float64 arrays."""

    floor, round, minimum, maximum = np.floor, np.rint, np.minimum, np.maximum
    absolute = np.abs

    @staticmethod
    def where(test: Any, a: Any, b: Any) -> Any:
        return np.where(test, a, b)

    @staticmethod
    def less(a: Any, b: Any) -> Any:
        return np.less(a, b)


class _Te:
    """The same arithmetic on float64 tensor expressions."""

    minimum, maximum = te.minimum, te.maximum

    @staticmethod
    def floor(x: Any) -> Any:
        return te.intrinsic("floor", x)

    @staticmethod
    def round(x: Any) -> Any:
        return te.intrinsic("round", x)

    @staticmethod
    def absolute(x: Any) -> Any:
        return te.intrinsic("abs", x)

    @staticmethod
    def where(test: Any, a: Any, b: Any) -> Any:
        return te.select(test, a, b)

    @staticmethod
    def less(a: Any, b: Any) -> Any:
        return te.compare("lt", a, b)


_Math = type[_Numpy] | type[_Te]


def _locate(m: _Math, g: Any, size: Any, align: bool) -> Any:
    """A grid coordinate in [-1, 1] as a pixel position."""
    return (g + 1.0) * (size - 1.0) * 0.5 if align else ((g + 1.0) * size - 1.0) * 0.5


def _reflect(m: _Math, x: Any, size: Any, align: bool) -> Any:
    """Position ``x`` bounced between the edges (pixel centres, or pixel borders)."""
    start, span = (0.0, size - 1.0) if align else (-0.5, size)
    distance = m.absolute(x - start)
    turns = m.floor(distance / span)
    extra = distance - turns * span
    odd = m.less(0.25, turns * 0.5 - m.floor(turns * 0.5))
    bounced = m.where(odd, (extra * -1.0) + span + start, extra + start)
    # A single row has no room to bounce in.
    return m.where(m.less(span, 0.5), x * 0.0, bounced)


def _settle(m: _Math, x: Any, size: Any, attrs: GridSampleAttrs) -> Any:
    """Padding applied to a position or, for bicubic, to a neighbour's index."""
    if attrs.padding_mode == "zeros":
        return x
    if attrs.padding_mode == "reflection":
        x = _reflect(m, x, size, attrs.align_corners)
    arithmetic: Any = m
    return arithmetic.minimum(arithmetic.maximum(x, x * 0.0), x * 0.0 + (size - 1.0))


def _axis_taps(m: _Math, x: Any, size: Any, attrs: GridSampleAttrs) -> list[tuple[Any, Any]]:
    """Neighbouring indices (as floats) along one axis with their weights."""
    if attrs.method == "bicubic":
        base = m.floor(x)
        weights = cubic_weights(x - base, _ALPHA)
        return [
            (_settle(m, base + float(k), size, attrs), w)
            for k, w in zip((-1, 0, 1, 2), weights, strict=True)
        ]
    x = _settle(m, x, size, attrs)
    if attrs.method == "nearest":
        return [(m.round(x), x * 0.0 + 1.0)]
    base = m.floor(x)
    t = x - base
    return [(base, t * -1.0 + 1.0), (base + 1.0, t)]


def _spatial_order(attrs: GridSampleAttrs) -> int:
    return len(attrs.layout) - 2


def _grid_terms(attrs: GridSampleAttrs, inputs: tuple[Array, ...]) -> list[tuple[Array, Array]]:
    """Sampled pixels (batch, channels, ...) and weights (batch, 1, ...) of every tap."""
    data, grid = wide(inputs[0]).astype(np.float64), wide(inputs[1])
    rank = _spatial_order(attrs)
    sizes = data.shape[2:]
    taps = []
    for a in range(rank):
        x = _locate(_Numpy, grid[:, rank - 1 - a], float(sizes[a]), attrs.align_corners)
        taps.append(_axis_taps(_Numpy, x, float(sizes[a]), attrs))
    batch = np.arange(len(data)).reshape(-1, *[1] * rank)
    out = []
    for combo in itertools.product(*taps):
        inside, where, weight = np.ones((), bool), [], np.ones(())
        for (at, w), n in zip(combo, sizes, strict=True):
            inside = inside & (at >= 0) & (at <= n - 1)
            where.append(np.clip(np.nan_to_num(at), 0, n - 1).astype(np.int64))
            weight = weight * w
        pixels = np.moveaxis(data[(batch, slice(None), *where)], -1, 1)
        out.append((pixels, np.where(inside, weight, 0.0)[:, None]))
    return out


def _grid_reference(attrs: GridSampleAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    terms = _grid_terms(attrs, inputs)
    return narrow(sum(pixels * weight for pixels, weight in terms), out_type.dtype)


def _grid_scale(attrs: GridSampleAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    """Weights have the coordinates' rounding error, up to the size of an axis."""
    largest = np.abs(wide(inputs[0])).max(initial=0)
    total = sum(np.abs(weight) + 1 for _, weight in _grid_terms(attrs, inputs))
    return np.asarray(
        np.broadcast_to(largest * total, (*inputs[0].shape[:2], *inputs[1].shape[2:]))
    )


def _grid_compute(attrs: GridSampleAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    data, grid = ins
    rank, dtype = _spatial_order(attrs), accumulator(data.dtype)
    sizes = data.shape[2:]

    def body(n: te.Expr, c: te.Expr, *at: te.Expr) -> te.Expr:
        taps = []
        for a in range(rank):
            g = te.cast(grid(n, rank - 1 - a, *at), "float64")
            size = te.cast(index(sizes[a]), "float64")
            x = _locate(_Te, g, size, attrs.align_corners)
            taps.append(_axis_taps(_Te, x, size, attrs))
        total: te.Expr = te.const(0, dtype)
        for combo in itertools.product(*taps):
            total = total + _te_term(data, (n, c), combo, sizes, dtype)
        return te.cast(total, out_type.dtype)

    return te.compute(extents(out_type), body, "grid_sample")


def _te_term(
    data: te.Tensor, lead: Sequence[te.Expr], combo: Sequence[tuple[Any, Any]],
    sizes: Sequence[Any], dtype: str,
) -> te.Expr:  # fmt: skip
    inside: te.Expr | None = None
    where, weight = [], None
    for (at, w), n in zip(combo, sizes, strict=True):
        i = te.cast(at, "int64")
        test = te.logical_and(te.compare("ge", i, 0), te.compare("lt", i, n))
        inside = test if inside is None else te.logical_and(inside, test)
        where.append(i)
        weight = w if weight is None else weight * w
    value = te.cast(data(*lead, *where), dtype) * te.cast(weight, dtype)  # type: ignore[arg-type]
    return te.select(inside, value, te.const(0, dtype))  # type: ignore[arg-type]


def _grid_samples(draw: Draw) -> Sample:
    rank = draw.integer(2, 3)
    attrs = {
        "method": choice(draw, _METHODS if rank == 2 else _METHODS[:2]),
        "layout": {2: "NCHW", 3: "NCDHW"}[rank],
        "padding_mode": choice(draw, _PADDINGS),
        "align_corners": flag(draw),
    }
    dtype = choice(draw, ("float32", "float64"))
    data = array(draw, (2, 2, *(draw.integer(1, 4) for _ in range(rank))), dtype)
    grid = array(draw, (2, rank, *(draw.integer(1, 3) for _ in range(rank))), dtype, -1.4, 1.4)
    return Sample((data, grid), attrs)


define(
    "image.grid_sample",
    attrs=GridSampleAttrs,
    inputs=("data", "grid"),
    pattern=OpPattern.INJECTIVE,
    level=5,
    infer=_infer_grid,
    reference=_grid_reference,
    compute=_grid_compute,
    compare=Accumulation(16, _grid_scale),
    samples=_grid_samples,
    doc="Data read at coordinates in [-1, 1]; the grid is (batch, axes, ...), inner axis first.",
)


def _infer_affine(args: InferArgs) -> Type:
    data, target = args.tensor(), args.attrs.target_shape
    rule, found = "data is (batch, 2, 3) and target_shape a pair", f"{data}, {target}"
    if len(target) != 2:
        args.fail(rule, found=found)
    args.agree_all((2, 3), data.shape[1:], rule, expected="(batch, 2, 3)", found=found)
    return TensorType((data.shape[0], 2, *target), data.dtype)


def _affine_reference(attrs: AffineGridAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    height, width = (int(n) for n in attrs.target_shape)  # type: ignore[arg-type]
    y = np.linspace(-1, 1, height)[:, None] + np.zeros(width)
    x = np.linspace(-1, 1, width) + np.zeros((height, 1))
    grid = np.stack([x, y, np.ones((height, width))])
    return narrow(np.tensordot(wide(inputs[0]), grid, axes=1), out_type.dtype)


def _affine_compute(attrs: AffineGridAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    (data,) = ins
    dtype = accumulator(data.dtype)
    shape = extents(out_type)

    def line(i: te.Expr, size: Any) -> te.Expr:
        step = te.cast(index(size) - 1, dtype)
        return te.cast(i * 2, dtype) / te.maximum(step, te.const(1, dtype)) - 1.0

    def body(n: te.Expr, row: te.Expr, y: te.Expr, x: te.Expr) -> te.Expr:
        factors = [te.cast(data(n, row, k), dtype) for k in range(3)]
        at = factors[0] * line(x, shape[3]) + factors[1] * line(y, shape[2]) + factors[2]
        return te.cast(at, out_type.dtype)

    return te.compute(shape, body, "affine_grid")


def _affine_scale(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
    total = np.abs(wide(inputs[0])).sum(axis=2)[..., None, None]
    shape = tuple(int(n) for n in attrs.target_shape)
    return np.asarray(np.broadcast_to(total, (*total.shape[:2], *shape)))


define(
    "image.affine_grid",
    attrs=AffineGridAttrs,
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=5,
    infer=_infer_affine,
    reference=_affine_reference,
    compute=_affine_compute,
    compare=Accumulation(16, _affine_scale),
    samples=lambda draw: Sample(
        (array(draw, (2, 2, 3), choice(draw, ("float32", "float64"))),),
        {"target_shape": (draw.integer(2, 4), draw.integer(2, 4))},
    ),
    doc="The grid of an affine map, corner pixels at -1 and 1.",
)


def _infer_crop(args: InferArgs) -> Type:
    data, boxes, attrs = args.tensor(0), args.tensor(1), args.attrs
    check_pool_rank(args, data, attrs.layout)
    if not attrs.crop_size or len(attrs.crop_size) != 2:
        args.fail("crop_size is a pair", found=attrs.crop_size)
    channels = layouts.to_plain(data.shape, attrs.layout, "NCHW")[1]
    out = (boxes.shape[0], channels, *attrs.crop_size)
    return TensorType(layouts.from_plain(out, "NCHW", attrs.layout), attrs.out_dtype or data.dtype)


def _crop_lines(low: float, high: float, size: int, target: int) -> Array:
    """Positions of a box's rows or columns in the image."""
    if target == 1:
        return np.array([0.5 * (low + high) * (size - 1)])
    step = (high - low) * (size - 1) / (target - 1)
    return np.asarray(low * (size - 1) + step * np.arange(target))


def _crop_reference(attrs: CropAndResizeAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x = layouts.array_to_plain(wide(inputs[0]), attrs.layout, "NCHW").astype(np.float64)
    boxes, owners = wide(inputs[1]), check_range("crop_and_resize", inputs[2], len(inputs[0]))
    height, width = (int(n) for n in attrs.crop_size or ())  # type: ignore[arg-type]
    out = np.empty((len(boxes), x.shape[1], height, width))
    for b, (y1, x1, y2, x2) in enumerate(boxes):
        rows = _crop_lines(y1, y2, x.shape[2], height)[:, None]
        columns = _crop_lines(x1, x2, x.shape[3], width)[None]
        out[b] = _crop_one(x[owners[b]], rows, columns, attrs)
    return layouts.array_from_plain(convert(out, out_type.dtype), "NCHW", attrs.layout)


def _crop_one(image: Array, rows: Array, columns: Array, attrs: CropAndResizeAttrs) -> Array:
    sizes = image.shape[1:]
    outside = (rows < 0) | (rows > sizes[0] - 1) | (columns < 0) | (columns > sizes[1] - 1)

    def clipped(at: Array, axis: int) -> Array:
        return np.clip(at, 0, sizes[axis] - 1).astype(np.int64)

    if attrs.method == "nearest_neighbor":
        found = image[:, clipped(np.rint(rows), 0), clipped(np.rint(columns), 1)]
    else:
        y, x = np.floor(rows), np.floor(columns)
        ty, tx = rows - y, columns - x
        top = image[:, clipped(y, 0), clipped(x, 1)] * (1 - tx)
        top = top + image[:, clipped(y, 0), clipped(x + 1, 1)] * tx
        low = image[:, clipped(y + 1, 0), clipped(x, 1)] * (1 - tx)
        low = low + image[:, clipped(y + 1, 0), clipped(x + 1, 1)] * tx
        found = top * (1 - ty) + low * ty
    return np.where(outside, attrs.extrapolation_value, found)


def _crop_samples(draw: Draw) -> Sample:
    data = array(draw, (2, 2, draw.integer(2, 5), draw.integer(2, 5)))
    count = draw.integer(1, 3)
    boxes = array(draw, (count, 4), "float32", -0.1, 1.1)
    owners = array(draw, (count,), "int32", 0, 1)
    attrs = {
        "crop_size": (draw.integer(1, 4), draw.integer(1, 4)),
        "method": choice(draw, ("bilinear", "nearest_neighbor")),
    }
    return Sample((data, boxes, owners), attrs)


define(
    "image.crop_and_resize",
    attrs=CropAndResizeAttrs,
    inputs=("data", "boxes", "box_indices"),
    pattern=OpPattern.INJECTIVE,
    level=5,
    infer=_infer_crop,
    reference=_crop_reference,
    compare=Accumulation(16),
    samples=_crop_samples,
    doc="Boxes (y1, x1, y2, x2 in [0, 1]) of images resampled to one size.",
)


def grid_sample(
    data: Expr,
    grid: Expr,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> Call:
    return call(
        "image.grid_sample", data, grid, method=method, layout=layout, padding_mode=padding_mode,
        align_corners=align_corners,
    )  # fmt: skip


def affine_grid(data: Expr, target_shape: Any = None) -> Call:
    return call("image.affine_grid", data, target_shape=target_shape)


def crop_and_resize(
    data: Expr,
    boxes: Expr,
    box_indices: Expr,
    crop_size: Any,
    layout: str,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> Call:
    return call(
        "image.crop_and_resize", data, boxes, box_indices, crop_size=crop_size, layout=layout,
        method=method, extrapolation_value=extrapolation_value, out_dtype=out_dtype,
    )  # fmt: skip
