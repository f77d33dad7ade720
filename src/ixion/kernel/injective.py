"""Elementwise, broadcast and data-movement kernels: one value per output element.

The output's physical dims become loops, neighbours that all accesses walk alike are merged, the
innermost loop is vectorised and the rest is cut into tasks of a few thousand elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ixion.kernel.access import Access, Operand, Vectorizer
from ixion.kernel.loops import LoopSpace, affine, decode, merge
from ixion.kernel.pieces import Piece, pieces_of
from ixion.kernel.transpose import turned
from ixion.te.expr import Expr, Var, minimum, substitute, wrap
from ixion.te.stmt import Buffer, For, If, Kernel, Let, Stmt, seq, unroll
from ixion.te.tensor import Tensor

GRAIN = 4096  # elements that one task should have at least
UNROLL = 4


def injective(
    name: str,
    out: Tensor,
    place: Operand,
    access: Access,
    lanes: int,
    params: tuple[Buffer, ...],
    whole: Sequence[int] | None = None,
    base: int = 0,
) -> Kernel:
    """A kernel that writes every element of ``out`` (static shape) to ``place``.

    ``lanes`` is the vector width; ``params`` are the buffers in slot order, ``place``'s first.
    With ``whole``, ``out`` is a part of a tensor of that shape, ``base`` elements after its start.
    """
    parts = []
    for piece in pieces_of(out, place, access, whole, base):
        way = turned(piece.space, piece.value, piece.strides, piece.base, place.buffer, lanes)
        parts.append(way.nest() if way is not None else _straight(piece, place.buffer, lanes))
    task, tasks, body = _together(parts)
    return Kernel(name, params, task, tasks, body)


def _straight(piece: Piece, out: Buffer, lanes: int) -> tuple[Var, int, Stmt]:
    """Vectors along the innermost loop."""
    space = piece.space
    rows, inner = prod(space.extents[:-1]), space.extents[-1]
    way = _by_rows if rows >= 8 or inner < 4 * lanes else _by_chunks
    return way(space, piece.value, piece.strides, out, lanes, piece.base)


def _together(parts: Sequence[tuple[Var, int, Stmt]]) -> tuple[Var, int, Stmt]:
    """The tasks of all parts, one after another."""
    task, tasks, body = parts[-1]
    for before, count, first in reversed(parts[:-1]):
        number = Var("task")
        body = If(number < count, Let(before, number, first), Let(task, number - count, body))
        task, tasks = number, tasks + count
    return task, tasks, body


def element_space(
    out: Tensor, place: Operand, access: Access, whole: Sequence[int] | None = None
) -> tuple[LoopSpace, Expr, list[int]]:
    """Merged loops over ``out``'s memory, the element's value and the store's strides."""
    shape = [int(n) for n in out.shape]  # type: ignore[arg-type]
    extents = place.layout.physical(shape)
    space = LoopSpace([Var(f"p{d}") for d in range(len(extents))], list(extents))
    index = place.layout.logical(space.vars)
    value = access.element(out, index, space.ranges())
    return merge(space, value, place.layout.strides(whole or shape))


def _by_rows(
    space: LoopSpace, value: Expr, strides: list[int], out: Buffer, lanes: int, start: int
) -> tuple[Var, int, Stmt]:
    """Tasks are runs of whole rows (everything but the innermost loop)."""
    task, row = Var("task"), Var("row")
    rows, inner = prod(space.extents[:-1]), space.extents[-1]
    group = min(rows, max(1, -(-GRAIN // max(inner, 1))))
    base = affine(space.vars[:-1], strides[:-1]) + start
    line = _line(space, value, base, wrap(0), inner, out, lanes)
    outer = list(zip(space.vars[:-1], space.extents[:-1], strict=True))
    body = decode(row, outer, line) if outer else line
    loop = For(row, task * group, minimum((task + 1) * group, rows), body)
    return task, -(-rows // group), loop


def _by_chunks(
    space: LoopSpace, value: Expr, strides: list[int], out: Buffer, lanes: int, start: int
) -> tuple[Var, int, Stmt]:
    """Tasks are pieces of the innermost loop, for each of the few rows."""
    task, chunk = Var("task"), Var("chunk")
    rows, inner = prod(space.extents[:-1]), space.extents[-1]
    step = lanes * UNROLL
    size = max(step, -(-min(GRAIN, inner) // step) * step)
    chunks = max(1, inner // size)
    base = affine(space.vars[:-1], strides[:-1]) + start
    whole = _line(space, value, base, chunk * size, size, out, lanes)
    rest = inner - (chunks - 1) * size
    last = _line(space, value, base, wrap((chunks - 1) * size), rest, out, lanes)
    body: Stmt = (
        last if chunks == 1 else (whole if rest == size else If(chunk < chunks - 1, whole, last))
    )
    parts = [*zip(space.vars[:-1], space.extents[:-1], strict=True), (chunk, chunks)]
    return task, rows * chunks, decode(task, parts, body)


def _line(
    space: LoopSpace, value: Expr, base: Expr, start: Expr, length: int, out: Buffer, lanes: int
) -> Stmt:
    """``length`` elements of the innermost loop from ``start`` on."""
    inner = space.vars[-1]
    lane, i, u, origin = Var("lane"), Var("i"), Var("u"), Var("origin")
    ranges = space.ranges()
    width = lanes if length >= lanes else 1

    def piece(at: Expr, size: int, count: int | None) -> Stmt:
        shifted = substitute(value, {inner: at + lane} if size > 1 else {inner: at})
        known = {**ranges, lane: (0, (count or size) - 1), i: (0, length), u: (0, UNROLL)}
        limit = wrap(count) if count is not None else None
        vector = Vectorizer(lane, size, known, limit).expr(shifted) if size > 1 else shifted
        return out.store(origin + at, vector, limit)

    full = length // width * width
    step = width * UNROLL
    blocks = full // step * step
    parts: list[Stmt] = []
    if blocks:
        wide = unroll(u, UNROLL, piece(start + (i + u * width), width, None))
        parts.append(For(i, 0, blocks, wide, step=step))
    if full > blocks:
        parts.append(For(i, blocks, full, piece(start + i, width, None), step=width))
    if length > full:
        parts.append(piece(start + full, lanes, length - full))
    return Let(origin, base, seq(*parts))
