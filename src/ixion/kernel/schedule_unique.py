"""unique: slices sorted by their keys, column by column, then one walk over what became neighbours.

Sorting starts with the last column and is stable, so in the end slices lie in lexicographic order
and equal ones in theirs: the first of a group is where its value occurs first.
"""

from __future__ import annotations

from math import prod

from ixion.base import dtype as dtypes
from ixion.kernel.data_schedule import DataSchedule, around
from ixion.kernel.draft import Draft, Placed, as_index, loop, named, number, vectors
from ixion.kernel.gather_chosen import numbers
from ixion.kernel.radix import Pairs, sort
from ixion.kernel.schedule import register_schedule
from ixion.kernel.sort_key import bits_of, carrier, key_of
from ixion.op.typed import attrs_of, op_name
from ixion.te.expr import Expr, Var, cast, compare, logical_or, wrap
from ixion.te.stmt import If, Stmt, seq


@register_schedule("unique", "unique_slices")
class UniqueSchedule(DataSchedule):
    """One task: every step needs the result of the one before."""

    def kernels(self, name: str) -> list[Placed]:
        shape, axis = self.shape(0), getattr(attrs_of(self.call), "axis", None)
        self.sizes = (prod(shape),) if axis is None else shape
        self.axis = 0 if axis is None else axis % len(shape)
        self.outer, self.n, self.inner = around(self.sizes, self.axis)
        self.kind = self.dtype(0)
        draft = Draft(self.temps)
        self._outputs(draft)
        self.source = draft.input(self.operand(0), carrier(self.kind))
        bits = bits_of(self.kind)
        lanes = self.lanes("uint64" if bits > 32 else "uint32")
        self.pairs = Pairs.of(draft, max(self.n, 1), bits, lanes, self.n)
        # Per slice its group; per group its first slice and size; per group its final number.
        self.group_of, self.begins, self.sizes_of, self.number_of = (
            draft.scratch(n, "int32", self.n) for n in ("group", "begins", "sizes", "number")
        )
        self.groups, self.same, self.next = (
            draft.cell(n) for n in ("groups", "same", "next")
        )
        task = Var("task")
        body = seq(self._sorted(), self._grouped(), self._numbered(), self._given(), self._report())
        return [draft.kernel(name, task, 1, body)]

    def _outputs(self, draft: Draft) -> None:
        relay = op_name(self.call) == "unique"
        count_at = 4 if relay else 3
        self.values = draft.output(0, carrier(self.kind))
        kind = "int32" if relay else "int64"
        self.first, self.inverse = draft.output(1, kind), draft.output(2, kind)
        self.total = draft.output(3, kind) if relay else None
        counted = not relay or attrs_of(self.call).return_counts
        self.counts = draft.output(count_at, kind) if counted else None
        self.extents = draft.output(len(self.group.out_types) - 1, "int64")

    # Order.

    def _at(self, slice_: Expr, column: Expr) -> Expr:
        """Where an element of a slice lies; columns go through what is before and behind."""
        row = column // self.inner * (self.n * self.inner)
        return row + slice_ * self.inner + column % self.inner

    def _raw(self, slice_: Expr, column: Expr) -> Expr:
        return self.source.load(self._at(slice_, column))

    def _key(self, raw: Expr) -> Expr:
        return cast(key_of(raw, self.kind), self.pairs.keys.dtype)

    @property
    def columns(self) -> int:
        return self.outer * self.inner

    def _sorted(self) -> Stmt:
        """``pairs.places`` in the order of slices."""
        pairs = self.pairs
        number_ = vectors(self.n, pairs.lanes, lambda i, rest: pairs.places.store(
            i, numbers(i, pairs.lanes), rest
        ))  # fmt: skip

        def one(back: Var) -> Stmt:
            def fill(column: Var) -> Stmt:
                return loop(self.n, lambda i: pairs.keys.store(
                    pairs.half.value + i, self._key(self._raw(pairs.place(i), column))
                ))  # fmt: skip

            column = wrap(self.columns - 1) - back
            return seq(named(column, fill), sort(pairs, wrap(self.n)))

        return seq(pairs.half.set(0), number_, loop(self.columns, one))

    # Groups.

    def _grouped(self) -> Stmt:
        """Numbers the groups in order; every slice learns its own."""

        def one(i: Var, place: Var) -> Stmt:
            fresh = compare("eq", self.same.value, 0)
            begin = seq(
                self.begins.store(self.groups.value, cast(place, "int32")),
                self.sizes_of.store(self.groups.value, number(0, "int32")),
                self.groups.add(1),
            )
            mine = named(self.groups.value - 1, lambda g: seq(
                self.sizes_of.store(g, self.sizes_of.load(g) + number(1, "int32")),
                self.group_of.store(place, cast(g, "int32")),
            ))  # fmt: skip
            return seq(self._compare(i, place), If(fresh, begin), mine)

        walk = loop(self.n, lambda i: named(self.pairs.place(i), lambda p: one(i, p)))
        return seq(self.groups.set(0), walk)

    def _compare(self, i: Var, place: Var) -> Stmt:
        """``same`` becomes 1 where slice ``place`` equals the one before it in the order."""

        def column(c: Var, before: Var) -> Stmt:
            mine = named(self._raw(place, c), lambda raw: self._differ(raw, self._raw(before, c)))
            return If(compare("eq", self.same.value, 1), mine)

        def all_columns(before: Var) -> Stmt:
            return seq(self.same.set(1), loop(self.columns, lambda c: column(c, before)))

        previous = self.pairs.place(i - 1)
        return If(compare("eq", i, 0), self.same.set(0), named(previous, all_columns))

    def _differ(self, raw: Var, other: Expr) -> Stmt:
        """``same`` becomes 0 where two elements differ, or no NaN shall equal another."""
        differ = compare("ne", key_of(raw, self.kind), key_of(other, self.kind))
        if dtypes.is_float(self.kind) and not getattr(attrs_of(self.call), "nan_equal", True):
            most = number((1 << bits_of(self.kind)) - 1, raw.dtype)
            differ = logical_or(differ, compare("eq", key_of(raw, self.kind), most))
        return If(differ, self.same.set(0))

    def _numbered(self) -> Stmt:
        """The final number of each group: as sorted, or by where it occurs first."""
        if attrs_of(self.call).sorted:
            return loop(self.groups.value, lambda g: self.number_of.store(g, cast(g, "int32")))

        def one(i: Var, group: Var) -> Stmt:
            first = compare("eq", as_index(self.begins.load(group)), i)
            take = seq(
                self.number_of.store(group, cast(self.next.value, "int32")), self.next.add(1)
            )
            return If(first, take)

        walk = loop(self.n, lambda i: named(
            as_index(self.group_of.load(i)), lambda g: one(i, g)
        ))  # fmt: skip
        return seq(self.next.set(0), walk)

    # Results.

    def _given(self) -> Stmt:
        def group(g: Var, at: Var) -> Stmt:
            begin = as_index(self.begins.load(g))
            stores = [
                self.first.store(at, cast(begin, self.first.dtype)),
                named(begin, lambda b: self._slice(at, b)),
            ]
            if self.counts is not None:
                stores.append(self.counts.store(at, cast(self.sizes_of.load(g), self.counts.dtype)))
            return seq(stores)

        groups = loop(self.groups.value, lambda g: named(
            as_index(self.number_of.load(g)), lambda at: group(g, at)
        ))  # fmt: skip
        slices = loop(self.n, lambda i: named(
            as_index(self.group_of.load(i)), lambda g: self.inverse.store(
                i, cast(self.number_of.load(g), self.inverse.dtype)
            )))  # fmt: skip
        total: Stmt = seq(())
        if self.total is not None:
            total = self.total.store(0, cast(self.groups.value, self.total.dtype))
        return seq(groups, slices, total)

    def _slice(self, at: Var, begin: Var) -> Stmt:
        """Copies slice ``begin`` of the data to place ``at`` of the values."""
        lanes = self.target.lanes(self.values.dtype)

        def row(o: Var) -> Stmt:
            target = (o * self.groups.value + at) * self.inner
            source = (o * self.n + begin) * self.inner
            return named(target, lambda a: named(source, lambda b: vectors(
                self.inner, lanes, lambda i, rest: self.values.store(
                    a + i, self.source.load(b + i, lanes, 1, rest), rest
                ))))  # fmt: skip

        return loop(self.outer, row)

    def _report(self) -> Stmt:
        found = self.groups.value
        values = [found if d == self.axis else wrap(n) for d, n in enumerate(self.sizes)]
        shapes: list[Expr] = [*values, found, wrap(self.n)]
        if self.total is not None:
            shapes.append(wrap(1))
        if self.counts is not None:
            shapes.append(found)
        return seq(self.extents.store(i, n) for i, n in enumerate(shapes))
