"""Products of two values whose rows, columns or depth are counted at run time.

As matmul.py, with code for every height of a tile (open_rows.py).  The last vector of columns has
as many lanes as there are columns, and the last square of a transposed operand as many rows and
lines as are left.
"""

from __future__ import annotations

from dataclasses import dataclass

from ixion.kernel.dense_open import OpenDense
from ixion.kernel.matmul import MatmulNest
from ixion.kernel.row_index import RowIndex
from ixion.kernel.sizes import as_extent, ceil_div
from ixion.kernel.spatial import readdressed
from ixion.te.expr import Expr, Var, minimum, transposed, wrap
from ixion.te.stmt import Buffer, For, If, Kernel, Let, Stmt, seq
from ixion.te.tensor import Extent


class BatchedRows(RowIndex):
    """Rows of several products, the last of ``dims`` those of one: their numbers stay apart."""

    def __init__(self, dims: list[Extent], batch: Var, each: Extent) -> None:
        super().__init__(dims)
        self.batch, self.each = batch, each
        self.lead = RowIndex(dims[:-1]) if len(dims) > 1 else None

    def at(self, row: Expr) -> dict[Var, Expr]:
        if not self.open or self.lead is None:
            return super().at(row)
        inside = {self.variables[-1]: row - self.batch * self.each}
        *lead, _ = zip(self.variables, self.dims, strict=True)
        number: Expr = self.batch
        for variable, n in reversed(lead):
            first = variable is self.variables[0]
            inside[variable] = number if first else number % n
            number = number // n
        return inside


@dataclass(eq=False)
class OpenMatmul(OpenDense, MatmulNest):
    """Any number of products, rows, columns or elements of the depth."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.chunks = self.pieces = Var("pieces")

    def kernel(self, name: str, params: tuple[Buffer, ...]) -> Kernel:
        made = MatmulNest.kernel(self, name, params)
        made.tasks = as_extent(self.batches * ceil_div(self.each, self.chunk_rows) * self.groups)
        made.scalars = (self.per, self.pieces)
        made.values = (wrap(self.chunk_rows), wrap(ceil_div(self.each, self.chunk_rows)))
        return made

    def row_index(self, dims: list[Extent]) -> RowIndex:
        if self.batched:
            return BatchedRows(dims, self.batch, self.each)
        return RowIndex(dims)

    def _chunk_body(self) -> Stmt:
        lo, first, count = Var("lo"), Var("first"), Var("count")
        rows = minimum(self.per, self.each - first)
        body = Let(count, rows, self._open_tiles(lo, count))
        body = Let(lo, self.batch * self.each + first, body)
        return Let(first, self.chunk * self.per, body)

    # Packing.

    def _pack(self) -> Stmt:
        """The vectors of this task's group that there are."""
        part, number, column = Var("vector"), Var("number"), Var("first")
        if self.right_row is None:
            whole, short = (self._pack_across(part, column, c) for c in (False, True))
            body: Stmt = If(column + self.lanes <= self.columns, whole, short)
        else:
            body = self._pack_along(part, column)
        body = If(number < self.blocks, Let(column, number * self.lanes, body))
        body = Let(number, self.group * self.tile.blocks + part, body)
        return For(part, 0, self.tile.blocks, body)

    def _pack_across(self, part: Expr, column: Expr, short: bool) -> Stmt:
        """Vectors as they lie."""
        k = Var("k")
        count = minimum(wrap(self.columns) - column, self.lanes) if short else None
        vector = readdressed(self.right(self.batch, k, column, count))
        at = k * self.wide + part * self.lanes
        return For(k, 0, self.depth, self.packed.store(at, vector))

    def _pack_along(self, part: Expr, column: Expr) -> Stmt:
        """Vectors of columns that lie along the depth, transposed."""
        k, full = Var("k"), Var("full")
        square = self._open_square(part, column, k, None)
        rest = self._open_square(part, column, full, self.depth - full)
        if isinstance(self.depth, int):
            even = self.depth // self.lanes * self.lanes
            rest = self._open_square(part, column, wrap(even), wrap(self.depth - even))
            loop = For(k, 0, even, square, step=self.lanes)
            return loop if even == self.depth else seq(loop, rest)
        body = seq(For(k, 0, full, square, step=self.lanes), If(full < self.depth, rest))
        return Let(full, self.depth // self.lanes * self.lanes, body)

    def _open_square(self, part: Expr, column: Expr, k: Expr, count: Expr | None) -> Stmt:
        """``lanes`` columns times ``count`` (all ``lanes``: None) elements of each."""
        assert self.right_row is not None
        lines = []
        for i in range(self.lanes):  # any column will do for one that does not exist
            number = minimum(column + i, wrap(self.columns) - 1)
            lines.append(readdressed(self.right_row(self.batch, number, k, count)))
        vectors = transposed(lines)
        names = [Var(f"t{i}", v.dtype, v.lanes) for i, v in enumerate(vectors)]
        stores: list[Stmt] = []
        for i, name in enumerate(names):
            store: Stmt = self.packed.store((k + i) * self.wide + part * self.lanes, name)
            stores.append(store if count is None else If(wrap(i) < count, store))
        body: Stmt = seq(*stores)
        for name, vector in reversed(list(zip(names, vectors, strict=True))):
            body = Let(name, vector, body)
        return body

    # Rows.

    def _step(self, row: Expr, size: int, k: Var, u: Expr) -> Stmt:
        return MatmulNest._step(self, row, size, k, u)

    def _share(self, body: Stmt) -> Stmt:
        return body  # the packed columns are in the cache

    def _ahead(self, k: Var, number: Expr, tiles: int) -> list[Stmt]:
        return []


