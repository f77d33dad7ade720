"""Cutting an output into pieces whose addresses are sums of multiples of loop variables.

Blocked layouts give ``c // 16`` and ``c % 16`` in addresses, and a short last block gives bounds
checks.  Where a loop is cut at the block's boundaries both disappear: inside a piece the index is
``16 * block + lane`` with a known lane range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ixion.kernel.access import Access, Operand
from ixion.kernel.loops import LoopSpace, loads_of, merge
from ixion.kernel.sizes import as_extent
from ixion.te.expr import Binary, Const, Expr, Var, substitute
from ixion.te.simplify import Linear, Ranges, linear, simplify
from ixion.te.tensor import Extent, Tensor

MOST = 4  # pieces of one kernel


@dataclass(eq=False)
class Piece:
    """Loops over a part of the output, the element's value, and where it is stored."""

    space: LoopSpace
    value: Expr
    strides: list[Extent]
    base: Extent


def pieces_of(
    out: Tensor, place: Operand, access: Access, whole: Sequence[Extent] | None, base: Extent
) -> list[Piece]:
    """The output as pieces, merged loops inside each; padding lanes belong to no piece."""
    made = [_piece(out, place, access, whole, base, tail) for tail in _parts(out, place)]
    cut = [c for p in made for c in _cut(p)]
    if len(cut) > MOST:
        cut = made
    return [_merged(p) for p in cut]


def _parts(out: Tensor, place: Operand) -> list[bool | None]:
    """None for all of it; False and True for the whole blocks and the last one."""
    layout = place.layout
    length = None if layout.axis is None else as_extent(out.shape[layout.axis])
    if not isinstance(length, int) or length % layout.block == 0:
        return [None]
    return [False, True] if length > layout.block else [True]


def _piece(
    out: Tensor, place: Operand, access: Access, whole: Sequence[Extent] | None, base: Extent,
    tail: bool | None,
) -> Piece:  # fmt: skip
    shape = [as_extent(n) for n in out.shape]
    layout = place.layout
    extents = [as_extent(n) for n in layout.physical(shape)]
    strides = [as_extent(n) for n in layout.strides(whole or shape)]
    space = LoopSpace([Var(f"p{d}") for d in range(len(extents))], extents)
    physical: list[Expr] = list(space.vars)
    if tail is not None:
        assert layout.axis is not None
        length = shape[layout.axis]
        assert isinstance(length, int)
        blocks, lanes = divmod(length, layout.block)
        extents[layout.axis] = 1 if tail else blocks
        if tail:
            extents[-1] = lanes
            physical[layout.axis] = space.vars[layout.axis] + blocks
            base += blocks * strides[layout.axis]
    value = access.element(out, layout.logical(physical), space.ranges())
    return Piece(space, value, strides, base)


def _cut(piece: Piece) -> list[Piece]:
    """The piece cut along loops that addresses divide, until none is left or it is no use."""
    done: list[Piece] = []
    todo = [piece]
    while todo:
        p = todo.pop(0)
        found = _divided(p)
        if found is None:
            done.append(p)
        else:
            todo = [*_split(p, *found), *todo]
        if len(done) + len(todo) > 4 * MOST:
            return [piece]
    return done


def _divided(piece: Piece) -> tuple[int, int, int] | None:
    """``(dim, block, shift)`` where some address holds ``(dim + shift) // block`` or its rest."""
    ranges = piece.space.ranges()
    for load in loads_of(piece.value):
        for atom, _ in linear(load.index, ranges).terms.values():
            if not isinstance(atom, Binary) or atom.op not in ("floordiv", "floormod"):
                continue
            form = linear(atom.a, ranges)
            single = _single(form, piece.space)
            if single is None or not isinstance(piece.space.extents[single], int):
                continue
            if isinstance(atom.b, Const) and 4 <= atom.b.value <= 64:
                return single, int(atom.b.value), form.const
    return None


def _single(form: Linear, space: LoopSpace) -> int | None:
    """The dim whose variable alone makes up a form."""
    if len(form.terms) != 1:
        return None
    (atom, factor), = form.terms.values()
    if factor != 1 or atom not in space.vars:
        return None
    return space.vars.index(atom)


def _split(piece: Piece, dim: int, block: int, shift: int) -> list[Piece]:
    """What comes before the first boundary, whole blocks as two loops, and the rest."""
    extent = piece.space.extents[dim]
    assert isinstance(extent, int)
    first = min(-shift % block, extent)
    blocks, rest = divmod(extent - first, block)
    parts = []
    if first:
        parts.append(_sub(piece, dim, 0, 1, first))
    if blocks:
        parts.append(_sub(piece, dim, first, blocks, block))
    if rest:
        parts.append(_sub(piece, dim, first + blocks * block, 1, rest))
    return parts


def _sub(piece: Piece, dim: int, start: int, outer: int, inner: int) -> Piece:
    """The part ``start + outer * inner`` long of a loop, as two loops."""
    high, low = Var(f"b{dim}"), Var(f"l{dim}")
    old, strides = piece.space, piece.strides
    space = LoopSpace(
        [*old.vars[:dim], high, low, *old.vars[dim + 1 :]],
        [*old.extents[:dim], outer, inner, *old.extents[dim + 1 :]],
    )
    step = strides[dim]
    index = high * inner + low + start
    moved = substitute(piece.value, {old.vars[dim]: index})
    return Piece(
        space, _resimplified(moved, space),
        [*strides[:dim], step * inner, step, *strides[dim + 1 :]], piece.base + start * step,
    )  # fmt: skip


def _resimplified(value: Expr, space: LoopSpace) -> Expr:
    """Addresses and conditions on indices again, under the piece's ranges."""
    return simplify_loads(value, space.ranges(), {})


def simplify_loads(expr: Expr, ranges: Ranges, memo: dict[int, Expr]) -> Expr:
    """``expr`` with every index in it simplified; sharing is kept."""
    if id(expr) not in memo:
        children = expr.children()
        new = [
            simplify(c, ranges) if c.dtype == "int64" and c.lanes == 1
            else simplify_loads(c, ranges, memo)
            for c in children
        ]  # fmt: skip
        same = all(a is b for a, b in zip(children, new, strict=True))
        memo[id(expr)] = expr if same else expr.rebuild(new)
    return memo[id(expr)]


def _merged(piece: Piece) -> Piece:
    space, value, strides = merge(piece.space, piece.value, piece.strides)
    last = strides[-1] if strides else 0
    if not isinstance(last, int) or last != 1:  # the loop along memory was one element long
        space = LoopSpace([*space.vars, Var("one")], [*space.extents, 1])
        strides = [*strides, 1]
    return Piece(space, value, strides, piece.base)


__all__ = ["Piece", "pieces_of"]
