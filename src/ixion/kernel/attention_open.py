"""Attention over rows, keys or heads that are counted at run time.

The same work as in attention.py and attention_blocks.py.  Whole panels of keys and what is left of
them are loops; what is left goes one vector at a time, the last vector with as many lanes as there
are keys.  Scores lie a fixed distance apart, so that registers need not hold where each row's are.
There is code for every height of a tile (see open_rows.py), apart from the exponentials, which go
row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ixion.base.target import Target
from ixion.kernel.attention import Attention, tile_time
from ixion.kernel.attention_blocks import BLOCK, FLOOR, BlockedAttention
from ixion.kernel.open_rows import (
    by_size,
    in_some_tiles,
    in_tiles,
    tall_tiles,
    weight_of_code,
)
from ixion.kernel.reduce import identity_of
from ixion.kernel.sizes import as_extent, ceil_div, least
from ixion.kernel.tile import TileShape, even_tiles, vector_registers
from ixion.te.expr import Const, Expr, Var, minimum, wrap
from ixion.te.stmt import Buffer, For, Kernel, Let, Stmt, seq
from ixion.te.tensor import Extent

SAMPLES = (8, 16, 24, 40, 100, 500)  # numbers of rows and keys that a tile is chosen by


def open_attention_tile(target: Target, lanes: int, depth: int, width: int) -> TileShape:
    """The tile that does well for all numbers of rows and keys."""
    registers = vector_registers(target, lanes)
    found: list[tuple[float, TileShape]] = []
    for shape in tall_tiles(registers, 4):
        cost = sum(
            tile_time(registers, even_tiles(n, shape.pixels), shape.blocks, lanes, n, depth, width)
            / n**2
            for n in SAMPLES
        )
        found.append((cost * weight_of_code(shape), shape))
    return min(found, key=lambda f: f[0])[1]


@dataclass(eq=False)
class OpenAttention(Attention):
    """All keys at once: there are at most ``most`` of them."""

    most: int = field(default=BLOCK, kw_only=True)

    def kernel(self, name: str, params: tuple[Buffer, ...]) -> Kernel:
        self.per, self.pieces = Var("per"), Var("pieces")
        made = super().kernel(name, params)
        made.scalars = (self.per, self.pieces)
        made.values = (wrap(self.chunk), wrap(ceil_div(self.rows, self.chunk)))
        return made

    def _pieces(self) -> Extent:
        return self.pieces

    def keys_at_once(self) -> int:
        # Rows an odd number of lines apart fall on different sets of the cache.
        return (self.most // self.lanes | 1) * self.lanes

    def _private(self) -> list[Buffer]:
        """What has a fixed size comes first, so that it has a fixed place."""
        self.scores = self._scratch("s", self.tile.pixels * self.room)
        self.tops = self._scratch("tops", self.tile.pixels * self.lanes)
        self.sums = self._scratch("sums", self.tile.pixels)
        fixed = [self.scores, self.tops, self.sums, *self.more_scratch()]
        self.packed = self._scratch("kt", as_extent(self.depth * self.padded))
        self.values = self._scratch("vp", as_extent(self.keys * self.wide))
        return [*fixed, self.packed, self.values]

    # Keys: panels of some vectors, and vectors.

    def _pack_keys(self, head: Expr) -> Stmt:
        group, part, vector = Var("kg"), Var("kp"), Var("kv")
        per, whole = self.tile.blocks, Var("whole")
        panel = self._pack_vector(head, group * per, part, per, None)
        short = self._pack_vector(head, vector, wrap(0), 1, self._left(vector))
        body = seq(
            For(group, 0, whole, For(part, 0, per, panel)),
            For(vector, whole * per, ceil_div(self.keys, self.lanes), short),
        )
        return Let(whole, wrap(self.keys // (per * self.lanes)), body)

    def _left(self, vector: Expr) -> Expr:
        """Real lanes of a vector of keys."""
        return minimum(wrap(self.keys) - vector * self.lanes, self.lanes)

    def _open_scores(
        self, head: Expr, row: Expr, size: int, first: Expr, keys: Extent
    ) -> Stmt:
        """Scores of ``size`` rows against ``keys`` keys from vector ``first`` on."""
        group, vector, whole = Var("group"), Var("vector"), Var("whole")
        per = self.tile.blocks
        panel = self._score_tile(head, row, size, first + group * per, per, first)
        short = self._left(first + vector)
        single = self._score_tile(head, row, size, first + vector, 1, first, short)
        body = seq(
            For(group, 0, whole, panel),
            For(vector, whole * per, ceil_div(keys, self.lanes), single),
        )
        return Let(whole, wrap(keys // (per * self.lanes)), body)

    # Rows.

    def _chunk(self, head: Expr, piece: Expr) -> list[Stmt]:
        lo, count = Var("lo"), Var("count")
        rows = minimum(self.per, self.rows - lo)
        return [Let(lo, piece * self.per, Let(count, rows, self._tiles(head, lo, count)))]

    def _tiles(self, head: Expr, lo: Expr, count: Expr) -> Stmt:
        tiles = Var("tiles")
        body = in_tiles(lo, count, tiles, lambda row, size, _: self._open_tile(head, row, size))
        return Let(tiles, wrap(ceil_div(count, self.tile.pixels)), body)

    def _each_height(self, size: Expr, make: Callable[[int], Stmt]) -> Stmt:
        return by_size(size, range(1, self.tile.pixels + 1), make)

    def _open_tile(self, head: Expr, row: Expr, size: Expr) -> Stmt:
        def scores(height: int) -> Stmt:
            return self._open_scores(head, row, height, wrap(0), self.keys)

        return seq(
            self._open_tops(size), self._each_height(size, scores), self._softmax(size),
            self._each_height(size, lambda height: self._results(head, row, height)),
        )  # fmt: skip

    def _open_tops(self, size: Expr) -> Stmt:
        p, lowest = Var("p"), identity_of("max", self.dtype, self.lanes)
        return For(p, 0, size, self.tops.store(p * self.lanes, lowest))

    def _result_tiles(self, tile: Callable[[int, int], Stmt]) -> Stmt:
        parts: list[Stmt] = []
        at = 0
        for count in even_tiles(self.wide // self.lanes, self.result_blocks):
            parts.append(tile(at, count))
            at += count * self.lanes
        return seq(*parts)


@dataclass(eq=False)
class OpenBlockedAttention(OpenAttention, BlockedAttention):
    """Any number of keys, a block of them at a time; for many rows few heights are enough."""

    def keys_at_once(self) -> int:
        return BlockedAttention.keys_at_once(self)

    @property
    def heights(self) -> list[int]:
        return sorted({h for h in (1, 2, 4, self.tile.pixels) if h <= self.tile.pixels})

    def _tiles(self, head: Expr, lo: Expr, count: Expr) -> Stmt:
        heights = self.heights[::-1]
        return in_some_tiles(lo, count, heights, lambda row, size: self._open_tile(head, row, size))

    def _each_height(self, size: Expr, make: Callable[[int], Stmt]) -> Stmt:
        return by_size(size, self.heights, make)

    def _open_tile(self, head: Expr, row: Expr, size: Expr) -> Stmt:
        block, keys = Var("block"), Var("keys")
        length = self.block_vectors * self.lanes
        first = block * self.block_vectors

        def scores(height: int) -> Stmt:
            return self._open_scores(head, row, height, first, keys)

        work = seq(
            self._each_height(size, scores),
            self._weights(size, ceil_div(keys, self.lanes)),
            self._each_height(size, lambda height: self._add(height, block * length, keys)),
        )
        work = Let(keys, wrap(least(self.keys - block * length, length)), work)
        blocks = For(block, 0, ceil_div(self.keys, length), work)
        return seq(self._open_begin(size), blocks, self._open_end(head, row, size))

    def _open_begin(self, size: Expr) -> Stmt:
        i, p, zero = Var("i"), Var("p"), Const(0.0, self.dtype)
        clear = identity_of("add", self.dtype, self.lanes)
        results = For(i, 0, size * self.wide, self.totals.store(i, clear), step=self.lanes)
        row = seq(self.highs.store(p, Const(FLOOR, self.dtype)), self.sums.store(p, zero))
        return seq(self._open_tops(size), For(p, 0, size, row), results)

    def _open_end(self, head: Expr, row: Expr, size: Expr) -> Stmt:
        p = Var("p")
        inverse = self.sums.store(p, self._inverse(self.sums.load(p)))
        stores = [
            self._store(head, row, p, d, self.totals.load(p * self.wide + d, self.lanes))
            for d in range(0, self.wide, self.lanes)
        ]
        return For(p, 0, size, seq(inverse, *stores))


__all__ = ["OpenAttention", "OpenBlockedAttention", "open_attention_tile"]
