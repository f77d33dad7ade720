"""The registry of schedules: which nest a formed kernel becomes, and in which layouts.

A schedule is a class registered for head ops.  ``accepts`` looks at the formed kernel and the
target; of those that accept, the one with the lowest ``rank`` is taken, and the generic schedule
takes whatever no other does.  A schedule says which layouts it wants before it builds:

``wanted(i)``      the layout that input ``i`` must have, or None if any will do
``result()``       the layout of its output, or None if any will do
``lower(...)``     loop nests, how constants are packed, and scratch tensors between its kernels

Only schedules that say ``open_sizes`` are asked about kernels with sizes known at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from ixion.base.target import Target
from ixion.kernel.group import Group
from ixion.kernel.layout import PLAIN, Layout
from ixion.kernel.sizes import same_extent
from ixion.te.stmt import Kernel
from ixion.te.tensor import Extent

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Place:
    """What a kernel's parameter is: output, input or temporary number ``index``.

    With ``length`` it is a part of an output or input in plain layout: that many elements from
    ``start`` on.  An output with ``read`` set is only read: an earlier kernel wrote it; one with
    ``keeps`` is written in part, and the rest stays as an earlier kernel left it.
    """

    kind: Literal["out", "in", "temp"]
    index: int
    start: Extent = 0
    length: Extent | None = None
    read: bool = False
    keeps: bool = False


@dataclass(frozen=True, eq=False)
class Pack:
    """How a constant operand is laid out for a kernel; ``key`` is equal for equal packings."""

    key: str
    apply: Callable[[Array], Array]


@dataclass(eq=False)
class Lowered:
    """Kernels in order with the places of their parameters; bytes of each temporary."""

    kernels: list[tuple[Kernel, tuple[Place, ...]]]
    packs: dict[int, Pack] = field(default_factory=dict)
    temps: list[Extent] = field(default_factory=list)
    # Whether the output may be the same memory as input i (read and written at equal positions).
    in_place: frozenset[int] = frozenset()
    # Kernels that only copy an input to a place in the output: (input, element offset) by number.
    copies: dict[int, tuple[int, Extent]] = field(default_factory=dict)
    # Kernels that only copy an input to the whole output: not needed where both are one memory.
    moves: frozenset[int] = frozenset()


class Schedule:
    """Base of all schedules; made for one formed kernel and target."""

    rank: ClassVar[int] = 10
    # Whether it also makes kernels whose sizes are known at run time only.
    open_sizes: ClassVar[bool] = False

    def __init__(self, group: Group, target: Target) -> None:
        self.group, self.target = group, target

    @classmethod
    def accepts(cls, group: Group, target: Target) -> bool:
        return True

    def wanted(self, i: int) -> Layout | None:
        return None

    def result(self) -> Layout | None:
        return None

    def cost(self, inputs: Sequence[Layout], out: Layout) -> float:
        """Relative time under these layouts; only compared between layouts of one kernel."""
        return 0.0

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        raise TypeError(type(self).__name__)


_SCHEDULES: dict[str, list[type[Schedule]]] = {}


def register_schedule(*heads: str) -> Callable[[type[Schedule]], type[Schedule]]:
    """Class decorator: the schedule may serve formed kernels of these head ops."""

    def register(cls: type[Schedule]) -> type[Schedule]:
        for head in heads:
            _SCHEDULES.setdefault(head, []).append(cls)
        return cls

    return register


def schedule_for(group: Group, target: Target) -> Schedule:
    """The best schedule that accepts the kernel."""
    from ixion.kernel import all_schedules  # noqa: F401 - registers every schedule

    candidates = [*_SCHEDULES.get(group.kind, ()), *_SCHEDULES[""]]
    if group.is_open:
        candidates = [c for c in candidates if c.open_sizes]
    chosen: type[Schedule] = min(
        (c for c in candidates if c.accepts(group, target)), key=lambda c: c.rank
    )
    return chosen(group, target)


def serves_open_sizes(head: str) -> bool:
    """Whether a schedule made for a head op takes sizes that are known at run time only."""
    from ixion.kernel import all_schedules  # noqa: F401 - registers every schedule

    return any(schedule.open_sizes for schedule in _SCHEDULES.get(head, ()))


def block_size(target: Target) -> int:
    """Channels per block of a blocked layout: one vector, and at least 8."""
    return max(8, target.lanes("float32"))


def channel_block(target: Target) -> Layout:
    return Layout(1, block_size(target))


def layout_pack(layout: Layout) -> Pack:
    """A constant simply put into a layout."""
    return Pack(f"layout:{layout.axis}:{layout.block}", layout.pack)


def constant_layout(shape: Sequence[Extent], out_shape: Sequence[Extent], out: Layout) -> Layout:
    """The layout of a broadcast constant that goes with an output layout."""
    if out.axis is None:
        return PLAIN
    axis = out.axis - (len(out_shape) - len(shape))
    if axis < 0 or not same_extent(shape[axis], out_shape[out.axis]):
        return PLAIN
    return Layout(axis, out.block)
