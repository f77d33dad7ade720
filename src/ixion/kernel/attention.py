"""Attention in one kernel: scores, softmax and weighted sum for some rows of queries at a time.

For each head a task takes a chunk of query rows.  It packs the head's keys as ``[depth][keys]``,
then for each register tile of rows computes all scores (with whatever elementwise work the model
does between the product and the softmax: scale, bias, mask), exponentials and their sum in
scratch, and multiplies them with the values; the division by the sum comes last.  The scores of a
few rows are all that is ever in memory.  Operands are read through the transposes and reshapes of
the model, so that heads are strides.

Source of the order of operations: Milakov and Gimelshein, Online normalizer calculation for
softmax, 2018; rows fit the cache here, so the maximum is taken before the exponentials.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ixion.kernel.loops import decode
from ixion.kernel.reduce import identity_of
from ixion.kernel.spatial import readdressed
from ixion.kernel.tile import Accumulators, TileShape, even_tiles, multiply_step
from ixion.te.expr import (
    Compare,
    Expr,
    HorizontalReduce,
    Ramp,
    Select,
    Var,
    binary,
    broadcast,
    intrinsic,
    minimum,
    substitute,
    wrap,
)
from ixion.te.simplify import simplify
from ixion.te.stmt import Buffer, For, If, Kernel, Let, Stmt, seq, unroll

Element = Callable[[Expr, Expr, Expr], Expr]
UNROLL = 4


@dataclass(eq=False)
class AttentionParts:
    """What the nest reads and writes, as expressions of (head, row or key, position).

    ``query(b, m, k)`` is scalar; ``key(b, k, n)`` and ``value(b, n, d)`` are vectors of ``lanes``
    from position n or d on (``count`` real lanes at the end); ``score(b, m, n, raw)`` is the
    softmax's argument given the raw product; ``place(b, m, d)`` the element offset of a result.
    """

    query: Element
    key: Callable[[Expr, Expr, Expr, int | None], Expr]
    value: Callable[[Expr, Expr, Expr, int | None], Expr]
    score: Callable[[Expr, Expr, Expr, Expr, int | None], Expr]
    place: Element


@dataclass(eq=False)
class Attention:
    """Sizes: ``heads`` batched products of (rows, depth) x (depth, keys) x (keys, width)."""

    heads: int
    rows: int
    keys: int
    depth: int
    width: int
    lanes: int
    tile: TileShape
    chunk: int
    dtype: str
    out: Buffer
    parts: AttentionParts
    registers: list[Buffer] = field(default_factory=list)

    def kernel(self, name: str, params: tuple[Buffer, ...]) -> Kernel:
        task, head, piece = Var("task"), Var("head"), Var("piece")
        self.padded = -(-self.keys // self.lanes) * self.lanes
        wide = -(-self.width // self.lanes) * self.lanes
        packed = Buffer("kt", self.dtype, "scratch", self.depth * self.padded, offset=0)
        values_at = 4 * packed.size
        values = Buffer("vp", self.dtype, "scratch", self.keys * wide, offset=values_at)
        scores_at = values_at + 4 * values.size
        size = self.tile.pixels * self.padded
        scores = Buffer("s", self.dtype, "scratch", size, offset=scores_at)
        sums_at = scores_at + 4 * size
        sums = Buffer("sums", self.dtype, "scratch", self.tile.pixels, offset=sums_at)
        self.packed, self.values, self.scores, self.sums, self.wide = (
            packed, values, scores, sums, wide
        )  # fmt: skip
        chunks = -(-self.rows // self.chunk)
        body = seq(self._pack_keys(head), self._pack_values(head), *self._chunk(head, piece))
        scratch = sums_at + 64 * (-(-4 * self.tile.pixels // 64))
        nest = decode(task, [(head, self.heads), (piece, chunks)], body)
        return Kernel(
            name, params, task, self.heads * chunks, nest, scratch=scratch,
            locals=(packed, values, scores, sums, *self.registers),
        )  # fmt: skip

    # Packing.

    def _pack_keys(self, head: Expr) -> Stmt:
        k = Var("k")

        def piece(at: Expr, count: int | None) -> Stmt:
            vector = readdressed(self.parts.key(head, k, at, count))
            return self.packed.store(simplify(k * self.padded + at), vector)

        return For(k, 0, self.depth, self._vectors(self.keys, piece))

    def _pack_values(self, head: Expr) -> Stmt:
        n = Var("n")

        def piece(at: Expr, count: int | None) -> Stmt:
            vector = readdressed(self.parts.value(head, n, at, count))
            return self.values.store(simplify(n * self.wide + at), vector)

        return For(n, 0, self.keys, self._vectors(self.width, piece))

    def _vectors(self, length: int, piece: Callable[[Expr, int | None], Stmt]) -> Stmt:
        """Whole vectors in a loop, then the short rest."""
        i = Var("i")
        full = length // self.lanes * self.lanes
        parts: list[Stmt] = []
        if full == self.lanes:
            parts.append(piece(wrap(0), None))
        elif full:
            parts.append(For(i, 0, full, piece(i, None), step=self.lanes))
        if length > full:
            parts.append(piece(wrap(full), length - full))
        return seq(*parts)

    # Rows.

    def _chunk(self, head: Expr, piece: Expr) -> list[Stmt]:
        whole = self.rows // self.chunk
        rest = self.rows - whole * self.chunk
        same = self._rows(head, piece * self.chunk, self.chunk)
        if rest == 0:
            return [same]
        last = self._rows(head, wrap(whole * self.chunk), rest)
        return [If(piece < whole, same, last) if whole else last]

    def _rows(self, head: Expr, first: Expr, length: int) -> Stmt:
        sizes = even_tiles(length, self.tile.pixels)
        parts: list[Stmt] = []
        at = 0
        for size in sorted(set(sizes), reverse=True):
            run, i = sizes.count(size), Var("tile")
            start = simplify(first + (wrap(at) if run == 1 else i * size + at))
            tile = seq(
                self._scores(head, start, size), self._softmax(size),
                self._results(head, start, size),
            )  # fmt: skip
            parts.append(tile if run == 1 else For(i, 0, run, tile))
            at += run * size
        return seq(*parts)

    def _accumulators(self, shape: TileShape) -> Accumulators:
        acc = Accumulators.make(f"acc{len(self.registers)}", shape, self.lanes, self.dtype)
        self.registers.append(acc.buffer)
        return acc

    def _scores(self, head: Expr, row: Expr, size: int) -> Stmt:
        """All scores of ``size`` rows, through the work before the softmax."""
        block, blocks = Var("block"), self.padded // self.lanes
        per = self.tile.blocks
        parts: list[Stmt] = []
        whole = blocks // per
        # The last vector may be short and must not read masks beyond the keys.
        if self.keys % self.lanes and whole * per == blocks:
            whole -= 1
        if whole:
            acc = self._accumulators(TileShape(size, per))
            step = self._score_tile(acc, head, row, size, block * (per * self.lanes), per)
            parts.append(For(block, 0, whole, step))
        for b in range(whole * per, blocks):
            acc = self._accumulators(TileShape(size, 1))
            parts.append(self._score_tile(acc, head, row, size, wrap(b * self.lanes), 1))
        return seq(*parts)

    def _score_tile(
        self, acc: Accumulators, head: Expr, row: Expr, size: int, key: Expr, blocks: int
    ) -> Stmt:
        k, u = Var("k"), Var("u")
        times = UNROLL if self.depth % UNROLL == 0 else 1
        step = multiply_step(
            acc, range(size), blocks,
            lambda b: self.packed.load(
                simplify(k * self.padded + key) + u * self.padded + b * self.lanes, self.lanes
            ),
            lambda p: readdressed(self.parts.query(head, row + p, k + u)),
        )  # fmt: skip
        stores = []
        for b in range(blocks):
            at = simplify(key + b * self.lanes)
            tail = isinstance_tail(at, self.keys, self.lanes)
            for p in range(size):
                value = self.parts.score(head, row + p, at, acc.get(p, b), tail)
                place = simplify(at + p * self.padded)
                stores.append(self.scores.store(place, readdressed(value)))
        loop = For(k, 0, self.depth, unroll(u, times, step), step=times)
        return seq(acc.clear(), loop, *stores)

    def _softmax(self, size: int) -> Stmt:
        """Exponentials in place, their sums aside."""
        p, base = Var("p"), Var("base")
        top = Buffer(f"top{len(self.registers)}", self.dtype, "register", 1, self.lanes)
        total = Buffer(f"total{len(self.registers)}", self.dtype, "register", 1, self.lanes)
        self.registers += [top, total]
        m = Var("m", self.dtype)

        def highest(at: Expr, count: int | None) -> Stmt:
            x = self._kept(self.scores.load(base + at, self.lanes), count, "max")
            return top.store(0, binary("max", top.load(0), x))

        def exponential(at: Expr, count: int | None) -> Stmt:
            x = self.scores.load(base + at, self.lanes)
            e = Var("e", self.dtype, self.lanes)
            value = self._kept(intrinsic("exp", binary("sub", x, m)), count, "add")
            add = total.store(0, binary("add", total.load(0), e))
            return Let(e, value, seq(add, self.scores.store(base + at, e)))

        body = seq(
            top.store(0, identity_of("max", self.dtype, self.lanes)),
            self._vectors(self.keys, highest),
            Let(m, HorizontalReduce("max", top.load(0)), seq(
                total.store(0, identity_of("add", self.dtype, self.lanes)),
                self._vectors(self.keys, exponential),
                self.sums.store(p, HorizontalReduce("add", total.load(0))),
            )),
        )  # fmt: skip
        return For(p, 0, size, Let(base, p * self.padded, body))

    def _kept(self, value: Expr, count: int | None, kind: str) -> Expr:
        if count is None:
            return value
        inside = Compare("lt", Ramp(wrap(0), self.lanes), broadcast(wrap(count), self.lanes))
        return Select(inside, value, identity_of(kind, value.dtype, self.lanes))

    def _results(self, head: Expr, row: Expr, size: int) -> Stmt:
        """Scores times values, divided by the sums."""
        blocks, per = self.wide // self.lanes, self.tile.blocks
        parts: list[Stmt] = []
        b = 0
        while b < blocks:
            count = min(per, blocks - b)
            parts.append(self._result_tile(head, row, size, b * self.lanes, count))
            b += count
        return seq(*parts)

    def _result_tile(self, head: Expr, row: Expr, size: int, at: int, blocks: int) -> Stmt:
        acc = self._accumulators(TileShape(size, blocks))
        n, u = Var("n"), Var("u")
        times = UNROLL if self.keys % UNROLL == 0 else 1
        step = multiply_step(
            acc, range(size), blocks,
            lambda b: self.values.load(
                (n + u) * self.wide + (at + b * self.lanes), self.lanes
            ),
            lambda p: self.scores.load(n + u + p * self.padded),
        )  # fmt: skip
        stores = []
        for p in range(size):
            for b in range(blocks):
                d = at + b * self.lanes
                left = self.width - d
                total = broadcast(self.sums.load(p), self.lanes)
                place = simplify(self.parts.place(head, row + p, wrap(d)))
                count = wrap(left) if left < self.lanes else None
                stores.append(self.out.store(place, binary("div", acc.get(p, b), total), count))
        loop = For(n, 0, self.keys, unroll(u, times, step), step=times)
        return seq(acc.clear(), loop, *stores)


def isinstance_tail(at: Expr, length: int, lanes: int) -> int | None:
    """Real lanes of the vector at a constant position, None where all are."""
    from ixion.te.simplify import const_value

    start = const_value(at)
    if start is None or start + lanes <= length:
        return None
    return length - start


__all__ = ["Attention", "AttentionParts", "minimum", "substitute"]
