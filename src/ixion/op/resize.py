"""Image resizing: image.resize1d/2d/3d, image.interpolate, nn.upsampling, crop_and_resize."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ixion import te
from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.base.dim import Dim
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr, const
from ixion.ir.types import TensorType, Type
from ixion.op import layout as layouts
from ixion.op.accumulate import accumulator
from ixion.op.call import call, known_ints, per_axis
from ixion.op.compare import Accumulation
from ixion.op.conversion import convert
from ixion.op.define import Infer, InferArgs, OpPattern, define
from ixion.op.extent import NoLoopsError, extents
from ixion.op.pool import check_pool_rank
from ixion.op.rounding import Array, wide
from ixion.op.sample import Draw, Sample, Sampler, array, choice, flag
from ixion.op.sampling import (
    METHODS,
    MODES,
    ROUNDINGS,
    Sampling,
    resize_numpy,
    sample_te,
    weighted_read,
)
from ixion.op.window import SPATIAL


@register_attrs("relay.attrs.Resize1DAttrs")
class Resize1DAttrs(Attrs):
    size: tuple[Dim, ...] | None = attr(None, "output size per spatial axis")
    roi: tuple[float, ...] | None = attr(None, "starts then ends, for tf_crop_and_resize")
    layout: str = attr("NCW", "layout of the input")
    method: str = attr("linear", "interpolation", choices=METHODS)
    coordinate_transformation_mode: str = attr("half_pixel", "output to input", choices=MODES)
    rounding_method: str = attr("round", "for nearest_neighbor", choices=ROUNDINGS)
    cubic_alpha: float = attr(-0.5, "Keys' coefficient")
    cubic_exclude: int = attr(0, "leave out neighbours beyond the edge")
    extrapolation_value: float = attr(0.0, "value outside the region of interest")
    out_dtype: str | None = attr(None, "dtype of the output; none means the input's")


@register_attrs("relay.attrs.Resize2DAttrs")
class Resize2DAttrs(Resize1DAttrs):
    layout: str = attr("NCHW", "layout of the input")


@register_attrs("relay.attrs.Resize3DAttrs")
class Resize3DAttrs(Resize1DAttrs):
    layout: str = attr("NCDHW", "layout of the input")


@register_attrs("ixion.attrs.InterpolateAttrs")
class InterpolateAttrs(Resize1DAttrs):
    scales: tuple[float, ...] | None = attr(None, "output over input size, where it counts")


@register_attrs("relay.attrs.UpSamplingAttrs")
class UpSamplingAttrs(Attrs):
    scale_h: float = attr(doc="height factor")
    scale_w: float = attr(doc="width factor")
    layout: str = attr("NCHW", "layout of the input")
    method: str = attr("nearest_neighbor", "interpolation",
                       choices=("nearest_neighbor", "bilinear", "bicubic"))  # fmt: skip
    align_corners: bool = attr(False, "corner pixels keep their places")


@register_attrs("relay.attrs.UpSampling3DAttrs")
class UpSampling3DAttrs(Attrs):
    scale_d: float = attr(doc="depth factor")
    scale_h: float = attr(doc="height factor")
    scale_w: float = attr(doc="width factor")
    layout: str = attr("NCDHW", "layout of the input")
    method: str = attr(
        "nearest_neighbor", "interpolation", choices=("nearest_neighbor", "trilinear")
    )
    coordinate_transformation_mode: str = attr("half_pixel", "output to input", choices=MODES)


def _plain(layout: str) -> str:
    """Channel-first order of a layout's axes."""
    return "NC" + SPATIAL[len(layouts.parse(layout).axes) - 2]


def _plans(attrs: Any, rank: int) -> list[Sampling]:
    if isinstance(attrs, UpSamplingAttrs):
        method = attrs.method.removeprefix("bi")
        mode = "align_corners" if attrs.align_corners else "asymmetric"
        return [Sampling(method, mode)] * rank
    if isinstance(attrs, UpSampling3DAttrs):
        method = attrs.method.removeprefix("tri")
        return [Sampling(method, attrs.coordinate_transformation_mode)] * rank
    roi, scales = attrs.roi, getattr(attrs, "scales", None)
    return [
        Sampling(
            attrs.method, attrs.coordinate_transformation_mode, attrs.rounding_method,
            attrs.cubic_alpha, bool(attrs.cubic_exclude),
            (roi[a], roi[rank + a]) if roi else None,
            scales[a] if scales else None,
        )
        for a in range(rank)
    ]  # fmt: skip


