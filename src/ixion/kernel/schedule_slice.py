"""strided_slice with bounds known at run time: the sizes follow from them inside the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ixion.base import abi
from ixion.base.target import Target
from ixion.kernel.data_schedule import DataSchedule
from ixion.kernel.draft import Cell, Draft, Placed, as_index, loop, named, vectors
from ixion.kernel.group import Group
from ixion.kernel.schedule import register_schedule
from ixion.kernel.sort_key import carrier
from ixion.op.typed import attrs_of, shape_of
from ixion.te.expr import Expr, Var, compare, maximum, minimum, select, wrap
from ixion.te.stmt import Buffer, Fault, If, Stmt, seq

_FAR = 1 << 61  # beyond any size, and small enough that sums stay below 2^63


@dataclass(frozen=True)
class Cut:
    """An axis that is cut: the first position, how many there are, and the step."""

    size: int
    first: Cell
    count: Cell
    step: Cell


@register_schedule("dyn.strided_slice")
class SliceSchedule(DataSchedule):
    """Axes behind the last one that is cut are copied as they lie."""

    @classmethod
    def accepts(cls, group: Group, target: Target) -> bool:
        return len(group.out_types) == 2

    def kernels(self, name: str) -> list[Placed]:
        draft, task = Draft(), Var("task")
        shape, kind = self.shape(0), carrier(self.dtype(0))
        self.out, self.extents = draft.output(0, kind), draft.output(1, "int64")
        self.source = draft.input(self.operand(0), kind)
        lists = [draft.input(self.operand(i), self.dtype(i)) for i in (1, 2, 3)]
        self.at = draft.cell("at")
        self.cuts: dict[int, Cut] = {}
        settle = []
        for j, axis in enumerate(_listed(self.group)):
            cells = (draft.cell(f"{word}{axis}") for word in ("first", "count", "step"))
            cut = self.cuts[axis] = Cut(shape[axis], *cells)
            settle.append(self._settle(cut, j, lists))
        report = [
            self.extents.store(d, self.cuts[d].count.value if d in self.cuts else wrap(n))
            for d, n in enumerate(shape)
        ]
        body = seq(settle, report, self.at.set(0), self._copy(0, wrap(0)))
        return [draft.kernel(name, task, 1, body)]

    def _settle(self, cut: Cut, j: int, lists: list[Buffer]) -> Stmt:
        """Numpy's slice of one axis; only a step of 0 is refused."""
        begin, end, strides = lists
        sized = attrs_of(self.call).slice_mode == "size"
        stated = j < self.shape(3)[0] and not sized
        step = as_index(strides.load(j)) if stated else wrap(1)
        start = _between(as_index(begin.load(j)), -_FAR, _FAR)
        stop = _between(as_index(end.load(j)), -_FAR, _FAR)
        if sized:
            stop = select(compare("lt", stop, 0), wrap(2 * _FAR), start + stop)

        def bounds(step: Var) -> Stmt:
            back = compare("lt", step, 0)
            low = select(back, wrap(-1), wrap(0))
            high = select(back, wrap(cut.size - 1), wrap(cut.size))
            first, last = (
                _between(select(compare("lt", v, 0), v + cut.size, v), low, high)
                for v in (start, stop)
            )
            span = select(back, first - last, last - first)
            width = select(back, wrap(0) - step, step)
            count = maximum((span + width - 1) // width, 0)
            return seq(cut.first.set(first), cut.count.set(count), cut.step.set(step))

        # A longer step than the axis picks one element, as the axis itself would.
        short = _between(step, -(cut.size + 1), cut.size + 1)
        refuse = If(compare("eq", step, 0), Fault(int(abi.Fault.VALUE), step))
        return seq(refuse, named(short, bounds)) if stated else named(short, bounds)

    def _copy(self, axis: int, base: Expr) -> Stmt:
        """What is left of the data below the positions chosen so far."""
        shape, last = self.shape(0), max(self.cuts, default=-1)
        inner = prod(shape[axis + 1 :])
        if axis > last:
            return self._run(base, wrap(prod(shape[axis:])))
        cut = self.cuts.get(axis)
        if cut is None:
            return loop(shape[axis], lambda i: self._copy(axis + 1, base + i * inner))
        each = loop(cut.count.value, lambda i: named(
            base + (cut.first.value + i * cut.step.value) * inner,
            lambda at: self._copy(axis + 1, at),
        ))  # fmt: skip
        if axis < last:
            return each
        whole = self._run(base + cut.first.value * inner, cut.count.value * inner)
        return If(compare("eq", cut.step.value, 1), whole, each)

    def _run(self, base: Expr, count: Expr) -> Stmt:
        """Neighbours, behind what was written before."""
        lanes = self.target.lanes(self.out.dtype)
        copy = named(base, lambda source: named(self.at.value, lambda at: vectors(
            count, lanes, lambda i, rest: self.out.store(
                at + i, self.source.load(source + i, lanes, 1, rest), rest
            ))))  # fmt: skip
        return seq(copy, self.at.add(count))


def _between(value: Expr, low: int | Expr, high: int | Expr) -> Expr:
    return minimum(maximum(value, low), high)


def _listed(group: Group) -> list[int]:
    """The axes that are cut, in the order of the lists."""
    assert group.head is not None
    args, attrs = group.head.args, attrs_of(group.head)
    axes = attrs.axes if attrs.axes is not None else range(shape_of(args[1])[0])
    return [a % len(shape_of(args[0])) for a in axes]
