"""Rows whose number is known at run time only, in tiles of nearly equal height.

``n`` rows become the fewest tiles of at most ``pixels`` rows, each of ``n // tiles`` rows and the
first ``n % tiles`` of one more, as ``even_tiles`` does for a known number.  There is code for every
height, and a choice among them for each tile: so every number of rows is done as well as if it had
been known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ixion.kernel.ahead import KEPT, line_of
from ixion.kernel.panels import UNROLL, Panels
from ixion.kernel.sizes import ceil_div
from ixion.kernel.tile import TileShape
from ixion.te.expr import Expr, Var, maximum, minimum, select, wrap
from ixion.te.simplify import simplify
from ixion.te.stmt import For, If, Let, Prefetch, Stmt, seq
from ixion.te.tensor import Extent

MANY = 1 << 62  # more than any size
CODE = 0.0003  # what a vector of a tile of some height costs, as a part of all time


def tall_tiles(registers: int, blocks: int) -> Iterator[TileShape]:
    """Tiles of up to ``blocks`` vectors about as high as the registers allow."""
    for b in range(1, blocks + 1):
        highest = (registers - b - 1) // b
        for pixels in range(max(1, highest - 3), highest + 1):
            yield TileShape(pixels, b)


def weight_of_code(shape: TileShape) -> float:
    """By how much code for every height up to that of a tile makes it dearer."""
    return 1 + CODE * shape.blocks * shape.pixels * (shape.pixels + 1) / 2


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
        self.asked = Var("asked")

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
        loop = in_tiles(lo, count, self.tiles, self._open_tile)
        tiles = wrap(ceil_div(count, self.tile.pixels))
        return Let(self.tiles, tiles, self._share(loop))

    def _open_tile(self, row: Expr, size: Expr, number: Expr) -> Stmt:
        def make(height: int) -> Stmt:
            return self._tile(row, height, number, 1)

        heights = range(1, self.tile.pixels + 1)
        return seq(by_size(size, heights, make), self._after(row, size))

    def _after(self, row: Expr, size: Expr) -> Stmt:
        """What is done after a tile, whichever its height."""
        return seq()

    # Asking for weights.

    def _share(self, body: Stmt) -> Stmt:
        """Names the lines that each step of a tile asks for around ``body``."""
        if not self._asks():
            return body
        depth = self.end - self.begin
        lines = ceil_div(depth * self.wide, line_of(self.weights))
        return Let(self.asked, wrap(ceil_div(lines, self.tiles * (depth // UNROLL))), body)

    def _asks(self) -> bool:
        """Whether weights are asked for; their size is known."""
        if not isinstance(self.end, int) or self.groups == 1:
            return False
        return self.end - self.begin >= UNROLL and 4 * self.weight_size > KEPT

    def _ahead(self, k: Var, number: Expr, tiles: int) -> list[Stmt]:
        """The next group's weights, each tile of rows asks for a part of them."""
        if not self._asks():
            return []
        line, i = line_of(self.weights), Var("ask")
        group = minimum(self.group + 1, self.groups - 1)
        start = (group * self.depth + self.begin) * self.wide
        steps = (self.end - self.begin) // UNROLL
        done = (number * steps * UNROLL + (k - self.begin)) * self.asked * (line // UNROLL)
        at = simplify(start) + simplify(done)
        more = For(i, 1, self.asked, Prefetch(self.weights, at + i * line))
        return [Prefetch(self.weights, at), If(wrap(1) < self.asked, more)]


def in_tiles(
    lo: Expr, count: Expr, tiles: Expr, body: Callable[[Expr, Expr, Expr], Stmt]
) -> Stmt:
    """``body(row, size, number)`` for each of ``tiles`` tiles of ``count`` rows from ``lo`` on."""
    base, extra = Var("base"), Var("extra")
    tile, row, size = Var("tile"), Var("row"), Var("size")
    work = body(row, size, tile)
    work = Let(size, base + select(tile < extra, wrap(1), wrap(0)), work)
    work = Let(row, lo + tile * base + minimum(tile, extra), work)
    loop = Let(extra, count - base * tiles, For(tile, 0, tiles, work))
    return Let(base, count // tiles, loop)


def in_some_tiles(
    lo: Expr, count: Expr, heights: Sequence[int], body: Callable[[Expr, Expr], Stmt]
) -> Stmt:
    """``body(row, size)`` for tiles of given heights, down to 1, over ``count`` rows from ``lo``.

    As many of each as fit, the highest first: for few heights where rows are many.
    """
    tile, row, size = Var("tile"), Var("row"), Var("size")
    numbers = [Var(f"of{n}") for n in heights]
    ends: list[Expr] = [wrap(0)]
    for number in numbers:
        ends.append(ends[-1] + number)
    where, tall = lo, wrap(heights[-1])
    for n, number, start in zip(heights, numbers, ends[:-1], strict=True):
        where = where + minimum(maximum(tile - start, 0), number) * n
    for n, end in reversed(list(zip(heights[:-1], ends[1:-1], strict=True))):
        tall = select(tile < end, wrap(n), tall)
    work: Stmt = For(tile, 0, ends[-1], Let(row, where, Let(size, tall, body(row, size))))
    rests: list[Expr] = [count]
    for n in heights:
        rests.append(rests[-1] % n)
    for n, number, rest in zip(heights, numbers, rests[:-1], strict=True):
        work = Let(number, rest // n, work)
    return work


def by_size(size: Expr, sizes: Sequence[int], make: Callable[[int], Stmt]) -> Stmt:
    """``make(n)`` for the one ``n`` of ``sizes``, which ascend, that ``size`` is.

    What it makes must not leave results in registers.
    """
    if len(sizes) == 1:
        return make(sizes[0])
    middle = len(sizes) // 2
    low, high = by_size(size, sizes[:middle], make), by_size(size, sizes[middle:], make)
    return If(size < sizes[middle], low, high, closed=True)