def _scales(attrs: Any) -> tuple[float, ...] | None:
    """Factors that give the output size, where the attributes hold factors."""
    if isinstance(attrs, UpSamplingAttrs):
        return (attrs.scale_h, attrs.scale_w)
    if isinstance(attrs, UpSampling3DAttrs):
        return (attrs.scale_d, attrs.scale_h, attrs.scale_w)
    return None


def scaled(size: Dim, factor: float) -> Dim:
    """round(size * factor); of a symbolic size for integer factors and their inverses only."""
    if isinstance(size, int):
        return round(size * factor)
    if factor == int(factor):
        return size * int(factor)
    inverse = round(1 / factor)
    return size // inverse if abs(inverse * factor - 1) < 1e-9 else dims.Any()


def _targets(args: InferArgs, spatial: Sequence[Dim]) -> list[Dim]:
    attrs, rank = args.attrs, len(spatial)
    factors = _scales(attrs)
    if factors is not None:
        return [scaled(d, f) for d, f in zip(spatial, factors, strict=True)]
    if not attrs.size or len(attrs.size) != rank:
        args.fail("size has one value per spatial axis", expected=rank, found=attrs.size)
    if attrs.roi and len(attrs.roi) != 2 * rank:
        args.fail("roi has a start and an end per spatial axis", expected=2 * rank, found=attrs.roi)
    return list(attrs.size)


def _out_dtype(attrs: Any, data: TensorType) -> str:
    return getattr(attrs, "out_dtype", None) or data.dtype


def _infer(args: InferArgs) -> Type:
    data, attrs = args.tensor(0), args.attrs
    check_pool_rank(args, data, attrs.layout)
    plain = _plain(attrs.layout)
    x = layouts.to_plain(data.shape, attrs.layout, plain)
    out = (*x[:2], *_targets(args, x[2:]))
    return TensorType(layouts.from_plain(out, plain, attrs.layout), _out_dtype(attrs, data))


def _resized(attrs: Any, data: Array, targets: Sequence[int], dtype: str) -> Array:
    plain = _plain(attrs.layout)
    plans = _plans(attrs, len(plain) - 2)
    keep = plans[0].method == "nearest_neighbor"
    x = layouts.array_to_plain(data if keep else wide(data), attrs.layout, plain)
    x = x if keep else x.astype(np.float64)
    axes = range(2, x.ndim)
    out = resize_numpy(x, axes, targets, plans, getattr(attrs, "extrapolation_value", 0.0))
    return layouts.array_from_plain(convert(out, dtype), plain, attrs.layout)


def _reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
    plain = _plain(attrs.layout)
    shape = layouts.to_plain(inputs[0].shape, attrs.layout, plain)
    targets = _targets(InferArgs("image.resize", (), attrs), shape[2:])
    return _resized(attrs, inputs[0], [int(t) for t in targets], out_type.dtype)  # type: ignore[arg-type]


def _compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    plain = _plain(attrs.layout)
    read = layouts.reader(ins[0], attrs.layout, plain)
    sizes = layouts.to_plain(ins[0].shape, attrs.layout, plain)[2:]
    targets = layouts.to_plain(extents(out_type), attrs.layout, plain)[2:]
    plans = _plans(attrs, len(sizes))
    dtype = accumulator(ins[0].dtype) if dtypes.is_float(ins[0].dtype) else "float64"

    def body(n: te.Expr, c: te.Expr, *at: te.Expr) -> te.Expr:
        samples = [
            sample_te(p, i, s, t, dtype)
            for p, i, s, t in zip(plans, at, sizes, targets, strict=True)
        ]
        value = weighted_read(read, (n, c), samples, dtype)
        for s in samples:
            if s.outside is not None:
                fill = te.const(attrs.extrapolation_value, value.dtype)
                value = te.select(s.outside, fill, value)
        return te.cast(value, out_type.dtype)

    return layouts.compute_as(extents(out_type), attrs.layout, plain, body, "resize")


