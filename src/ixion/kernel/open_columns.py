"""A row of output pixels whose length is known at run time only, cut into register tiles.

Tiles of full size follow each other from the left; one loop does all that touch no border.  What
is left at the right end is one tile of about its own size that ends where the row ends: its first
pixels may be done twice, which changes nothing.  There is code for a tile at the left border, for
one inside and for one of each size at the right border, and all know which of their pixels each
kernel column reaches.  A row too short for that is two tiles, one at each border; one that is
shorter than its borders, or borders wider than a tile, go by code that looks at every pixel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ixion.te.expr import Compare, Expr, Var, logical_and, maximum, minimum, select, wrap
from ixion.te.simplify import simplify
from ixion.te.stmt import For, If, Let, Stmt, seq

if TYPE_CHECKING:
    from ixion.kernel.spatial import SpatialNest, Valid

EXACT = 8  # up to this size there is code for every size of a tile


def tile_sizes(most: int, edge: int = 0) -> list[int]:
    """Sizes up to ``most`` that there is code for, all of them up to half a row of two tiles."""
    exact = min(most, max(EXACT, (most + edge) // 2))
    return [n for n in range(1, most + 1) if n <= exact or (most - n) % 2 == 0]


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
        self.width, self.full, self.over = Var("width"), Var("full"), Var("over")
        self.left = taps.left
        self.right = 0 if taps.overhangs is None else taps.right(taps.overhangs[1])
        self.edge = max(self.left, self.right)
        self.sizes = tile_sizes(self.most, self.edge)

    def line(self) -> Stmt:
        """All of the row's tiles."""
        length = wrap(self.taps.count) if self.length is None else self.length
        return Let(self.width, length, seq(*self._parts()))

    def _parts(self) -> Iterator[Stmt]:
        if self.taps.overhangs is None or self.edge > self.most // 2:
            yield from self._carefully()
        elif self.edge == 0:
            yield Let(self.full, self.width // self.most, seq(self._inside(0), self._rest()))
        else:
            over = simplify(wrap(self.taps.overhang))
            yield Let(self.over, over, self._with_borders())

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

    def _tile(self, col: Expr, size: int, valid: Valid, number: Expr) -> Stmt:
        self.nest.number = number
        start = col if self.origin is None else self.origin + col
        return self.nest.one_tile(simplify(start), size, valid)

    def _carefully(self) -> Iterator[Stmt]:
        """Tiles that look at every pixel."""
        rest = self._pixels(self.full * self.most)
        yield Let(
            self.full, self.width // self.most, seq(self._inside(0, True), self._here(rest))
        )

    def _pixels(self, start: Expr) -> Stmt:
        col = Var("col")
        return For(col, start, self.width, self._tile(col, 1, "careful", self.full))

    # Rows without borders.

    def _rest(self) -> Stmt:
        """The last pixels; twice where the row has fewer than a tile, each about a half."""
        rest, begin, k = Var("rest"), Var("begin"), Var("k")
        halves = logical_and(self.width < self.most, self.width > max(self._exact()))
        code: Stmt = seq()
        sizes = [n for n in self.sizes if n < self.most or self.most - 1 not in self.sizes]
        for size in reversed(sizes):
            tile = self._tile((self.width - size) * k, size, None, self.full)
            again = For(k, begin, 2, tile)
            code = again if size == sizes[-1] else If(rest <= size, again, code)
        code = Let(begin, select(halves, wrap(0), wrap(1)), If(rest > 0, code))
        left = self.width - self.full * self.most
        return self._here(Let(rest, select(halves, (self.width + 1) // 2, left), code))

    def _exact(self) -> list[int]:
        return [n for n in self.sizes if all(m in self.sizes for m in range(1, n))]

    # Rows with borders.

    def _with_borders(self) -> Stmt:
        """Rows of a full tile and more, of two tiles, and of less."""
        long, two = Var("long", "bool"), Var("two", "bool")
        rest, last = Var("rest"), Var("last")
        half = (self.width + 1) // 2
        extra = select(rest > self.most, wrap(self.right), rest)
        end = select(long, extra, select(two, half, wrap(0)))
        short = If(two, self._left_half(half), self._pixels(wrap(0)))
        body = seq(If(long, self._long(rest), self._here(short)), self._here(self._right(last)))
        body = Let(rest, self.width - self.full * self.most, Let(last, end, body))
        full = select(long, (self.width - self.right) // self.most, wrap(0))
        body = Let(two, self.width >= 2 * self.edge, Let(self.full, full, body))
        return Let(long, self.width >= self.most + self.edge, body)

    def _long(self, rest: Var) -> Stmt:
        parts: list[Stmt] = []
        if self.left:
            first = self._tile(wrap(0), self.most, self._from_left(self.most), wrap(0))
            parts.append(first if self.first is None else If(self.first.equal(0), first))
        parts.append(self._inside(1 if self.left else 0))
        if self.right > 1:
            start = self.width - (self.right + self.most)
            more = self._tile(start, self.most, None, self.full)
            parts.append(self._here(If(rest > self.most, more)))
        return seq(*parts)

    def _left_half(self, half: Expr) -> Stmt:
        code: Stmt = seq()
        sizes = [n for n in self.sizes if n <= (self.most + self.edge) // 2]
        for size in reversed(sizes):
            tile = self._tile(wrap(0), size, self._from_left(size), wrap(0))
            code = tile if size == sizes[-1] else If(half <= size, tile, code)
        return code

    def _right(self, last: Var) -> Stmt:
        """A tile of about ``last`` pixels, if any, that ends where the row ends."""
        assert self.taps.overhangs is not None
        least, most = self.taps.overhangs
        code: Stmt | None = None
        for over in range(max(least, 0), most + 1):
            one = self._right_of(last, over)
            code = one if code is None else If(Compare("eq", self.over, wrap(over)), one, code)
        assert code is not None
        return If(last > 0, code)

    def _right_of(self, last: Var, over: int) -> Stmt:
        code: Stmt = seq()
        sizes = [n for n in self.sizes if n >= self.taps.right(over)]
        for size in reversed(sizes):
            valid = [
                [p for p in range(size) if self.taps.valid_from_right(size - 1 - p, t, over)]
                for t in range(self.taps.taps)
            ]
            tile = self._tile(self.width - size, size, _known(valid, size), self.full)
            code = tile if size == sizes[-1] else If(last <= size, tile, code)
        return code

    def _from_left(self, size: int) -> Valid:
        valid = [
            [p for p in range(size) if self.taps.valid_from_left(p, t)]
            for t in range(self.taps.taps)
        ]
        return _known(valid, size)


def _known(valid: list[list[int]], size: int) -> Valid:
    return None if all(len(pixels) == size for pixels in valid) else valid
