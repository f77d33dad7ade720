"""RoI align with a fixed number of samples a bin, as gathers and weighted sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ixion.base.errors import ModelFormatError
from ixion.frontend.build.movement import reshape, select, transpose
from ixion.frontend.emitter import Emitter
from ixion.frontend.term import Term, at_most, static


@dataclass(frozen=True, slots=True)
class RoiGrid:
    """Bins (rows, columns), samples a bin side, box scale, and whether pixel centres are at .5.

    Without half-pixel centres a box is at least one pixel wide (the older definition).
    """

    bins: tuple[int, int]
    samples: int
    scale: float
    half_pixel: bool


def roi_align(emit: Emitter, x: Term, boxes: Term, batch: Term, grid: RoiGrid) -> Term:
    """Means of bilinear samples: x (N, C, H, W), boxes (R, 4) as x1 y1 x2 y2, batch (R,) int64.

    Gives (R, C, rows, columns). Samples more than one pixel outside count 0 (He et al., 2017).
    """
    if grid.samples < 1:
        raise ModelFormatError("RoI align needs a fixed number of samples a bin")
    at_most(1 << 16, max(grid.bins) * grid.samples, "samples of a box side")
    n, c, h, w = (static(dim) for dim in x.shape)
    corner = [select(emit, boxes, 1, i) for i in range(4)]
    ys = _places(emit, corner[1], corner[3], grid.bins[0], grid)
    xs = _places(emit, corner[0], corner[2], grid.bins[1], grid)
    rows, columns = _taps(emit, ys, h), _taps(emit, xs, w)
    flat = reshape(emit, transpose(emit, x, (0, 2, 3, 1)), (n * h * w, c))
    first = emit.call("multiply", emit.call("cast", batch, dtype="int64"), h * w)
    total: Term | None = None
    for row, row_weight in rows:
        for column, column_weight in columns:
            part = _gathered(emit, flat, first, row, column, w)
            weight = emit.call("multiply", _tall(emit, row_weight), _wide(emit, column_weight))
            weight = emit.call("expand_dims", weight, axis=3)
            part = emit.call("multiply", part, weight)
            total = part if total is None else emit.call("add", total, part)
    assert total is not None
    s, (high, wide) = grid.samples, grid.bins
    cells = reshape(emit, total, (boxes.shape[0], high, s, wide, s, c))
    return transpose(emit, emit.call("mean", cells, axis=(2, 4), keepdims=False), (0, 3, 1, 2))


def _places(emit: Emitter, low: Term, high: Term, bins: int, grid: RoiGrid) -> Term:
    """Sample coordinates along one axis: (R, bins * samples)."""
    start, stop = (emit.call("multiply", edge, grid.scale) for edge in (low, high))
    if grid.half_pixel:
        start, stop = (emit.call("subtract", edge, 0.5) for edge in (start, stop))
    length = emit.call("subtract", stop, start)
    if not grid.half_pixel:
        length = emit.call("maximum", length, 1.0)
    s = grid.samples
    fractions = (np.arange(bins)[:, None] + (np.arange(s) + 0.5) / s).reshape(1, -1) / bins
    steps = emit.constant(fractions, low.dtype)
    column = emit.call("multiply", emit.call("expand_dims", length, axis=1), steps)
    return emit.call("add", emit.call("expand_dims", start, axis=1), column)


def _taps(emit: Emitter, place: Term, size: int) -> list[tuple[Term, Term]]:
    """The two cells around each place and their weights; both weights are 0 far outside."""
    inside = emit.call(
        "logical_and",
        emit.call("greater_equal", place, -1.0),
        emit.call("less_equal", place, float(size)),
    )
    near = emit.call("clip", place, a_min=0.0, a_max=float(size - 1))
    floor = emit.call("floor", near)
    rest = emit.call("subtract", near, floor)
    lower = emit.call("cast", floor, dtype="int64")
    upper = emit.call("minimum", emit.call("add", lower, 1), size - 1)
    zero, one = emit.constant(0.0, place.dtype), emit.constant(1.0, place.dtype)
    return [
        (lower, emit.call("where", inside, emit.call("subtract", one, rest), zero)),
        (upper, emit.call("where", inside, rest, zero)),
    ]


def _tall(emit: Emitter, x: Term) -> Term:
    return emit.call("expand_dims", x, axis=2)


def _wide(emit: Emitter, x: Term) -> Term:
    return emit.call("expand_dims", x, axis=1)


def _gathered(emit: Emitter, flat: Term, first: Term, row: Term, column: Term, width: int) -> Term:
    """Feature vectors at (row, column) of each box's image: (R, rows, columns, C)."""
    line = emit.call("add", emit.call("multiply", row, width), _column(emit, first))
    index = emit.call("add", _tall(emit, line), _wide(emit, column))
    return emit.call("take", flat, index, axis=0, mode="fast")


def _column(emit: Emitter, x: Term) -> Term:
    return emit.call("expand_dims", x, axis=1)
