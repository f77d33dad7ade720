"""Non-maximum suppression by class: ONNX's, and Relay's for all classes.

Boxes whose score is high enough are collected, sorted by score and chosen greedily; classes are
tasks.  A second kernel puts what they chose one after another.
"""

from __future__ import annotations

from math import prod

from ixion.kernel.candidates import Candidates
from ixion.kernel.data_schedule import DataSchedule
from ixion.kernel.draft import Draft, Placed, as_index, loop, named, number, vectors
from ixion.kernel.greedy import Greedy, working
from ixion.kernel.schedule import register_schedule
from ixion.kernel.sort_key import carrier
from ixion.op.overlap import Rule
from ixion.op.typed import attrs_of, shape_of
from ixion.te.expr import (
    Const,
    Expr,
    Var,
    cast,
    compare,
    logical_and,
    maximum,
    minimum,
    select,
    wrap,
)
from ixion.te.stmt import Buffer, If, Let, Stmt, seq


class ByClass(DataSchedule):
    """Boxes (batch, n, 4) and scores (batch, classes, n): one task for each batch and class."""

    def kernels(self, name: str) -> list[Placed]:
        self.batch, self.classes, self.n = self.shape(1)
        self.rows = self.batch * self.classes
        self.room = self.most_kept()
        self.temps += [4 * max(self.rows * self.room, 1), 8 * max(self.rows, 1)]
        return [self._choosing(f"{name}_choose"), self.giving(name)]

    def rule(self) -> Rule:
        raise TypeError(type(self).__name__)

    def most_kept(self) -> int:
        """As many boxes of a class as there is room for in the result."""
        return self.n

    def counts(self, score: Expr, least: Expr) -> Expr | None:
        """Whether scores count, None if all do."""
        return compare("gt", score, least)

    def limit(self, most: Expr) -> Expr:
        """How many boxes of a class may be kept."""
        return minimum(maximum(most, 0), self.room)

    def giving(self, name: str) -> Placed:
        raise TypeError(type(self).__name__)

    def _number(self, draft: Draft, argument: int) -> Expr:
        """A scalar argument; 0 where it is an empty tensor."""
        buffer = draft.input(self.operand(argument), self.dtype(argument))
        return buffer.load(0) if prod(self.shape(argument)) else number(0, buffer.dtype)

    def _choosing(self, name: str) -> Placed:
        draft, task = Draft(), Var("task")
        chosen, counts = draft.temp(0, "int32"), draft.temp(1, "int64")
        boxes = draft.input(self.operand(0), self.dtype(0))
        scores = draft.input(self.operand(1), carrier(self.dtype(1)))
        most, threshold, least = (self._number(draft, i) for i in (2, 3, 4))
        kind = working(self.dtype(0))
        greedy = Greedy(draft, self.rule(), kind, self.room, self.lanes(kind))
        able = Candidates(draft, self.target, self.n, self.dtype(1))
        limit, edge, low = Var("limit"), Var("edge", kind), Var("low", working(self.dtype(1)))

        def one(place: Var) -> Stmt:
            note = chosen.store(task * self.room + greedy.kept.value, cast(place, "int32"))
            box = [
                cast(boxes.load(task // self.classes * (self.n * 4) + place * 4 + k), kind)
                for k in range(4)
            ]
            compared = greedy.compare(box, edge, None, seq(note, greedy.keep()))
            return self.decided(
                able.value(scores.load(task * self.n + place)), compared,
                seq(note, greedy.kept.add(1)),
            )  # fmt: skip

        collect = able.collect(scores, task * self.n, lambda score: self.counts(score, low))
        walk = loop(able.count, lambda i: If(
            compare("lt", greedy.kept.value, limit), named(able.place(i), one)
        ))  # fmt: skip
        body = seq(
            greedy.kept.set(0), If(self.possible(edge, limit), seq(collect, walk)),
            counts.store(task, greedy.kept.value),
        )  # fmt: skip
        body = Let(limit, self.limit(as_index(most)), Let(low, cast(least, low.dtype), body))
        return draft.kernel(name, task, self.rows, Let(edge, cast(threshold, kind), body))

    def possible(self, edge: Expr, limit: Expr) -> Expr:
        """Whether any box can be chosen."""
        return compare("gt", limit, 0)

    def decided(self, score: Expr, compared: Stmt, keep: Stmt) -> Stmt:
        return compared


@register_schedule("vision.select_boxes")
class SelectBoxes(ByClass):
    """Rows of batch, class and box."""

    def rule(self) -> Rule:
        return "center" if attrs_of(self.call).center_point_box else "corner"

    def most_kept(self) -> int:
        return int(shape_of(self.group.out_type)[0]) // max(self.rows, 1)

    def counts(self, score: Expr, least: Expr) -> Expr | None:
        return super().counts(score, least) if attrs_of(self.call).limited else None

    def giving(self, name: str) -> Placed:
        draft, task = Draft(), Var("task")
        out, extents = draft.output(0, "int64"), draft.output(1, "int64")
        rows = BoxRows(self, draft, out)
        body = seq(rows.write(), extents.store(0, rows.total.value), extents.store(1, wrap(3)))
        return draft.kernel(name, task, 1, body)


class BoxRows:
    """Rows (batch, class, box) of what all classes chose, one after another."""

    def __init__(self, schedule: ByClass, draft: Draft, out: Buffer) -> None:
        self.schedule, self.out = schedule, out
        self.chosen, self.counts = draft.temp(0, "int32"), draft.temp(1, "int64")
        self.total = draft.cell("total")

    def write(self) -> Stmt:
        """``total`` becomes the number of rows."""
        schedule = self.schedule

        def one(row: Var, j: Var) -> Stmt:
            at = (self.total.value + j) * 3
            box = as_index(self.chosen.load(row * schedule.room + j))
            parts = (row // schedule.classes, row % schedule.classes, box)
            return seq(self.out.store(at + k, part) for k, part in enumerate(parts))

        def class_(row: Var) -> Stmt:
            return named(self.counts.load(row), lambda n: seq(
                loop(n, lambda j: one(row, j)), self.total.add(n)
            ))  # fmt: skip

        return seq(self.total.set(0), loop(schedule.rows, class_))


@register_schedule("vision.all_class_non_max_suppression")
class AllClasses(ByClass):
    """Relay's: results of a fixed size, and how much of them counts."""

    def rule(self) -> Rule:
        return "relay"

    def counts(self, score: Expr, least: Expr) -> Expr | None:
        lowest = Const(-1.0, score.dtype, score.lanes)
        return logical_and(compare("gt", score, least), compare("gt", score, lowest))

    def limit(self, most: Expr) -> Expr:
        """No positive limit means none."""
        return select(compare("gt", most, 0), minimum(most, self.room), wrap(self.room))

    def possible(self, edge: Expr, limit: Expr) -> Expr:
        return compare("gt", edge, number(0, edge.dtype))

    def decided(self, score: Expr, compared: Stmt, keep: Stmt) -> Stmt:
        """Only a positive score can be suppressed."""
        return If(compare("gt", score, number(0, score.dtype)), compared, keep)

    def giving(self, name: str) -> Placed:
        if attrs_of(self.call).output_format == "onnx":
            return self._rows(name)
        return self._pairs(name)

    def _rows(self, name: str) -> Placed:
        draft, task = Draft(), Var("task")
        out, total = draft.output(0, "int64"), draft.output(1, "int64")
        rows, lanes = BoxRows(self, draft, out), self.target.lanes("int64")
        zero = number(0, "int64", lanes)

        def clear(filled: Var) -> Stmt:
            return vectors(3 * self.rows * self.n - filled, lanes, lambda i, rest: out.store(
                filled + i, zero, rest
            ))  # fmt: skip

        body = seq(
            rows.write(), total.store(0, rows.total.value), named(rows.total.value * 3, clear)
        )
        return draft.kernel(name, task, 1, body)

    def _pairs(self, name: str) -> Placed:
        """For each batch, class and box with their score."""
        draft, task = Draft(), Var("task")
        pairs, values = draft.output(0, "int64"), draft.output(1, "float32")
        totals = draft.output(2, "int64")
        chosen, counts = draft.temp(0, "int32"), draft.temp(1, "int64")
        scores, found = draft.input(self.operand(1), self.dtype(1)), draft.cell("found")
        room = self.classes * self.n

        def one(c: Var, box: Var) -> Stmt:
            row, at = task * self.classes + c, task * room + found.value
            return seq(
                pairs.store(at * 2, c), pairs.store(at * 2 + 1, box),
                values.store(at, cast(scores.load(row * self.n + box), "float32")), found.add(1),
            )  # fmt: skip

        def class_(c: Var) -> Stmt:
            row = task * self.classes + c
            return loop(counts.load(row), lambda j: named(
                as_index(chosen.load(row * self.room + j)), lambda box: one(c, box)
            ))  # fmt: skip

        def clear(i: Var) -> Stmt:
            at = task * room + i
            return seq(
                pairs.store(at * 2, wrap(0)), pairs.store(at * 2 + 1, wrap(0)),
                values.store(at, number(0, "float32")),
            )  # fmt: skip

        body = seq(
            found.set(0), loop(self.classes, class_), totals.store(task, found.value),
            loop(room, clear, found.value),
        )  # fmt: skip
        return draft.kernel(name, task, self.batch, body)
