"""Suppression of one list of boxes: torchvision's nms, Relay's rows, and what precedes those."""

from __future__ import annotations

from math import prod

import numpy as np

from ixion.kernel.candidates import Candidates
from ixion.kernel.data_schedule import DataSchedule
from ixion.kernel.draft import Draft, Placed, as_index, loop, named, number
from ixion.kernel.greedy import Greedy, working
from ixion.kernel.schedule import register_schedule
from ixion.kernel.sort_key import carrier
from ixion.op.typed import attrs_of
from ixion.te.expr import (
    Const,
    Expr,
    Var,
    cast,
    compare,
    logical_and,
    logical_or,
    maximum,
    minimum,
    wrap,
)
from ixion.te.stmt import Buffer, If, Let, Stmt, seq


@register_schedule("vision.keep_boxes")
class KeepBoxes(DataSchedule):
    """One task; the result is the list of what was kept."""

    def kernels(self, name: str) -> list[Placed]:
        draft, task, n = Draft(self.temps), Var("task"), self.shape(1)[0]
        out, extents = draft.output(0, "int64"), draft.output(1, "int64")
        boxes = draft.input(self.operand(0), self.dtype(0))
        scores = draft.input(self.operand(1), carrier(self.dtype(1)))
        kind = working(self.dtype(0))
        greedy = Greedy(draft, "given", kind, n, self.lanes(kind))
        able = Candidates(draft, self.target, n, self.dtype(1))
        edge = Const(_at_most(attrs_of(self.call).iou_threshold, kind), kind)

        def one(place: Var) -> Stmt:
            box = [cast(boxes.load(place * 4 + k), kind) for k in range(4)]
            keep = seq(out.store(greedy.kept.value, place), greedy.keep())
            return greedy.compare(box, edge, None, keep)

        collect = able.collect(scores, wrap(0), lambda score: None)
        walk = loop(able.count, lambda i: named(able.place(i), one))
        body = seq(greedy.kept.set(0), collect, walk, extents.store(0, greedy.kept.value))
        return [draft.kernel(name, task, 1, body)]


def _at_most(threshold: float, dtype: str) -> float:
    """The largest number of a dtype that is no larger: what exceeds one exceeds the other."""
    if dtype == "float64":
        return threshold
    near = np.float32(threshold)
    return float(np.nextafter(near, np.float32(-np.inf)) if float(near) > threshold else near)


