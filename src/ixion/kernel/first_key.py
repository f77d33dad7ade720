"""The least key of each row and the first place that has it: topk of one element."""

from __future__ import annotations

from collections.abc import Callable

from ixion.kernel.draft import Draft, named, number
from ixion.kernel.gather_chosen import numbers, within
from ixion.te.expr import (
    Expr,
    ExprLike,
    HorizontalReduce,
    Var,
    broadcast,
    cast,
    compare,
    select,
)
from ixion.te.stmt import For, Stmt, seq

_FAR = (1 << 31) - 1

# Keys of elements from i on, with as many real lanes as the second argument says (None: all).
Keys = Callable[[ExprLike, "Expr | None"], Expr]


class FirstKey:
    """Running minimum of ``lanes`` keys and the places where it was met first."""

    def __init__(self, draft: Draft, dtype: str, lanes: int) -> None:
        self.dtype, self.lanes = dtype, lanes
        self.best = draft.cell("best", dtype, lanes)
        self.place = draft.cell("place", "int32", lanes)
        self.element = draft.cell("element", dtype, lanes)

    def across(self, n: int, raw: Callable[[ExprLike], Expr], key: Callable[[Expr], Expr]) -> Stmt:
        """Each lane is a row of its own, ``raw(i)`` the i-th elements of the rows.

        ``element`` then holds the rows' elements with the least key.
        """

        def better(i: Var, value: Var, mine: Var) -> Stmt:
            at = broadcast(cast(i, "int32"), self.lanes)
            return named(compare("lt", mine, self.best.value), lambda yes: seq(
                self.best.set(select(yes, mine, self.best.value)),
                self.place.set(select(yes, at, self.place.value)),
                self.element.set(select(yes, value, self.element.value)),
            ))  # fmt: skip

        def one(i: Var) -> Stmt:
            return named(raw(i), lambda value: named(
                key(value), lambda mine: better(i, value, mine)
            ))  # fmt: skip

        i = Var("i")
        begin = named(raw(0), lambda value: seq(
            self.best.set(key(value)), self.element.set(value),
            self.place.set(number(0, "int32", self.lanes)),
        ))  # fmt: skip
        return seq(begin, For(i, 1, n, one(i)))

    def along(self, n: int, keys: Keys) -> Stmt:
        """One row, a vector of neighbours at a time; ``found`` is the place of its least key."""
        lanes, full = self.lanes, n // self.lanes * self.lanes
        every = number(1, "bool", lanes)
        first = number(min(n, lanes), "int64")
        real = within(every, None if n >= lanes else first)
        most = number((1 << 64) - 1, self.dtype, lanes)
        begin = seq(
            self.best.set(select(real, keys(0, None if n >= lanes else first), most)),
            self.place.set(select(real, numbers(number(0, "int64"), lanes), _far(lanes))),
        )
        i = Var("i")
        whole = For(i, lanes, full, self._step(i, None, keys), step=lanes)
        tail: Stmt = seq(())
        if full < n and n > lanes:
            tail = self._step(number(full, "int64"), number(n - full, "int64"), keys)
        return seq(begin, whole, tail)

    @property
    def found(self) -> Expr:
        least = HorizontalReduce("min", self.best.value)
        mine = compare("eq", self.best.value, broadcast(least, self.lanes))
        return HorizontalReduce("min", select(mine, self.place.value, _far(self.lanes)))

    def _step(self, i: Expr, rest: Expr | None, keys: Keys) -> Stmt:
        at = numbers(i, self.lanes)
        return named(keys(i, rest), lambda key: self._better(key, at, rest))

    def _better(self, key: Var, at: Expr, rest: Expr | None) -> Stmt:
        def take(better: Var) -> Stmt:
            return seq(
                self.best.set(select(better, key, self.best.value)),
                self.place.set(select(better, at, self.place.value)),
            )

        return named(within(compare("lt", key, self.best.value), rest), take)


def _far(lanes: int) -> Expr:
    return number(_FAR, "int32", lanes)
