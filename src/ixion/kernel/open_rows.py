"""Rows whose number is known at run time only, in tiles of nearly equal height.

``n`` rows become the fewest tiles of at most ``pixels`` rows, each of ``n // tiles`` rows and the
first ``n % tiles`` of one more, as ``even_tiles`` does for a known number.  There is code for every
height, and a choice among them for each tile: so every number of rows is done as well as if it had
been known.
"""

from __future__ import annotations

from collections.abc import Callable

from ixion.kernel.ahead import KEPT, line_of
from ixion.kernel.panels import UNROLL, Panels
from ixion.kernel.sizes import ceil_div
from ixion.te.expr import Expr, Var, minimum, select, wrap
from ixion.te.simplify import simplify
from ixion.te.stmt import For, If, Let, Prefetch, Stmt, seq
from ixion.te.tensor import Extent

MANY = 1 << 62  # more than any size


class OpenRows(Panels):
    """Panels with a number of rows, and of rows of a task, that are expressions over sizes.

    The kernel gets both as scalars.
    """

    rows: Extent
    chunk_rows: Extent

    def prepare(self, dtype: str) -> None:
        super().prepare(dtype)
        self.total, self.per = Var("rows"), Var("per")
        self.tiles = Var("tiles")
        self.each = Var("each")

    @property
    def scalars(self) -> tuple[Var, ...]:
        return self.total, self.per

    @property
    def values(self) -> tuple[Expr, ...]:
        return wrap(self.rows), wrap(self.chunk_rows)

    def _chunk_body(self) -> Stmt:
        lo, count = Var("lo"), Var("count")
        rows = minimum(self.per, self.total - self.chunk * self.per)
        return Let(lo, self.chunk * self.per, Let(count, rows, self._open_tiles(lo, count)))

    def _open_tiles(self, lo: Expr, count: Expr) -> Stmt:
        """Tiles over ``count`` rows from ``lo`` on."""
        base, extra = Var("base"), Var("extra")
        tile, row, size = Var("tile"), Var("row"), Var("size")
        body = self._open_tile(row, size, tile)
        body = Let(size, base + select(tile < extra, wrap(1), wrap(0)), body)
        body = Let(row, lo + tile * base + minimum(tile, extra), body)
        body = For(tile, 0, self.tiles, body)
        body = self._share(Let(extra, count - base * self.tiles, body))
        body = Let(base, count // self.tiles, body)
        return Let(self.tiles, wrap(ceil_div(count, self.tile.pixels)), body)

    def _open_tile(self, row: Expr, size: Expr, number: Expr) -> Stmt:
        def make(height: int) -> Stmt:
            return self._tile(row, height, number, 1)

        return seq(by_size(size, 1, self.tile.pixels, make), self._after(row, size))

    def _after(self, row: Expr, size: Expr) -> Stmt:
        """What is done after a tile, whichever its height."""
        return seq()

    # Asking for weights.

    def _share(self, body: Stmt) -> Stmt:
        """Names the lines that each step of a tile asks for around ``body``."""
        if not self._asks():
            return body
        steps = (self.end - self.begin) // UNROLL
        lines = -(-(self.end - self.begin) * self.wide // line_of(self.weights))
        return Let(self.each, wrap(ceil_div(lines, self.tiles * steps)), body)

    def _asks(self) -> bool:
        long = self.end - self.begin >= UNROLL
        return long and 4 * self.weight_size > KEPT and self.groups > 1

    def _ahead(self, k: Var, number: Expr, tiles: int) -> list[Stmt]:
        """The next group's weights, each tile of rows asks for a part of them."""
        if not self._asks():
            return []
        line, i = line_of(self.weights), Var("ask")
        group = minimum(self.group + 1, self.groups - 1)
        start = (group * self.depth + self.begin) * self.wide
        steps = (self.end - self.begin) // UNROLL
        done = (number * steps * UNROLL + (k - self.begin)) * self.each * (line // UNROLL)
        at = simplify(start) + simplify(done)
        more = For(i, 1, self.each, Prefetch(self.weights, at + i * line))
        return [Prefetch(self.weights, at), If(wrap(1) < self.each, more)]


def by_size(size: Expr, least: int, most: int, make: Callable[[int], Stmt]) -> Stmt:
    """``make(n)`` for the one ``n`` from ``least`` to ``most`` that ``size`` is."""
    if least == most:
        return make(least)
    middle = (least + most + 1) // 2
    low, high = by_size(size, least, middle - 1, make), by_size(size, middle, most, make)
    return If(size < middle, low, high)
