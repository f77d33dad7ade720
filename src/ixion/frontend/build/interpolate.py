"""Resizing along axes: Relay's `image.resize1d/2d/3d` where its rule is the same, tables elsewhere.

Relay's operator takes the scale from the two sizes; ONNX and torch may be given another one (an
output of floor(in * scale) cells), have more coordinate rules, and resize any axes. Then the
cells and weights of each output cell are computed here, and the result is a sum of `take`s. Where a
size is a symbol there can be no tables, and `image.interpolate` does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.frontend.build.matrix import dense
from ixion.frontend.build.movement import take, transpose
from ixion.frontend.emitter import Emitter
from ixion.frontend.term import Term, at_most, static

Array = np.ndarray[Any, Any]

#: An axis is resized by tables as long as it.
_LARGEST_AXIS = 1 << 16

#: Scales are sums of a few halvings (1.5, 0.25), or not exact.
_LONGEST_RATIO = 1024

_RELAY_METHOD = {"nearest": "nearest_neighbor", "linear": "linear", "cubic": "cubic"}
_LAYOUTS = {3: "NCW", 4: "NCHW", 5: "NCDHW"}
#: Rules that image.resize2d computes as the tables here do, by method.
_RELAY_RULES = {
    "nearest": ("asymmetric",),
    "linear": ("half_pixel", "align_corners", "asymmetric"),
    "cubic": ("half_pixel", "align_corners"),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """How an output cell's place in the input follows from its index, and how cells are mixed.

    `method`: nearest, linear, cubic. `transform`: ONNX's coordinate_transformation_mode.
    `nearest`: floor, ceil, round_prefer_floor, round_prefer_ceil. `antialias` widens the kernel
    when shrinking. `exclude_outside` drops weights of cells outside, and the rest sums to 1 again.
    `extrapolation` is the value outside under tf_crop_and_resize.
    """

    method: str
    transform: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic_alpha: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    extrapolation: float = 0.0


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis to resize: `scale` is what coordinates are divided by, None for the sizes' ratio;
    `roi` is a part of the axis.
    """

    axis: int
    size: Dim
    scale: float | None
    roi: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class _Plain:
    """An axis whose sizes are numbers."""

    axis: int
    size: int
    scale: float
    roi: tuple[float, float]


def resize(emit: Emitter, x: Term, axes: Sequence[Axis], rule: Rule) -> Term:
    """`x` with each of `axes` resized."""
    moved = [one for one in axes if not _stays(x, one)]
    if not moved:
        return x
    plain = [_plain(x, one) for one in moved]
    known = [one for one in plain if one is not None]
    if len(known) != len(moved):
        return _resize_open(emit, x, moved, rule)
    for one in known:
        at_most(_LARGEST_AXIS, one.size, "cells along a resized axis")
    if _as_relay(x, known, rule):
        return _resize(emit, x, known, rule)
    for one in known:
        x = _resize_axis(emit, x, one, rule)
    return x


def _stays(x: Term, one: Axis) -> bool:
    return bool(dims.same(one.size, x.shape[one.axis])) and one.scale in (None, 1.0)


def _plain(x: Term, one: Axis) -> _Plain | None:
    own = x.shape[one.axis]
    if not isinstance(own, int) or not isinstance(one.size, int):
        return None
    scale = one.size / own if one.scale is None else one.scale
    return _Plain(one.axis, one.size, scale, one.roi)


def _resize_open(emit: Emitter, x: Term, axes: Sequence[Axis], rule: Rule) -> Term:
    """Axes of symbolic size: no tables, but the resizing operators compute places as they go.

    ModelFormatError for a rule that they have not.
    """
    usual = x.rank in _LAYOUTS and all(one.axis >= 2 for one in axes)
    if not usual or rule.antialias or rule.transform == "tf_crop_and_resize":
        for one in axes:
            static(x.shape[one.axis])
            static(one.size)
    size = list(x.shape[2:])
    scales = [1.0] * len(size)
    for one in axes:
        size[one.axis - 2] = one.size
        scales[one.axis - 2] = 1.0 if one.scale is None else one.scale
    if all(_by_ratio(x, one) for one in axes):
        return emit.call(f"image.resize{len(size)}d", x, size=tuple(size), **_attributes(x, rule))
    for one in axes:
        if one.scale is None:
            static(one.size)
    more = _attributes(x, rule)
    return emit.call("image.interpolate", x, size=tuple(size), scales=tuple(scales), **more)


