"""argwhere, nonzero and compress: what a mask marks, found a vector of marks at a time.

Positions are found in two kernels: one counts the marks of every few thousand elements, the other
sums up what lies before and writes each part to its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ixion.kernel.data_schedule import DataSchedule, around
from ixion.kernel.draft import Cell, Draft, Placed, as_index, loop, named, number, vectors
from ixion.kernel.gather_chosen import Gathered, gather_chosen, numbers, within
from ixion.kernel.schedule import register_schedule
from ixion.kernel.sort_key import bits_of, carrier
from ixion.op.typed import attrs_of, op_name
from ixion.te.expr import Expr, LaneBits, Var, binary, cast, compare, intrinsic, minimum, wrap
from ixion.te.stmt import Buffer, If, Stmt, seq

PART = 8192  # elements whose marks are counted together
SLICES = 64  # slices that a task copies


def marked(raw: Expr, float_bits: int) -> Expr:
    """Lanes that are not zero; of a float without its sign."""
    if float_bits:
        raw = binary("and", raw, number((1 << (float_bits - 1)) - 1, raw.dtype, raw.lanes))
    return compare("ne", raw, number(0, raw.dtype, raw.lanes))


@register_schedule("argwhere", "nonzero")
class PositionSchedule(DataSchedule):
    """Positions of what is not zero: a row for each, or a row for each axis."""

    def kernels(self, name: str) -> list[Placed]:
        self.sizes = self.shape(0)
        self.count = prod(self.sizes)
        self.parts = max(-(-self.count // PART), 1)
        self.temps.append(8 * self.parts)
        return [self._counting(f"{name}_count"), self._writing(name)]

    def _mask(self, source: Buffer, begin: Expr, lanes: int, rest: Expr | None) -> Expr:
        raw = source.load(begin, lanes, 1, rest)
        is_float = self.dtype(0).startswith(("float", "bfloat"))
        return marked(raw, bits_of(self.dtype(0)) if is_float else 0)

    def _counting(self, name: str) -> Placed:
        draft, task = Draft(), Var("task")
        counts = draft.temp(0, "int64")
        source = draft.input(self.operand(0), carrier(self.dtype(0)))
        total, lanes = draft.cell("total"), self.target.lanes(source.dtype)

        def add(i: Var, rest: Expr | None) -> Stmt:
            mask = within(self._mask(source, task * PART + i, lanes, rest), rest)
            return total.add(intrinsic("popcount", LaneBits(mask)))

        walk = vectors(self._size(task), lanes, add)
        return draft.kernel(
            name, task, self.parts, seq(total.set(0), walk, counts.store(task, total.value))
        )

    def _size(self, task: Var) -> Expr:
        return minimum(wrap(PART), self.count - task * PART)

    def _writing(self, name: str) -> Placed:
        draft, task = Draft(), Var("task")
        out = draft.output(0, self.group.out_type.dtype)
        extents = draft.output(1, "int64")
        counts = draft.temp(0, "int64")
        source = draft.input(self.operand(0), carrier(self.dtype(0)))
        flat = draft.scratch("flat", "int32", PART)
        before, total, found = draft.cell("before"), draft.cell("total"), draft.cell("found")
        lanes = self.lanes("int32")
        collect = gather_chosen(
            self.target, self._size(task), lanes, found,
            lambda i, rest: self._mask(source, task * PART + i, lanes, rest),
            [Gathered(flat, 0, lambda i, rest: numbers(task * PART + i, lanes))],
        )  # fmt: skip
        body = seq(
            self._sums(task, counts, before, total), found.set(0), collect,
            self._report(task, extents, total.value),
            self._coordinates(out, flat, before.value, total.value, found.value),
        )  # fmt: skip
        return draft.kernel(name, task, self.parts, body)

    def _sums(self, task: Var, counts: Buffer, before: Cell, total: Cell) -> Stmt:
        """Marks before this part and in all parts."""

        def add(part: Var) -> Stmt:
            earlier = cast(compare("lt", part, task), "int64")
            return named(counts.load(part), lambda n: seq(
                before.add(n * earlier), total.add(n)
            ))  # fmt: skip

        return seq(before.set(0), total.set(0), loop(self.parts, add))

    def _report(self, task: Var, extents: Buffer, total: Expr) -> Stmt:
        shape: list[Expr] = [total, wrap(len(self.sizes))]
        if op_name(self.call) == "nonzero":
            shape.reverse()
        return If(compare("eq", task, 0), seq(extents.store(i, n) for i, n in enumerate(shape)))

    def _coordinates(
        self, out: Buffer, flat: Buffer, before: Expr, total: Expr, found: Expr
    ) -> Stmt:
        rank, lanes = len(self.sizes), self.lanes("int32")

        def line(axis: int) -> Stmt:
            return vectors(found, lanes, lambda j, rest: out.store(
                total * axis + before + j,
                cast(self._coordinate(flat.load(j, lanes, 1, rest), axis), out.dtype), rest,
            ))  # fmt: skip

        if op_name(self.call) == "nonzero":
            return seq(line(axis) for axis in range(rank))
        return loop(found, lambda j: named(flat.load(j), lambda at: seq(
            out.store((before + j) * rank + axis, cast(self._coordinate(at, axis), out.dtype))
            for axis in range(rank)
        )))  # fmt: skip

    def _coordinate(self, flat: Expr, axis: int) -> Expr:
        """One coordinate of flat positions."""
        step, size = prod(self.sizes[axis + 1 :]), self.sizes[axis]
        if step > 1:
            flat = binary("floordiv", flat, number(step, flat.dtype, flat.lanes))
        return binary("floormod", flat, number(size, flat.dtype, flat.lanes)) if axis else flat


@register_schedule("compress")
class CompressSchedule(DataSchedule):
    """Chosen slices: single elements by vectors, longer slices one after another."""

    def kernels(self, name: str) -> list[Placed]:
        shape, axis = self.shape(0), attrs_of(self.call).axis
        self.data_shape: Sequence[int] = (prod(shape),) if axis is None else shape
        self.axis = 0 if axis is None else axis % len(shape)
        self.outer, self.n, self.inner = around(self.data_shape, self.axis)
        self.looked_at = min(self.n, self.shape(1)[0])
        if self.inner == 1 and self.outer:
            return [self._elements(name)]
        self.temps += [4 * max(self.looked_at, 1), 8]
        return [self._places(f"{name}_places"), self._slices(name)]

    def _report(self, extents: Buffer, count: Expr) -> Stmt:
        shape = [wrap(n) for n in self.data_shape]
        shape[self.axis] = count
        return seq(extents.store(i, n) for i, n in enumerate(shape))

    def _mask(self, condition: Buffer, i: Expr, lanes: int, rest: Expr | None) -> Expr:
        return marked(condition.load(i, lanes, 1, rest), 0)

    def _elements(self, name: str) -> Placed:
        """Rows of elements; a row's last vector reaches into the next, which is written later."""
        draft, task = Draft(), Var("task")
        kind = carrier(self.dtype(0))
        out, extents = draft.output(0, kind), draft.output(1, "int64")
        source = draft.input(self.operand(0), kind)
        condition = draft.input(self.operand(1), "uint8")
        found, wide = draft.cell("found"), kind if bits_of(kind) >= 32 else "uint32"
        lanes, count = self.lanes(wide), draft.cell("count")

        def row(r: Var) -> Stmt:
            return gather_chosen(
                self.target, self.looked_at, lanes, found,
                lambda i, rest: self._mask(condition, i, lanes, rest),
                [Gathered(out, 0, lambda i, rest: cast(
                    source.load(r * self.n + i, lanes, 1, rest), wide
                ))],
            )  # fmt: skip

        body = seq(
            found.set(0), loop(self.outer, lambda r: seq(row(r), self._first(r, count, found))),
            self._report(extents, count.value),
        )  # fmt: skip
        return draft.kernel(name, task, 1, seq(count.set(0), body))

    def _first(self, row: Var, count: Cell, found: Cell) -> Stmt:
        return If(compare("eq", row, 0), count.set(found.value))

    def _places(self, name: str) -> Placed:
        draft, task = Draft(), Var("task")
        places, total = draft.temp(0, "int32"), draft.temp(1, "int64")
        condition = draft.input(self.operand(1), "uint8")
        found, lanes = draft.cell("found"), self.lanes("int32")
        collect = gather_chosen(
            self.target, self.looked_at, lanes, found,
            lambda i, rest: self._mask(condition, i, lanes, rest),
            [Gathered(places, 0, lambda i, rest: numbers(i, lanes))],
        )  # fmt: skip
        return draft.kernel(name, task, 1, seq(found.set(0), collect, total.store(0, found.value)))

    def _slices(self, name: str) -> Placed:
        draft, task = Draft(), Var("task")
        kind = carrier(self.dtype(0))
        out, extents = draft.output(0, kind), draft.output(1, "int64")
        places, total = draft.temp(0, "int32"), draft.temp(1, "int64")
        source = draft.input(self.operand(0), kind)
        lanes, groups = self.target.lanes(kind), max(-(-self.looked_at // SLICES), 1)

        def one(row: Expr, count: Expr, j: Var) -> Stmt:
            start = (row * self.n + as_index(places.load(j))) * self.inner
            target = (row * count + j) * self.inner
            return named(start, lambda a: named(target, lambda b: vectors(
                self.inner, lanes, lambda i, rest: out.store(
                    b + i, source.load(a + i, lanes, 1, rest), rest
                ))))  # fmt: skip

        def some(count: Var) -> Stmt:
            row, first = task // groups, task % groups * SLICES
            report = If(compare("eq", task, 0), self._report(extents, count))
            last = minimum(first + SLICES, count) if self.outer else wrap(0)
            return seq(report, loop(last, lambda j: one(row, count, j), first))

        return draft.kernel(name, task, self.outer * groups, named(total.load(0), some))
