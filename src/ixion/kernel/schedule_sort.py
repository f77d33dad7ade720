"""sort, argsort and topk: rows of keys, ordered in private memory.

A short row is ordered by counting, for every element, how many come before it: vectors of
comparisons without a branch.  A longer one is sorted digit by digit; where only a few of its
elements are wanted, a threshold is found first and what lies above it left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ixion.base import abi
from ixion.kernel.data_schedule import DataSchedule, around
from ixion.kernel.draft import Draft, Placed, as_index, loop, named, runs, vectors
from ixion.kernel.first_key import FirstKey
from ixion.kernel.gather_chosen import numbers
from ixion.kernel.radix import Pairs, sort
from ixion.kernel.rank import Ranks
from ixion.kernel.schedule import register_schedule
from ixion.kernel.select_keys import Selection
from ixion.kernel.sort_key import bits_of, carrier, key_of
from ixion.op.typed import attrs_of, op_name, shape_of
from ixion.te.expr import Const, Expr, Var, cast, compare, logical_or, minimum, select, wrap
from ixion.te.stmt import Buffer, Fault, If, Let, Stmt, seq

SHORT = 96  # elements of a row that are ordered by counting
GRAIN = 4096  # elements of a task


@dataclass(frozen=True)
class Rows:
    """Where rows lie: element ``i`` of row ``(outer, inner)``, and ``k`` of them in the results."""

    n: int
    inner: int
    source: Buffer
    values: Buffer | None
    places: Buffer | None

    def raw(self, row: Expr, i: Expr, lanes: int = 1, count: Expr | None = None) -> Expr:
        """The bits of elements from ``i`` on."""
        where = row // self.inner * (self.n * self.inner) + row % self.inner + i * self.inner
        return self.source.load(where, lanes, self.inner if lanes > 1 else 1, count)

    def give(self, row: Expr, k: Expr, at: Expr, place: Expr) -> Stmt:
        """Element ``place`` of the row comes ``at``-th."""
        where = row // self.inner * (k * self.inner) + row % self.inner + at * self.inner
        stores: list[Stmt] = []
        if self.values is not None:
            stores.append(self.values.store(where, self.raw(row, place)))
        if self.places is not None:
            stores.append(self.places.store(where, cast(place, self.places.dtype)))
        return seq(stores)


    def give_lanes(self, where: Expr, first: FirstKey) -> Stmt:
        """The first of neighbouring rows: one element of each, from ``where`` on."""
        stores: list[Stmt] = []
        if self.values is not None:
            stores.append(self.values.store(where, first.element.value))
        if self.places is not None:
            stores.append(self.places.store(where, cast(first.place.value, self.places.dtype)))
        return seq(stores)


@register_schedule("sort", "argsort", "topk", "dyn.topk", "top_k")
class SortSchedule(DataSchedule):
    """Tasks of a few thousand elements, each of whole rows."""

    def kernels(self, name: str) -> list[Placed]:
        outer, self.n, inner = around(self.shape(0), attrs_of(self.call).axis)
        grain = max(1, GRAIN // max(self.n, 1))
        draft = Draft(self.temps if outer * inner <= grain else None)
        self.kind = self.dtype(0)
        values, places = self._outputs(draft)
        source = draft.input(self.operand(0), carrier(self.kind))
        self.rows = Rows(self.n, inner, source, values, places)
        wanted = self._wanted(draft)
        k = Var("k")
        if wanted == 1 and self.n and self.rows.inner >= self.lanes(carrier(self.kind)):
            return [draft.kernel(name, *self._best_across(draft, outer))]
        order = self._ordering(draft, k if isinstance(wanted, Expr) else wrap(wanted))
        task, tasks, body = runs(outer * inner, grain, order)
        if isinstance(wanted, Expr):
            report = If(compare("eq", task, 0), self._report(k))
            body = Let(k, wanted, seq(self._check(k), report, body))
        return [draft.kernel(name, task, tasks, body)]

    def _outputs(self, draft: Draft) -> tuple[Buffer | None, Buffer | None]:
        """Buffers of values and places; None for what is not asked for."""
        attrs, head = attrs_of(self.call), op_name(self.call)
        alone = {"sort": "values", "argsort": "indices"}
        which = alone.get(head, getattr(attrs, "ret_type", "both"))
        values = draft.output(0, carrier(self.kind)) if which != "indices" else None
        second = 1 if which == "both" else 0
        places = draft.output(second, attrs.dtype) if which != "values" else None
        self.results = second + 1
        return values, places

    def _wanted(self, draft: Draft) -> int | Expr:
        """How many elements of a row: a number, or the value of the second argument."""
        head, attrs = op_name(self.call), attrs_of(self.call)
        if head in ("sort", "argsort"):
            return self.n
        if len(self.call.args) == 1:
            k = 1 if attrs.k is None else int(attrs.k)
            return k if k > 0 else self.n
        if len(self.group.out_types) > self.results:
            self.extents = draft.output(self.results, "int64")
        given = as_index(draft.input(self.operand(1), self.dtype(1)).load(0))
        if head == "top_k":
            return given
        return select(compare("lt", given, 1), Const(self.n, "int64"), given)

    def _check(self, k: Expr) -> Stmt:
        outside = logical_or(compare("lt", k, 0), compare("gt", k, self._most()))
        return If(outside, Fault(int(abi.Fault.VALUE), k))

    def _most(self) -> int:
        """The largest k that the results have room for."""
        room: int = shape_of(self.group.out_type)[attrs_of(self.call).axis]
        return min(self.n, room)

    def _report(self, k: Expr) -> Stmt:
        """The true shape of each result."""
        if len(self.group.out_types) == self.results:
            return seq(())
        shape = [wrap(n) for n in self.shape(0)]
        shape[attrs_of(self.call).axis] = k
        return seq(self.extents.store(i, n) for i, n in enumerate(shape * self.results))

    def _ordering(self, draft: Draft, k: Expr) -> Callable[[Var], Stmt]:
        if isinstance(k, Const) and k.value == 1 and self.n:
            return self._best_along(draft, k)
        return self._counting(draft, k) if self.n <= SHORT else self._sorting(draft, k)

    def _key(self, raw: Expr) -> Expr:
        return key_of(raw, self.kind, not attrs_of(self.call).is_ascend)

    def _best_along(self, draft: Draft, k: Expr) -> Callable[[Var], Stmt]:
        lanes, rows = self.lanes(carrier(self.kind)), self.rows
        first = FirstKey(draft, carrier(self.kind), lanes)

        def row(r: Var) -> Stmt:
            walk = first.along(
                self.n, lambda i, rest: self._key(rows.raw(r, wrap(i), lanes, rest))
            )
            return seq(walk, named(as_index(first.found), lambda i: rows.give(r, k, wrap(0), i)))

        return row

    def _best_across(self, draft: Draft, outer: int) -> tuple[Var, int, Stmt]:
        """A vector of neighbouring rows at a time."""
        lanes, rows = self.lanes(carrier(self.kind)), self.rows
        first, inner = FirstKey(draft, carrier(self.kind), lanes), self.rows.inner
        parts = -(-inner // lanes)

        def group(number_: Var) -> Stmt:
            # The last vector of a block of rows ends with it, so it overlaps the one before.
            column = minimum(number_ % parts * lanes, inner - lanes)
            begin = number_ // parts * inner
            walk = first.across(self.n, lambda i: rows.source.load(
                begin * self.n + column + wrap(i) * inner, lanes
            ), self._key)  # fmt: skip
            return seq(walk, rows.give_lanes(begin + column, first))

        return runs(outer * parts, max(1, GRAIN // (self.n * lanes)), group)

    def _counting(self, draft: Draft, k: Expr) -> Callable[[Var], Stmt]:
        lanes, rows = self.lanes(carrier(self.kind)), self.rows
        ranks = Ranks(draft, self.n, carrier(self.kind), lanes)

        def row(r: Var) -> Stmt:
            fill = ranks.fill(lambda keys: vectors(self.n, lanes, lambda i, rest: keys.store(
                i, self._key(rows.raw(r, i, lanes, rest)), rest
            )))  # fmt: skip
            give = ranks.each(wrap(self.n), lambda i, at: If(
                compare("lt", at, k), rows.give(r, k, at, i)
            ))  # fmt: skip
            return seq(fill, give)

        return row

    def _sorting(self, draft: Draft, k: Expr) -> Callable[[Var], Stmt]:
        few = not isinstance(k, Const) or int(k.value) * 2 <= self.n
        expected = int(k.value) if isinstance(k, Const) else self.n
        bits, rows = bits_of(self.kind), self.rows
        lanes = self.lanes("uint64" if bits > 32 else "uint32")
        pairs = Pairs.of(draft, self.n, bits, lanes, expected)
        selection = Selection(draft, self.target, pairs, self.n, k) if few else None

        def keys(row: Var, i: Var, rest: Expr | None) -> Expr:
            return cast(self._key(rows.raw(row, i, lanes, rest)), pairs.keys.dtype)

        def all_pairs(row: Var) -> Stmt:
            fill = vectors(self.n, lanes, lambda i, rest: seq(
                pairs.keys.store(i, keys(row, i, rest), rest),
                pairs.places.store(i, numbers(i, lanes), rest),
            ))  # fmt: skip
            return seq(fill, pairs.half.set(0), sort(pairs, wrap(self.n)))

        def some(row: Var) -> Stmt:
            assert selection is not None
            fill = selection.fill(lambda i, rest: keys(row, i, rest))
            return seq(fill, selection.narrow(), sort(pairs, selection.left.value))

        def whole(row: Var) -> Stmt:
            give = loop(k, lambda at: rows.give(row, k, at, pairs.place(at)))
            return seq(some(row) if few else all_pairs(row), give)

        return whole
