"""Data movement between two directions: squares of elements transposed in registers.

Where the innermost output loop walks an operand with a large stride, but some other loop walks it
element by element, a tile of ``lanes x lanes`` elements is loaded along that other loop,
transposed, and stored along the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ixion.kernel.access import Vectorizer, slope_of, stride_of
from ixion.kernel.loops import LoopSpace, affine, decode, loads_of
from ixion.kernel.sizes import as_extent, ceil_div, least, most, product
from ixion.te.expr import Const, Expr, Load, Var, minimum, substitute, transposed, wrap
from ixion.te.simplify import simplify
from ixion.te.stmt import Buffer, For, If, Let, Stmt, seq
from ixion.te.tensor import Extent

GRAIN = 4096  # elements that one task should have at least
_DTYPES = frozenset(("float32", "int32", "float64", "int64"))


@dataclass(eq=False)
class Turned:
    """Loops of a transposing kernel: ``across`` is the dim along which ``loads`` are contiguous."""

    space: LoopSpace
    value: Expr
    strides: list[Extent]
    base: Extent
    out: Buffer
    lanes: int
    across: int
    loads: list[Load]

    def nest(self) -> tuple[Var, Extent, Stmt]:
        """Task variable, number of tasks and body; a task is some rows of tiles."""
        task, row, tile = Var("task"), Var("row"), Var("tile")
        inner, length = self._extents()
        tiles = ceil_div(length, self.lanes)
        others = [d for d in range(len(self.space.vars) - 1) if d != self.across]
        parts = [(self.space.vars[d], self.space.extents[d]) for d in others] + [(tile, tiles)]
        rows = product(n for _, n in parts)
        group = least(rows, most(1, as_extent(GRAIN // most(self.lanes * inner, 1))))
        body = decode(row, parts, self._tiles(tile, length))
        loop = For(row, task * group, minimum((task + 1) * group, rows), body)
        return task, ceil_div(rows, group), loop

    def _extents(self) -> tuple[Extent, Extent]:
        """Of the innermost loop and of the one across."""
        return self.space.extents[-1], self.space.extents[self.across]

    def _tiles(self, tile: Var, length: Extent) -> Stmt:
        whole, rest = length // self.lanes, length % self.lanes
        if isinstance(rest, Expr):
            short = self._line(wrap(whole * self.lanes), rest)
            return If(tile < whole, self._line(tile * self.lanes, self.lanes), short)
        parts: list[Stmt] = []
        full = self._line(tile * self.lanes, self.lanes) if whole else None
        if rest == 0:
            assert full is not None
            return full
        last = self._line(wrap(whole * self.lanes), rest)
        if full is None:
            return last
        parts.append(If(tile < whole, full, last))
        return seq(*parts)

    def _line(self, start: Expr, rows: Extent) -> Stmt:
        """Tiles along the innermost loop for ``rows`` positions across."""
        (inner, _), i = self._extents(), Var("i")
        full = inner // self.lanes * self.lanes
        whole = For(i, 0, full, self._tile(start, rows, i, self.lanes), step=self.lanes)
        if not isinstance(inner, int):
            rest = self._tile(start, rows, wrap(full), inner - full)
            return seq(whole, If(wrap(full) < inner, rest))
        parts: list[Stmt] = [whole] if full else []
        if inner > full:
            parts.append(self._tile(start, rows, wrap(full), inner - full))
        return seq(*parts)

    def _tile(self, start: Expr, rows: Extent, at: Expr, columns: Extent) -> Stmt:
        across, inner, lane = self.space.vars[self.across], self.space.vars[-1], Var("lane")
        turned = {id(x): self._turned(x, start, rows, at, columns) for x in self.loads}
        real = columns if isinstance(columns, int) else self.lanes
        known = {**self.space.ranges(), lane: (0, real - 1)}
        count = self._count(columns)
        origin = Var("origin")
        base = affine(self.space.vars, self.strides)
        where = {across: start, inner: at}
        named: list[tuple[Var, Expr]] = []
        if not isinstance(rows, int):  # before the choices which are stored: they share work
            turned = {k: _named(v, named) for k, v in turned.items()}
        stores: list[Stmt] = []
        for r in range(rows if isinstance(rows, int) else self.lanes):
            memo: dict[int, Expr] = {k: v[r] for k, v in turned.items()}
            value = substitute(self.value, {across: start + r, inner: at + lane}, memo)
            vector = Vectorizer(lane, self.lanes, known, count).expr(value)
            place = origin + r * self.strides[self.across]
            store: Stmt = self.out.store(place, vector, count)
            stores.append(store if isinstance(rows, int) else If(wrap(r) < rows, store))
        body: Stmt = Let(origin, substitute(base + self.base, dict(where)), seq(*stores))
        for name, vector in reversed(named):
            body = Let(name, vector, body)
        return body

    def _count(self, real: Extent) -> Expr | None:
        """The limit of vectors of which so many lanes are real."""
        return None if isinstance(real, int) and real >= self.lanes else wrap(real)

    def _turned(
        self, load: Load, start: Expr, rows: Extent, at: Expr, columns: Extent
    ) -> Sequence[Expr]:
        """Vectors along the innermost loop, one for each position across."""
        across, inner = self.space.vars[self.across], self.space.vars[-1]
        zero = Const(0, load.dtype, self.lanes)
        lines: list[Expr] = []
        for c in range(self.lanes):
            column = at + c
            if isinstance(columns, Expr):  # any column will do for one that does not exist
                column = minimum(column, at + columns - 1)
            index = substitute(load.index, {across: start, inner: column})
            line = Load(load.buffer, simplify(index), self.lanes, 1, self._count(rows))
            lines.append(zero if isinstance(columns, int) and c >= columns else line)
        return transposed(lines)


def _named(vectors: Sequence[Expr], names: list[tuple[Var, Expr]]) -> list[Expr]:
    made = [Var(f"t{len(names) + i}", v.dtype, v.lanes) for i, v in enumerate(vectors)]
    names.extend(zip(made, vectors, strict=True))
    return [*made]


def turned(
    space: LoopSpace, value: Expr, strides: list[Extent], base: Extent, out: Buffer, lanes: int
) -> Turned | None:
    """How to do a piece by transposing, None where that is not what it needs."""
    if len(space.vars) < 2 or strides[-1] != 1 or lanes < 4 or not _at_least_4(space.extents[-1]):
        return None
    ranges, inner = space.ranges(), space.vars[-1]
    loads = loads_of(value)
    steps = {id(x): slope_of(x.index, inner, ranges) for x in loads}
    bad = [x for x in loads if not _is_short(steps[id(x)])]
    if not bad or any(steps[id(x)] is None or x.dtype not in _DTYPES for x in bad):
        return None
    if any(x.lanes != 1 or x.count is not None for x in loads):
        return None
    for d in reversed(range(len(space.vars) - 1)):
        along = _at_least_4(space.extents[d]) and all(
            stride_of(x.index, space.vars[d], ranges) == 1 for x in bad
        )
        if along:
            return Turned(space, value, strides, base, out, lanes, d, bad)
    return None


def _is_short(step: Extent | None) -> bool:
    return isinstance(step, int) and step in (0, 1)


def _at_least_4(extent: Extent) -> bool:
    """Whether it is, or may be."""
    return not isinstance(extent, int) or extent >= 4
