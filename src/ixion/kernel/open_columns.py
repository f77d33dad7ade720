"""A row of output pixels whose length is known at run time only, cut into register tiles.

Tiles of full size follow each other from the left; one loop does all that touch no border.  At the
right end there is code for a tile of each size that ends where the row ends: its first pixel may be
done twice, which changes nothing.  Tiles at a border know which of their pixels each kernel column
reaches.  A row too short for that is two tiles, one at each border; one that is shorter than its
borders, or borders wider than a third of a tile, go by code that looks at every pixel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ixion.kernel.open_tiles import RowCut
from ixion.te.expr import Expr, Var, logical_and, maximum, minimum, select, wrap
from ixion.te.simplify import simplify
from ixion.te.stmt import For, If, Let, Stmt, seq

if TYPE_CHECKING:
    from ixion.kernel.spatial import SpatialNest, Valid


@dataclass(eq=False)
class OpenColumns:
    """The tiles numbered from ``first`` up to ``end`` of a row of ``nest``; None is all of them.

    Of a row without borders, ``length`` pixels from ``origin`` on may be done alone.
    """

    nest: SpatialNest
    first: Expr | None = None
    end: Expr | None = None
    origin: Expr | None = None
    length: Expr | None = None

    def __post_init__(self) -> None:
        taps = self.nest.cols
        self.taps, self.most = taps, self.nest.tile.pixels
        self.cut = RowCut(self.most)
        self.width, self.over = Var("width"), Var("over")
        self.full, self.mid, self.last = Var("full"), Var("mid", "bool"), Var("last")
        self.left = taps.left
        self.right = 0 if taps.overhangs is None else taps.right(taps.overhangs[1])
        self.edge = max(self.left, self.right)

    def line(self) -> Stmt:
        """All of the row's tiles."""
        length = wrap(self.taps.count) if self.length is None else self.length
        return Let(self.width, length, self._row())

    def _row(self) -> Stmt:
        if self.taps.overhangs is None or self.edge > max(1, self.most // 3):
            return self._carefully()
        if self.edge == 0:
            body = seq(self._inside(0), self._here(seq(self._middle(), self._even_end())))
        else:
            over = simplify(wrap(self.taps.overhang))
            body = Let(self.over, over, self._with_borders())
        return self.cut.named(self.width, (self.full, self.mid, self.last), body)

    # Which tiles there are.

    def _here(self, body: Stmt) -> Stmt:
        """What comes after the tiles of full size: the last of the row's tiles to be numbered."""
        if self.first is None or self.end is None:
            return body
        return If(logical_and(self.first <= self.full, self.full < self.end), body)

    def _inside(self, begin: int, careful: bool = False) -> Stmt:
        """Tiles of full size from number ``begin`` on."""
        i = Var("tile")
        first = wrap(begin) if self.first is None else maximum(self.first, begin)
        end: Expr = self.full if self.end is None else minimum(self.end, self.full)
        body = self._tile(i * self.most, self.most, "careful" if careful else None, i)
        return For(i, first, end, body)

    def _middle(self) -> Stmt:
        """The tile of half the size before the last one, if there is one."""
        if self.cut.half == 0:
            return seq()
        return If(self.mid, self._tile(self.full * self.most, self.cut.half, None, self.full))

    def _tile(self, col: Expr, size: int, valid: Valid, number: Expr) -> Stmt:
        self.nest.number = number
        start = col if self.origin is None else self.origin + col
        return self.nest.one_tile(simplify(start), size, valid)

    def _even_end(self) -> Stmt:
        """The last tile of a row without borders."""
        code: Stmt = seq()
        for size in reversed(self.cut.sizes):
            tile = self._tile(self.width - size, size, None, self.full)
            code = tile if size == self.most else If(self.last <= size, tile, code)
        return If(self.last > 0, code)

    def _carefully(self) -> Stmt:
        """Tiles that look at every pixel."""
        rest = self._here(self._pixels(self.full * self.most))
        return Let(self.full, self.width // self.most, seq(self._inside(0, True), rest))

    def _pixels(self, start: Expr) -> Stmt:
        col = Var("col")
        return For(col, start, self.width, self._tile(col, 1, "careful", self.full))

    # Rows with borders.

    def _with_borders(self) -> Stmt:
        """Rows of a full tile and more, of two tiles, and of less."""
        long, end = Var("long", "bool"), Var("end")
        shortest = self._shortest_of_two()
        begin: Stmt = seq(self._pixels(wrap(0)))
        before: Expr = self.width  # what the last tile does not do
        for size in self._firsts():
            least = max(shortest, 2 * size - 1)
            first = self._tile(wrap(0), size, self._from_left(size), wrap(0))
            begin = If(self.width >= least, first, begin)
            before = select(self.width >= least, wrap(size), before)
        body = If(long, self._long(), self._here(begin))
        right = self._here(self._right(end))
        named = Let(end, select(long, self.last, self.width - before), seq(body, right))
        return Let(long, self.full > 0, named)

    def _firsts(self) -> list[int]:
        """Sizes of the first tile in a row of two."""
        return [n for n in self.cut.firsts if n >= self.edge]

    def _shortest_of_two(self) -> int:
        """From this length on both tiles of a row of two are as wide as its borders."""
        longest = self.most + self.cut.half
        return next(
            n for n in range(1, longest + 1)
            if all(self._splits(m) for m in range(n, longest + 1)) or n == longest
        )  # fmt: skip

    def _splits(self, length: int) -> bool:
        first = self.cut.first_of(length)
        last = next((n for n in self.cut.sizes if n >= length - first), 0)
        return first >= self.edge and length - first >= self.edge and length - last >= self.edge

    def _long(self) -> Stmt:
        parts: list[Stmt] = []
        if self.left:
            first = self._tile(wrap(0), self.most, self._from_left(self.most), wrap(0))
            parts.append(first if self.first is None else If(self.first.equal(0), first))
        parts.append(self._inside(1 if self.left else 0))
        return seq(*parts, self._here(self._middle()))

    def _right(self, last: Var) -> Stmt:
        """A tile of about ``last`` pixels, if any, that ends where the row ends."""
        assert self.taps.overhangs is not None
        least, most = self.taps.overhangs
        code: Stmt | None = None
        for over in range(max(least, 0), most + 1):
            one = self._right_of(last, over)
            code = one if code is None else If(self.over.equal(over), one, code)
        assert code is not None
        return If(last > 0, code)

    def _right_of(self, last: Var, over: int) -> Stmt:
        code: Stmt = seq()
        for size in reversed([n for n in self.cut.sizes if n >= self.taps.right(over)]):
            valid = [
                [p for p in range(size) if self.taps.valid_from_right(size - 1 - p, t, over)]
                for t in range(self.taps.taps)
            ]
            tile = self._tile(self.width - size, size, _known(valid, size), self.full)
            code = tile if size == self.most else If(last <= size, tile, code)
        return code

    def _from_left(self, size: int) -> Valid:
        valid = [
            [p for p in range(size) if self.taps.valid_from_left(p, t)]
            for t in range(self.taps.taps)
        ]
        return _known(valid, size)


def _known(valid: list[list[int]], size: int) -> Valid:
    return None if all(len(pixels) == size for pixels in valid) else valid
