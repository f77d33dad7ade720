"""Elementwise, broadcast and data-movement kernels: one value per output element.

The output's physical dims become loops, neighbours that all accesses walk alike are merged, the
innermost loop is vectorised and the rest is cut into tasks of a few thousand elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ixion.kernel.access import Access, Operand, Vectorizer
from ixion.kernel.loops import LoopSpace, affine, decode, merge
from ixion.kernel.pieces import Piece, pieces_of
from ixion.kernel.sizes import as_extent, ceil_div, least, most, product
from ixion.kernel.transpose import turned
from ixion.te.expr import Expr, Var, minimum, substitute, wrap
from ixion.te.stmt import Buffer, For, If, Kernel, Let, Stmt, seq, unroll
from ixion.te.tensor import Extent, Tensor

GRAIN = 4096  # elements that one task should have at least
UNROLL = 4


def injective(
    name: str,
    out: Tensor,
    place: Operand,
    access: Access,
    lanes: int,
    params: tuple[Buffer, ...],
    whole: Sequence[Extent] | None = None,
    base: Extent = 0,
) -> Kernel:
    """A kernel that writes every element of ``out`` to ``place``.

    ``lanes`` is the vector width; ``params`` are the buffers in slot order, ``place``'s first.
    With ``whole``, ``out`` is a part of a tensor of that shape, ``base`` elements after its start.
    """
    parts = []
    for piece in pieces_of(out, place, access, whole, base):
        way = turned(piece.space, piece.value, piece.strides, piece.base, place.buffer, lanes)
        parts.append(way.nest() if way is not None else _straight(piece, place.buffer, lanes))
    task, tasks, body = _together(parts)
    return Kernel(name, params, task, tasks, body)


def _straight(piece: Piece, out: Buffer, lanes: int) -> tuple[Var, Extent, Stmt]:
    """Vectors along the innermost loop."""
    space = piece.space
    rows, inner = product(space.extents[:-1]), space.extents[-1]
    few = isinstance(rows, int) and rows < 8
    short = isinstance(inner, int) and inner < 4 * lanes
    way = _by_chunks if few and not short else _by_rows
    return way(space, piece.value, piece.strides, out, lanes, piece.base)


def _together(parts: Sequence[tuple[Var, Extent, Stmt]]) -> tuple[Var, Extent, Stmt]:
    """The tasks of all parts, one after another."""
    task, tasks, body = parts[-1]
    for before, count, first in reversed(parts[:-1]):
        number = Var("task")
        body = If(number < count, Let(before, number, first), Let(task, number - count, body))
        task, tasks = number, tasks + count
    return task, tasks, body


def element_space(
    out: Tensor, place: Operand, access: Access, whole: Sequence[Extent] | None = None
) -> tuple[LoopSpace, Expr, list[Extent]]:
    """Merged loops over ``out``'s memory, the element's value and the store's strides."""
    shape = [as_extent(n) for n in out.shape]
    extents = place.layout.physical(shape)
    space = LoopSpace([Var(f"p{d}") for d in range(len(extents))], list(extents))
    index = place.layout.logical(space.vars)
    value = access.element(out, index, space.ranges())
    return merge(space, value, place.layout.strides(whole or shape))


def _by_rows(
    space: LoopSpace, value: Expr, strides: list[Extent], out: Buffer, lanes: int, start: Extent
) -> tuple[Var, Extent, Stmt]:
    """Tasks are runs of whole rows (everything but the innermost loop)."""
    task, row = Var("task"), Var("row")
    rows, inner = product(space.extents[:-1]), space.extents[-1]
    group = least(rows, most(1, ceil_div(GRAIN, most(inner, 1))))
    base = affine(space.vars[:-1], strides[:-1]) + start
    line = _line(space, value, base, wrap(0), inner, out, lanes)
    outer = list(zip(space.vars[:-1], space.extents[:-1], strict=True))
    body = decode(row, outer, line) if outer else line
    loop = For(row, task * group, minimum((task + 1) * group, rows), body)
    return task, ceil_div(rows, group), loop


def _by_chunks(
    space: LoopSpace, value: Expr, strides: list[Extent], out: Buffer, lanes: int, start: Extent
) -> tuple[Var, Extent, Stmt]:
    """Tasks are pieces of the innermost loop, for each of the few rows."""
    task, chunk = Var("task"), Var("chunk")
    rows, inner = product(space.extents[:-1]), space.extents[-1]
    step = lanes * UNROLL
    base = affine(space.vars[:-1], strides[:-1]) + start
    outer = list(zip(space.vars[:-1], space.extents[:-1], strict=True))
    if not isinstance(inner, int):
        length = minimum(wrap(inner) - chunk * GRAIN, GRAIN)
        line = _line(space, value, base, chunk * GRAIN, length, out, lanes)
        chunks = ceil_div(inner, GRAIN)
        return task, rows * chunks, decode(task, [*outer, (chunk, chunks)], line)
    size = max(step, -(-min(GRAIN, inner) // step) * step)
    chunks = max(1, inner // size)
    whole = _line(space, value, base, chunk * size, size, out, lanes)
    rest = inner - (chunks - 1) * size
    last = _line(space, value, base, wrap((chunks - 1) * size), rest, out, lanes)
    body: Stmt = (
        last if chunks == 1 else (whole if rest == size else If(chunk < chunks - 1, whole, last))
    )
    return task, rows * chunks, decode(task, [*outer, (chunk, chunks)], body)


def _line(
    space: LoopSpace, value: Expr, base: Expr, start: Expr, length: Extent, out: Buffer, lanes: int
) -> Stmt:
    """``length`` elements of the innermost loop from ``start`` on."""
    inner = space.vars[-1]
    lane, i, u, origin = Var("lane"), Var("i"), Var("u"), Var("origin")
    ranges = space.ranges()
    width = 1 if isinstance(length, int) and length < lanes else lanes

    def piece(at: Expr, size: int, count: Extent | None) -> Stmt:
        shifted = substitute(value, {inner: at + lane} if size > 1 else {inner: at})
        real = count if isinstance(count, int) else size
        known = {**ranges, lane: (0, real - 1), i: (0, length), u: (0, UNROLL)}
        limit = wrap(count) if count is not None else None
        vector = Vectorizer(lane, size, known, limit).expr(shifted) if size > 1 else shifted
        return out.store(origin + at, vector, limit)

    step = width * UNROLL
    wide = unroll(u, UNROLL, piece(start + (i + u * width), width, None))
    if not isinstance(length, int):
        return Let(origin, base, _open_line(wide, piece, start, i, length, width))
    full = length // width * width
    blocks = full // step * step
    parts: list[Stmt] = []
    if blocks:
        parts.append(For(i, 0, blocks, wide, step=step))
    if full > blocks:
        parts.append(For(i, blocks, full, piece(start + i, width, None), step=width))
    if length > full:
        parts.append(piece(start + full, lanes, length - full))
    return Let(origin, base, seq(*parts))


_Piece = Callable[[Expr, int, "Extent | None"], Stmt]


def _open_line(
    wide: Stmt, piece: _Piece, start: Expr, i: Var, length: Expr, width: int
) -> Stmt:
    """The line of ``_line`` where its length is known at run time only."""
    full, blocks = Var("full"), Var("blocks")
    step = width * UNROLL
    rest = If(full < length, piece(start + full, width, length - full))
    body = seq(
        For(i, 0, blocks, wide, step=step),
        For(i, blocks, full, piece(start + i, width, None), step=width),
        rest,
    )
    named = Let(blocks, length // step * step, body)
    return Let(full, length // width * width, named)
