"""Greedy suppression of boxes in loop nests, by the rules of ``ixion.op.overlap``, bit for bit.

Boxes that were kept lie as edges and areas, each an array of its own, so that a candidate is
compared with a vector of them at a time; the first that suppresses it ends the comparing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ixion.kernel.draft import Draft, number, vectors
from ixion.kernel.gather_chosen import within
from ixion.op.overlap import Rule
from ixion.te.expr import (
    Expr,
    LaneBits,
    Var,
    broadcast,
    compare,
    logical_and,
    maximum,
    minimum,
    select,
)
from ixion.te.stmt import Buffer, If, Let, Stmt, seq

_EDGES = ("low", "high", "left", "right", "area")


def working(dtype: str) -> str:
    """The dtype in which boxes of ``dtype`` are compared."""
    return "float64" if dtype == "float64" else "float32"


def edges(rule: Rule, box: Sequence[Expr]) -> tuple[Expr, Expr, Expr, Expr]:
    """Low and high edge of a box along the first axis, then along the second."""
    a, b, c, d = box
    if rule == "given":
        return a, c, b, d
    if rule == "center":
        half_c, half_d = c / 2.0, d / 2.0
        return a - half_c, a + half_c, b - half_d, b + half_d
    return minimum(a, c), maximum(a, c), minimum(b, d), maximum(b, d)


class Greedy:
    """Kept boxes, at most ``capacity``, and whether a candidate is suppressed by one of them."""

    def __init__(
        self, draft: Draft, rule: Rule, dtype: str, capacity: int, lanes: int, labels: bool = False
    ) -> None:
        self.rule, self.dtype, self.lanes = rule, dtype, lanes
        self.kept = draft.cell("kept")
        self.hit = draft.cell("hit")
        self.arrays = [draft.scratch(name, dtype, max(capacity, 1)) for name in _EDGES]
        self.mine = [Var(name, dtype) for name in _EDGES]  # of the candidate
        self.label: Buffer | None = None
        if labels:
            self.label = draft.scratch("label", dtype, max(capacity, 1))

    def compare(
        self, box: Sequence[Expr], threshold: Expr, label: Expr | None, body: Stmt
    ) -> Stmt:
        """``body`` where no kept box suppresses the candidate ``box``; it may ``keep`` it.

        With labels, a kept box of a negative one suppresses nothing; with ``label`` only boxes
        that have it do.
        """
        *sides, area = self.mine
        found = edges(self.rule, box)
        size = (sides[1] - sides[0]) * (sides[3] - sides[2])

        def chunk(i: Var, rest: Expr | None) -> Stmt:
            others = [a.load(i, self.lanes, 1, rest) for a in self.arrays]
            mask = self._suppresses(others, threshold)
            if self.label is not None:
                labels = self.label.load(i, self.lanes, 1, rest)
                zero = number(0, self.dtype, self.lanes)
                mask = logical_and(mask, compare("ge", labels, zero))
                if label is not None:
                    mask = logical_and(mask, compare("eq", labels, broadcast(label, self.lanes)))
            found = self.hit.set(LaneBits(within(mask, rest)))
            return If(compare("eq", self.hit.value, 0), found)

        walk = seq(
            self.hit.set(0), vectors(self.kept.value, self.lanes, chunk),
            If(compare("eq", self.hit.value, 0), body),
        )  # fmt: skip
        walk = Let(area, size, walk)
        for side, value in zip(sides, found, strict=True):
            walk = Let(side, value, walk)
        return walk

    def keep(self, label: Expr | None = None) -> Stmt:
        """Adds the candidate of the surrounding ``compare``."""
        at = self.kept.value
        stores = [a.store(at, v) for a, v in zip(self.arrays, self.mine, strict=True)]
        if self.label is not None and label is not None:
            stores.append(self.label.store(at, label))
        return seq(stores, self.kept.add(1))

    def _suppresses(self, others: Sequence[Expr], threshold: Expr) -> Expr:
        low, high, left, right, area = (broadcast(v, self.lanes) for v in self.mine)
        lows, highs, lefts, rights, areas = others
        zero, limit = number(0, self.dtype, self.lanes), broadcast(threshold, self.lanes)
        wide = minimum(high, highs) - maximum(low, lows)
        tall = minimum(right, rights) - maximum(left, lefts)
        if self.rule in ("relay", "given"):
            wide, tall = maximum(wide, zero), maximum(tall, zero)
        inner = wide * tall
        union = area + areas - inner
        ratio = inner / union
        if self.rule == "given":
            return compare("gt", ratio, limit)
        if self.rule == "relay":
            share = select(compare("le", union, zero), zero, ratio)
            return compare("ge", share, limit)
        mask = compare("gt", ratio, limit)
        for size in (wide, tall, inner, area, areas, union):
            mask = logical_and(mask, compare("gt", size, zero))
        return mask