def _by_ratio(x: Term, one: Axis) -> bool:
    """Whether the scale is the ratio of the sizes, whatever they are."""
    if one.scale is None:
        return True
    whole = one.scale == int(one.scale)
    return whole and bool(dims.same(one.size, dims.multiply(x.shape[one.axis], int(one.scale))))


def _as_relay(x: Term, axes: Sequence[_Plain], rule: Rule) -> bool:
    if x.rank not in _LAYOUTS or any(one.axis < 2 for one in axes) or rule.antialias:
        return False
    if rule.transform not in _RELAY_RULES[rule.method]:
        return False
    if rule.method == "nearest" and rule.nearest != "floor":
        return False
    own = {one.axis: static(x.shape[one.axis]) for one in axes}
    whole = all(one.size == own[one.axis] * one.scale for one in axes)
    if rule.method == "nearest":
        return whole and all(one.scale == int(one.scale) for one in axes)
    close = all(abs(one.size / own[one.axis] - one.scale) < 1e-7 * one.scale for one in axes)
    return whole or close


def _resize(emit: Emitter, x: Term, axes: Sequence[_Plain], rule: Rule) -> Term:
    size = list(x.shape[2:])
    for one in axes:
        size[one.axis - 2] = one.size
    return emit.call(f"image.resize{len(size)}d", x, size=tuple(size), **_attributes(x, rule))


def _attributes(x: Term, rule: Rule) -> dict[str, Any]:
    return {
        "layout": _LAYOUTS[x.rank],
        "method": _RELAY_METHOD[rule.method],
        "coordinate_transformation_mode": rule.transform,
        "rounding_method": rule.nearest if rule.method == "nearest" else "",
        "cubic_alpha": rule.cubic_alpha,
        "cubic_exclude": int(rule.exclude_outside),
    }


def _resize_axis(emit: Emitter, x: Term, axis: _Plain, rule: Rule) -> Term:
    size = static(x.shape[axis.axis])
    cells, weights, outside = table(size, axis, rule)
    if cells.shape[1] > 4:
        out = _by_matrix(emit, x, axis.axis, _matrix(cells, weights, size))
    else:
        out = _by_takes(emit, x, axis.axis, cells, weights)
    if not outside.any():
        return out
    shape = [1] * x.rank
    shape[axis.axis] = axis.size
    fill = emit.constant(rule.extrapolation, x.dtype)
    return emit.call("where", emit.constant(outside.reshape(shape)), fill, out)


def _by_takes(emit: Emitter, x: Term, axis: int, cells: Array, weights: Array) -> Term:
    shape = [1] * x.rank
    shape[axis] = len(cells)
    total: Term | None = None
    for tap in range(cells.shape[1]):
        part = take(emit, x, emit.constant(cells[:, tap].astype(np.int64)), axis)
        if cells.shape[1] > 1:
            weight = emit.constant(weights[:, tap].reshape(shape), x.dtype)
            part = emit.call("multiply", part, weight)
        total = part if total is None else emit.call("add", total, part)
    assert total is not None
    return total


def _by_matrix(emit: Emitter, x: Term, axis: int, matrix: Array) -> Term:
    order = [i for i in range(x.rank) if i != axis] + [axis]
    out = dense(emit, transpose(emit, x, order), emit.constant(matrix, x.dtype))
    return transpose(emit, out, [order.index(i) for i in range(x.rank)])


def _matrix(cells: Array, weights: Array, size: int) -> Array:
    matrix = np.zeros((len(cells), size))
    np.add.at(matrix, (np.arange(len(cells))[:, None], cells), weights)
    return matrix


