"""searchsorted: a bisection for every value, without a branch on what it finds."""

from __future__ import annotations

from math import prod

from ixion.kernel.data_schedule import DataSchedule
from ixion.kernel.draft import Draft, Placed, named, runs
from ixion.kernel.schedule import register_schedule
from ixion.kernel.sort_key import carrier, key_of
from ixion.op.typed import attrs_of
from ixion.te.expr import Expr, Var, cast, compare, logical_and, minimum, select
from ixion.te.stmt import Stmt, seq

GRAIN = 1024  # values of a task


@register_schedule("searchsorted")
class SearchSchedule(DataSchedule):
    """One table for all values, or one for each row of them."""

    def kernels(self, name: str) -> list[Placed]:
        draft, table, values = Draft(), self.shape(0), self.shape(1)
        kind, n = self.dtype(0), table[-1]
        out = draft.output(0, self.group.out_type.dtype)
        source = draft.input(self.operand(0), carrier(kind))
        wanted = draft.input(self.operand(1), carrier(kind))
        place = draft.cell("place")
        per_row = values[-1] if len(table) > 1 else 0
        op = "le" if attrs_of(self.call).right else "lt"

        def halve(step: int, base: Expr, key: Var) -> Stmt:
            """Goes on by ``step`` where the last element passed still lies before the value."""
            there = place.value + step
            last = source.load(base + minimum(there, n) - 1)
            before = compare(op, key_of(last, kind), key)
            onward = logical_and(compare("le", there, n), before)
            return place.set(select(onward, there, place.value))

        def one(i: Var) -> Stmt:
            base = i // per_row * n if per_row else i * 0
            steps = [1 << b for b in reversed(range(n.bit_length()))]
            return named(base, lambda b: named(key_of(wanted.load(i), kind), lambda key: seq(
                place.set(0), [halve(s, b, key) for s in steps],
                out.store(i, cast(place.value, out.dtype)),
            )))  # fmt: skip

        return [draft.kernel(name, *runs(prod(values), GRAIN, one))]
