"""models.yolo.Detect: the YOLOv5 head kept as one operator (`moduleop`).

Per stage: a 1x1 convolution, sigmoid, then (s * 2 + grid) * stride for centres and
(s * 2)^2 * anchor for sizes; rows are stage by stage, then anchor, y, x.
"""

from __future__ import annotations

import numpy as np

from ixion.base.errors import ModelFormatError
from ixion.frontend.build.movement import concatenate, reshape, split_at, transpose
from ixion.frontend.build.window import Window, convolution
from ixion.frontend.pnnx.convert import Site, converts
from ixion.frontend.term import Array, Term, static


@converts("models.yolo.Detect", "Detect")
def detect(site: Site) -> Term:
    stages = [site.term(item) for item in site.positional]
    strides = _strides(site, len(stages))
    rows = [_stage(site, place, x, strides[place]) for place, x in enumerate(stages)]
    return concatenate(site.emit, rows, 1)


def _array(site: Site, key: str) -> Array:
    array = site.weight(key).array
    assert array is not None
    return array


def _strides(site: Site, stages: int) -> list[float]:
    """The one weight that is a vector of a number for each stage."""
    for key, shape in site.op.weights.items():
        if key.startswith("pnnx_") and shape.dims == (stages,):
            return [float(value) for value in _array(site, key)]
    raise ModelFormatError("a detection head without strides")


def _stage(site: Site, place: int, x: Term, stride: float) -> Term:
    weight, bias = (
        site.weight(f"m.{place}.weight", x.dtype),
        site.weight(f"m.{place}.bias", x.dtype),
    )
    one = Window((1, 1), (1, 1), (1, 1), (0, 0, 0, 0))
    batch, _, high, wide = x.shape
    anchors = _anchors(site, place, stride, static(high), static(wide))
    count = anchors.shape[1]
    values = static(weight.shape[0]) // count
    out = convolution(site.emit, x, weight, bias, one, 1)
    out = reshape(site.emit, out, (batch, count, values, high, wide))
    out = site.call("sigmoid", transpose(site.emit, out, (0, 1, 3, 4, 2)))
    centre, size, rest = split_at(site.emit, out, 4, [2, 2, values - 4])
    grid = site.emit.constant(_grid(static(high), static(wide)), x.dtype)
    centre = site.call("add", site.call("multiply", centre, 2.0), grid)
    centre = site.call("multiply", centre, stride)
    double = site.call("multiply", size, 2.0)
    size = site.call("multiply", double, double)
    size = site.call("multiply", size, site.emit.constant(anchors, x.dtype))
    joined = concatenate(site.emit, [centre, size, rest], 4)
    return reshape(site.emit, joined, (batch, count * static(high) * static(wide), values))


def _grid(high: int, wide: int) -> Array:
    """Index of each cell, x first, half a cell before its centre."""
    y, x = np.mgrid[0:high, 0:wide]
    return (np.stack([x, y], axis=-1) - 0.5).reshape(1, 1, high, wide, 2)


def _anchors(site: Site, place: int, stride: float, high: int, wide: int) -> Array:
    """Anchor sizes in pixels: stored per stage in cells, or spread over a grid of the stage."""
    if site.has_weight("anchors"):
        cells = np.asarray(_array(site, "anchors")[place])
        return np.asarray(cells * stride).reshape(1, -1, 1, 1, 2)
    for key, shape in site.op.weights.items():
        if key.startswith("pnnx_") and shape.dims[2:] == (high, wide, 2):
            grid = _array(site, key)
            # The other tensor of this shape is the grid, the same for every anchor.
            if not np.array_equal(grid[:, :1], grid[:, 1:2]):
                return grid
    raise ModelFormatError("a detection head without anchors")
