"""Resize, Upsample, GridSample, RoiAlign, AffineGrid."""

from __future__ import annotations

from ixion.base.dim import Dim
from ixion.base.errors import ModelFormatError
from ixion.frontend.build.interpolate import Axis, Rule, resize, scaled
from ixion.frontend.build.roi import RoiGrid, roi_align
from ixion.frontend.onnx.convert import Site, converts
from ixion.frontend.term import Term, static


@converts("Upsample")
def upsample(site: Site) -> Term:
    x = site.input(0)
    scales = site.attr("scales") if site.has("scales") else _floats(site, 1)
    mode = site.attr("mode", "nearest")
    rule = Rule("nearest" if mode == "nearest" else "linear", "asymmetric", "floor")
    return resize(site.emit, x, _by_scales(x, list(range(x.rank)), scales), rule)


@converts("Resize")
def resize_10(site: Site) -> Term:
    x = site.input(0)
    mode = site.attr("mode", "nearest")
    rule = Rule("nearest" if mode == "nearest" else "linear", "asymmetric", "floor")
    return resize(site.emit, x, _by_scales(x, list(range(x.rank)), _floats(site, 1)), rule)


@converts("Resize", since=11)
def resize_11(site: Site) -> Term:
    x = site.input(0)
    rule = Rule(
        site.attr("mode", "nearest"),
        site.attr("coordinate_transformation_mode", "half_pixel"),
        site.attr("nearest_mode", "round_prefer_floor"),
        site.number("cubic_coeff_a", -0.75),
        bool(site.attr("exclude_outside", 0)),
        bool(site.attr("antialias", 0)),
        site.attr("extrapolation_value", 0.0),
    )
    if rule.method not in ("nearest", "linear", "cubic"):
        raise ModelFormatError(f"unknown resize mode {rule.method!r}")
    axes = [int(axis) % x.rank for axis in site.attr("axes", list(range(x.rank)))]
    if site.optional(3) is not None and site.input(3).size:
        plan = _by_sizes(
            x, axes, site.dims(3, "sizes"), site.attr("keep_aspect_ratio_policy", "stretch")
        )
    else:
        plan = _by_scales(x, axes, _floats(site, 2))
    if rule.transform == "tf_crop_and_resize":
        plan = _with_roi(plan, _floats(site, 1))
    return resize(site.emit, x, plan, rule)


def _floats(site: Site, index: int) -> list[float]:
    term = site.input(index)
    if not term.known or term.array is None:
        site.unsupported("with scales computed at run time")
    return [float(value) for value in term.array.reshape(-1)]


def _by_scales(x: Term, axes: list[int], scales: list[float]) -> list[Axis]:
    if len(scales) != len(axes) or min(scales, default=1.0) <= 0:
        raise ModelFormatError("scales that do not fit the input", found=str(scales))
    return [
        Axis(axis, scaled(x.shape[axis], scale), scale)
        for axis, scale in zip(axes, scales, strict=True)
        if scale != 1.0
    ]


def _by_sizes(x: Term, axes: list[int], sizes: list[Dim], policy: str) -> list[Axis]:
    if len(sizes) != len(axes) or any(isinstance(size, int) and size <= 0 for size in sizes):
        raise ModelFormatError("sizes that do not fit the input", found=str(sizes))
    if policy == "stretch":
        return [Axis(axis, size, None) for axis, size in zip(axes, sizes, strict=True)]
    own = [static(x.shape[axis]) for axis in axes]
    ratios = [static(size) / before for size, before in zip(sizes, own, strict=True)]
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [
        Axis(axis, int(scale * before + 0.5), scale)
        for axis, before in zip(axes, own, strict=True)
        if int(scale * before + 0.5) != before
    ]


def _with_roi(plan: list[Axis], roi: list[float]) -> list[Axis]:
    half = len(roi) // 2
    return [
        Axis(one.axis, one.size, one.scale, (roi[one.axis], roi[half + one.axis])) for one in plan
    ]


@converts("GridSample")
def grid_sample(site: Site) -> Term:
    mode = site.attr("mode", "linear")
    return site.call(
        "image.grid_sample",
        site.input(0),
        _channels_first(site, site.input(1)),
        method={"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode),
        layout="NCHW" if site.input(0).rank == 4 else "NCDHW",
        padding_mode=site.attr("padding_mode", "zeros"),
        align_corners=bool(site.attr("align_corners", 0)),
    )


def _channels_first(site: Site, grid: Term) -> Term:
    last = grid.rank - 1
    return site.call("transpose", grid, axes=(0, last, *range(1, last)))


@converts("RoiAlign")
def roi_align_(site: Site) -> Term:
    if site.attr("mode", "avg") != "avg":
        site.unsupported("in mode max")
    if site.attr("sampling_ratio", 0) < 1:
        site.unsupported("with samples that depend on the boxes (sampling_ratio 0)")
    default = "half_pixel" if site.opset >= 16 else "output_half_pixel"
    grid = RoiGrid(
        (site.attr("output_height", 1), site.attr("output_width", 1)),
        site.attr("sampling_ratio"),
        site.attr("spatial_scale", 1.0),
        site.attr("coordinate_transformation_mode", default) == "half_pixel",
    )
    return roi_align(site.emit, site.input(0), site.input(1), site.input(2), grid)