def table(size: int, axis: _Plain, rule: Rule) -> tuple[Array, Array, Array]:
    """For each output cell: input cells (clamped), their weights, and whether it lies outside.

    Shapes (out, taps), (out, taps), (out,).
    """
    place = coordinates(size, axis, rule)
    outside = np.zeros(axis.size, bool)
    if rule.transform == "tf_crop_and_resize":
        outside = (place < 0) | (place > size - 1)
    if rule.method == "nearest":
        cells = _round(place, rule.nearest).astype(np.int64)[:, None]
        return np.clip(cells, 0, size - 1), np.ones(cells.shape), outside
    cells, weights = _taps(place.astype(np.float64), axis, rule)
    inside = (cells >= 0) & (cells < size)
    if rule.exclude_outside or rule.antialias:
        weights = np.where(inside, weights, 0.0)
        weights = weights / weights.sum(axis=1, keepdims=True)
    return np.clip(cells, 0, size - 1), weights, outside


def coordinates(size: int, axis: _Plain, rule: Rule) -> Array:
    """Place of each output cell on the input axis, in float32 as every engine computes it."""
    one = np.float32
    index = np.arange(axis.size, dtype=np.float32)
    scale, transform = one(axis.scale), rule.transform
    if transform == "align_corners":
        # The length is in * scale, which need not be whole.
        length = scale * one(size)
        if axis.size == 1 or length == 1:
            return np.zeros(axis.size, np.float32)
        return index * one(size - 1) / (length - one(1))
    if transform == "asymmetric":
        return index / scale
    if transform == "tf_half_pixel_for_nn":
        return (index + one(0.5)) / scale
    if transform == "pytorch_half_pixel" and axis.size == 1:
        return np.zeros(1, np.float32)
    if transform == "tf_crop_and_resize":
        return _cropped(size, axis, index)
    half = (index + one(0.5)) / scale - one(0.5)
    if transform == "half_pixel_symmetric":
        center = one(size) / one(2)
        adjusted = one(axis.size) / (scale * one(size))
        return half + center * (one(1) - adjusted)
    return half


def _cropped(size: int, axis: _Plain, index: Array) -> Array:
    start, stop = (np.float32(edge) * np.float32(size - 1) for edge in axis.roi)
    if axis.size == 1:
        return np.full(1, (start + stop) / 2, np.float32)
    return start + index * (stop - start) / np.float32(axis.size - 1)


def _round(place: Array, mode: str) -> Array:
    if mode == "floor":
        return np.floor(place)
    if mode == "ceil":
        return np.ceil(place)
    if mode == "round_prefer_ceil":
        return np.floor(place + np.float32(0.5))
    return np.ceil(place - np.float32(0.5))


def _taps(place: Array, axis: _Plain, rule: Rule) -> tuple[Array, Array]:
    """Cells around each place and their weights; shrinking with antialias widens the kernel."""
    stretch = max(1.0, 1.0 / axis.scale) if rule.antialias else 1.0
    radius = (1.0 if rule.method == "linear" else 2.0) * stretch
    taps = 2 * int(np.ceil(radius))
    first = np.floor(place).astype(np.int64) - taps // 2 + 1
    cells = first[:, None] + np.arange(taps)[None, :]
    distance = np.abs(cells - place[:, None]) / stretch
    if rule.method == "linear":
        weights = np.maximum(0.0, 1.0 - distance)
    else:
        weights = _cubic(distance, rule.cubic_alpha)
    return cells, weights / weights.sum(axis=1, keepdims=True)


def _cubic(distance: Array, alpha: float) -> Array:
    """Keys' convolution kernel (1981)."""
    near = ((alpha + 2) * distance - (alpha + 3)) * distance**2 + 1
    far = ((distance - 5) * distance + 8) * distance * alpha - 4 * alpha
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))


def scaled(size: Dim, scale: float) -> Dim:
    """`size` times `scale` rounded down; ModelFormatError for a symbol and a scale of no short
    fraction, whose rounding no formula follows.
    """
    if isinstance(size, int):
        return int(size * scale)
    ratio = Fraction(scale)
    if ratio.denominator > _LONGEST_RATIO:
        static(size)
    return dims.floordiv(dims.multiply(size, ratio.numerator), ratio.denominator)
