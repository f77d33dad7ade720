"""Upsample, interpolate, grid_sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ixion.base.dim import Dim
from ixion.base.errors import ModelFormatError
from ixion.frontend.build.interpolate import Axis, Rule, resize, scaled
from ixion.frontend.build.movement import transpose
from ixion.frontend.pnnx.convert import Site, converts
from ixion.frontend.term import Term

_METHODS = {
    "nearest": "nearest", "nearest-exact": "nearest", "linear": "linear", "bilinear": "linear",
    "trilinear": "linear", "bicubic": "cubic",
}  # fmt: skip


def _rule(mode: str, align: bool, antialias: bool = False) -> Rule:
    if mode not in _METHODS:
        raise ModelFormatError(f"unknown interpolation mode {mode!r}")
    if mode == "nearest":
        return Rule("nearest", "asymmetric", "floor")
    if mode == "nearest-exact":
        return Rule("nearest", "tf_half_pixel_for_nn", "floor")
    transform = "align_corners" if align else "half_pixel"
    return Rule(_METHODS[mode], transform, antialias=antialias)


def _scales(site: Site, rank: int) -> list[float] | None:
    found = site.arg("scale_factor", None)
    if found is None:
        return None
    values = found if isinstance(found, list) else [found]
    values = values * rank if len(values) == 1 else values
    if len(values) != rank or not all(isinstance(v, (int, float)) and v > 0 for v in values):
        raise ModelFormatError("a bad scale_factor", found=repr(found))
    return [float(value) for value in values]


def _sizes(site: Site, rank: int) -> list[Dim] | None:
    if site.arg("size", None) is None:
        return None
    found = site.dims("size")
    if len(found) not in (1, rank):
        raise ModelFormatError(f"size has {len(found)} values", expected=str(rank))
    return found * rank if len(found) == 1 else found


def resized(
    site: Site, rule: Rule, sizes: list[Dim] | None, scales: list[float] | None, given: bool
) -> Term:
    """Resize the spatial axes to sizes, or by scales.

    With scales, coordinates use the stated scale (`given`) or that of the sizes it leads to.
    """
    x = site.x
    if sizes is None:
        if scales is None:
            raise ModelFormatError(f"{site.op.kind} with neither size nor scale_factor")
        sizes = [scaled(size, scale) for size, scale in zip(x.shape[2:], scales, strict=True)]
    if any(isinstance(size, int) and size < 1 for size in sizes):
        raise ModelFormatError("a resize to nothing", found=str(sizes))
    ratios: Sequence[float | None] = [None] * len(sizes)
    if given and scales is not None and rule.transform != "align_corners":
        ratios = scales
    axes = [
        Axis(2 + place, size, ratio)
        for place, (size, ratio) in enumerate(zip(sizes, ratios, strict=True))
    ]
    return resize(site.emit, x, axes, rule)


@converts("nn.Upsample", "F.upsample", "F.interpolate")
def upsample(site: Site) -> Term:
    rank = site.x.rank - 2
    mode = str(site.arg("mode", "nearest"))
    sizes, scales = _sizes(site, rank), _scales(site, rank)
    if mode == "area":
        own = site.x.shape[2:]
        wanted = sizes or [scaled(a, b) for a, b in zip(own, scales or [], strict=True)]
        return site.call(f"nn.adaptive_avg_pool{rank}d", site.x, output_size=tuple(wanted))
    rule = _rule(mode, site.flag("align_corners"), site.flag("antialias"))
    return resized(site, rule, sizes, scales, not site.flag("recompute_scale_factor"))


@converts("nn.UpsamplingNearest2d", "F.upsample_nearest")
def upsample_nearest(site: Site) -> Term:
    rank = site.x.rank - 2
    return resized(site, _rule("nearest", False), _sizes(site, rank), _scales(site, rank), True)


@converts("nn.UpsamplingBilinear2d", "F.upsample_bilinear")
def upsample_bilinear(site: Site) -> Term:
    rank = site.x.rank - 2
    return resized(site, _rule("bilinear", True), _sizes(site, rank), _scales(site, rank), True)


@converts("aten::_upsample_bilinear2d_aa", "aten::_upsample_bicubic2d_aa")
def upsample_antialiased(site: Site) -> Term:
    items: list[Any] = site.positional
    mode = "bilinear" if "bilinear" in site.op.kind else "bicubic"
    sizes = items[1] if isinstance(items[1], list) else None
    scales = [items[3], items[4]] if sizes is None else None
    rule = _rule(mode, bool(items[2]), antialias=True)
    return resized(site, rule, sizes, scales, True)


@converts("F.grid_sample")
def grid_sample(site: Site) -> Term:
    x = site.tensor("input") or site.x
    grid = site.arg("grid") if "grid" in site.op.arguments else site.positional[-1]
    grid = site.term(grid)
    last = grid.rank - 1
    mode = str(site.arg("mode", "bilinear"))
    return site.call(
        "image.grid_sample",
        x,
        transpose(site.emit, grid, (0, last, *range(1, last))),
        method=mode,
        layout="NCHW" if x.rank == 4 else "NCDHW",
        padding_mode=str(site.arg("padding_mode", "zeros")),
        align_corners=site.flag("align_corners"),
    )
