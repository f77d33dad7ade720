"""Numbers that a kernel is given beside its sizes: what follows from them, computed once a plan.

How work is cut up depends on sizes by long formulas that nobody looks into: they are only
evaluated.  The functions here put them together as they stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ixion.te.expr import Expr, Size, Var, maximum, minimum, substitute, wrap
from ixion.te.tensor import Extent


@dataclass(eq=False)
class Scalars:
    """Variables of a kernel's body and what they are, expressions over sizes."""

    values: dict[Var, Expr] = field(default_factory=dict)

    def named(self, name: str, extent: Extent) -> Extent:
        """The extent as a variable of its own where it is an expression to be computed."""
        if isinstance(extent, (int, Size)):
            return extent
        var = Var(name)
        self.values[var] = wrap(self.value(extent))
        return var

    def value(self, extent: Extent) -> Extent:
        """An extent over these variables in terms of sizes."""
        return extent if isinstance(extent, int) else substitute(extent, dict(self.values))


def pieces(extent: Extent, size: Extent) -> Extent:
    """How many pieces of a size cover an extent."""
    if isinstance(extent, int) and isinstance(size, int):
        return -(-extent // size)
    return (extent + (size - 1)) // size


def at_least(extent: Extent, least: int) -> Extent:
    return max(extent, least) if isinstance(extent, int) else maximum(extent, least)


def at_most(extent: Extent, most: Extent) -> Extent:
    if isinstance(extent, int) and isinstance(most, int):
        return min(extent, most)
    return minimum(wrap(extent), most)


def largest(extents: Sequence[Extent]) -> Extent:
    found = extents[0]
    for n in extents[1:]:
        if isinstance(n, int) and isinstance(found, int):
            found = max(found, n)
        else:
            found = maximum(wrap(found), n)
    return found


def times(extents: Iterable[Extent]) -> Extent:
    total: Extent = 1
    for n in extents:
        total = total * n
    return total
