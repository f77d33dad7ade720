"""Weights asked for before they are wanted, so that memory works while the tiles multiply."""

from __future__ import annotations

from dataclasses import dataclass

from ixion.base import dtype as dtypes
from ixion.te.expr import Expr, minimum
from ixion.te.simplify import simplify
from ixion.te.stmt import Buffer, Prefetch, Stmt

LINE = 64  # bytes of a cache line
KEPT = 256 << 10  # bytes of weights that are in the cache already when a kernel comes to them


@dataclass(frozen=True, eq=False)
class Share:
    """What tile ``number`` of ``tiles``, all using one panel, asks for of the next one.

    Each goes through the depth in ``steps`` of ``times`` elements; together they ask for all
    ``size`` elements of the panel, and a little more where these do not divide.  ``more`` says that
    there may be more tiles than that: those ask for what the last one asked for.
    """

    number: Expr
    tiles: int
    steps: int
    times: int
    size: int
    more: bool = False

    def ask(self, weights: Buffer, start: Expr, position: Expr) -> list[Stmt]:
        """The lines for the step at ``position`` (a multiple of ``times``) of the depth."""
        line = line_of(weights)
        lines = -(-self.size // line)
        each = -(-lines // (self.tiles * self.steps))
        number = minimum(self.number, self.tiles - 1) if self.more else self.number
        done = number * (self.steps * each * line) + position * (each * line // self.times)
        at = simplify(start + done)
        return [Prefetch(weights, at + i * line) for i in range(each)]


def line_of(weights: Buffer) -> int:
    """Elements of a cache line."""
    return LINE // dtypes.itemsize(weights.dtype)
