"""cumsum and cumprod: running sums and products in float64 or int64.

Rows that lie beside each other run in the lanes of a vector.  A single row of sums is scanned a
vector at a time: lanes are added to their neighbours at distances 1, 2, 4 (Hillis and Steele, Data
Parallel Algorithms, 1986), then comes the sum of all before.  Products, and sums of float64, keep
the order of the elements, because only that order overflows where the reference does.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ixion.base import dtype as dtypes
from ixion.kernel.data_schedule import DataSchedule, around
from ixion.kernel.draft import Cell, Draft, Placed, loop, named, number, runs, vectors
from ixion.kernel.schedule import register_schedule
from ixion.op.typed import attrs_of, op_name
from ixion.te.expr import Expr, Shuffle, Var, binary, cast, compare, minimum
from ixion.te.stmt import If, Let, Stmt, seq

GRAIN = 8192  # elements of a task
BESIDE = 8  # vectors of rows that lie beside each other
TOGETHER = 4  # rows whose elements are added in turn: an addition takes that long


@register_schedule("cumsum", "cumprod")
class ScanSchedule(DataSchedule):
    """Along an axis of whatever lies before and behind it."""

    def kernels(self, name: str) -> list[Placed]:
        draft, attrs = Draft(), attrs_of(self.call)
        shape: Sequence[int] = self.shape(0)
        shape, axis = ((prod(shape),), 0) if attrs.axis is None else (shape, attrs.axis)
        self.outer, self.n, self.inner = around(shape, axis)
        self.out = draft.output(0, self.group.out_type.dtype)
        self.source = draft.input(self.operand(0), self.dtype(0))
        floats = dtypes.is_float(self.out.dtype) or dtypes.is_float(self.source.dtype)
        self.wide = "float64" if floats else "int64"
        self.op = "add" if op_name(self.call) == "cumsum" else "mul"
        self.wide_lanes = self.target.lanes(self.wide)
        task, tasks, body = self._ways(draft)
        return [draft.kernel(name, task, tasks, body)]

    def _ways(self, draft: Draft) -> tuple[Var, int, Stmt]:
        if self.inner >= self.wide_lanes:
            return self._across(draft)
        free = self.op == "add" and self.source.dtype != "float64"
        if free and self.inner == 1 and self.n >= 4 * self.wide_lanes:
            total = draft.cell("total", self.wide, self.wide_lanes)
            return runs(self.outer, max(1, GRAIN // self.n), lambda r: self._along(r, total))
        cells = [draft.cell(f"total{i}", self.wide) for i in range(TOGETHER)]
        rows = self.outer * self.inner
        groups = -(-rows // TOGETHER)
        grain = max(1, GRAIN // max(self.n * TOGETHER, 1))
        return runs(groups, grain, lambda g: self._together(g, rows, cells))

    @property
    def identity(self) -> int:
        return 0 if self.op == "add" else 1

    def _value(self, at: Expr, lanes: int = 1, rest: Expr | None = None) -> Expr:
        return cast(self.source.load(at, lanes, 1, rest), self.wide)

    def _step(self, total: Cell, at: Expr, lanes: int, rest: Expr | None) -> Stmt:
        """One more element (of each lane's row) at ``at``."""
        add = total.set(binary(self.op, total.value, self._value(at, lanes, rest)))
        store = self.out.store(at, self._narrow(total.value), rest)
        return seq(store, add) if attrs_of(self.call).exclusive else seq(add, store)

    def _narrow(self, value: Expr) -> Expr:
        return cast(value, self.out.dtype)

    def _across(self, draft: Draft) -> tuple[Var, int, Stmt]:
        """Rows beside each other: a few vectors of them at a time, then one by one."""
        lanes = self.wide_lanes
        block = lanes * BESIDE
        cells = [draft.cell(f"total{c}", self.wide, lanes) for c in range(BESIDE)]
        parts = -(-self.inner // block)

        def walk(begin: Expr, some: Sequence[Cell], rest: Expr | None) -> Stmt:
            reset = seq(c.set(number(self.identity, self.wide, lanes)) for c in some)
            return seq(reset, loop(self.n, lambda i: seq(
                self._step(cell, begin + i * self.inner + c * lanes, lanes, rest)
                for c, cell in enumerate(some)
            )))  # fmt: skip

        def column(part: Var) -> Stmt:
            begin = part // parts * (self.n * self.inner)
            at = part % parts * block
            single = vectors(self.inner - at, lanes, lambda i, rest: walk(
                begin + at + i, cells[:1], rest
            ))  # fmt: skip
            return If(compare("le", at + block, self.inner), walk(begin + at, cells, None), single)

        return runs(self.outer * parts, max(1, GRAIN // max(self.n * block, 1)), column)

    def _together(self, group: Var, rows: int, cells: Sequence[Cell]) -> Stmt:
        """A few rows, an element of each in turn."""
        reset = seq(c.set(number(self.identity, self.wide)) for c in cells)

        def begin(row: Expr) -> Expr:
            return row // self.inner * (self.n * self.inner) + row % self.inner

        # The last group ends with the last row, so it may repeat some of the one before.
        first = minimum(group * TOGETHER, max(rows - TOGETHER, 0))
        starts = [Var(f"start{i}") for i in range(min(TOGETHER, rows))]
        body: Stmt = seq(reset, loop(self.n, lambda i: seq(
            self._step(cell, start + i * self.inner, 1, None)
            for cell, start in zip(cells, starts, strict=False)
        )))  # fmt: skip
        for i, start in enumerate(starts):
            body = Let(start, begin(first + i), body)
        return body

    def _along(self, row: Var, total: Cell) -> Stmt:
        """One row, a vector of neighbours at a time; ``total`` is the last sum in every lane."""
        lanes = self.wide_lanes
        zero = number(0, self.wide, lanes)
        last = (lanes - 1,) * lanes
        shifted = (lanes, *range(lanes - 1))

        def scanned(values: Expr) -> Expr:
            step = 1
            while step < lanes:
                picks = tuple(lanes + i if i < step else i - step for i in range(lanes))
                values = values + Shuffle(values, zero, picks)
                step *= 2
            return values

        def one(i: Var, rest: Expr | None) -> Stmt:
            at = row * self.n + i
            return named(self._value(at, lanes, rest), lambda v: named(
                scanned(v), lambda s: named(s + total.value, lambda sums: seq(
                    self.out.store(at, self._narrow(self._given(sums, total, shifted)), rest),
                    total.set(Shuffle(sums, sums, last)),
                ))))  # fmt: skip

        return seq(total.set(zero), vectors(self.n, lanes, one))

    def _given(self, sums: Expr, total: Cell, shifted: tuple[int, ...]) -> Expr:
        """What is stored: the sums, or those that leave the element itself out."""
        return Shuffle(sums, total.value, shifted) if attrs_of(self.call).exclusive else sums
