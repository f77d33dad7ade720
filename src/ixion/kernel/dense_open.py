"""Dense layers whose rows are counted at run time.

One packing of the weights serves two kernels: one for a single row, which is as fast as the weights
come, and one for any number of rows in tiles (open_rows.py).  A tile's sums go through scratch, so
that the work on the results is code for one row and not for every height.
"""

from __future__ import annotations

from dataclasses import dataclass

from ixion.base.target import Target
from ixion.kernel.dense import (
    CHUNK_ROWS,
    LEAST_TASKS,
    DenseNest,
    is_long,
    tile_cost,
)
from ixion.kernel.open_rows import OpenRows, tall_tiles, weight_of_code
from ixion.kernel.panels import UNROLL
from ixion.kernel.row_index import RowIndex
from ixion.kernel.sizes import ceil_div, least, most
from ixion.kernel.tile import Accumulators, TileShape, vector_registers
from ixion.te.expr import Expr, Var, broadcast, intrinsic
from ixion.te.simplify import simplify
from ixion.te.stmt import Buffer, For, Kernel, Stmt, seq
from ixion.te.tensor import Extent

SAMPLES = (8, 16, 24, 40, 100, 500)  # numbers of rows that a tile is chosen by


def open_tile(target: Target, lanes: int, blocks: int, depth: int) -> TileShape:
    """The tile that does well for all numbers of rows."""
    found: list[tuple[float, TileShape]] = []
    for shape in tall_tiles(vector_registers(target, lanes), min(blocks, 4)):
        p, b = shape.pixels, shape.blocks
        cost = sum(tile_cost(n, min(n, p), blocks, b, depth) for n in SAMPLES)
        found.append((cost * weight_of_code(shape), shape))
    return min(found, key=lambda f: f[0])[1]


def open_chunk(target: Target, rows: Extent, depth: int, groups: int) -> Extent:
    """Rows of a task, as ``dense_chunk`` but not in whole tiles: chunks of nearly equal size."""
    near = max(CHUNK_ROWS, target.l2 // 2 // (4 * depth))
    some = least(-(-LEAST_TASKS // groups), ceil_div(rows, CHUNK_ROWS))
    return ceil_div(rows, most(ceil_div(rows, near), some))


@dataclass(eq=False)
class OpenDense(OpenRows, DenseNest):
    """Any number of rows."""

    def _prepare_epilogue(self) -> None:
        self.looped = True
        super()._prepare_epilogue()
        self.long = is_long(self.value)

    def kernel(self, name: str, params: tuple[Buffer, ...]) -> Kernel:
        made = super().kernel(name, params)
        made.scalars, made.values = self.scalars, self.values
        return made

    def _finish(self, row: Expr, size: int) -> Stmt:
        return seq(*self._keep_sums(size))

    def _after(self, row: Expr, size: Expr) -> Stmt:
        parts = For(self.part, 0, self.tile.blocks, self._store(row), unrolled=not self.long)
        return For(self.pixel, 0, size, parts)


@dataclass(eq=False)
class OneRow(DenseNest):
    """A single row, whatever the dims are called that make it 1.

    Neighbouring elements of the depth go to sums of their own: one tile is few products, each as
    long as four.
    """

    def prepare(self, dtype: str) -> None:
        super().prepare(dtype)
        shape = TileShape(UNROLL, self.tile.blocks)
        self.acc = Accumulators.make("acc", shape, self.lanes, dtype)

    def row_index(self, dims: list[Extent]) -> RowIndex:
        return RowIndex([1] * len(dims))

    def _step(self, row: Expr, size: int, k: Var, u: Expr) -> Stmt:
        blocks, wide = self.tile.blocks, self.wide
        w = simplify(self.group * (self.depth * wide) + k * wide) + u * wide
        source = broadcast(self.source.load(simplify(k) + u), self.lanes)
        steps = []
        for b in range(blocks):
            at, weight = u * blocks + b, self.weights.load(w + b * self.lanes, self.lanes)
            product = intrinsic("fma", source, weight, self.acc.buffer.load(at))
            steps.append(self.acc.buffer.store(at, product))
        return seq(*steps)

    def _finish(self, row: Expr, size: int) -> Stmt:
        count, load = self.tile.blocks, self.acc.buffer.load
        whole = []
        for b in range(count):
            first, second = load(b) + load(count + b), load(2 * count + b) + load(3 * count + b)
            whole.append(self.acc.buffer.store(b, first + second))
        return seq(*whole, super()._finish(row, size))
