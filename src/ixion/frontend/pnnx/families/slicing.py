"""Slices, single and fused over several axes, select and narrow."""

from __future__ import annotations

from dataclasses import dataclass, field

from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.frontend.build import movement
from ixion.frontend.pnnx.convert import Site, bound, converts
from ixion.frontend.pnnx.promote import Item
from ixion.frontend.pnnx.value import NO_LIMIT
from ixion.frontend.term import Term, static


@converts("torch.narrow")
def narrow(site: Site) -> Term:
    x = site.x
    axis = site.axis("dim", x.rank)
    (start,), (length,) = site.dims("start"), site.dims("length")
    if isinstance(start, int) and start < 0:
        start = dims.add(start, x.shape[axis])
    return movement.narrow(site.emit, x, axis, start, dims.add(start, length))


@converts("Tensor.select", "torch.select")
def select(site: Site) -> Term:
    x = site.x
    return movement.select(site.emit, x, site.axis("dim", x.rank), site.ints("index")[0])


@dataclass(slots=True)
class Cut:
    """What a slice line says: (axis, begin, end, step) of ranges, (axis, index) of selections."""

    ranges: list[tuple[int, Dim, Dim, int]] = field(default_factory=list)
    selected: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def read(cls, site: Site, rank: int) -> Cut:
        """The cut of a line of either form.

        In the fused form an axis is selected where `selects` is not the number for "no limit".
        """
        if site.arg("dims", None) is None:
            bounds = (_plain(site.arg(name, None)) for name in ("start", "end", "step"))
            return cls([_range(site.axis("dim", rank, 0), *bounds)])
        made = cls()
        for place, axis in enumerate(site.ints("dims")):
            chosen = _entry(site, "selects", place)
            if chosen is not None and chosen != NO_LIMIT:
                made.selected.append((axis % rank, static(chosen)))
            else:
                bounds = (_entry(site, name, place) for name in ("starts", "ends", "steps"))
                made.ranges.append(_range(axis % rank, *bounds))
        return made


def _range(axis: int, start: Item, end: Item, step: Item) -> tuple[int, Dim, Dim, int]:
    begin, stop = 0 if start is None else start, bound(end)
    for one in (begin, stop):
        if not dims.is_dim(one):
            static(one)
    return axis, begin, stop, 1 if step is None else static(step)


def _plain(item: Item) -> Item:
    """A bound; of a tensor its one number."""
    if isinstance(item, Term):
        known = item.dims()
        return known[0] if known else item
    return item


def _entry(site: Site, name: str, place: int) -> Item:
    found = site.arg(name, None)
    values = found if isinstance(found, (list, tuple)) else [found]
    return None if found is None else _plain(values[place])


def cut(site: Site, x: Term) -> Term:
    """The part of x that the line's slice names; selected axes go last, and are dropped."""
    made = Cut.read(site, x.rank)
    if made.ranges:
        axes, begins, ends, steps = (list(column) for column in zip(*made.ranges, strict=True))
        x = movement.slices(site.emit, x, axes, begins, ends, steps)
    for axis, index in sorted(made.selected, reverse=True):
        x = movement.select(site.emit, x, axis, index)
    return x


@converts("Tensor.slice")
def slice_(site: Site) -> Term:
    return cut(site, site.x)
