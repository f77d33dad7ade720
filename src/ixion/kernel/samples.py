"""Sizes to try a decision on that has to be made before the sizes are known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ixion.base import dim as dims
from ixion.kernel.sizes import dim_of, sizes_in
from ixion.te.expr import Expr
from ixion.te.tensor import Extent

# What batches and the sides of pictures usually are; tried in pairs.
BATCHES = (1, 2, 4, 8)
SIDES = (128, 192, 256, 320)


def samples(shape: Sequence[Extent]) -> list[dict[str, int]]:
    """Values of the sizes in the shape of pictures, axis 0 their number; one if it has none."""
    names = _names(shape[1:])
    batch = [n for n in _names(shape[:1]) if n not in names]
    if not names and not batch:
        return [{}]
    return [
        {**dict.fromkeys(batch, number), **dict.fromkeys(names, side)}
        for number, side in zip(BATCHES, SIDES, strict=True)
    ]


def _names(extents: Iterable[Extent]) -> list[str]:
    return [v.name for v in sizes_in(n for n in extents if isinstance(n, Expr))]


def sampled(extent: Extent, sizes: dict[str, int]) -> int:
    """An extent for these sizes."""
    return extent if isinstance(extent, int) else dims.evaluate(dim_of(extent), sizes)


def usual_side(extent: Extent) -> int:
    """What a side of a picture is, or follows from it, where pictures are small."""
    if isinstance(extent, int):
        return extent
    return max(1, sampled(extent, dict.fromkeys(_names([extent]), SIDES[0])))


def usual_batch(extent: Extent) -> int:
    return extent if isinstance(extent, int) else BATCHES[0]
