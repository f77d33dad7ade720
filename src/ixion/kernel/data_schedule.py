"""What schedules of operators that follow their data have in common: plain layouts all around."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ixion.ir import Call
from ixion.kernel.draft import Placed
from ixion.kernel.layout import PLAIN, Layout
from ixion.kernel.schedule import Lowered, Schedule, layout_pack
from ixion.op.typed import dtype_of, shape_of


class DataSchedule(Schedule):
    """One call, everything plain; ``kernels`` says what it becomes."""

    def wanted(self, i: int) -> Layout | None:
        return PLAIN

    def result(self) -> Layout | None:
        return PLAIN

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        packs = {i: layout_pack(PLAIN) for i, known in enumerate(self.group.constant) if known}
        self.temps: list[int] = []
        kernels = self.kernels(name)
        return Lowered(kernels, packs, list(self.temps))

    def kernels(self, name: str) -> list[Placed]:
        """The kernels in order; temporaries are added to ``self.temps`` in bytes."""
        raise TypeError(type(self).__name__)

    @property
    def call(self) -> Call:
        assert self.group.head is not None
        return self.group.head

    def shape(self, argument: int) -> tuple[int, ...]:
        return shape_of(self.call.args[argument])

    def dtype(self, argument: int) -> str:
        return dtype_of(self.call.args[argument])

    def operand(self, argument: int) -> int:
        """Which parameter of the formed kernel an argument is."""
        found = self.group.operand(self.call, argument)
        assert found is not None
        return found

    def lanes(self, dtype: str) -> int:
        """Lanes of a vector, at most those of 32-bit elements."""
        return min(self.target.lanes(dtype), self.target.lanes("float32"))


def around(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    """Rows before an axis, its extent, and the elements from one of its steps to the next."""
    at = axis % len(shape)
    return prod(shape[:at]), shape[at], prod(shape[at + 1 :])
