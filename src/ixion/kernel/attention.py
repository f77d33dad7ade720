"""Attention in one kernel: scores, softmax and weighted sum for some rows of queries at a time.

For each head a task takes a chunk of query rows.  It packs the head's keys in panels
``[group][depth][vectors * lanes]`` (transposing them in registers where they lie row by row), then
for each register tile of rows computes all scores with whatever elementwise work the model does
between the product and the softmax (scale, bias, mask), exponentials and their sum in scratch, and
multiplies them with the values; the division by the sum comes last.  The scores of a few rows are
all that is ever in memory.  Operands are read through the transposes and reshapes of the model, so
that heads are strides.

Source of the order of operations: Milakov and Gimelshein, Online normalizer calculation for
softmax, 2018; scores of a few hundred keys fit the first cache, so the maximum is taken before the
exponentials. attention_blocks.py takes longer rows a part at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ixion.base.target import Target
from ixion.kernel.loops import decode
from ixion.kernel.reduce import identity_of
from ixion.kernel.sizes import ceil_div
from ixion.kernel.softmax import weight
from ixion.kernel.spatial import readdressed
from ixion.kernel.tile import (
    Accumulators,
    TileShape,
    even_tiles,
    multiply_step,
    vector_registers,
)
from ixion.te.expr import (
    Compare,
    Const,
    Expr,
    HorizontalReduce,
    Ramp,
    Select,
    Var,
    binary,
    broadcast,
    compare,
    minimum,
    transposed,
    wrap,
)
from ixion.te.simplify import const_value, simplify
from ixion.te.stmt import Buffer, For, If, Kernel, Let, Stmt, seq, unroll
from ixion.te.tensor import Extent

Element = Callable[[Expr, Expr, Expr], Expr]
Vector = Callable[[Expr, Expr, Expr, "Extent | None"], Expr]
UNROLL = 4


@dataclass(eq=False)
class AttentionParts:
    """What the nest reads and writes, as expressions of (head, row or key, position).

    ``query(b, m, k)`` is scalar; ``key(b, k, n)`` and ``value(b, n, d)`` are vectors of ``lanes``
    from position n or d on (``count`` real lanes at the end); ``score(b, m, n, raw)`` is the
    softmax's argument given the raw product; ``place(b, m, d)`` the element offset of a result.
    ``key_row(b, n, k)`` is a vector along the depth, None where that is not contiguous.
    """

    query: Element
    key: Vector
    value: Vector
    score: Callable[[Expr, Expr, Expr, Expr, Extent | None], Expr]
    place: Element
    key_row: Vector | None = None


def attention_tile(
    target: Target, lanes: int, rows: int, keys: int, depth: int, width: int
) -> TileShape:
    """Rows of a tile and vectors of keys per panel that take the least time."""
    registers = vector_registers(target, lanes)
    found: list[tuple[float, TileShape]] = []
    for b in range(1, min(-(-keys // lanes), 4) + 1):
        most = (registers - b - 1) // b
        for limit in range(max(1, most - 3), most + 1):
            sizes = even_tiles(rows, limit)
            cost = tile_time(registers, sizes, b, lanes, keys, depth, width)
            cost *= 1 + 0.02 * (len(set(sizes)) - 1) + 0.001 * sizes[0] * b  # less code
            found.append((cost, TileShape(sizes[0], b)))
    return min(found, key=lambda f: f[0])[1]


def tile_time(
    registers: int, sizes: Sequence[int], b: int, lanes: int, keys: int, depth: int, width: int
) -> float:
    """Relative time of tiles of these heights with ``b`` vectors of keys per panel."""
    blocks, wide = -(-keys // lanes), -(-width // lanes)
    cost = 0.0
    for p in sizes:
        cost += depth * sum(_steps(p, n) for n in panels(blocks, b))
        cost += keys * sum(_steps(p, n) for n in panels(wide, result_blocks(registers, p)))
    return cost


def _steps(pixels: int, blocks: int) -> float:
    return max(pixels * blocks, 6) + 0.3 * blocks + 0.08 * pixels


def panels(blocks: int, most: int) -> list[int]:
    """``blocks`` vectors in panels of ``most``, the last with what is left."""
    whole, rest = divmod(blocks, most)
    return [most] * whole + ([rest] if rest else [])


def result_blocks(registers: int, pixels: int) -> int:
    """Vectors of results per tile of ``pixels`` rows."""
    return max(1, (registers - 1) // (pixels + 1))


@dataclass(eq=False)
class Attention:
    """Sizes: ``heads`` batched products of (rows, depth) x (depth, keys) x (keys, width)."""

    heads: Extent
    rows: Extent
    keys: Extent
    depth: int
    width: int
    lanes: int
    tile: TileShape
    chunk: Extent
    dtype: str
    out: Buffer
    parts: AttentionParts
    result_blocks: int
    # Whether a row whose weights are not numbers (all its keys are masked) gives 0.
    guarded: bool = field(default=False, kw_only=True)
    registers: list[Buffer] = field(default_factory=list)

    def kernel(self, name: str, params: tuple[Buffer, ...]) -> Kernel:
        task, head, piece = Var("task"), Var("head"), Var("piece")
        self.padded = ceil_div(self.keys, self.lanes) * self.lanes
        self.wide = -(-self.width // self.lanes) * self.lanes
        self.scratch: Extent = 0
        self.room = self.keys_at_once()
        local = self._private()
        body = seq(self._pack_keys(head), self._pack_values(head), *self._chunk(head, piece))
        nest = decode(task, [(head, self.heads), (piece, self._pieces())], body)
        tasks = self.heads * ceil_div(self.rows, self.chunk)
        return Kernel(
            name, params, task, tasks, nest, scratch=self.scratch,
            locals=(*local, *self.registers),
        )  # fmt: skip

    def _pieces(self) -> Extent:
        """How many chunks the rows of a head make."""
        return ceil_div(self.rows, self.chunk)

    def _private(self) -> list[Buffer]:
        """Memory of a task."""
        self.packed = self._scratch("kt", self.depth * self.padded)
        self.values = self._scratch("vp", self.keys * self.wide)
        self.scores = self._scratch("s", self.tile.pixels * self.room)
        self.tops = self._scratch("tops", self.tile.pixels * self.lanes)
        self.sums = self._scratch("sums", self.tile.pixels)
        return [self.packed, self.values, self.scores, self.tops, self.sums, *self.more_scratch()]

    def keys_at_once(self) -> int:
        """Scores of a row that are in scratch together, a multiple of the lanes."""
        assert isinstance(self.padded, int)
        return self.padded

    def more_scratch(self) -> list[Buffer]:
        return []

    def _scratch(self, name: str, size: Extent) -> Buffer:
        buffer = Buffer(name, self.dtype, "scratch", size, offset=self.scratch)
        self.scratch += ceil_div(4 * size, 64) * 64
        return buffer

    # Packing.

    def _panels(self) -> list[tuple[int, int]]:
        """First vector and number of vectors of the panels of keys that differ: whole, last."""
        assert isinstance(self.padded, int)
        assert isinstance(self.keys, int)
        sizes = panels(self.padded // self.lanes, self.tile.blocks)
        whole = sizes.count(self.tile.blocks)
        # A short last vector must not read masks beyond the keys, so its panel stands alone.
        if self.keys % self.lanes and whole == len(sizes):
            whole -= 1
        start = whole * self.tile.blocks
        return [(0, whole), *((start, n) for n in sizes[whole:])]

    def _packed_at(self, vector: Expr, blocks: int, k: Expr) -> Expr:
        """Where depth ``k`` of the panel of ``blocks`` vectors from ``vector`` on is packed."""
        return vector * (self.depth * self.lanes) + k * (blocks * self.lanes)

    def _pack_keys(self, head: Expr) -> Stmt:
        """Every vector of keys goes to its place in its panel."""
        assert isinstance(self.keys, int)
        group, part = Var("kg"), Var("kp")
        (_, whole), *rest = self._panels()
        per = self.tile.blocks
        parts: list[Stmt] = []
        if whole:
            body = self._pack_vector(head, group * per, part, per, None)
            parts.append(For(group, 0, whole, For(part, 0, per, body)))
        for start, count in rest:
            full = self.keys // self.lanes - start
            if min(full, count) > 0:
                body = self._pack_vector(head, wrap(start), part, count, None)
                parts.append(For(part, 0, min(full, count), body))
            if full < count:
                tail = self.keys % self.lanes
                parts.append(self._pack_vector(head, wrap(start), wrap(full), count, tail))
        return seq(*parts)

    def _pack_vector(
        self, head: Expr, panel: Expr, part: Expr, blocks: int, count: Extent | None
    ) -> Stmt:
        """Vector ``part`` of a panel, for every depth."""
        k = Var("k")
        key = simplify((panel + part) * self.lanes)
        shift = part * self.lanes
        if self.parts.key_row is None:
            vector = readdressed(self.parts.key(head, k, key, count))
            at = simplify(self._packed_at(panel, blocks, k) + shift)
            return For(k, 0, self.depth, self.packed.store(at, vector))
        full = self.depth // self.lanes * self.lanes
        pieces: list[Stmt] = []
        if full:
            square = self._square(head, panel, shift, blocks, key, k, count, self.lanes)
            pieces.append(For(k, 0, full, square, step=self.lanes))
        if self.depth > full:
            rest = self.depth - full
            pieces.append(self._square(head, panel, shift, blocks, key, wrap(full), count, rest))
        return seq(*pieces)

    def _square(
        self, head: Expr, panel: Expr, shift: Expr, blocks: int, key: Expr, k: Expr,
        count: Extent | None, depth: int,
    ) -> Stmt:  # fmt: skip
        """``lanes`` keys times ``depth`` (at most ``lanes``) elements of each, transposed."""
        limit = depth if depth < self.lanes else None
        rows = [self._key_row(head, key, i, k, limit, count) for i in range(self.lanes)]
        stores = []
        for i, column in enumerate(transposed(rows)[:depth]):
            at = simplify(self._packed_at(panel, blocks, k + i) + shift)
            stores.append(self.packed.store(at, column))
        return seq(*stores)

    def _key_row(
        self, head: Expr, key: Expr, i: int, k: Expr, limit: int | None, count: Extent | None
    ) -> Expr:
        """Elements from ``k`` on of the key ``i`` after ``key``, one of ``count``."""
        assert self.parts.key_row is not None
        number = key + i
        if isinstance(count, Expr):  # any key will do for one that does not exist
            number = minimum(number, wrap(self.keys) - 1)
        elif count is not None and i >= count:
            return Const(0, self.dtype, self.lanes)
        return readdressed(self.parts.key_row(head, number, k, limit))

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
        assert isinstance(self.rows, int)
        assert isinstance(self.chunk, int)
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
            tile = self._row_tile(head, start, size)
            parts.append(tile if run == 1 else For(i, 0, run, tile))
            at += run * size
        return seq(*parts)

    def _row_tile(self, head: Expr, row: Expr, size: int) -> Stmt:
        return seq(
            self._clear_tops(size), self._scores(head, row, size, wrap(0), self._panels()),
            self._softmax(size), self._results(head, row, size),
        )  # fmt: skip

    def _clear_tops(self, size: int) -> Stmt:
        lowest = identity_of("max", self.dtype, self.lanes)
        return seq(*(self.tops.store(p * self.lanes, lowest) for p in range(size)))

    def _accumulators(self, shape: TileShape) -> Accumulators:
        acc = Accumulators.make(f"acc{len(self.registers)}", shape, self.lanes, self.dtype)
        self.registers.append(acc.buffer)
        return acc

    def _steps(self, length: Extent, step: Callable[[Expr, Expr], Stmt]) -> Stmt:
        """``step(k, u)`` for every ``k + u`` below ``length``, four at a time."""
        k, u = Var("k"), Var("u")
        if not isinstance(length, int):
            open_full = Var("full")
            fours = For(k, 0, open_full, unroll(u, UNROLL, step(k, u)), step=UNROLL)
            rest = For(k, open_full, length, step(k, wrap(0)))
            return Let(open_full, length // UNROLL * UNROLL, seq(fours, rest))
        full = length // UNROLL * UNROLL
        parts: list[Stmt] = []
        if full:
            parts.append(For(k, 0, full, unroll(u, UNROLL, step(k, u)), step=UNROLL))
        if length > full:
            parts.append(unroll(u, length - full, step(wrap(full), u)))
        return seq(*parts)

    def _scores(
        self, head: Expr, row: Expr, size: int, first: Expr, panels: list[tuple[int, int]]
    ) -> Stmt:
        """Scores of ``size`` rows, through the work before the softmax, and their maxima.

        ``panels`` as from ``_panels``, the whole ones from vector ``first``, where scratch begins.
        """
        group = Var("group")
        (_, whole), *rest = panels
        parts: list[Stmt] = []
        per = self.tile.blocks
        if whole:
            tile = self._score_tile(head, row, size, first + group * per, per, first)
            parts.append(For(group, 0, whole, tile))
        parts += [self._score_tile(head, row, size, wrap(at), n, first) for at, n in rest]
        return seq(*parts)

    def _score_tile(
        self, head: Expr, row: Expr, size: int, vector: Expr, blocks: int, first: Expr,
        short: Expr | None = None,
    ) -> Stmt:  # fmt: skip
        """Scores against ``blocks`` vectors of keys; of the last one ``short`` are real."""
        acc = self._accumulators(TileShape(size, blocks))

        def step(k: Expr, u: Expr) -> Stmt:
            at = simplify(self._packed_at(vector, blocks, k)) + u * (blocks * self.lanes)
            return multiply_step(
                acc, range(size), blocks,
                lambda b: self.packed.load(at + b * self.lanes, self.lanes),
                lambda p: readdressed(self.parts.query(head, row + p, k + u)),
            )  # fmt: skip

        stores = [
            self._keep_scores(head, row + p, p, vector, blocks, acc, first, short)
            for p in range(size)
        ]
        return seq(acc.clear(), self._steps(self.depth, step), *stores)

    def _keep_scores(
        self, head: Expr, row: Expr, p: int, vector: Expr, blocks: int, acc: Accumulators,
        first: Expr, short: Expr | None,
    ) -> Stmt:  # fmt: skip
        """One row's scores of a panel; lanes past the keys become -inf and so weigh nothing."""
        top = self.tops.load(p * self.lanes, self.lanes)
        stores: list[Stmt] = []
        for b in range(blocks):
            at = simplify((vector + b) * self.lanes)
            tail = short if short is not None else tail_count(at, self.keys, self.lanes)
            value = readdressed(self.parts.score(head, row, at, acc.get(p, b), tail))
            if tail is not None:
                value = self._kept(value, tail)
            score = Var(f"x{b}", self.dtype, self.lanes)
            # A NaN need not reach the maximum: its exponential makes the row NaN all the same.
            top = Select(compare("gt", score, top), score, top)
            place = simplify(at - first * self.lanes + p * self.room)
            stores.append(self.scores.store(place, score))
            stores.append(Let(score, value, seq()))
        body: Stmt = seq(*stores[::2], self.tops.store(p * self.lanes, top))
        for let in reversed(stores[1::2]):
            assert isinstance(let, Let)
            body = Let(let.var, let.value, body)
        return body

    def _softmax(self, size: Extent) -> Stmt:
        """Exponentials in place, one over their sums aside."""
        p, m = Var("p"), Var("m", self.dtype)
        body = self._exponentials(
            p, m, ceil_div(self.keys, self.lanes),
            lambda total: self.sums.store(p, self._inverse(total)),
        )  # fmt: skip
        return For(p, 0, size, Let(m, self._highest(p), body))

    def _inverse(self, total: Expr) -> Expr:
        """What a row's results are multiplied with; 0 where they are to be 0."""
        value = binary("div", Const(1.0, self.dtype), total)
        if not self.guarded:
            return value
        zero = Const(0.0, self.dtype)
        return Select(compare("gt", total, zero), value, zero)

    def _highest(self, p: Expr) -> Expr:
        return HorizontalReduce("max", self.tops.load(p * self.lanes, self.lanes))

    def _exponentials(
        self, p: Expr, m: Expr, vectors: Extent, finish: Callable[[Expr], Stmt]
    ) -> Stmt:
        """``e^(x - m)`` in place of the first vectors of row ``p``, then ``finish(their sum)``."""
        base, i, u = Var("base"), Var("i"), Var("u")
        at_once = min(4, vectors) if isinstance(vectors, int) else 4
        total = Buffer(f"total{len(self.registers)}", self.dtype, "register", at_once, self.lanes)
        self.registers.append(total)

        def exponential(at: Expr, number: Expr) -> Stmt:
            x = self.scores.load(base + at, self.lanes)
            d, e = Var("d", self.dtype, self.lanes), Var("e", self.dtype, self.lanes)
            add = total.store(number, binary("add", total.load(number), e))
            use = seq(add, self.scores.store(base + at, e))
            return Let(d, binary("sub", x, m), Let(e, weight(d), use))

        full = vectors // at_once * at_once
        step = unroll(u, at_once, exponential(i + u * self.lanes, u))
        loop = For(i, 0, full * self.lanes, step, step=at_once * self.lanes)
        if isinstance(vectors, int) and isinstance(full, int):
            singles = range(vectors - full)
            rest = [exponential(wrap((full + j) * self.lanes), wrap(j)) for j in singles]
        else:
            one, end = exponential(i, wrap(0)), vectors * self.lanes
            rest = [For(i, full * self.lanes, end, one, step=self.lanes)]
        whole = total.load(0)
        for j in range(1, at_once):
            whole = binary("add", whole, total.load(j))
        zero = identity_of("add", self.dtype, self.lanes)
        clear = [total.store(j, zero) for j in range(at_once)]
        body = seq(*clear, loop, *rest, finish(HorizontalReduce("add", whole)))
        return Let(base, p * self.room, body)

    def _kept(self, value: Expr, count: Extent) -> Expr:
        inside = Compare("lt", Ramp(wrap(0), self.lanes), broadcast(wrap(count), self.lanes))
        return Select(inside, value, identity_of("max", value.dtype, self.lanes))

    def _results(self, head: Expr, row: Expr, size: int) -> Stmt:
        """Scores times values over the sums."""

        def tile(at: int, blocks: int) -> Stmt:
            acc = self._accumulators(TileShape(size, blocks))
            sums = self._weighted(acc, size, at, blocks, wrap(0), self.keys)
            stores = [
                self._store(head, row, p, at + b * self.lanes, acc.get(p, b))
                for p in range(size)
                for b in range(blocks)
            ]
            return seq(acc.clear(), sums, *stores)

        return self._result_tiles(tile)

    def _result_tiles(self, tile: Callable[[int, int], Stmt]) -> Stmt:
        """``tile(position, vectors)`` over the width of the values."""
        parts: list[Stmt] = []
        at = 0
        for count in panels(self.wide // self.lanes, self.result_blocks):
            parts.append(tile(at, count))
            at += count * self.lanes
        return seq(*parts)

    def _weighted(
        self, acc: Accumulators, size: int, at: int, blocks: int, first: Expr, keys: Extent
    ) -> Stmt:
        """Adds the scores in scratch times ``keys`` values from key ``first`` on."""

        def step(n: Expr, u: Expr) -> Stmt:
            key = simplify((first + n) * self.wide + at) + u * self.wide
            return multiply_step(
                acc, range(size), blocks,
                lambda b: self.values.load(key + b * self.lanes, self.lanes),
                lambda p: self.scores.load(n + u + p * self.room),
            )  # fmt: skip

        return self._steps(keys, step)

    def _store(self, head: Expr, row: Expr, p: int | Expr, d: int, value: Expr) -> Stmt:
        """A vector of results, divided by its row's sum."""
        left = self.width - d
        scale = broadcast(self.sums.load(p), self.lanes)
        place = simplify(self.parts.place(head, row + p, wrap(d)))
        count = wrap(left) if left < self.lanes else None
        result = binary("mul", value, scale)
        if self.guarded:
            zero = Const(0.0, self.dtype, self.lanes)
            result = Select(compare("gt", scale, zero), result, zero)
        return self.out.store(place, result, count)


def tail_count(at: Expr, length: Extent, lanes: int) -> int | None:
    """Real lanes of the vector at a constant position, None where all are."""
    start = const_value(at)
    if start is None or not isinstance(length, int) or start + lanes <= length:
        return None
    return length - start


__all__ = ["Attention", "AttentionParts", "attention_tile", "result_blocks"]
