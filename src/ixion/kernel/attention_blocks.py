"""Attention over many keys: a block of them at a time, with a running maximum and sum.

The scores of a tile of rows against one block of keys stay in the first-level cache. When a block
raises a row's maximum, the sum and the results so far are scaled down to it.

Source: Milakov and Gimelshein, Online normalizer calculation for softmax, 2018, algorithm 3;
Rabe and Staats, Self-attention does not need O(n^2) memory, 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

from ixion.base.target import Target
from ixion.kernel.attention import Attention
from ixion.kernel.reduce import identity_of
from ixion.kernel.softmax import weight
from ixion.kernel.tile import TileShape
from ixion.te.expr import Const, Expr, Var, binary, broadcast, maximum, wrap
from ixion.te.simplify import simplify
from ixion.te.stmt import Buffer, For, Let, Stmt, seq
from ixion.te.tensor import Extent

BLOCK = 512  # keys, about
FLOOR = -3.0e38  # for rows whose keys so far are all masked with minus infinity


@dataclass(eq=False)
class BlockedAttention(Attention):
    """The same work and parts as Attention, in blocks of keys."""

    def keys_at_once(self) -> int:
        self.block_vectors = max(1, BLOCK // self.lanes // self.tile.blocks) * self.tile.blocks
        # Rows an odd number of lines apart fall on different sets of the cache.
        return (self.block_vectors | 1) * self.lanes

    def more_scratch(self) -> list[Buffer]:
        pixels = self.tile.pixels
        self.highs = self._scratch("highs", pixels)
        self.factors = self._scratch("factors", pixels)
        self.totals = self._scratch("totals", pixels * self.wide)
        return [self.highs, self.factors, self.totals]

    def _row_tile(self, head: Expr, row: Expr, size: int) -> Stmt:
        block = Var("block")
        (_, whole), *rest = self._panels()
        per = self.block_vectors // self.tile.blocks  # whole panels in a block
        full, size_of_block = whole // per, self.block_vectors * self.lanes
        start = full * size_of_block
        assert isinstance(self.keys, int)
        last = [(start // self.lanes, whole - full * per), *rest]
        parts = [self._begin(size)]
        if full:
            body = self._block(head, row, size, block * size_of_block, [(0, per)], size_of_block)
            parts.append(For(block, 0, full, body))
        if start < self.keys:
            parts.append(self._block(head, row, size, wrap(start), last, self.keys - start))
        return seq(*parts, self._end(head, row, size))

    def _begin(self, size: int) -> Stmt:
        zero, none = Const(0.0, self.dtype), Const(FLOOR, self.dtype)
        clear = identity_of("add", self.dtype, self.lanes)
        rows = [seq(self.highs.store(p, none), self.sums.store(p, zero)) for p in range(size)]
        i = Var("i")
        results = For(i, 0, size * self.wide, self.totals.store(i, clear), step=self.lanes)
        return seq(self._clear_tops(size), *rows, results)

    def _block(
        self, head: Expr, row: Expr, size: int, first: Expr, panels: list[tuple[int, int]],
        keys: int,
    ) -> Stmt:  # fmt: skip
        vector = simplify(first // self.lanes)
        return seq(
            self._scores(head, row, size, vector, panels),
            self._weights(size, -(-keys // self.lanes)),
            self._add(size, first, keys),
        )  # fmt: skip

    def _weights(self, size: Extent, vectors: Extent) -> Stmt:
        """Exponentials in place; sums, and the factors by which what was summed before shrinks."""
        p, m, f = Var("p"), Var("m", self.dtype), Var("f", self.dtype)
        shrink = weight(binary("sub", self.highs.load(p), m))

        def finish(total: Expr) -> Stmt:
            whole = binary("add", binary("mul", self.sums.load(p), f), total)
            return self.sums.store(p, whole)

        kept = seq(self.highs.store(p, m), self.factors.store(p, f))
        body = Let(f, shrink, seq(kept, self._exponentials(p, m, vectors, finish)))
        highest = maximum(self._highest(p), Const(FLOOR, self.dtype))
        return For(p, 0, size, Let(m, highest, body))

    def _add(self, size: int, first: Expr, keys: Extent) -> Stmt:
        """Shrinks the results and adds the block's."""

        def tile(at: int, blocks: int) -> Stmt:
            acc = self._accumulators(TileShape(size, blocks))
            begin, end = [], []
            for p in range(size):
                factor = broadcast(self.factors.load(p), self.lanes)
                for b in range(blocks):
                    place = wrap(p * self.wide + at + b * self.lanes)
                    before = self.totals.load(place, self.lanes)
                    begin.append(acc.set(p, b, binary("mul", before, factor)))
                    end.append(self.totals.store(place, acc.get(p, b)))
            return seq(*begin, self._weighted(acc, size, at, blocks, first, keys), *end)

        return self._result_tiles(tile)

    def _end(self, head: Expr, row: Expr, size: int) -> Stmt:
        p = Var("p")
        inverse = self.sums.store(p, self._inverse(self.sums.load(p)))
        stores = [
            self._store(
                head, row, p, d, self.totals.load(p * self.wide + d, self.lanes)
            )
            for p in range(size)
            for d in range(0, self.wide, self.lanes)
        ]  # fmt: skip
        return seq(For(p, 0, size, inverse), *stores)


def attention_class(target: Target, rows: int, keys: int) -> type[Attention]:
    """The form for tiles of so many rows: blocks where the scores of one outgrow the near cache."""
    return Attention if keys <= BLOCK or 4 * rows * keys <= target.l1 else BlockedAttention


__all__ = ["BlockedAttention", "attention_class"]
