"""Winograd convolution on NCHWc: fast algorithms along rows and columns around matrix products.

For a chunk of output tiles a task transforms the input of all channels into private scratch, then
for each group of output blocks multiplies at every point and transforms the products back through
the epilogue into the output.  Scratch is chosen to stay in the second-level cache.  Where there
are few chunks, tasks share a chunk by output blocks and each transforms the input for itself.

When weights outweigh the data (deep layers on small maps) the same three phases are kernels of
their own, the products split by output blocks, so that weights are read once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ixion.kernel.access import Access, Operand, Vectorizer, swap
from ixion.kernel.ahead import Share
from ixion.kernel.loops import decode
from ixion.kernel.open_tiles import RowCut
from ixion.kernel.scalars import Scalars, pieces, times
from ixion.kernel.sizes import as_extent, ceil_div, divides, fixed, product, top
from ixion.kernel.spatial import laborious, readdressed
from ixion.kernel.tile import Accumulators, TileShape, even_tiles, multiply_step
from ixion.kernel.winograd_math import Axis, Matrix, linear_map
from ixion.te.expr import Expr, Var, logical_and, maximum, minimum, select, substitute, wrap
from ixion.te.simplify import simplify
from ixion.te.stmt import Buffer, For, If, Kernel, Let, Stmt, seq, unroll
from ixion.te.tensor import Extent, Tensor

UNROLL = 4


@dataclass(frozen=True, eq=False)
class Image:
    """Channels and extents of one side of the layer."""

    channels: int
    height: Extent
    width: Extent


@dataclass(eq=False)
class Winograd:
    """One layer, cut into tiles of ``rows.m x cols.m`` outputs, ``chunk`` tiles at a time.

    Where it is known at run time only how many tiles there are, so is the chunk; ``room`` is how
    many it may have in private memory, ``fewest`` how many are multiplied at a time in small
    pictures.
    """

    rows: Axis
    cols: Axis
    batch: Extent
    data: Image
    result: Image
    pad_top: int
    pad_left: int
    block: int
    tile: TileShape
    chunk: Extent
    splits: Extent
    source: Buffer
    weights: Buffer
    out: Tensor
    place: Operand
    access: Access
    anchor: Tensor
    room: int = 0
    fewest: int = 1
    acc: Accumulators = field(init=False)

    def __post_init__(self) -> None:
        self.points = self.rows.points * self.cols.points
        self.tiles_high = ceil_div(self.result.height, self.rows.m)
        self.tiles_wide = ceil_div(self.result.width, self.cols.m)
        self.tiles = product([self.batch, self.tiles_high, self.tiles_wide])
        self.is_open = not isinstance(self.tiles, int)
        if not self.room:
            self.room = fixed(self.chunk)
        # Tiles of a block of channels in transformed data: odd, so that the points of one tile, as
        # many blocks apart, do not all fall into the same sets of a cache.
        self.apart = self.room | 1 if self.is_open else self.room
        self.in_blocks = -(-self.data.channels // self.block)
        self.out_blocks = -(-self.result.channels // self.block)
        self.groups = -(-self.out_blocks // self.tile.blocks)
        dtype = self.source.dtype
        self.acc = Accumulators.make("acc", self.tile, self.block, dtype)
        self._prepare_epilogue()
        lines = self.rows.points * max(self.cols.side, self.cols.points)
        self.line_at = 0 if self.rows.plain or self.cols.plain else lines * self.block
        self.line_size = self.line_at
        if self.laborious:
            self.line_size += max(self.rows.m, self.cols.m) * self.block

    # Sizes in elements.

    def v_size(self, tiles: Extent) -> Extent:
        return tiles * (self.points * self.in_blocks * self.block)

    def m_size(self, tiles: Extent, blocks: int) -> Extent:
        return tiles * (self.points * blocks * self.block)

    def temps(self) -> list[Extent]:
        """Bytes of transformed data and of products where the phases are kernels of their own."""
        row = self._row()
        return [as_extent(n * 4) for n in (self.v_size(row), self.m_size(row, self.out_blocks))]

    def _row(self) -> Extent:
        """Tiles of a block of channels in shared memory; of unknown ones one more, and odd."""
        return self.tiles if isinstance(self.tiles, int) else self.tiles + 1 + self.tiles % 2

    def _half(self, offset: Extent) -> Buffer:
        """Room for a tile that has been transformed along one axis."""
        return Buffer("half", self.source.dtype, "scratch", self.line_size, offset=offset)

    # Whole kernels.

    def fused(self, name: str, params: tuple[Buffer, ...]) -> Kernel:
        """All phases in one kernel; a task is a chunk of tiles and a part of the output blocks."""
        task, og, piece, part = Var("task"), Var("og"), Var("piece"), Var("part")
        dtype, scalars = self.source.dtype, Scalars()
        v_size, m_size = self.v_size(self.apart), self.m_size(self.apart, self.tile.blocks)
        v = Buffer("v", dtype, "scratch", v_size, offset=0)
        mm = Buffer("m", dtype, "scratch", m_size, offset=4 * v_size)
        half = self._half(4 * (v_size + m_size))
        chunk = scalars.named("chunk", self.chunk)
        first = piece * chunk
        real = minimum(wrap(self.tiles) - first, chunk)
        count: Expr = Var("count") if self.is_open else real
        point = Var("point")
        following = (minimum(point + 1, self.points - 1), og)
        rows = count if self.is_open else chunk
        panel = self._products(v, mm, (point, og), following, self.apart, wrap(0), rows)
        multiply = For(point, 0, self.points, panel)
        back = self._output(
            mm, half, first, count, og * self.tile.blocks, self._blocks_of(og), self.apart, wrap(0)
        )
        share = scalars.named("share", pieces(self.groups, self.splits))
        end: Expr = minimum((part + 1) * share, self.groups)
        body = seq(
            self._input(v, half, first, count, wrap(0), wrap(self.in_blocks), self.apart),
            For(og, part * share, end, seq(multiply, back)),
        )
        body = Let(count, real, body) if isinstance(count, Var) else body
        chunks, splits = pieces(self.tiles, self.chunk), scalars.named("splits", self.splits)
        body = decode(task, [(piece, chunks), (part, splits)], body)
        return Kernel(
            name, params, task, times([chunks, self.splits]), body, tuple(scalars.values),
            4 * (v_size + m_size + self.line_size), self._locals(self.acc.buffer, v, mm, half),
            tuple(scalars.values.values()),
        )  # fmt: skip

    def _locals(self, *buffers: Buffer) -> tuple[Buffer, ...]:
        return tuple(b for b in buffers if b.size)

    def phases(
        self, name: str, v: Buffer, mm: Buffer, params: tuple[Buffer, ...]
    ) -> list[tuple[Kernel, tuple[Buffer, ...]]]:
        """Input transform, products and output transform as kernels over shared memory."""
        t1, t2, t3, piece = Var("task"), Var("task"), Var("task"), Var("piece")
        ib, og, point, ob = Var("ib"), Var("og"), Var("point"), Var("ob")
        half, scalars = self._half(0), Scalars()
        chunk, row = scalars.named("chunk", self.chunk), scalars.named("apart", self._row())
        chunks = pieces(self.tiles, self.chunk)
        start = piece * chunk
        count = minimum(wrap(self.tiles) - start, chunk)
        first = self._input(v, half, start, count, ib, ib + 1, row, start)
        panel = minimum(point * self.groups + og + 1, self.points * self.groups - 1)
        tiles = scalars.named("tiles", self.tiles)
        second = self._products(
            v, mm, (point, og), (wrap(0), panel), row, og * self.tile.blocks, tiles
        )
        third = self._output(mm, half, start, count, ob, wrap(1), row, ob, start)
        ends = tuple(b for b in params if b not in (self.source, self.weights))
        ins = [(ib, self.in_blocks), (piece, scalars.named("chunks", chunks))]
        mids = [(point, self.points), (og, self.groups)]
        outs = [(ob, self.out_blocks), *ins[1:]]
        room, own = 4 * self.line_size, self._locals(half)
        given, values = tuple(scalars.values), tuple(scalars.values.values())
        return [
            (Kernel(f"{name}_in", (v, self.source), t1, self.in_blocks * chunks,
                    decode(t1, ins, first), given, room, own, values), (v, self.source)),
            (Kernel(f"{name}_mm", (mm, v, self.weights), t2, self.points * self.groups,
                    decode(t2, mids, second), given, 0, (self.acc.buffer,), values),
             (mm, v, self.weights)),
            (Kernel(f"{name}_out", (*ends, mm), t3, self.out_blocks * chunks,
                    decode(t3, outs, third), given, room, own, values), (*ends, mm)),
        ]  # fmt: skip

    def _blocks_of(self, og: Expr) -> Expr:
        if self.out_blocks % self.tile.blocks == 0:
            return wrap(self.tile.blocks)
        return minimum(wrap(self.out_blocks) - og * self.tile.blocks, self.tile.blocks)

    def _per_tile(
        self, first: Expr, count: Expr, i: Var, body: Callable[[Var, Var, Var], Stmt]
    ) -> Stmt:
        """``body(image, row of tiles, column of tiles)`` of ``count`` tiles from ``first`` on.

        ``i`` counts them.
        """
        t, n, th, tw = Var("t"), Var("n"), Var("th"), Var("tw")
        if self.is_open:
            return self._along_rows(first, count, i, body(n, th, tw), (n, th, tw))
        per = self.tiles_high * self.tiles_wide
        inner: Stmt = Let(tw, t % self.tiles_wide, body(n, th, tw))
        one = Let(t, first + i, Let(n, t // per, Let(th, t % per // self.tiles_wide, inner)))
        return For(i, 0, count, one)

    def _along_rows(
        self, first: Expr, count: Expr, i: Var, body: Stmt, at: tuple[Var, Var, Var]
    ) -> Stmt:
        """Row by row of tiles: a division takes longer than all else that a tile's place needs."""
        n, th, tw = at
        line, start = Var("line"), Var("start")
        wide, high = wrap(self.tiles_wide), wrap(self.tiles_high)
        cells = For(
            tw, maximum(-start, 0), minimum(wide, count - start), Let(i, start + tw, body)
        )
        inner = Let(start, line * wide - first, Let(n, line // high, Let(th, line % high, cells)))
        return For(line, first // wide, (first + count + (wide - 1)) // wide, inner)

    # Phase 1.

    def _input(
        self,
        v: Buffer,
        half: Buffer,
        first: Expr,
        count: Expr,
        b0: Expr,
        b1: Expr,
        stride: Extent,
        base: Expr | int = 0,
    ) -> Stmt:
        """Transforms input blocks [b0, b1) of ``count`` tiles from tile ``first`` on."""
        ib, i, row, col, at = Var("ib"), Var("i"), Var("row"), Var("col"), Var("at")
        height, width = self.data.height, self.data.width
        inside = logical_and(
            logical_and(row >= 0, row + self.rows.side <= height),
            logical_and(col >= 0, col + self.cols.side <= width),
        )
        target = (ib * stride + base + i) * self.block

        def one(n: Var, th: Var, tw: Var) -> Stmt:
            plane = (n * self.in_blocks + ib) * (height * width * self.block)
            origin = plane + (row * width + col) * self.block
            whole = self._transform_in(v, half, target, stride, lambda r, c: self._cell(at, r, c))
            edge = self._transform_in(
                v, half, target, stride, lambda r, c: self._edge_cell(at, row, col, r, c)
            )
            work = Let(at, origin, If(inside, whole, edge))
            down, across = th * self.rows.hop - self.pad_top, tw * self.cols.hop - self.pad_left
            return Let(row, down, Let(col, across, work))

        return For(ib, b0, b1, self._per_tile(first, count, i, one))

    def _transform_in(
        self, v: Buffer, half: Buffer, target: Expr, stride: Extent, cell: Callable[..., Expr]
    ) -> Stmt:
        """Columns of the tile first, then rows; an axis that passes through is left out."""
        gap = self.in_blocks * stride * self.block
        rows, cols = self.rows, self.cols

        def store(p: int | Expr, q: int) -> Callable[[Expr], Stmt]:
            at = target + (wrap(p) * cols.points + q) * gap
            return lambda value: v.store(at, value)

        if rows.plain:
            line = [cell(0, c) for c in range(cols.side)]
            return self._mapped(cols.b, line, [store(0, q) for q in range(cols.points)])
        if cols.plain:
            line = [cell(r, 0) for r in range(rows.side)]
            return self._mapped(rows.b, line, [store(p, 0) for p in range(rows.points)])
        c, p = Var("c"), Var("p")
        down = self._mapped(
            rows.b, [cell(r, c) for r in range(rows.side)],
            [self._into(half, (c + i * cols.side) * self.block) for i in range(rows.points)],
        )  # fmt: skip
        kept = [half.load((p * cols.side + j) * self.block, self.block) for j in range(cols.side)]
        across = self._mapped(cols.b, kept, [store(p, q) for q in range(cols.points)])
        return seq(For(c, 0, cols.side, down), For(p, 0, rows.points, across))

    def _into(self, buffer: Buffer, at: Expr) -> Callable[[Expr], Stmt]:
        return lambda value: buffer.store(at, value)

    def _cell(self, at: Var, r: int | Expr, c: int | Expr) -> Expr:
        return self.source.load(at + (wrap(r) * self.data.width + c) * self.block, self.block)

    def _edge_cell(self, at: Var, row: Var, col: Var, r: int | Expr, c: int | Expr) -> Expr:
        down, across = row + r, col + c
        inside = logical_and(
            logical_and(down >= 0, down < self.data.height),
            logical_and(across >= 0, across < self.data.width),
        )
        count = select(inside, wrap(self.block), wrap(0))
        index = at + (wrap(r) * self.data.width + c) * self.block
        return self.source.load(index, self.block, count=count)

    def _mapped(
        self, matrix: Matrix, line: Sequence[Expr], sinks: Sequence[Callable[[Expr], Stmt]]
    ) -> Stmt:
        """``matrix @ line``, one result for each sink."""
        lets: list[tuple[Var, Expr]] = []

        def name(value: Expr) -> Expr:
            lets.append((Var(f"e{len(lets)}", self.source.dtype, self.block), value))
            return lets[-1][0]

        results = linear_map(matrix, [name(x) for x in line], name)
        body: Stmt = seq(*(sink(x) for sink, x in zip(sinks, results, strict=True)))
        for var, value in reversed(lets):
            body = Let(var, value, body)
        return body

    # Phase 2.

    def _products(
        self, v: Buffer, mm: Buffer, panel: tuple[Expr, Expr], following: tuple[Expr, Expr],
        tiles: Extent, block0: Expr, rows: Extent,
    ) -> Stmt:  # fmt: skip
        """``M[point] = V[point] @ U[point]`` for one group of output blocks.

        ``following`` are point and group whose weights will be wanted next.
        """
        point, og = panel
        wide = self.tile.blocks * self.block
        v_at = point * (self.in_blocks * tiles * self.block)
        size = self.in_blocks * self.block * wide
        u_at = (point * self.groups + og) * size
        self.ahead = simplify((following[0] * self.groups + following[1]) * size)
        m_at = (point * self._blocks_in(mm) + block0) * (tiles * self.block)

        def one(start: Expr, size: int) -> Stmt:
            return self._product_tile(v, mm, v_at, u_at, m_at, start, size, tiles, og)

        if isinstance(rows, int):
            return self._known_rows(rows, one)
        return self._open_rows(rows, one)

    def _known_rows(self, rows: int, one: Callable[[Expr, int], Stmt]) -> Stmt:
        """Tiles of nearly equal size over so many rows; ``one`` makes one from some row on."""
        sizes = even_tiles(rows, self.tile.pixels)
        parts: list[Stmt] = []
        at = done = 0
        for size in sorted(set(sizes), reverse=True):
            run, i = sizes.count(size), Var("tile")
            start: Expr = wrap(at) if run == 1 else i * size + at
            self.share = (wrap(done) if run == 1 else i + done, len(sizes))
            tile = one(start, size)
            parts.append(tile if run == 1 else For(i, 0, run, tile))
            at, done = at + run * size, done + run
        return seq(*parts)

    def _open_rows(self, rows: Expr, one: Callable[[Expr, int], Stmt]) -> Stmt:
        """As ``_known_rows``; a row past the end may be done too, which nobody will look at."""
        full, mid, last = Var("full"), Var("mid", "bool"), Var("last")
        i, most, cut = Var("tile"), self.tile.pixels, RowCut(self.tile.pixels)
        tiles = -(-self.fewest // most)
        self.share = (i, tiles)
        loop = For(i, 0, full, one(i * most, most))
        self.share = (full, tiles)
        half = If(mid, one(full * most, cut.half)) if cut.half else seq()
        code: Stmt = seq()
        for size in reversed(cut.sizes):
            tile = one(rows - last, size)
            code = tile if size == most else If(last <= size, tile, code)
        body = seq(loop, half, If(last > 0, code))
        return cut.named(rows, (full, mid, last), body)

    def _prefetch(self, position: Expr, times: int) -> list[Stmt]:
        """Each tile asks, step by step, for its share of the weights wanted next."""
        number, tiles = self.share
        depth = self.in_blocks * self.block
        size = depth * self.tile.blocks * self.block
        share = Share(number, tiles, depth // times, times, size, self.is_open)
        return share.ask(self.weights, self.ahead, position)

    def _blocks_in(self, mm: Buffer) -> int:
        """Output blocks that the products' buffer holds at a time."""
        return self.tile.blocks if mm.scope == "scratch" else self.out_blocks

    def _product_tile(
        self,
        v: Buffer,
        mm: Buffer,
        v_at: Expr,
        u_at: Expr,
        m_at: Expr,
        start: Expr,
        size: int,
        stride: Extent,
        og: Expr,
    ) -> Stmt:
        ib, k, u, x, w = Var("ib"), Var("k"), Var("u"), Var("x"), Var("w")
        wide = self.tile.blocks * self.block
        times = UNROLL if self.data.channels % UNROLL == 0 else 1
        step = multiply_step(
            self.acc, range(size), self.tile.blocks,
            lambda b: self.weights.load(w + (k + u) * wide + b * self.block, self.block),
            lambda p: v.load(x + (k + u) + p * self.block),
        )  # fmt: skip
        left = minimum(wrap(self.data.channels) - ib * self.block, self.block)
        whole = self.data.channels % self.block == 0
        steps = seq(*self._prefetch(ib * self.block + k, times), unroll(u, times, step))
        loop = For(k, 0, self.block if whole else left, steps, step=times)
        body = Let(
            x,
            simplify(v_at + ib * (stride * self.block) + start * self.block),
            Let(w, simplify(u_at + ib * (self.block * wide)), loop),
        )
        stores: list[Stmt] = []
        for b in range(self.tile.blocks):
            row = [
                mm.store(
                    simplify(m_at + (start + (b * stride + p)) * self.block), self.acc.get(p, b)
                )
                for p in range(size)
            ]
            stores.append(self._if_real(og, b, seq(*row)))
        return seq(self.acc.clear(), For(ib, 0, self.in_blocks, body), *stores)

    def _if_real(self, og: Expr, b: int, body: Stmt) -> Stmt:
        if self.out_blocks % self.tile.blocks == 0:
            return body
        return If(og * self.tile.blocks + b < self.out_blocks, body)

    # Phase 3.

    def _prepare_epilogue(self) -> None:
        self.ob, self.on, self.orow, self.ocol = Var("ob"), Var("on"), Var("orow"), Var("ocol")
        lane = Var("lane")
        ranges: dict[Var, tuple[int, Extent]] = {
            self.on: (0, top(self.batch)), self.ob: (0, self.out_blocks - 1),
            self.orow: (0, top(self.result.height)), self.ocol: (0, top(self.result.width)),
            lane: (0, self.block - 1),
        }  # fmt: skip
        marker = Buffer("y", self.anchor.dtype, "register", 1, self.block).load(0)
        self.access.given[self.anchor] = lambda index: marker
        shape = [as_extent(d) for d in self.out.shape]
        spatial = (self.orow, self.ocol) if len(shape) == 4 else (self.ocol,)
        index = (self.on, self.ob * self.block + lane, *spatial)
        element = self.access.element(self.out, index, ranges)
        self.finish = Vectorizer(lane, self.block, ranges).expr(element)
        self.marker, self.laborious = marker, laborious(self.finish)
        start = [substitute(i, {lane: wrap(0)}) for i in index]
        self.at = simplify(self.place.layout.offset(shape, start), ranges)

    def _output(
        self,
        mm: Buffer,
        half: Buffer,
        first: Expr,
        count: Expr,
        block0: Expr,
        blocks: Expr,
        stride: Extent,
        m_block: Expr,
        base: Expr | int = 0,
    ) -> Stmt:
        """Transforms ``count`` tiles of ``blocks`` output blocks from ``block0`` on back."""
        b, i, row, col, at = Var("b"), Var("i"), Var("row"), Var("col"), Var("at")
        gap = self._blocks_in(mm) * stride * self.block

        def one(n: Var, th: Var, tw: Var) -> Stmt:
            back = self._transform_out(
                lambda p, q: mm.load(at + (wrap(p) * self.cols.points + q) * gap, self.block),
                half, lambda r, c, x: self._store(x, n, block0 + b, row + r, col + c), row, col,
            )  # fmt: skip
            origin = ((m_block + b) * stride + base + i) * self.block
            down, across = th * self.rows.m, tw * self.cols.m
            return Let(at, origin, Let(row, down, Let(col, across, back)))

        return For(b, 0, blocks, self._per_tile(first, count, i, one))

    def _transform_out(
        self,
        cell: Callable[..., Expr],
        half: Buffer,
        store: Callable[[int | Expr, int | Expr, Expr], Stmt],
        row: Var,
        col: Var,
    ) -> Stmt:
        rows, cols = self.rows, self.cols
        height, width = self.result.height, self.result.width
        if cols.plain:
            line = [cell(p, 0) for p in range(rows.points)]
            return self._finished(rows, line, half, row, height, lambda r, x: store(r, 0, x))
        if rows.plain:
            line = [cell(0, q) for q in range(cols.points)]
            return self._finished(cols, line, half, col, width, lambda c, x: store(0, c, x))
        q, r = Var("q"), Var("r")
        down = self._mapped(
            rows.a, [cell(p, q) for p in range(rows.points)],
            [self._into(half, (q + i * cols.points) * self.block) for i in range(rows.m)],
        )  # fmt: skip
        line = [
            half.load((r * cols.points + j) * self.block, self.block) for j in range(cols.points)
        ]
        across = self._finished(cols, line, half, col, width, lambda c, x: store(r, c, x))
        last: Expr = wrap(rows.m)
        if not divides(rows.m, height):
            last = minimum(wrap(height) - row, rows.m)
        return seq(For(q, 0, cols.points, down), For(r, 0, last, across))

    def _finished(
        self,
        along: Axis,
        line: Sequence[Expr],
        half: Buffer,
        start: Var,
        extent: Extent,
        store: Callable[[int | Expr, Expr], Stmt],
    ) -> Stmt:
        """Results along one axis through the epilogue, those past the image's end left out."""
        whole = divides(along.m, extent)
        if self.laborious:  # one copy of a long epilogue, results through memory
            sinks = [self._into(half, wrap(self.line_at + i * self.block)) for i in range(along.m)]
            i, value = Var("i"), Var("y", self.anchor.dtype, self.block)
            count: Expr = wrap(along.m) if whole else minimum(wrap(extent) - start, along.m)
            kept = half.load(i * self.block + self.line_at, self.block)
            loop = For(i, 0, count, Let(value, kept, store(i, value)))
            return seq(self._mapped(along.a, line, sinks), loop)

        def sink(i: int, careful: bool) -> Callable[[Expr], Stmt]:
            if careful:
                return lambda value: If(start + i < extent, store(i, value))
            return lambda value: store(i, value)

        plain = self._mapped(along.a, line, [sink(i, False) for i in range(along.m)])
        if whole:
            return plain
        edge = self._mapped(along.a, line, [sink(i, True) for i in range(along.m)])
        return If(start + along.m <= extent, plain, edge)

    def _store(self, value: Expr, n: Expr, block: Expr, row: Expr, col: Expr) -> Stmt:
        where = {self.on: n, self.ob: block, self.orow: row, self.ocol: col}
        element = swap(self.finish, self.marker, value)
        element = readdressed(substitute(element, where))
        return self.place.buffer.store(simplify(substitute(self.at, where)), element)


def tiles_of(height: int, width: int, rows: Axis, cols: Axis) -> int:
    return -(-height // rows.m) * -(-width // cols.m)
