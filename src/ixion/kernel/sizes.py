"""Extents that may be known at run time only: Python ints, or expressions over sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ixion.base import dim as dims
from ixion.te.expr import Binary, Const, Expr, Size, Var, maximum, minimum, walk, wrap
from ixion.te.simplify import linear
from ixion.te.tensor import Extent

TYPICAL = 64  # what a size is taken for where only the order of magnitude matters


def as_extent(expr: Extent) -> Extent:
    """An extent in its shortest form; an int where it is constant."""
    if isinstance(expr, int):
        return expr
    form = linear(expr, {})
    return form.expr() if form.terms else form.const


def is_static(*extents: Extent) -> bool:
    return all(isinstance(n, int) for n in extents)


def fixed(extent: Extent) -> int:
    """An extent that is a number: channels and windows always are."""
    assert isinstance(extent, int)
    return extent


def divides(n: int, extent: Extent) -> bool:
    """Whether an extent is a multiple of ``n`` for all sizes."""
    rest = as_extent(extent % n)
    return isinstance(rest, int) and rest == 0


def product(extents: Iterable[Extent]) -> Extent:
    total: Extent = 1
    for n in extents:
        total = total * n
    return as_extent(total)


def ceil_div(a: Extent, b: Extent) -> Extent:
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    return as_extent((a + (b - 1)) // b)


def least(a: Extent, b: Extent) -> Extent:
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return as_extent(minimum(a, b))


def most(a: Extent, b: Extent) -> Extent:
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return as_extent(maximum(a, b))


def same_extent(a: Extent, b: Extent) -> bool:
    """Whether two extents are equal for all sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    apart = linear(wrap(a), {}).plus(linear(wrap(b), {}).scaled(-1))
    return not apart.terms and apart.const == 0


def same_shape(a: Sequence[Extent], b: Sequence[Extent]) -> bool:
    """Whether two shapes are equal for all sizes."""
    return len(a) == len(b) and all(same_extent(m, n) for m, n in zip(a, b, strict=True))


def typical(extent: Extent) -> int:
    """A number for an extent, for decisions that have to be made before sizes are known."""
    if isinstance(extent, int):
        return extent
    sizes = {n.name: TYPICAL for n in walk(extent) if isinstance(n, Size)}
    return max(0, dims.evaluate(dim_of(extent), sizes))


def dim_of(extent: Extent) -> dims.Dim:
    """An extent as a dim; TypeError for an expression that is not over sizes alone."""
    if isinstance(extent, int):
        return extent
    if isinstance(extent, Const):
        return int(extent.value)
    if isinstance(extent, Size):
        return dims.SymVar(extent.name)
    if isinstance(extent, Binary):
        return _OPERATIONS[extent.op](dim_of(extent.a), dim_of(extent.b))
    raise TypeError(f"{extent} is not an extent")


def _subtracted(a: dims.Dim, b: dims.Dim) -> dims.Dim:
    return dims.add(a, dims.multiply(-1, b))


_OPERATIONS: dict[str, Callable[[dims.Dim, dims.Dim], dims.Dim]] = {
    "add": dims.add, "sub": _subtracted, "mul": dims.multiply, "floordiv": dims.floordiv,
    "floormod": dims.mod, "min": dims.minimum, "max": dims.maximum,
}  # fmt: skip


def top(extent: Extent) -> Extent:
    """The largest index below an extent."""
    if isinstance(extent, int):
        return max(extent - 1, 0)
    return as_extent(extent - 1)


def sizes_in(exprs: Iterable[Expr]) -> list[Var]:
    """Sizes that occur in expressions, by name."""
    found = {n.name: n for e in exprs for n in walk(e) if isinstance(n, Size)}
    return [found[name] for name in sorted(found)]
