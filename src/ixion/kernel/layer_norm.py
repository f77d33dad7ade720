"""Layer norm of rows: read from memory once, normalised while they are in the first-level cache.

The squares are summed around a first mean, and both moments corrected by what is left around it,
so that a large mean costs no digits (Chan, Golub and LeVeque, Algorithms for Computing the Sample
Variance, 1983, equation 1.7).  A few rows go together: the horizontal sums and the square root of
one alone would leave the arithmetic units idle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from ixion.kernel.access import Access, Operand, Vectorizer, stride_of
from ixion.kernel.norm_rows import Norm, Rows
from ixion.kernel.row_index import RowIndex
from ixion.kernel.sizes import as_extent, ceil_div, product
from ixion.kernel.spatial import readdressed
from ixion.te.expr import (
    Compare,
    Const,
    Expr,
    HorizontalReduce,
    Load,
    Ramp,
    Select,
    Var,
    broadcast,
    intrinsic,
    maximum,
    minimum,
    substitute,
    wrap,
)
from ixion.te.simplify import Ranges, simplify
from ixion.te.stmt import Buffer, For, Kernel, Let, Stmt, seq
from ixion.te.tensor import Extent, Tensor

GRAIN = 8192  # elements that one task should have at least
TOGETHER = 4  # rows in flight
NEAR = 4096  # elements of all rows in flight: they and their results fit the first-level cache
MOST_KEPT = 1 << 16  # elements of scratch
WHOLE = 8  # vectors of a row that become straight code
UNROLL = 2


@dataclass(frozen=True, eq=False)
class _Piece:
    """One vector of a row, ``count`` lanes of it real (None: all), in terms of row and block."""

    count: int | None
    source: Expr  # as it is read the first time
    again: Expr  # as it is read from then on
    value: Expr  # of the output
    at: Expr


# Of a vector: where it is, the number of its row, and its number in the row.
_Work = Callable[[_Piece, dict[Var, Expr], int, int], Stmt]


@dataclass(eq=False)
class LayerNormNest:
    """``place`` holds ``out``, made by elementwise work on ``norm``'s result, row by row."""

    norm: Norm
    out: Tensor
    rows: Rows
    place: Operand
    access: Access
    lanes: int
    pieces: list[_Piece] = field(init=False)

    def __post_init__(self) -> None:
        self.shape = [as_extent(n) for n in self.out.shape]
        length = self.shape[self.rows.axis]
        assert isinstance(length, int)
        self.length = length
        self.index = RowIndex([n for d, n in enumerate(self.shape) if d != self.rows.axis])
        self.count = product(self.index.dims)
        self.full, self.tail = divmod(self.length, self.lanes)
        self.padded = -(-self.length // self.lanes) * self.lanes
        self.together = min(TOGETHER, max(1, NEAR // self.padded))
        if isinstance(self.count, int):
            self.together = min(self.together, self.count)
        # Sums of one row: an addition takes as long as the time to the fourth next one.
        self.chains = TOGETHER // self.together
        self.row, self.slot = Var("row"), Var("slot")
        self.block, self.lane = Var("block"), Var("lane")
        self.mean, self.scale, self.shift = (Var(n, "float32") for n in ("mean", "scale", "shift"))
        self.sums, self.squares = (
            Buffer(n, "float32", "register", self.together * self.chains, self.lanes)
            for n in ("sums", "squares")
        )
        self.kept = Buffer("kept", "float32", "scratch", self.together * self.padded)
        self.keeps = self.kept.size <= MOST_KEPT and not self._reads_rows()
        counts = [None] * bool(self.full) + [self.tail] * bool(self.tail)
        self.pieces = [self._piece(count) for count in counts]

    def kernel(self, name: str, params: tuple[Buffer, ...]) -> Kernel:
        task, lo, hi, end = Var("task"), Var("lo"), Var("hi"), Var("end")
        step, count = self.together, self.count
        group = max(1, GRAIN // self.length // step) * step
        if isinstance(count, int):
            group = min(count, group)
        body: Stmt = For(self.row, lo, end, self._normalised(step), step=step)
        if group % step or not isinstance(count, int) or count % group % step:
            body = seq(body, For(self.row, end, hi, self._normalised(1)))
        body = Let(end, lo + (hi - lo) // step * step, body)
        body = Let(lo, task * group, Let(hi, minimum((task + 1) * group, count), body))
        made = Kernel(name, params, task, ceil_div(count, group), body)
        made.locals = (self.sums, self.squares)
        if self.keeps:
            made.locals, made.scratch = (*made.locals, self.kept), 4 * self.kept.size
        return made

    # --- values, in terms of row, slot, block and lane -------------------------------------------

    def _ranges(self, count: int | None) -> dict[Var, tuple[int, Extent]]:
        return {
            **self.index.ranges, self.lane: (0, (count or self.lanes) - 1),
            self.block: (0, max(self.full - 1, 0)), self.slot: (0, self.together - 1),
        }  # fmt: skip

    def _column(self, count: int | None) -> Expr:
        block = self.block if count is None else wrap(self.full)
        return block * self.lanes + self.lane

    def _source(self, count: int | None) -> Expr:
        where = dict(zip(self.rows.others, self.index.index, strict=True))
        index = (*(substitute(e, where) for e in self.rows.lead), self._column(count))
        return self.access.element(self.norm.source, index, self._ranges(count))

    def _reads_rows(self) -> bool:
        """Whether the source is memory in which rows lie as they are wanted."""
        count = None if self.full else self.tail
        value, ranges = self._source(count), self._ranges(count)
        if not isinstance(value, Load):
            return False
        if count is None and stride_of(value.index, self.block, ranges) != self.lanes:
            return False
        return stride_of(value.index, self.lane, ranges) == 1

    def _piece(self, count: int | None) -> _Piece:
        ranges = self._ranges(count)
        limit = None if count is None else wrap(count)
        vector = Vectorizer(self.lane, self.lanes, ranges, limit)
        source = again = self._source(count)
        if self.keeps:
            again = self.kept.load(self.slot * self.padded + self._column(count))
        self.access.given[self.norm.result] = lambda index: self._normal(again, index, ranges)
        axis, others = self.rows.axis, self.index.index
        index = [*others[:axis], self._column(count), *others[axis:]]
        value = self.access.element(self.out, index, ranges)
        start = [substitute(i, {self.lane: wrap(0)}) for i in index]
        at = simplify(self.place.layout.offset(self.shape, start), ranges)
        return _Piece(count, vector.expr(source), vector.expr(again), vector.expr(value), at)

    def _normal(self, x: Expr, index: Sequence[Expr], ranges: Ranges) -> Expr:
        value = intrinsic("fma", x - self.mean, self.scale, self.shift)
        gamma, beta = (
            None if t is None else self.access.element(t, index[-1:], ranges)
            for t in (self.norm.gamma, self.norm.beta)
        )
        if gamma is not None and beta is not None:
            return intrinsic("fma", value, gamma, beta)
        if gamma is not None:
            return value * gamma
        return value if beta is None else value + beta

    # --- passes over a few rows ------------------------------------------------------------------

    def _normalised(self, count: int) -> Stmt:
        """The next ``count`` rows from ``row`` on."""
        rows = [Var(f"row{u}") for u in range(count)]
        mean, rest, scale, shift = (
            [Var(f"{n}{u}", "float32") for u in range(count)]
            for n in ("mean", "rest", "scale", "shift")
        )
        result = partial(self._result, mean, scale, shift)
        # Row by row: stores of several rows would stand in the way of loads 4 KiB apart.
        last = seq(*(self._each(result, [(u, row)]) for u, row in enumerate(rows)))
        last = _lets(shift, [-(r * s) for r, s in zip(rest, scale, strict=True)], last)
        last = _lets(scale, [self._scale(u, rest[u]) for u in range(count)], last)
        last = _lets(rest, [self._average(self.sums, u) for u in range(count)], last)
        numbered = list(enumerate(rows))
        second = self._each(partial(self._moments, mean), numbered)
        second = seq(self._clear(count, self.sums, self.squares), second, last)
        second = _lets(mean, [self._average(self.sums, u) for u in range(count)], second)
        first = seq(self._clear(count, self.sums), self._each(self._total, numbered), second)
        return _lets(rows, [self.row + u for u in range(count)], first)

    def _average(self, sums: Buffer, u: int) -> Expr:
        total = sums.load(u * self.chains)
        for i in range(1, self.chains):
            total = total + sums.load(u * self.chains + i)
        return HorizontalReduce("add", total) * (1.0 / self.length)

    def _scale(self, u: int, rest: Expr) -> Expr:
        spread = maximum(self._average(self.squares, u) - rest * rest, 0.0)
        return Const(1.0, "float32") / intrinsic("sqrt", spread + self.norm.epsilon)

    def _clear(self, count: int, *buffers: Buffer) -> Stmt:
        zero = Const(0.0, "float32", self.lanes)
        return seq(*(b.store(i, zero) for b in buffers for i in range(count * self.chains)))

    def _each(self, work: _Work, rows: Sequence[tuple[int, Var]]) -> Stmt:
        """``work`` for each vector of numbered rows, the same columns of all together."""

        def at(piece: _Piece, block: Expr, k: int) -> Iterator[Stmt]:
            for u, row in rows:
                where = {**self.index.at(row), self.slot: wrap(u), self.block: block}
                yield work(piece, where, u, k)

        parts: list[Stmt] = []
        for piece in self.pieces:
            if piece.count is not None:
                parts.extend(at(piece, wrap(self.full), self.full))
                continue
            step, i = self.full if self.full <= WHOLE else max(UNROLL, self.chains), Var("i")
            whole = self.full // step * step
            line = seq(*(seq(at(piece, i + k, k)) for k in range(step)))
            parts.append(For(i, 0, whole, line, step=step))
            parts += [seq(at(piece, wrap(k), k)) for k in range(whole, self.full)]
        return seq(*parts)

    def _total(self, piece: _Piece, where: dict[Var, Expr], u: int, k: int) -> Stmt:
        """Adds to a row's sum, and keeps what had to be computed or collected."""
        x, chain = Var("x", "float32", self.lanes), u * self.chains + k % self.chains
        add = self.sums.store(chain, self.sums.load(chain) + x)
        if self.keeps:
            start = self._column(piece.count)
            index = substitute(self.slot * self.padded + start, {**where, self.lane: wrap(0)})
            add = seq(add, self.kept.store(simplify(index), x))
        return Let(x, self._counted(_placed(piece.source, where), piece), add)

    def _moments(
        self, mean: Sequence[Var], piece: _Piece, where: dict[Var, Expr], u: int, k: int
    ) -> Stmt:
        """Adds to the sums of deviations from the first mean and of their squares."""
        d, chain = Var("d", "float32", self.lanes), u * self.chains + k % self.chains
        square = intrinsic("fma", d, d, self.squares.load(chain))
        total = self.sums.store(chain, self.sums.load(chain) + d)
        add = seq(total, self.squares.store(chain, square))
        away = _placed(piece.again, where) - broadcast(mean[u], self.lanes)
        return Let(d, self._counted(away, piece), add)

    def _counted(self, value: Expr, piece: _Piece) -> Expr:
        """``value``, but 0 in lanes past the row's end."""
        if piece.count is None:
            return value
        inside = Compare("lt", Ramp(wrap(0), self.lanes), broadcast(wrap(piece.count), self.lanes))
        return Select(inside, value, Const(0.0, "float32", self.lanes))

    def _result(
        self, mean: Sequence[Var], scale: Sequence[Var], shift: Sequence[Var],
        piece: _Piece, where: dict[Var, Expr], u: int, k: int,
    ) -> Stmt:  # fmt: skip
        where = {**where, self.mean: mean[u], self.scale: scale[u], self.shift: shift[u]}
        limit = None if piece.count is None else wrap(piece.count)
        at = simplify(substitute(piece.at, where))
        return self.place.buffer.store(at, _placed(piece.value, where), limit)


def _placed(value: Expr, where: dict[Var, Expr]) -> Expr:
    return readdressed(substitute(value, where))


def _lets(names: Sequence[Var], values: Sequence[Expr], body: Stmt) -> Stmt:
    for name, value in zip(reversed(names), reversed(values), strict=True):
        body = Let(name, value, body)
    return body
