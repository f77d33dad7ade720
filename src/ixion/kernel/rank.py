"""Short rows in order: each element goes where the number of those before it says."""

from __future__ import annotations

from collections.abc import Callable

from ixion.kernel.draft import Draft, as_index, loop, named, number
from ixion.te.expr import (
    Binary,
    Expr,
    HorizontalReduce,
    Ramp,
    Var,
    binary,
    broadcast,
    cast,
    compare,
    logical_or,
)
from ixion.te.stmt import Buffer, For, Stmt, seq

UNROLLED = 8  # vectors of keys that are compared without a loop


class Ranks:
    """Positions of at most ``n`` keys in rising order, equal ones in theirs."""

    def __init__(self, draft: Draft, n: int, dtype: str, lanes: int) -> None:
        self.lanes, self.dtype = lanes, dtype
        self.size = max(-(-n // lanes), 1) * lanes
        self.keys: Buffer = draft.scratch("keys", dtype, self.size)
        self.before = draft.cell("before", "int32", lanes)

    def fill(self, store: Callable[[Buffer], Stmt]) -> Stmt:
        """Keys stored by ``store``; what is behind them compares above or equal, and later."""
        most = number((1 << 64) - 1, self.dtype, self.lanes)
        return seq(self.keys.store(self.size - self.lanes, most), store(self.keys))

    def each(self, n: Expr, body: Callable[[Var, Var], Stmt]) -> Stmt:
        """``body`` of each element's number and its position."""

        def one(i: Var) -> Stmt:
            rank = as_index(HorizontalReduce("add", self.before.value))
            zero = number(0, "int32", self.lanes)
            return seq(
                self.before.set(zero),
                named(self.keys.load(i), lambda key: self._count(i, key)),
                named(rank, lambda r: body(i, r)),
            )

        return loop(n, one)

    def _count(self, i: Var, key: Var) -> Stmt:
        chunk = Var("chunk")
        others = self.keys.load(chunk, self.lanes)
        mine = broadcast(key, self.lanes)
        numbers = Ramp(cast(chunk, "int32"), self.lanes)
        earlier = compare("lt", numbers, broadcast(cast(i, "int32"), self.lanes))
        tied = Binary("and", compare("eq", others, mine), earlier)
        ahead = logical_or(compare("lt", others, mine), tied)
        add = self.before.set(binary("add", self.before.value, cast(ahead, "int32")))
        unrolled = self.size <= UNROLLED * self.lanes
        return For(chunk, 0, self.size, add, step=self.lanes, unrolled=unrolled)
