"""scatter_elements and scatter_nd: a copy of the data, then one update after another.

Updates run in row-major order, so of several at one place the last one stays, as in the reference.
Every index is checked where it is read: no value leads outside of the buffers.  Sums of many
updates, and all products, are kept in float64 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from ixion.base import abi
from ixion.base import dtype as dtypes
from ixion.kernel.data_schedule import DataSchedule
from ixion.kernel.draft import Draft, Placed, as_index, loop, named, number, runs, vectors
from ixion.kernel.layout import Layout
from ixion.kernel.schedule import Lowered, register_schedule
from ixion.kernel.sort_key import carrier
from ixion.op.typed import attrs_of
from ixion.te.expr import Expr, Var, binary, cast, compare, logical_or, minimum, select, wrap
from ixion.te.stmt import Buffer, Fault, For, If, Let, Stmt, seq

GRAIN = 16384  # elements of a task
FEW = 256  # updates of one place whose float32 sum is as good as the reference needs
_OPS = {"add": "add", "mean": "add", "mul": "mul", "min": "min", "max": "max"}


class Scatter(DataSchedule):
    """Copies, updates, and where the sum is kept elsewhere, brings it back."""

    def mode(self) -> str:
        raise TypeError(type(self).__name__)

    def repeats(self) -> int:
        """How many updates one place can get."""
        raise TypeError(type(self).__name__)

    def update(self, name: str, draft: Draft, combine: Callable[[Expr, Expr], Stmt]) -> Placed:
        raise TypeError(type(self).__name__)

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        lowered = super().lower(name, inputs, out)
        if not self.wide:
            lowered.in_place = frozenset((self.operand(0),))
        return lowered

    def kernels(self, name: str) -> list[Placed]:
        self.kind, self.size = self.dtype(0), prod(self.shape(0))
        moved = self.mode() == "update"
        self.stored = carrier(self.kind) if moved else self.kind
        self.wide = self._wide()
        if self.wide:
            self.temps.append(max(self.size, 1) * dtypes.itemsize(self.held))
        if self.mode() == "mean":
            self.temps.append(8 * max(self.size, 1))
        made = [self._copy(name), self._updates(name)]
        return [*made, self._back(name)] if self.wide else made

    def _wide(self) -> bool:
        """Whether sums are kept in a buffer of their own."""
        if self.mode() == "mean":
            return True
        summed = self.mode() in ("add", "mul") and dtypes.is_float(self.kind)
        short = self.kind not in ("float32", "float64") or self.mode() == "mul"
        # Where there is much data and few updates, hardly any place gets more than one.
        many = self.repeats() > max(FEW, self.size // 8)
        return summed and (short or (self.kind == "float32" and many))

    @property
    def held(self) -> str:
        """The dtype in which sums are kept."""
        return "float64" if self.wide and dtypes.is_float(self.kind) else self.stored

    def _target(self, draft: Draft) -> Buffer:
        return draft.temp(0, self.held) if self.wide else draft.output(0, self.stored)

    def _copy(self, name: str) -> Placed:
        draft = Draft()
        target = self._target(draft)
        counts = draft.temp(1, "int64") if self.mode() == "mean" else None
        source = draft.input(self.operand(0), self.stored)
        lanes = self.lanes(self.held)

        def some(i: Var, rest: Expr | None, begin: Var) -> Stmt:
            value = cast(source.load(begin + i, lanes, 1, rest), self.held)
            stores = [target.store(begin + i, value, rest)]
            if counts is not None:
                stores.append(counts.store(begin + i, number(1, "int64", lanes), rest))
            return seq(stores)

        return self._all(f"{name}_copy", draft, lanes, some)

    def _back(self, name: str) -> Placed:
        draft = Draft()
        out, sums = draft.output(0, self.stored), draft.temp(0, self.held)
        counts = draft.temp(1, "int64") if self.mode() == "mean" else None
        lanes = self.lanes("int64")

        def some(i: Var, rest: Expr | None, begin: Var) -> Stmt:
            value = sums.load(begin + i, lanes, 1, rest)
            if counts is not None:
                value = self._mean(value, counts.load(begin + i, lanes, 1, rest))
            return out.store(begin + i, cast(value, self.stored), rest)

        return self._all(f"{name}_back", draft, lanes, some)

    def _mean(self, total: Expr, count: Expr) -> Expr:
        if dtypes.is_float(total.dtype):
            return total / cast(count, total.dtype)
        return binary("floordiv", cast(total, "int64"), count)

    def _all(
        self, name: str, draft: Draft, lanes: int, some: Callable[[Var, Expr | None, Var], Stmt]
    ) -> Placed:
        """Tasks that go through all elements of the data."""
        task = Var("task")
        body = named(task * GRAIN, lambda begin: vectors(
            minimum(wrap(GRAIN), self.size - begin), lanes, lambda i, rest: some(i, rest, begin)
        ))  # fmt: skip
        return draft.kernel(name, task, -(-self.size // GRAIN), body)

    def _updates(self, name: str) -> Placed:
        draft = Draft()
        target = self._target(draft)
        counts = draft.temp(1, "int64") if self.mode() == "mean" else None
        op = _OPS.get(self.mode())

        def combine(at: Expr, value: Expr) -> Stmt:
            """An update, of one element or a vector, meets what is there."""
            value = cast(value, self.held)
            if op is not None:
                value = binary(op, target.load(at, value.lanes), value)
            stores = [target.store(at, value)]
            if counts is not None:
                one = number(1, "int64", value.lanes)
                stores.append(counts.store(at, counts.load(at, value.lanes) + one))
            return seq(stores)

        return self.update(f"{name}_update", draft, combine)

    def checked(self, index: Expr, size: int, body: Callable[[Expr], Stmt]) -> Stmt:
        """``body`` of an index counted from the front; a fault where it is out of range."""

        def inside(i: Var) -> Stmt:
            outside = logical_or(compare("lt", i, -size), compare("ge", i, size))
            front = select(compare("lt", i, 0), i + size, i)
            return seq(If(outside, Fault(int(abi.Fault.INDEX), i)), named(front, body))

        return named(as_index(index), inside)


@register_schedule("scatter_elements")
class ScatterElements(Scatter):
    """An index for every update; tasks are parts of what lies before the axis."""

    def mode(self) -> str:
        return str(attrs_of(self.call).reduction)

    def repeats(self) -> int:
        return self.shape(1)[self._axis()]

    def _axis(self) -> int:
        axis: int = attrs_of(self.call).axis
        return axis % len(self.shape(0))

    def update(self, name: str, draft: Draft, combine: Callable[[Expr, Expr], Stmt]) -> Placed:
        indices = draft.input(self.operand(1), self.dtype(1))
        updates = draft.input(self.operand(2), self.stored)
        data, places, axis = self.shape(0), self.shape(1), self._axis()
        steps = [prod(data[d + 1 :]) for d in range(len(data))]
        behind = prod(places[axis:])

        def row(r: Var) -> Stmt:
            """All updates with the same coordinates before the axis."""
            start, rest = wrap(0), wrap(r)
            for d in reversed(range(axis)):
                start, rest = start + rest % places[d] * steps[d], rest // places[d]
            base, first = Var("base"), Var("first")
            body = self._nest(places, steps, axis, lambda at, where: self.checked(
                indices.load(first + at), data[axis],
                lambda i: combine(base + where + i * steps[axis], updates.load(first + at)),
            ))  # fmt: skip
            return Let(base, start, Let(first, r * behind, body))

        rows = prod(places[:axis]) if behind else 0
        task, tasks, body = runs(rows, max(1, GRAIN // max(behind, 1)), row)
        return draft.kernel(name, task, tasks, body)

    def _nest(
        self, places: Sequence[int], steps: Sequence[int], axis: int,
        body: Callable[[Expr, Expr], Stmt],
    ) -> Stmt:  # fmt: skip
        """Loops over the axis and what is behind it; ``body`` of the number of an update and of
        where its place lies without the axis.
        """

        def inner(d: int, at: Expr, where: Expr) -> Stmt:
            if d == len(places):
                return body(at, where)
            size = prod(places[d + 1 :])
            step = 0 if d == axis else steps[d]
            return loop(places[d], lambda i: inner(d + 1, at + i * size, where + i * step))

        return inner(axis, wrap(0), wrap(0))


@register_schedule("scatter_nd")
class ScatterND(Scatter):
    """A slice for every index tuple; tasks are parts of the slices."""

    def mode(self) -> str:
        return str(attrs_of(self.call).mode)

    def repeats(self) -> int:
        return prod(self.shape(1)[1:])

    def update(self, name: str, draft: Draft, combine: Callable[[Expr, Expr], Stmt]) -> Placed:
        indices = draft.input(self.operand(1), self.dtype(1))
        updates = draft.input(self.operand(2), self.stored)
        depth, *places = self.shape(1)
        count, slice_, task = prod(places), prod(self.shape(0)[depth:]), Var("task")
        lanes = self.lanes(self.held)

        def some(p: Var, where: Expr, begin: Var, end: Expr) -> Stmt:
            """Elements ``begin`` to ``end`` of slice ``p``."""
            if slice_ < lanes:
                return loop(end, lambda i: combine(where + i, updates.load(p * slice_ + i)), begin)
            full = begin + (end - begin) // lanes * lanes
            i = Var("i")
            wide = For(
                i, begin, full, combine(where + i, updates.load(p * slice_ + i, lanes)), step=lanes
            )
            return seq(wide, loop(
                end, lambda i: combine(where + i, updates.load(p * slice_ + i)), full
            ))  # fmt: skip

        def one(p: Var, begin: Var) -> Stmt:
            end = minimum(begin + GRAIN, slice_)
            return self._place(indices, p, count, depth, lambda at: named(
                at * slice_, lambda where: some(p, where, begin, end)
            ))  # fmt: skip

        body = named(task * GRAIN, lambda begin: loop(count, lambda p: one(p, begin)))
        return draft.kernel(name, task, -(-slice_ // GRAIN), body)

    def _place(
        self, indices: Buffer, p: Var, count: int, depth: int, body: Callable[[Expr], Stmt]
    ) -> Stmt:
        """``body`` of the number of the slice that index tuple ``p`` names."""
        data = self.shape(0)

        def inner(m: int, at: Expr) -> Stmt:
            if m == depth:
                return body(at)
            return self.checked(
                indices.load(p + m * count), data[m], lambda i: inner(m + 1, at * data[m] + i)
            )

        return inner(0, wrap(0))
