"""Depthwise convolution and pooling: each channel folds its own window.

Input and output are NCHWc with the same channel blocks.  Depthwise weights are packed
``[block][kh][kw][c]``.  Average pooling divides by the number of window cells inside the image,
or inside the padded image when padding counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ixion.kernel.spatial import SpatialNest, Valid, splat
from ixion.kernel.taps import Taps
from ixion.te.expr import Expr, Var, binary, broadcast, cast, intrinsic, minimum, wrap
from ixion.te.simplify import simplify
from ixion.te.stmt import Buffer, For, Let, Stmt, seq
from ixion.te.tensor import Extent


@dataclass(eq=False)
class WindowNest(SpatialNest):
    """Base of depthwise and pooling nests."""

    source: Buffer | None = None

    def __post_init__(self) -> None:
        self.cb = Var("cb")
        super().__post_init__()

    def channel_parts(self) -> list[tuple[Var, Extent]]:
        return [(self.cb, self.blocks)]

    def first_block(self) -> Expr:
        return self.cb

    def fold(self, acc: Expr, x: Expr, tap: Expr) -> Expr:
        """The accumulator after window cell ``x``; ``tap`` numbers cells row-major."""
        raise TypeError(type(self).__name__)

    def accumulate(self, col: Expr, size: int, valid: Valid) -> Stmt:
        t, x, tap = Var("t"), Var("x"), Var("tap")
        cells = seq(*(self._column(x, tap, col, size, j, valid) for j in range(self.cols.taps)))
        body = Let(x, self._source_at(col, t), Let(tap, t * self.cols.taps, cells))
        return For(t, self.lo, self.hi, body)

    def _column(self, x: Var, tap: Var, col: Expr, size: int, j: int, valid: Valid) -> Stmt:
        """The cells of kernel column ``j``."""
        at = x + j * self.cols.delta * self.block
        if valid == "careful":
            return self.reached(col, wrap(j), size, lambda pixels: self._cells(at, tap + j, pixels))
        return self._cells(at, tap + j, range(size) if valid is None else valid[j])

    def _source_at(self, col: Expr, t: Var) -> Expr:
        line = self.cols.extent * self.block
        plane = (self.n * self.blocks + self.cb) * (self.rows.extent * line)
        row = self.row * self.rows.step + (t * self.rows.delta + self.rows.first)
        across = (col * self.cols.step + self.cols.first) * self.block
        return simplify(plane + row * line + across)

    def _cells(self, x: Expr, tap: Expr, pixels: Sequence[int]) -> Stmt:
        assert self.source is not None
        apart = self.cols.step * self.block
        steps: list[Stmt] = []
        for p in pixels:
            cell = self.source.load(x + p * apart, self.block)
            steps.append(self.acc.set(p, 0, self.fold(self.acc.get(p, 0), cell, tap)))
        return seq(*steps)


@dataclass(eq=False)
class DepthwiseNest(WindowNest):
    """One filter per channel."""

    weights: Buffer | None = None

    def fold(self, acc: Expr, x: Expr, tap: Expr) -> Expr:
        assert self.weights is not None
        at = self.cb * (self.rows.taps * self.cols.taps * self.block) + tap * self.block
        return intrinsic("fma", x, self.weights.load(simplify(at), self.block), acc)


@dataclass(eq=False)
class MaxPoolNest(WindowNest):
    """Padding never wins: it counts as minus infinity."""

    lowest: float = float("-inf")

    def clear(self) -> Stmt:
        low = splat(self.lowest, self.acc.buffer.dtype, self.block)
        return seq(*(self.acc.buffer.store(i, low) for i in range(self.acc.buffer.size)))

    def fold(self, acc: Expr, x: Expr, tap: Expr) -> Expr:
        return binary("max", acc, x)


@dataclass(eq=False)
class AvgPoolNest(WindowNest):
    """``row_limit`` and ``col_limit``: where padding ends that counts, or None if none does."""

    row_limit: Extent | None = None
    col_limit: Extent | None = None

    def fold(self, acc: Expr, x: Expr, tap: Expr) -> Expr:
        return binary("add", acc, x)

    def result(self) -> Expr:
        total = super().result()
        rows = self._cells_along(self.rows, self.orow, self.row_limit)
        cols = self._cells_along(self.cols, self.ocol, self.col_limit)
        count = cast(simplify(rows * cols), total.dtype)
        return binary("div", total, broadcast(count, self.block))

    def _cells_along(self, taps: Taps, q: Expr, limit: Extent | None) -> Expr:
        if limit is None:
            lo, hi = taps.bounds(q)
            return hi - lo
        if taps.ends_before(limit):
            return wrap(taps.taps)
        room = (wrap(limit - taps.first - 1 + taps.delta) - q * taps.step) // taps.delta
        return minimum(room, taps.taps)