@register_schedule("vision.non_max_suppression")
class RowSuppression(DataSchedule):
    """Rows of boxes with score and class; a task for each batch."""

    def kernels(self, name: str) -> list[Placed]:
        self.batch, self.n, self.columns = self.shape(0)
        self.attrs, self.kind = attrs_of(self.call), self.dtype(0)
        draft, task = Draft(), Var("task")
        if self.attrs.return_indices:
            self.out, self.total = draft.output(0, "int32"), draft.output(1, "int32")
        else:
            self.out = draft.output(0, self.kind)
        self.data = draft.input(self.operand(0), self.kind)
        bits = draft.param(draft.places[-1], carrier(self.kind), "bits")
        valid = draft.input(self.operand(1), self.dtype(1))
        self.indices = draft.input(self.operand(2), self.dtype(2))
        most = draft.input(self.operand(3), self.dtype(3)).load(0)
        threshold = draft.input(self.operand(4), self.dtype(4)).load(0)
        kind = working(self.kind)
        self.greedy = Greedy(
            draft, "relay", kind, self.n, self.lanes(kind), labels=self.attrs.id_index >= 0
        )
        self.able = Candidates(draft, self.target, self.n, self.kind)
        # The row at each place of the result, -1 for none.
        self.rows = draft.scratch("rows", "int32", max(self.n, 1))
        self.count, self.limit = Var("count"), Var("limit")
        self.edge = Var("edge", kind)
        live = minimum(maximum(as_index(valid.load(task)), 0), self.n)
        some = compare("gt", self.edge, number(0, kind))
        body = seq(If(some, self._choose(task, bits), self._as_they_are()), self._give(task))
        body = Let(self.count, live, Let(self.limit, as_index(most), body))
        return [draft.kernel(name, task, self.batch, Let(self.edge, cast(threshold, kind), body))]

    def _element(self, task: Var, row: Expr, column: int) -> Expr:
        place = (task * self.n + row) * self.columns + column
        return cast(self.data.load(place), working(self.kind))

    def _as_they_are(self) -> Stmt:
        return loop(self.count, lambda j: self.rows.store(j, cast(j, "int32")))

    def _choose(self, task: Var, bits: Buffer) -> Stmt:
        begin = task * (self.n * self.columns) + self.attrs.score_index
        collect = self.able.collect(bits, begin, lambda score: None, self.columns, self.count)
        walk = loop(self.count, lambda j: named(
            self.able.place(j), lambda row: self._decide(task, j, row)
        ))  # fmt: skip
        return seq(self.greedy.kept.set(0), collect, walk)

    def _decide(self, task: Var, place: Var, row: Var) -> Stmt:
        greedy, kind = self.greedy, working(self.kind)
        over = compare("eq", greedy.kept.value, self.limit)
        if self.attrs.top_k > 0:
            over = logical_or(over, compare("ge", place, self.attrs.top_k))
        stays = self.rows.store(place, cast(row, "int32"))
        goes = self.rows.store(place, number(-1, "int32"))
        score = self._element(task, row, self.attrs.score_index)
        box = [self._element(task, row, self.attrs.coord_start + k) for k in range(4)]
        label = None
        if self.attrs.id_index >= 0:
            label = self._element(task, row, self.attrs.id_index)
        mine = None if self.attrs.force_suppress else label
        compared = seq(goes, greedy.compare(box, self.edge, mine, seq(stays, greedy.keep(label))))
        counted = If(compare("gt", score, number(0, kind)), compared, stays)
        return If(over, goes, counted)

    def _give(self, task: Var) -> Stmt:
        """Rows or their indices, at their places or one after another; the rest is -1."""
        together = self.attrs.return_indices or self.attrs.invalid_to_bottom
        at = self.able.found  # free again once rows are chosen

        def one(j: Var, row: Var) -> Stmt:
            put = seq(self._put(task, at.value, row), at.add(1))
            kept = compare("ge", row, 0)
            if together:
                return If(kept, put)
            return If(kept, put, seq(self._blank(task, at.value), at.add(1)))

        walk = loop(self.count, lambda j: named(
            as_index(self.rows.load(j)), lambda row: one(j, row)
        ))  # fmt: skip
        rest = loop(self.n, lambda j: self._blank(task, j), at.value)
        total: Stmt = seq(())
        if self.attrs.return_indices:
            total = self.total.store(task, cast(at.value, "int32"))
        return seq(at.set(0), walk, total, rest)

    def _put(self, task: Var, at: Expr, row: Expr) -> Stmt:
        place, source = task * self.n + at, task * self.n + row
        if self.attrs.return_indices:
            return self.out.store(place, cast(self.indices.load(source), "int32"))
        return loop(self.columns, lambda c: self.out.store(
            place * self.columns + c, self.data.load(source * self.columns + c)
        ))  # fmt: skip

    def _blank(self, task: Var, at: Expr) -> Stmt:
        place = task * self.n + at
        if self.attrs.return_indices:
            return self.out.store(place, number(-1, "int32"))
        none = Const(-1.0, self.kind)
        return loop(self.columns, lambda c: self.out.store(place * self.columns + c, none))


@register_schedule("vision.get_valid_counts")
class ValidCounts(DataSchedule):
    """Rows that count moved to the front; a task for each batch."""

    def kernels(self, name: str) -> list[Placed]:
        batch, n, columns = self.shape(0)
        attrs, kind = attrs_of(self.call), self.dtype(0)
        draft, task = Draft(), Var("task")
        counts, rows = draft.output(0, "int32"), draft.output(1, kind)
        places = draft.output(2, "int32")
        data = draft.input(self.operand(0), kind)
        threshold, wide = draft.input(self.operand(1), self.dtype(1)), working(kind)
        found, least = draft.cell("found"), Var("least", wide)

        def row(at: Expr, value: Expr, source: Expr | None) -> Stmt:
            none = Const(-1.0, kind)
            copy = loop(columns, lambda c: rows.store(
                (task * n + at) * columns + c, none if source is None else data.load(source + c)
            ))  # fmt: skip
            return seq(copy, places.store(task * n + at, cast(value, "int32")))

        def one(j: Var, source: Var) -> Stmt:
            score = cast(data.load(source + attrs.score_index), wide)
            counted = compare("gt", score, least)
            if attrs.id_index >= 0:
                label = cast(data.load(source + attrs.id_index), wide)
                counted = logical_and(counted, compare("ge", label, number(0, wide)))
            return If(counted, seq(row(found.value, j, source), found.add(1)))

        walk = loop(n, lambda j: named((task * n + j) * columns, lambda s: one(j, s)))
        rest = loop(n, lambda j: row(j, wrap(-1), None), found.value)
        body = seq(found.set(0), walk, rest, counts.store(task, cast(found.value, "int32")))
        given = threshold.load(0) if prod(self.shape(1)) else number(-1, threshold.dtype)
        return [draft.kernel(name, task, batch, Let(least, cast(given, wide), body))]

