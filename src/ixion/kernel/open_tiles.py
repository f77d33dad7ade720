"""Cutting a row whose length is known at run time only into register tiles.

Tiles of full size follow each other; what is left is between a half and one and a half of a tile
and becomes one tile of about its size, after one of half the full size where it is too long.  So no
tile is very small, which would leave most of the multiply-adds' latency open, unless the row is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ixion.te.expr import Expr, Var, logical_and, logical_or, maximum, select, wrap
from ixion.te.stmt import Let, Stmt


@dataclass(frozen=True)
class RowCut:
    """Tiles of ``most`` rows or pixels."""

    most: int

    @property
    def half(self) -> int:
        return self.most // 2

    @cached_property
    def sizes(self) -> list[int]:
        """Sizes of the last tile that there is code for; in between the next larger one is done."""
        return [n for n in range(1, self.most + 1) if n <= self.exact or (self.most - n) % 2 == 0]

    @property
    def exact(self) -> int:
        """There is code for all sizes up to this."""
        return min(self.most, max(8, (self.most + self.half) // 2))

    @cached_property
    def firsts(self) -> list[int]:
        """Sizes of the first tile of a row of two tiles: a half or less of it, not very much less.

        Powers of two, and half a tile for the longest rows.
        """
        powers = [n for n in (1, 2, 4, 8, 16) if n < self.half]
        return [*powers, max(1, self.half)]

    def first_of(self, length: int) -> int:
        """The first tile's size in a row of two tiles of a known length."""
        return max((n for n in self.firsts if 2 * n - 1 <= length), default=0)

    def named(self, length: Expr, names: tuple[Var, Var, Var], body: Stmt) -> Stmt:
        """Names how many tiles are full, whether one of half the size follows, the last one's rows.

        Also a row that is shorter than the next larger size of its only tile has two.
        """
        full, mid, last = names
        left, rest = Var("left"), length - full * self.most
        lone = logical_and(full.equal(0), left > self.exact)
        long = left > self.most
        more = long if self.exact == self.most else logical_or(long, lone)
        body = Let(last, left - select(mid, wrap(self.half), wrap(0)), body)
        body = Let(left, rest, Let(mid, more, body))
        return Let(full, maximum(length - (self.half + 1), 0) // self.most, body)
