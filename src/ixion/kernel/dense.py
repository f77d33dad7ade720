"""Dense layers: ``out[m, n] = sum_k x[m, k] * w[n, k]`` with packed weights.

Weights are packed ``[group][k][blocks * lanes]``.  A tile is some rows of ``x`` times some vectors
of outputs.  With one row (batch 1) the kernel streams the weights once, so many blocks per group
keep enough loads in flight; the product is then as fast as memory.

Work on the results happens on the registers where it is short.  Where it has a function such as
erf in it, the sums go to a scratch tile and a loop over that does the work: a copy of the function
for each register would be long code, and a call for each would save all registers around it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd

from ixion.base import dtype as dtypes
from ixion.base.target import Target
from ixion.kernel.access import Access, Operand, Vectorizer
from ixion.kernel.ahead import LINE
from ixion.kernel.panels import UNROLL, Panels
from ixion.kernel.row_index import RowIndex
from ixion.kernel.sizes import as_extent, ceil_div, top
from ixion.kernel.spatial import readdressed
from ixion.kernel.tile import TileShape, even_tiles, vector_registers
from ixion.te.expr import Expr, Intrinsic, Var, minimum, substitute, wrap
from ixion.te.simplify import simplify
from ixion.te.stmt import Buffer, For, If, Kernel, Stmt, seq
from ixion.te.tensor import Extent, Tensor

CHUNK_ROWS = 128
LEAST_TASKS = 16
LEAST_PART = 512  # of the depth, in a kernel of its own
SETS, WAYS = 64, 8  # the first-level cache of current CPUs
# Intrinsics of one or two instructions.
_SHORT = frozenset(("fma", "neg", "abs", "sqrt", "not"))


def dense_tile(target: Target, lanes: int, rows: int, blocks: int, depth: int) -> TileShape:
    """Rows and vectors per tile; one row takes as many vectors as divide the outputs well."""
    if rows > 1:
        return _cheapest(target, lanes, rows, blocks, depth)
    best = min(range(4, 9), key=lambda b: (-(-blocks // b) * b, -b))
    return TileShape(1, min(best, max(blocks, 1)))


def _cheapest(target: Target, lanes: int, rows: int, blocks: int, depth: int) -> TileShape:
    registers = vector_registers(target, lanes)
    found: list[tuple[float, TileShape]] = []
    for b in range(1, min(blocks, 6) + 1):
        most = (registers - b - 1) // b
        sizes = {even_tiles(rows, limit)[0] for limit in range(max(1, most - 3), most + 1)}
        found += [(tile_cost(rows, p, blocks, b, depth), TileShape(p, b)) for p in sizes]
    return min(found, key=lambda f: (round(f[0], 6), f[1].pixels))[1]


def tile_cost(rows: int, pixels: int, blocks: int, b: int, depth: int) -> float:
    """Relative time per useful product; a group of fewer vectors counts as whole.

    The loads' weights were fitted to measurements of some twenty tiles on Zen 4.
    """
    crowded = max(0, -(-pixels // _sets_apart(4 * depth)) - WAYS)
    sizes = even_tiles(rows, pixels)
    steps = sum(max(p * b, 6) + 0.3 * b + 0.08 * p for p in sizes)
    penalty = 1 + 0.03 * crowded + 0.01 * (len(set(sizes)) - 1)  # two sizes are twice the code
    return -(-blocks // b) * steps * penalty / (rows * blocks)


def _sets_apart(stride: int) -> int:
    """On how many cache sets lines a stride of bytes apart fall."""
    return SETS // gcd(stride // LINE, SETS) if stride % LINE == 0 else SETS


def chunk_rows(rows: int, tile: TileShape) -> int:
    """Rows of one task: whole tiles, chunks of nearly equal size."""
    return _even_chunk(rows, -(-rows // CHUNK_ROWS), tile)


def dense_chunk(target: Target, rows: int, depth: int, groups: int, tile: TileShape) -> int:
    """Rows of a task whose weights come from memory: as many as the near cache can hold.

    All weights pass through the cache once for each chunk of rows.
    """
    most = max(CHUNK_ROWS, target.l2 // 2 // (4 * depth))
    chunks = max(-(-rows // most), min(-(-LEAST_TASKS // groups), -(-rows // CHUNK_ROWS)))
    return _even_chunk(rows, chunks, tile)


def depth_parts(
    target: Target, rows: int, depth: int, columns: int, lanes: int
) -> list[tuple[int, int]]:
    """The depth in parts for which the operand's rows fit the near cache, one kernel each.

    Otherwise the rows would be cut and all weights read again for each piece; sums wait in the
    cache meanwhile, so this needs few enough of them.
    """
    near = target.l2 // 2
    parts = min(-(-4 * rows * depth // near), depth // LEAST_PART)
    if rows == 1 or parts < 2 or 4 * rows * -(-columns // lanes) * lanes > near:
        return [(0, depth)]
    size = -(-depth // parts // UNROLL) * UNROLL
    return [(at, min(at + size, depth)) for at in range(0, depth, size)]


def _even_chunk(rows: int, chunks: int, tile: TileShape) -> int:
    tiles = -(-rows // tile.pixels)
    return min(rows, -(-tiles // chunks) * tile.pixels)


@dataclass(eq=False)
class DenseNest(Panels):
    """``out``'s dim ``axis`` has ``columns`` elements, the other dims in order make ``rows``."""

    rows: Extent
    depth: Extent
    columns: Extent
    lanes: int
    tile: TileShape
    source: Buffer
    weights: Buffer
    out: Tensor
    place: Operand
    access: Access
    anchor: Tensor
    chunk_rows: Extent
    # Which part of the depth, and where the sums of the parts before and after it are kept.
    span: tuple[int, int] | None = field(default=None, kw_only=True)
    partial: Buffer | None = field(default=None, kw_only=True)
    axis: int = field(default=-1, kw_only=True)

    def __post_init__(self) -> None:
        self.begin, self.end = self.span or (0, self.depth)
        self.blocks = ceil_div(self.columns, self.lanes)
        self.groups = ceil_div(self.blocks, self.tile.blocks)
        self.prepare(self.anchor.dtype)
        self.sums = Buffer("sums", self.anchor.dtype, "scratch", self.tile.pixels * self.wide)
        self.looped = False
        self._prepare_epilogue()
        if is_long(self.value):
            self.looped = True
            self._prepare_epilogue()

    def kernel(self, name: str, params: tuple[Buffer, ...]) -> Kernel:
        task = Var("task")
        body, tasks = self.body(task), self.chunks * self.groups
        if not self.looped:
            return Kernel(name, params, task, tasks, body, locals=(self.acc.buffer,))
        scratch = self.sums.size * dtypes.itemsize(self.sums.dtype)
        both = (self.acc.buffer, self.sums)
        return Kernel(name, params, task, tasks, body, locals=both, scratch=scratch)

    def _prepare_epilogue(self) -> None:
        self.block, lane = Var("ob"), Var("lane")
        self.pixel, self.part = Var("pixel"), Var("part")
        shape = [as_extent(d) for d in self.out.shape]
        ranges: dict[Var, tuple[int, Extent]] = {
            self.block: (0, top(self.blocks)), lane: (0, self.lanes - 1)
        }  # fmt: skip
        number = self.pixel * self.tile.blocks + self.part
        value = self.acc.buffer.load(number)
        if self.looped:
            value = self.sums.load(number * self.lanes, self.lanes)
        self.access.given[self.anchor] = lambda index: value
        tail = as_extent(self.columns % self.lanes)
        along = self.block * self.lanes + lane
        exact, column, moved = ranges, along, dict[Var, Expr]()
        if not isinstance(self.columns, int):  # any column there is, until it has its place
            column = Var("column")
            exact, moved = {**ranges, column: (0, top(self.columns))}, {column: along}
        elif tail and self.blocks == 1:
            exact = {**ranges, lane: (0, self.columns - 1)}
        axis = self.axis % len(shape)
        self.index = self.row_index(shape[:axis] + shape[axis + 1 :])
        ranges, exact = {**self.index.ranges, **ranges}, {**self.index.ranges, **exact}
        index = [*self.index.index[:axis], column, *self.index.index[axis:]]
        short = not isinstance(tail, int) or tail > 0
        if short:  # the last block is short: bounds hold for the lanes that count
            self.access.limits[lane] = (self.block * self.lanes, self.columns)
        element = substitute(self.access.element(self.out, index, exact), moved)
        self.count = minimum(wrap(self.columns) - self.block * self.lanes, self.lanes)
        limit = self.count if short else None
        self.value = Vectorizer(lane, self.lanes, exact, limit).expr(element)
        start = [substitute(substitute(i, moved), {lane: wrap(0)}) for i in index]
        self.at = simplify(self.place.layout.offset(shape, start), ranges)
        self.limit = limit

    def row_index(self, dims: list[Extent]) -> RowIndex:
        """Where a row is along the dims that make rows."""
        return RowIndex(dims)

    def _finish(self, row: Expr, size: int) -> Stmt:
        store = self._store(row)
        if self.looped:
            parts = For(self.part, 0, self.tile.blocks, store)
            return seq(*self._keep_sums(size), For(self.pixel, 0, size, parts))
        pixels = For(self.pixel, 0, size, store, unrolled=True)
        return For(self.part, 0, self.tile.blocks, pixels, unrolled=True)

    def _store(self, row: Expr) -> Stmt:
        """The result of vector ``part`` in the row ``pixel`` after ``row``."""
        where = {
            **self.index.at(row + self.pixel),
            self.block: self.group * self.tile.blocks + self.part,
        }
        value = readdressed(substitute(self.value, where))
        limit = None if self.limit is None else substitute(self.limit, where)
        at = simplify(substitute(self.at, where))
        store: Stmt = self.place.buffer.store(at, value, limit)
        uneven = as_extent(self.blocks % self.tile.blocks)
        if not isinstance(uneven, int) or uneven:
            store = If(self.group * self.tile.blocks + self.part < self.blocks, store)
        return store

    def _keep_sums(self, size: int) -> list[Stmt]:
        count = size * self.tile.blocks
        return [self.sums.store(i * self.lanes, self.acc.buffer.load(i)) for i in range(count)]


def is_long(expr: Expr) -> bool:
    """Whether an expression calls for a function of many instructions."""
    seen: set[int] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Intrinsic) and node.name not in _SHORT:
            return True
        stack.extend(node.children())
    return False
