"""How a chain of pointwise and depthwise convolutions is cut into tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ixion.ir import Call
from ixion.kernel.schedule_conv import spatial_taps
from ixion.kernel.taps import Taps
from ixion.op.conv_chain import is_depthwise
from ixion.op.typed import attrs_of, dims_of, shape_of
from ixion.op.window import Window

LANES = 16  # channels per block where no target is known
STRIP = 384 << 10  # bytes of a strip: it and what a task reads stay in a second-level cache
LONGEST = 1 << 20  # bytes of a strip of wide rows
# A band has so many times the rows that it shares with its neighbours; fewer are enough where more
# than one tensor stays near.
SHARED, SHARED_BY_TWO = 8, 4


@dataclass(frozen=True)
class SeparablePlan:
    """Rows of depthwise results per task, channel blocks per panel, and rows under the band.

    ``whole`` says that the band is the image.
    """

    band: int
    panel: int
    height: int
    whole: bool


def depthwise_taps(call: Call) -> tuple[Taps, Taps]:
    """Rows and columns of a depthwise convolution of images."""
    attrs, size = attrs_of(call), shape_of(call.args[1])[2:]
    window = Window.of(size, attrs.strides, attrs.dilation, attrs.padding)
    # Only the images' sizes matter, and those are numbers; the batch may be a symbol.
    data, out = ([d if isinstance(d, int) else 0 for d in dims_of(x)] for x in (call.args[0], call))
    return spatial_taps(window, data, out)


def separable_plan(heads: Sequence[Call], block: int, panel: int) -> SeparablePlan | None:
    """A plan with panels of at most ``panel`` blocks; None where bands would share too many rows.

    ``heads`` are the convolutions in order, the first or the last 1x1 may be missing.
    """
    middle = next(i for i, h in enumerate(heads) if is_depthwise(h))
    rows, cols = depthwise_taps(heads[middle])
    vector = 4 * block
    blocks = -(-shape_of(heads[middle].args[1])[0] // block)
    most = rows.count
    if middle + 1 < len(heads):
        most = max(1, min(most, 2 * STRIP // (blocks * cols.count * vector)))
    if middle == 0:
        return _plan(rows, _even(rows.count, most), 1)
    shares = (SHARED if middle + 1 == len(heads) else SHARED_BY_TWO) * (_span(rows) - rows.step)
    for size, strip in ((panel, STRIP), (1, STRIP), (1, LONGEST)):
        fits = strip // (size * cols.extent * vector) - _span(rows)
        plan = _plan(rows, _even(rows.count, min(most, fits // rows.step + 1)), size)
        if plan.whole or plan.band * rows.step >= shares:
            return plan
    return None


def _span(rows: Taps) -> int:
    return (rows.taps - 1) * rows.delta + 1


def _even(count: int, most: int) -> int:
    pieces = -(-count // max(1, most))
    return -(-count // pieces)


def _plan(rows: Taps, band: int, panel: int) -> SeparablePlan:
    under = min((band - 1) * rows.step + _span(rows), rows.extent)
    return SeparablePlan(band, panel, under, band == rows.count)
