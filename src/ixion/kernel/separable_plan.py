"""How a chain of pointwise and depthwise convolutions is cut into tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ixion.ir import Call
from ixion.kernel.samples import sampled, samples
from ixion.kernel.scalars import at_least, at_most, pieces
from ixion.kernel.schedule_conv import sizes_of, spatial_taps
from ixion.kernel.sizes import fixed
from ixion.kernel.taps import Taps
from ixion.op.conv_chain import is_depthwise
from ixion.op.typed import attrs_of, shape_of
from ixion.op.window import Window
from ixion.te.tensor import Extent

LANES = 16  # channels per block where no target is known
STRIP = 384 << 10  # bytes of a strip: it and what a task reads stay in a second-level cache
LONGEST = 1 << 20  # bytes of a strip of wide rows
# A band has so many times the rows that it shares with its neighbours; fewer are enough where more
# than one tensor stays near.
SHARED, SHARED_BY_TWO = 8, 4


@dataclass(frozen=True)
class SeparablePlan:
    """Rows of depthwise results per task, channel blocks per panel, and rows under the band.

    ``whole`` says that the band is the image; not where it is known at run time only.
    """

    band: Extent
    panel: int
    height: Extent
    whole: bool


@dataclass(frozen=True)
class _Layer:
    """What decides: taps and channel blocks of the depthwise convolution, and what is around it."""

    rows: Taps
    cols: Taps
    blocks: int
    vector: int
    expands: bool
    projects: bool

    def sampled(self, sizes: dict[str, int]) -> _Layer:
        """The layer for these sizes."""
        rows, cols = _for(self.rows, sizes), _for(self.cols, sizes)
        return replace(self, rows=rows, cols=cols)


def _for(taps: Taps, sizes: dict[str, int]) -> Taps:
    count, extent = (max(1, sampled(n, sizes)) for n in (taps.count, taps.extent))
    return replace(taps, count=count, extent=extent)


def depthwise_taps(call: Call) -> tuple[Taps, Taps]:
    """Rows and columns of a depthwise convolution of images."""
    attrs, data = attrs_of(call), sizes_of(call.args[0])
    size = shape_of(call.args[1])[2:]
    window = Window.of(size, attrs.strides, attrs.dilation, attrs.padding)
    return spatial_taps(window, data, sizes_of(call))


def separable_plan(heads: Sequence[Call], block: int, panel: int) -> SeparablePlan | None:
    """A plan with panels of at most ``panel`` blocks; None where bands would share too many rows.

    ``heads`` are the convolutions in order, the first or the last 1x1 may be missing.
    """
    middle = next(i for i, h in enumerate(heads) if is_depthwise(h))
    rows, cols = depthwise_taps(heads[middle])
    blocks = -(-fixed(sizes_of(heads[middle])[1]) // block)
    layer = _Layer(rows, cols, blocks, 4 * block, middle > 0, middle + 1 < len(heads))
    if not layer.expands:
        return _plan(rows, _even(rows.count, _most_rows(layer)), 1)
    given = samples((1, 1, rows.extent, cols.extent))
    tried = [layer.sampled(sizes) for sizes in given] if rows.is_open or cols.is_open else [layer]
    for size, room in ((panel, STRIP), (1, STRIP), (1, LONGEST)):
        if all(_is_worthwhile(one, size, room) for one in tried):
            return _cut(layer, size, room)
    return None


def _is_worthwhile(layer: _Layer, size: int, room: int) -> bool:
    """Whether the rows that bands share are few."""
    rows, plan = layer.rows, _cut(layer, size, room)
    shares = (SHARED_BY_TWO if layer.projects else SHARED) * (_span(rows) - rows.step)
    return plan.whole or fixed(plan.band) * rows.step >= shares


def _cut(layer: _Layer, size: int, room: int) -> SeparablePlan:
    """Panels of ``size`` blocks and as many rows as fit ``room`` bytes."""
    rows, line = layer.rows, at_least(layer.cols.extent * (size * layer.vector), 1)
    fits = room // line - _span(rows)
    return _plan(rows, _even(rows.count, at_most(_most_rows(layer), fits // rows.step + 1)), size)


def _most_rows(layer: _Layer) -> Extent:
    """Rows of depthwise results that a task may have."""
    if not layer.projects:
        return layer.rows.count
    line = at_least(layer.cols.count * (layer.blocks * layer.vector), 1)
    return at_least(at_most(layer.rows.count, 2 * STRIP // line), 1)


def _span(rows: Taps) -> int:
    return (rows.taps - 1) * rows.delta + 1


def _even(count: Extent, most: Extent) -> Extent:
    return pieces(count, at_least(pieces(count, at_least(most, 1)), 1))


def _plan(rows: Taps, band: Extent, panel: int) -> SeparablePlan:
    under = at_most((band - 1) * rows.step + _span(rows), rows.extent)
    whole = isinstance(band, int) and not rows.is_open and band == rows.count
    return SeparablePlan(band, panel, under, whole)
