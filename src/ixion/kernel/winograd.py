"""Winograd convolution F(m, 3) on NCHWc: 3x3, stride 1, in ``(m + 2)^2`` small matrix products.

For a chunk of output tiles a task transforms the input of all channels into private scratch, then
for each group of output blocks multiplies at every point and transforms the products back through
the epilogue into the output.  Scratch is chosen to stay in the second-level cache.

When weights outweigh the data (deep layers on small maps) the same three phases are kernels of
their own, the products split by output blocks, so that weights are read once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

from ixion.kernel.access import Access, Operand, Vectorizer, swap
from ixion.kernel.loops import decode
from ixion.kernel.spatial import readdressed
from ixion.kernel.tile import Accumulators, TileShape, even_tiles, multiply_step
from ixion.kernel.winograd_math import combine, matrices
from ixion.te.expr import Expr, Var, logical_and, minimum, select, substitute, wrap
from ixion.te.simplify import simplify
from ixion.te.stmt import Buffer, For, If, Kernel, Let, Stmt, seq, unroll
from ixion.te.tensor import Tensor

UNROLL = 4


@dataclass(eq=False)
class Winograd:
    """One layer.  ``tiles_high x tiles_wide`` tiles per image, ``chunk`` tiles at a time."""

    m: int
    batch: int
    in_channels: int
    height: int
    width: int
    out_channels: int
    out_height: int
    out_width: int
    pad_top: int
    pad_left: int
    block: int
    tile: TileShape
    chunk: int
    source: Buffer
    weights: Buffer
    out: Tensor
    place: Operand
    access: Access
    anchor: Tensor
    acc: Accumulators = field(init=False)

    def __post_init__(self) -> None:
        self.points = (self.m + 2) ** 2
        self.tiles_high = -(-self.out_height // self.m)
        self.tiles_wide = -(-self.out_width // self.m)
        self.tiles = self.batch * self.tiles_high * self.tiles_wide
        self.in_blocks = -(-self.in_channels // self.block)
        self.out_blocks = -(-self.out_channels // self.block)
        self.groups = -(-self.out_blocks // self.tile.blocks)
        dtype = self.source.dtype
        self.acc = Accumulators.make("acc", self.tile, self.block, dtype)
        self.a_t, _, self.b_t = matrices(self.m)
        self._prepare_epilogue()

    # Sizes in elements.

    def v_size(self, tiles: int) -> int:
        return self.points * self.in_blocks * tiles * self.block

    def m_size(self, tiles: int, blocks: int) -> int:
        return self.points * blocks * tiles * self.block

    # Whole kernels.

    def fused(self, name: str, params: tuple[Buffer, ...]) -> Kernel:
        """All phases in one kernel; a task is a chunk of tiles."""
        task, og = Var("task"), Var("og")
        dtype = self.source.dtype
        v_bytes = self.v_size(self.chunk) * 4
        v = Buffer("v", dtype, "scratch", self.v_size(self.chunk), offset=0)
        products = self.m_size(self.chunk, self.tile.blocks)
        mm = Buffer("m", dtype, "scratch", products, offset=v_bytes)
        first = task * self.chunk
        count = minimum(wrap(self.tiles) - first, self.chunk)
        point = Var("point")
        multiply = For(
            point,
            0,
            self.points,
            self._products(v, mm, point, og, self.chunk, wrap(0), self.chunk, wrap(0)),
        )
        back = self._output(
            mm, first, count, og * self.tile.blocks, self._blocks_of(og), self.chunk, wrap(0)
        )
        body = seq(
            self._input(v, first, count, wrap(0), wrap(self.in_blocks), self.chunk, wrap(0)),
            For(og, 0, self.groups, seq(multiply, back)),
        )
        tasks = -(-self.tiles // self.chunk)
        return Kernel(
            name,
            params,
            task,
            tasks,
            body,
            scratch=v_bytes + products * 4,
            locals=(self.acc.buffer, v, mm),
        )

    def phases(
        self, name: str, v: Buffer, mm: Buffer, params: tuple[Buffer, ...]
    ) -> list[tuple[Kernel, tuple[Buffer, ...]]]:
        """Input transform, products and output transform as kernels over shared memory."""
        t1, t2, t3 = Var("task"), Var("task"), Var("task")
        ib, og, point, ob = Var("ib"), Var("og"), Var("point"), Var("ob")
        total = wrap(self.tiles)
        first = self._input(v, wrap(0), total, ib, ib + 1, self.tiles, wrap(0))
        second = self._products(
            v, mm, point, og, self.tiles, wrap(0), self.tiles, og * self.tile.blocks
        )
        third = self._output(mm, wrap(0), total, ob, wrap(1), self.tiles, ob)
        ends = tuple(b for b in params if b not in (self.source, self.weights))
        return [
            (Kernel(f"{name}_in", (v, self.source), t1, self.in_blocks,
                    decode(t1, [(ib, self.in_blocks)], first)), (v, self.source)),
            (Kernel(f"{name}_mm", (mm, v, self.weights), t2, self.points * self.groups,
                    decode(t2, [(point, self.points), (og, self.groups)], second),
                    locals=(self.acc.buffer,)), (mm, v, self.weights)),
            (Kernel(f"{name}_out", (*ends, mm), t3, self.out_blocks,
                    decode(t3, [(ob, self.out_blocks)], third)), (*ends, mm)),
        ]  # fmt: skip

    def _blocks_of(self, og: Expr) -> Expr:
        if self.out_blocks % self.tile.blocks == 0:
            return wrap(self.tile.blocks)
        return minimum(wrap(self.out_blocks) - og * self.tile.blocks, self.tile.blocks)

    # Phase 1.

    def _input(
        self, v: Buffer, first: Expr, count: Expr, b0: Expr, b1: Expr, stride: int, base: Expr
    ) -> Stmt:
        """Transforms input blocks [b0, b1) of ``count`` tiles from tile ``first`` on."""
        ib, i = Var("ib"), Var("i")
        n, th, tw = Var("n"), Var("th"), Var("tw")
        per = self.tiles_high * self.tiles_wide
        row, col = Var("row"), Var("col")
        at = Var("at")
        plane = self.height * self.width * self.block
        origin = (n * self.in_blocks + ib) * plane + (row * self.width + col) * self.block
        side = self.m + 2
        inside = logical_and(
            logical_and(row >= 0, row + side <= self.height),
            logical_and(col >= 0, col + side <= self.width),
        )
        target = base + (ib * stride + i) * self.block
        work = Let(at, origin, If(
            inside, self._transform_in(v, target, at, stride, None),
            self._transform_in(v, target, at, stride, (row, col)),
        ))  # fmt: skip
        body: Stmt = Let(
            row, th * self.m - self.pad_top, Let(col, tw * self.m - self.pad_left, work)
        )
        t = Var("t")
        body = Let(th, t % per // self.tiles_wide, Let(tw, t % self.tiles_wide, body))
        body = Let(t, first + i, Let(n, t // per, body))
        return For(ib, b0, b1, For(i, 0, count, body))

    def _transform_in(
        self, v: Buffer, target: Expr, at: Var, stride: int, edge: tuple[Var, Var] | None
    ) -> Stmt:
        side = self.m + 2
        cells: list[list[Expr]] = []
        lets: list[tuple[Var, Expr]] = []
        for r in range(side):
            line: list[Expr] = []
            for c in range(side):
                cell = Var(f"d{r}{c}", self.source.dtype, self.block)
                lets.append((cell, self._cell(at, r, c, edge)))
                line.append(cell)
            cells.append(line)
        half = self._apply_columns(self.b_t, cells, lets, "e")
        whole = self._apply_rows(self.b_t, half, lets, "f")
        gap = self.in_blocks * stride * self.block
        stores: Stmt = seq(
            *(
                v.store(target + p * gap, value)
                for p, value in enumerate(x for line in whole for x in line)
            )
        )
        return _bound(lets, stores)

    def _cell(self, at: Var, r: int, c: int, edge: tuple[Var, Var] | None) -> Expr:
        index = at + (r * self.width + c) * self.block
        if edge is None:
            return self.source.load(index, self.block)
        row, col = edge[0] + r, edge[1] + c
        inside = logical_and(
            logical_and(row >= 0, row < self.height), logical_and(col >= 0, col < self.width)
        )
        count = select(inside, wrap(self.block), wrap(0))
        return self.source.load(index, self.block, count=count)

    def _apply_columns(
        self, matrix: object, cells: list[list[Expr]], lets: list[tuple[Var, Expr]], name: str
    ) -> list[list[Expr]]:
        """``matrix @ cells``."""
        columns = [
            self._vectors(matrix, [line[c] for line in cells], lets, f"{name}{c}_")
            for c in range(len(cells[0]))
        ]
        return [[column[r] for column in columns] for r in range(len(columns[0]))]

    def _apply_rows(
        self, matrix: object, cells: list[list[Expr]], lets: list[tuple[Var, Expr]], name: str
    ) -> list[list[Expr]]:
        """``cells @ matrix^T``."""
        return [self._vectors(matrix, line, lets, f"{name}{r}_") for r, line in enumerate(cells)]

    def _vectors(
        self, matrix: object, values: list[Expr], lets: list[tuple[Var, Expr]], name: str
    ) -> list[Expr]:
        out: list[Expr] = []
        for k, row in enumerate(matrix):  # type: ignore[var-annotated, arg-type]
            var = Var(f"{name}{k}", self.source.dtype, self.block)
            lets.append((var, combine(row, values)))
            out.append(var)
        return out

    # Phase 2.

    def _products(
        self,
        v: Buffer,
        mm: Buffer,
        point: Expr,
        og: Expr,
        tiles: int,
        first: Expr,
        stride: int,
        block0: Expr,
    ) -> Stmt:
        """``M[point] = V[point] @ U[point]`` for one group of output blocks."""
        wide = self.tile.blocks * self.block
        v_at = point * (self.in_blocks * stride * self.block)
        u_at = (point * self.groups + og) * (self.in_blocks * self.block * wide)
        blocks = (
            self.tile.blocks if stride == self.chunk and mm.scope == "scratch" else self.out_blocks
        )
        m_at = (point * blocks + block0) * (stride * self.block)
        sizes = even_tiles(tiles, self.tile.pixels)
        parts: list[Stmt] = []
        at = 0
        for size in sorted(set(sizes), reverse=True):
            run, i = sizes.count(size), Var("tile")
            start: Expr = first + (wrap(at) if run == 1 else i * size + at)
            one = self._product_tile(v, mm, v_at, u_at, m_at, start, size, stride, og)
            parts.append(one if run == 1 else For(i, 0, run, one))
            at += run * size
        return seq(*parts)

    def _product_tile(
        self,
        v: Buffer,
        mm: Buffer,
        v_at: Expr,
        u_at: Expr,
        m_at: Expr,
        start: Expr,
        size: int,
        stride: int,
        og: Expr,
    ) -> Stmt:
        ib, k, u, x, w = Var("ib"), Var("k"), Var("u"), Var("x"), Var("w")
        wide = self.tile.blocks * self.block
        times = UNROLL if self.in_channels % UNROLL == 0 else 1
        step = multiply_step(
            self.acc, range(size), self.tile.blocks,
            lambda b: self.weights.load(w + (k + u) * wide + b * self.block, self.block),
            lambda p: v.load(x + (k + u) + p * self.block),
        )  # fmt: skip
        left = minimum(wrap(self.in_channels) - ib * self.block, self.block)
        whole = self.in_channels % self.block == 0
        loop = For(k, 0, self.block if whole else left, unroll(u, times, step), step=times)
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
        ranges = {
            self.on: (0, self.batch - 1), self.ob: (0, self.out_blocks - 1),
            self.orow: (0, self.out_height - 1), self.ocol: (0, self.out_width - 1),
            lane: (0, self.block - 1),
        }  # fmt: skip
        self.value = Var("y", self.anchor.dtype, self.block)
        marker = Buffer("y", self.anchor.dtype, "register", 1, self.block).load(0)
        self.access.given[self.anchor] = lambda index: marker
        index = (self.on, self.ob * self.block + lane, self.orow, self.ocol)
        element = self.access.element(self.out, index, ranges)
        self.finish = Vectorizer(lane, self.block, ranges).expr(element)
        self.marker = marker
        start = [substitute(i, {lane: wrap(0)}) for i in index]
        shape = [int(d) for d in self.out.shape]  # type: ignore[arg-type]
        self.at = simplify(self.place.layout.offset(shape, start), ranges)

    def _output(
        self,
        mm: Buffer,
        first: Expr,
        count: Expr,
        block0: Expr,
        blocks: Expr,
        stride: int,
        m_block: Expr,
    ) -> Stmt:
        """Transforms ``count`` tiles of ``blocks`` output blocks from ``block0`` on back."""
        b, i, t = Var("b"), Var("i"), Var("t")
        n, th, tw = Var("n"), Var("th"), Var("tw")
        per = self.tiles_high * self.tiles_wide
        row, col, at = Var("row"), Var("col"), Var("at")
        per_point = self.tile.blocks if mm.scope == "scratch" else self.out_blocks
        gap = per_point * stride * self.block
        origin = ((m_block + b) * stride + i) * self.block
        lets: list[tuple[Var, Expr]] = []
        side = self.m + 2
        cells: list[list[Expr]] = []
        for r in range(side):
            line: list[Expr] = []
            for c in range(side):
                cell = Var(f"m{r}{c}", mm.dtype, self.block)
                lets.append((cell, mm.load(at + (r * side + c) * gap, self.block)))
                line.append(cell)
            cells.append(line)
        half = self._apply_columns(self.a_t, cells, lets, "g")
        whole = self._apply_rows(self.a_t, half, lets, "h")
        inside = logical_and(row + self.m <= self.out_height, col + self.m <= self.out_width)
        block = block0 + b
        plain = seq(*self._stores(whole, n, block, row, col, lambda r, c, s: s))
        full = self.out_height % self.m == 0 and self.out_width % self.m == 0
        guarded = seq(*self._stores(
            whole, n, block, row, col,
            lambda r, c, s: If(logical_and(row + r < self.out_height, col + c < self.out_width), s),
        ))  # fmt: skip
        stores = plain if full else If(inside, plain, guarded)
        body: Stmt = Let(at, origin, _bound(lets, stores))
        body = Let(row, th * self.m, Let(col, tw * self.m, body))
        body = Let(th, t % per // self.tiles_wide, Let(tw, t % self.tiles_wide, body))
        body = Let(t, first + i, Let(n, t // per, body))
        return For(b, 0, blocks, For(i, 0, count, body))

    def _stores(
        self,
        whole: list[list[Expr]],
        n: Expr,
        block: Expr,
        row: Var,
        col: Var,
        guard: Callable[[int, int, Stmt], Stmt],
    ) -> list[Stmt]:
        stores = []
        for r, line in enumerate(whole):
            for c, value in enumerate(line):
                where = {self.on: n, self.ob: block, self.orow: row + r, self.ocol: col + c}
                element = swap(self.finish, self.marker, value)
                element = readdressed(substitute(element, where))
                at = simplify(substitute(self.at, where))
                stores.append(guard(r, c, self.place.buffer.store(at, element)))
        return stores


def _bound(lets: list[tuple[Var, Expr]], body: Stmt) -> Stmt:
    for var, value in reversed(lets):
        body = Let(var, value, body)
    return body


def tiles_of(height: int, width: int, m: int) -> int:
    return prod(-(-n // m) for n in (height, width))