def _scale(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
    """Interpolation weights sum to about 1 in magnitude, so the largest input bounds the sum."""
    plain = _plain(attrs.layout)
    shape = layouts.to_plain(inputs[0].shape, attrs.layout, plain)
    if len(inputs) > 1 and not isinstance(attrs, (UpSamplingAttrs, UpSampling3DAttrs)):
        targets = [int(d) for d in inputs[1]]
    elif len(inputs) > 1:
        factors = [float(f) for f in inputs[1:]]
        targets = [round(int(d) * f) for d, f in zip(shape[2:], factors, strict=True)]
    else:
        targets = _targets(InferArgs("image.resize", (), attrs), shape[2:])  # type: ignore[assignment]
    out = layouts.from_plain((*shape[:2], *targets), plain, attrs.layout)
    return np.full([int(d) for d in out], 4 * np.abs(wide(inputs[0])).max(initial=0))


_LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


def _draw_data(draw: Draw, rank: int) -> tuple[Array, str]:
    layout = choice(draw, _LAYOUTS[rank])
    x = array(draw, (1, draw.integer(1, 2), *(draw.integer(1, 5) for _ in range(rank))),
              choice(draw, ("float32", "float64")))  # fmt: skip
    return layouts.array_from_plain(x, _plain(layout), layout), layout


def _samples(rank: int) -> Sampler:
    def samples(draw: Draw) -> Sample:
        x, layout = _draw_data(draw, rank)
        attrs: dict[str, Any] = {
            "size": [draw.integer(1, 7) for _ in range(rank)],
            "layout": layout,
            "method": choice(draw, METHODS if rank < 3 else METHODS[:2]),
            "coordinate_transformation_mode": choice(draw, MODES[:5]),
            "rounding_method": choice(draw, ROUNDINGS),
        }
        if attrs["method"] == "cubic":
            attrs["cubic_exclude"] = draw.integer(0, 1)
        if draw.integer(0, 4) == 0:
            attrs["coordinate_transformation_mode"] = "tf_crop_and_resize"
            attrs["roi"] = [0.1] * rank + [0.8] * rank
        return Sample((x,), attrs)

    return samples


_RESIZE: dict[int, type[Attrs]] = {1: Resize1DAttrs, 2: Resize2DAttrs, 3: Resize3DAttrs}
_UP: dict[str, tuple[type[Attrs], int]] = {
    "nn.upsampling": (UpSamplingAttrs, 2),
    "nn.upsampling3d": (UpSampling3DAttrs, 3),
}

for _rank, _attrs in _RESIZE.items():
    define(
        f"image.resize{_rank}d",
        attrs=_attrs,
        inputs=("data",),
        pattern=OpPattern.INJECTIVE,
        level=5,
        infer=_infer,
        reference=_reference,
        compute=_compute,
        compare=Accumulation(8, _scale),
        samples=_samples(_rank),
        doc="Spatial axes resampled to a size; the scale is the ratio of the sizes.",
    )


def _interpolate_samples(draw: Draw) -> Sample:
    rank = draw.integer(1, 3)
    made = _samples(rank)(draw)
    attrs = dict(made.attrs)
    attrs["coordinate_transformation_mode"] = choice(
        draw, ("half_pixel", "asymmetric", "half_pixel_symmetric")
    )
    attrs.pop("roi", None)
    attrs["scales"] = [choice(draw, (0.6, 1.5, 2.0, 2.3)) for _ in range(rank)]
    plain = _plain(attrs["layout"])
    spatial = layouts.to_plain(made.args[0].shape, attrs["layout"], plain)[2:]
    attrs["size"] = [max(int(int(d) * f), 1) for d, f in zip(spatial, attrs["scales"], strict=True)]
    return Sample(made.args, attrs)


define(
    "image.interpolate",
    attrs=InterpolateAttrs,
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=5,
    infer=_infer,
    reference=_reference,
    compute=_compute,
    compare=Accumulation(8, _scale),
    samples=_interpolate_samples,
    doc="Resize of any rank in which coordinates follow the given scales, not the sizes' ratio.",
)


def _up_samples(rank: int) -> Sampler:
    def samples(draw: Draw) -> Sample:
        x, layout = _draw_data(draw, rank)
        factors = [choice(draw, (1.0, 2.0, 1.5, 3.0)) for _ in range(rank)]
        names = ("scale_d", "scale_h", "scale_w")[3 - rank :]
        attrs: dict[str, Any] = {"layout": layout, **dict(zip(names, factors, strict=True))}
        if rank == 2:
            attrs["method"] = choice(draw, ("nearest_neighbor", "bilinear", "bicubic"))
            attrs["align_corners"] = flag(draw)
        else:
            attrs["method"] = choice(draw, ("nearest_neighbor", "trilinear"))
            attrs["coordinate_transformation_mode"] = choice(draw, MODES[:3])
        return Sample((x,), attrs)

    return samples


for _name, (_attrs, _rank) in _UP.items():
    define(
        _name,
        attrs=_attrs,
        inputs=("data",),
        pattern=OpPattern.INJECTIVE,
        level=2,
        infer=_infer,
        reference=_reference,
        compute=_compute,
        compare=Accumulation(8, _scale),
        samples=_up_samples(_rank),
        doc="Spatial axes scaled by factors.",
    )


def _dyn_infer(read_targets: Callable[[InferArgs, Sequence[Dim]], list[Dim]]) -> Infer:
    def infer(args: InferArgs) -> Type:
        data, attrs = args.tensor(0), args.attrs
        check_pool_rank(args, data, attrs.layout)
        plain = _plain(attrs.layout)
        x = layouts.to_plain(data.shape, attrs.layout, plain)
        out = (*x[:2], *read_targets(args, x[2:]))
        return TensorType(layouts.from_plain(out, plain, attrs.layout), _out_dtype(attrs, data))

    return infer


def _size_argument(args: InferArgs, spatial: Sequence[Dim]) -> list[Dim]:
    value = args.value(1)
    return [dims.Any()] * len(spatial) if value is None else list(value.ravel())


def _dyn_resize_reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
    roi = [float(v) for v in inputs[2]] or None
    return _resized(attrs.copy(roi=roi), inputs[0], [int(v) for v in inputs[1]], out_type.dtype)


def _dyn_resize_compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    if attrs.coordinate_transformation_mode == "tf_crop_and_resize":
        raise NoLoopsError("dyn.image.resize2d: a region of interest known at run time only")
    return _compute(attrs, ins, out_type)


def _dyn_resize_samples(draw: Draw) -> Sample:
    x, layout = _draw_data(draw, 2)
    attrs = {"layout": layout, "method": choice(draw, METHODS)}
    size = np.array([draw.integer(1, 6), draw.integer(1, 6)], np.int64)
    return Sample((x, size, np.zeros(4, np.float32)), attrs)


define(
    "dyn.image.resize2d",
    attrs=Resize2DAttrs,
    inputs=("data", "size", "roi"),
    pattern=OpPattern.INJECTIVE,
    level=5,
    infer=_dyn_infer(_size_argument),
    reference=_dyn_resize_reference,
    compute=_dyn_resize_compute,
    compare=Accumulation(8, _scale),
    samples=_dyn_resize_samples,
    doc="image.resize2d to a size computed at run time.",
)


def _unknown(args: InferArgs, spatial: Sequence[Dim]) -> list[Dim]:
    return [dims.Any()] * len(spatial)


def _dyn_up_reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
    plain = _plain(attrs.layout)
    shape = layouts.to_plain(inputs[0].shape, attrs.layout, plain)
    targets = [
        round(int(d) * float(f.ravel()[0])) for d, f in zip(shape[2:], inputs[1:], strict=True)
    ]
    return _resized(attrs, inputs[0], targets, out_type.dtype)


def _dyn_up_samples(rank: int) -> Sampler:
    def samples(draw: Draw) -> Sample:
        made = _up_samples(rank)(draw)
        attrs = dict(made.attrs)
        names = ("scale_d", "scale_h", "scale_w")[3 - rank :]
        factors = [np.array(attrs[n], np.float32) for n in names]
        return Sample((*made.args, *factors), attrs)

    return samples


for _name, (_attrs, _rank) in _UP.items():
    define(
        f"dyn.{_name}",
        attrs=_attrs,
        inputs=("data", *((n, "double") for n in ("scale_d", "scale_h", "scale_w")[3 - _rank :])),
        pattern=OpPattern.INJECTIVE,
        level=2,
        infer=_dyn_infer(_unknown),
        reference=_dyn_up_reference,
        compare=Accumulation(8, _scale),
        samples=_dyn_up_samples(_rank),
        doc="Spatial axes scaled by factors computed at run time.",
    )


def _resize(rank: int, data: Expr, given: dict[str, Any]) -> Call:
    given["size"] = per_axis(given["size"], rank)
    if isinstance(given["roi"], (int, float)):
        given["roi"] = (given["roi"],) * (2 * rank)
    given["out_dtype"] = given["out_dtype"] or None
    return call(f"image.resize{rank}d", data, **given)


def resize1d(
    data: Expr,
    size: Any,
    roi: Any = None,
    layout: str = "NCW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> Call:
    """Relay's builder."""
    given = dict(locals())
    return _resize(1, given.pop("data"), given)


def resize2d(
    data: Expr,
    size: Any,
    roi: Any = None,
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> Call:
    """Relay's builder; a size or region given as an expression makes the dynamic op."""
    given = dict(locals())
    size, roi = known_ints(size), known_ints(roi)
    if not isinstance(size, Expr) and not isinstance(roi, Expr):
        given |= {"size": size, "roi": roi}
        return _resize(2, given.pop("data"), given)
    for name in ("data", "size", "roi"):
        given.pop(name)
    target = size if isinstance(size, Expr) else const(np.asarray(size, np.int64))
    region = roi if isinstance(roi, Expr) else const(np.asarray(roi or [0.0] * 4, np.float32))
    return call("dyn.image.resize2d", data, target, region, **given)


def resize3d(
    data: Expr,
    size: Any,
    roi: Any = None,
    layout: str = "NCDHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> Call:
    """Relay's builder."""
    given = dict(locals())
    return _resize(3, given.pop("data"), given)


def interpolate(data: Expr, size: Any, scales: Any = None, **attrs: Any) -> Call:
    """Resize along every spatial axis of ``layout``, coordinates following ``scales``."""
    return call("image.interpolate", data, size=size, scales=scales, **attrs)


def upsampling(
    data: Expr,
    scale_h: Any = 1,
    scale_w: Any = 1,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
) -> Call:
    """Relay's builder; factors given as expressions make the dynamic op."""
    more = {"layout": layout, "method": method, "align_corners": align_corners}
    factors = [known_ints(scale_h), known_ints(scale_w)]
    if any(isinstance(f, Expr) for f in factors):
        exprs = [f if isinstance(f, Expr) else const(f, "float64") for f in factors]
        return call("dyn.nn.upsampling", data, *exprs, scale_h=0, scale_w=0, **more)
    return call("nn.upsampling", data, scale_h=factors[0], scale_w=factors[1], **more)


def upsampling3d(
    data: Expr,
    scale_d: Any = 1,
    scale_h: Any = 1,
    scale_w: Any = 1,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
) -> Call:
    """Relay's builder; factors given as expressions make the dynamic op."""
    more = {
        "layout": layout,
        "method": method,
        "coordinate_transformation_mode": coordinate_transformation_mode,
    }
    factors = [known_ints(f) for f in (scale_d, scale_h, scale_w)]
    if any(isinstance(f, Expr) for f in factors):
        exprs = [f if isinstance(f, Expr) else const(f, "float64") for f in factors]
        zero = {"scale_d": 0, "scale_h": 0, "scale_w": 0}
        return call("dyn.nn.upsampling3d", data, *exprs, **zero, **more)
    given = dict(zip(("scale_d", "scale_h", "scale_w"), factors, strict=True))
    return call("nn.upsampling3d", data, **given, **more)
