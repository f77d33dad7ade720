"""Rows times packed panels: the loops that products with weights share.

Weights are packed ``[group][k][blocks * lanes]``.  A task does some rows for one group of output
vectors, a register tile of rows at a time; what becomes of a tile's sums is the product's own.
"""

from __future__ import annotations

from ixion.kernel.ahead import KEPT, Share, line_of
from ixion.kernel.loops import decode
from ixion.kernel.sizes import ceil_div, is_static
from ixion.kernel.tile import Accumulators, TileShape, even_tiles, multiply_step
from ixion.te.expr import Expr, Var, minimum, wrap
from ixion.te.simplify import simplify
from ixion.te.stmt import Buffer, For, If, Prefetch, Stmt, seq, unroll
from ixion.te.tensor import Extent

UNROLL = 4
STREAMED = 2 << 20  # bytes of weights that do not stay in any near cache
LINES_AHEAD = 32


class Panels:
    """``rows`` of ``depth`` elements of ``source`` times ``groups`` of packed weights.

    A product of its own kind is a dataclass with these fields.  It covers the depth from ``begin``
    up to ``end`` and keeps its sums in ``partial`` between parts of the depth.
    """

    rows: Extent
    depth: Extent
    lanes: int
    tile: TileShape
    source: Buffer
    weights: Buffer
    chunk_rows: Extent
    groups: Extent
    begin: int
    end: Extent
    partial: Buffer | None

    def prepare(self, dtype: str) -> None:
        """Names and counts that follow from the fields; ``dtype`` is that of the sums."""
        self.acc = Accumulators.make("acc", self.tile, self.lanes, dtype)
        self.group, self.chunk = Var("group"), Var("chunk")
        self.chunks = ceil_div(self.rows, self.chunk_rows)
        self.wide = self.tile.blocks * self.lanes

    @property
    def weight_size(self) -> int:
        """Elements of packed weights, whose number is known."""
        assert isinstance(self.groups, int)
        assert isinstance(self.depth, int)
        return self.groups * self.depth * self.wide

    def body(self, task: Var) -> Stmt:
        """All of one task."""
        parts = [(self.chunk, self.chunks), (self.group, self.groups)]
        return decode(task, parts, self._chunk_body())

    def _finish(self, row: Expr, size: int) -> Stmt:
        """What is done with the sums of ``size`` rows from ``row`` on."""
        raise TypeError(type(self).__name__)

    def _chunk_body(self) -> Stmt:
        assert isinstance(self.rows, int)
        assert isinstance(self.chunk_rows, int)
        whole = self.rows // self.chunk_rows
        start = self.chunk * self.chunk_rows
        same = self._rows(self.chunk_rows, start)
        rest = self.rows - whole * self.chunk_rows
        if rest == 0:
            return same
        return If(self.chunk < whole, same, self._rows(rest, wrap(whole * self.chunk_rows)))

    def _rows(self, length: int, shift: Expr) -> Stmt:
        """Tiles over ``length`` rows from ``shift`` on; equal ones become a loop."""
        sizes = even_tiles(length, self.tile.pixels)
        parts: list[Stmt] = []
        at = done = 0
        for size in sorted(set(sizes), reverse=True):
            run, i = sizes.count(size), Var("tile")
            number = wrap(done) if run == 1 else i + done
            start = simplify(shift + (wrap(at) if run == 1 else i * size + at))
            tile = self._tile(start, size, number, len(sizes))
            parts.append(tile if run == 1 else For(i, 0, run, tile))
            at, done = at + run * size, done + run
        return seq(*parts)

    def _tile(self, row: Expr, size: int, number: Expr, tiles: int) -> Stmt:
        k, u = Var("k"), Var("u")
        full = self.begin + (self.end - self.begin) // UNROLL * UNROLL
        parts: list[Stmt] = [self.acc.clear() if self.begin == 0 else self._resume(row, size)]
        if not is_static(full) or full > self.begin:
            ahead = self._ahead(k, number, tiles)
            step = seq(*ahead, unroll(u, UNROLL, self._step(row, size, k, u)))
            parts.append(For(k, self.begin, full, step, step=UNROLL))
        if not is_static(full) or self.end > full:
            parts.append(For(k, full, self.end, self._step(row, size, k, wrap(0))))
        last = self.end is self.depth or self.end == self.depth
        return seq(*parts, self._finish(row, size) if last else self._pause(row, size))

    def _partial_at(self, row: Expr, number: int) -> Expr:
        return simplify((self.group * self.rows + row) * self.wide + number * self.lanes)

    def _resume(self, row: Expr, size: int) -> Stmt:
        """Goes on from the sums of the parts before."""
        assert self.partial is not None
        kept = [
            self.partial.load(self._partial_at(row, i), self.lanes)
            for i in range(size * self.tile.blocks)
        ]
        return seq(*(self.acc.buffer.store(i, value) for i, value in enumerate(kept)))

    def _pause(self, row: Expr, size: int) -> Stmt:
        """Keeps the sums for the next part."""
        assert self.partial is not None
        return seq(*(
            self.partial.store(self._partial_at(row, i), self.acc.buffer.load(i))
            for i in range(size * self.tile.blocks)
        ))  # fmt: skip

    def _ahead(self, k: Var, number: Expr, tiles: int) -> list[Stmt]:
        """Asks for weights that are wanted soon."""
        if self.rows == 1:
            return self._stream_ahead(k)
        if self.groups == 1 or 4 * self.weight_size <= KEPT:
            return []
        return self._group_ahead(k, number, tiles)

    def _stream_ahead(self, k: Var) -> list[Stmt]:
        """A single row waits for its weights alone, so it asks for what comes right after these.

        The hardware does so too, but not beyond a page.  Where the weights may lie in the near
        cache asking is in vain and takes as long as using them.
        """
        if 4 * self.weight_size <= STREAMED:
            return []
        line = line_of(self.weights)
        at = simplify((self.group * self.depth + k) * self.wide + LINES_AHEAD * line)
        return [
            Prefetch(self.weights, at + i * line) for i in range(-(-UNROLL * self.wide // line))
        ]

    def _group_ahead(self, k: Var, number: Expr, tiles: int) -> list[Stmt]:
        """The next group's weights, each tile of rows asks for a part of them."""
        assert isinstance(self.end, int)
        assert isinstance(self.groups, int)
        depth = self.end - self.begin
        share = Share(number, tiles, depth // UNROLL, UNROLL, depth * self.wide)
        group = minimum(self.group + 1, self.groups - 1)
        start = (group * self.depth + self.begin) * self.wide
        return share.ask(self.weights, start, k - self.begin)

    def _step(self, row: Expr, size: int, k: Var, u: Expr) -> Stmt:
        wide = self.wide
        x = simplify(row * self.depth + k) + u
        w = simplify(self.group * (self.depth * wide) + k * wide) + u * wide
        return multiply_step(
            self.acc, range(size), self.tile.blocks,
            lambda b: self.weights.load(w + b * self.lanes, self.lanes),
            lambda p: self.source.load(x + p * self.depth),
        )  # fmt: skip
