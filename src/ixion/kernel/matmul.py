"""Products of two values known at run time: ``out[b, m, n] = sum_k x[b, m, k] * y[b, k, n]``.

A task takes some rows of one product and one group of output vectors.  It packs its part of ``y``
as ``[depth][vectors * lanes]`` in scratch, whichever way that lies in memory, and then is a dense
layer with those weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ixion.kernel.dense import DenseNest
from ixion.kernel.loops import decode
from ixion.kernel.sizes import as_extent, ceil_div
from ixion.kernel.spatial import readdressed
from ixion.kernel.tile import multiply_step
from ixion.te.expr import Const, Expr, Var, transposed, wrap
from ixion.te.simplify import simplify
from ixion.te.stmt import Buffer, For, If, Kernel, Stmt, seq
from ixion.te.tensor import Extent

Scalar = Callable[[Expr, Expr, Expr], Expr]
Vector = Callable[[Expr, Expr, Expr, "Extent | None"], Expr]


@dataclass(eq=False)
class MatmulNest(DenseNest):
    """``batches`` products; ``rows`` counts the rows of all, ``each`` those of one.

    ``left(b, m, k)`` is an element of x; ``right(b, k, n)`` a vector of y along n with ``count``
    real lanes; ``right_row(b, n, k)`` one along k, or None where y is not contiguous that way.
    """

    batches: Extent = 1
    each: Extent = 1
    left: Scalar = field(default=lambda b, m, k: k)
    right: Vector = field(default=lambda b, k, n, count: k)
    right_row: Vector | None = None
    batched: bool = field(default=True, kw_only=True)  # else the rows are those of all dims

    def __post_init__(self) -> None:
        self.batch = Var("batch")
        super().__post_init__()
        self.packed = Buffer(
            "packed", self.anchor.dtype, "scratch", as_extent(self.depth * self.wide),
            offset=-(-4 * self.sums.size // 64) * 64,
        )  # fmt: skip
        self.chunks = ceil_div(self.each, self.chunk_rows)

    def kernel(self, name: str, params: tuple[Buffer, ...]) -> Kernel:
        task = Var("task")
        parts = [(self.batch, self.batches), (self.chunk, self.chunks), (self.group, self.groups)]
        body = decode(task, parts, seq(self._pack(), self._chunk_body()))
        scratch = self.packed.offset + 4 * self.packed.size
        tasks = self.batches * self.chunks * self.groups
        private = (self.acc.buffer, self.sums, self.packed)
        return Kernel(name, params, task, tasks, body, scratch=scratch, locals=private)

    def _chunk_body(self) -> Stmt:
        assert isinstance(self.chunk_rows, int)
        assert isinstance(self.each, int)
        base = self.batch * self.each
        whole, rest = divmod(self.each, self.chunk_rows)
        same = self._rows(self.chunk_rows, base + self.chunk * self.chunk_rows)
        if rest == 0:
            return same
        last = self._rows(rest, base + whole * self.chunk_rows)
        return If(self.chunk < whole, same, last)

    # Packing.

    def _pack(self) -> Stmt:
        """The vectors of this task's group; those past the last column are never stored."""
        assert isinstance(self.columns, int)
        part = Var("vector")
        number = self.group * self.tile.blocks + part
        full = self.columns // self.lanes
        bodies: list[Stmt] = []
        if full:
            bodies.append(If(number < full, self._pack_vector(number, part, None)))
        if self.columns % self.lanes:
            short = self._pack_vector(wrap(full), part, self.columns % self.lanes)
            bodies.append(If(number.equal(full), short))
        return For(part, 0, self.tile.blocks, seq(*bodies))

    def _pack_vector(self, number: Expr, part: Expr, count: int | None) -> Stmt:
        assert isinstance(self.depth, int)
        k = Var("k")
        column = simplify(number * self.lanes)
        if self.right_row is None:
            vector = readdressed(self.right(self.batch, k, column, count))
            at = k * self.wide + part * self.lanes
            return For(k, 0, self.depth, self.packed.store(at, vector))
        full = self.depth // self.lanes * self.lanes
        parts: list[Stmt] = []
        if full:
            square = self._square(column, part, k, count, self.lanes)
            parts.append(For(k, 0, full, square, step=self.lanes))
        if self.depth > full:
            parts.append(self._square(column, part, wrap(full), count, self.depth - full))
        return seq(*parts)

    def _square(
        self, column: Expr, part: Expr, k: Expr, count: int | None, depth: int
    ) -> Stmt:
        """``lanes`` columns times ``depth`` (at most ``lanes``) elements of each, transposed."""
        assert self.right_row is not None
        limit = depth if depth < self.lanes else None
        zero = Const(0, self.anchor.dtype, self.lanes)
        rows = [
            readdressed(self.right_row(self.batch, column + i, k, limit))
            if count is None or i < count else zero
            for i in range(self.lanes)
        ]  # fmt: skip
        return seq(*(
            self.packed.store((k + i) * self.wide + part * self.lanes, vector)
            for i, vector in enumerate(transposed(rows)[:depth])
        ))  # fmt: skip

    # Rows.

    def _ahead(self, k: Var, number: Expr, tiles: int) -> list[Stmt]:
        return []  # the packed columns are in the cache

    def _step(self, row: Expr, size: int, k: Var, u: Expr) -> Stmt:
        inside = row - self.batch * self.each
        return multiply_step(
            self.acc, range(size), self.tile.blocks,
            lambda b: self.packed.load((k + u) * self.wide + b * self.lanes, self.lanes),
            lambda p: readdressed(self.left(self.batch, simplify(inside) + p, k + u)),
        )  # fmt: skip
