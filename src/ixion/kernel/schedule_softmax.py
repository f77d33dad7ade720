"""The schedule for softmax along the last axis of a plain tensor."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ixion.base.target import Target
from ixion.kernel.group import Group
from ixion.kernel.layout import PLAIN, Layout
from ixion.kernel.schedule import Lowered, Place, Schedule, register_schedule
from ixion.kernel.softmax import softmax_kernel
from ixion.op.typed import attrs_of, dtype_of, shape_of
from ixion.te.stmt import Buffer


@register_schedule("nn.softmax", "nn.log_softmax")
class Softmax(Schedule):
    """Contiguous rows."""

    rank = 10

    @classmethod
    def accepts(cls, group: Group, target: Target) -> bool:
        call = group.head
        if call is None or len(group.calls) != 1 or dtype_of(call) != "float32":
            return False
        shape = shape_of(call)
        return prod(shape) > 0 and prod(shape[attrs_of(call).axis % len(shape) + 1 :]) == 1

    def wanted(self, i: int) -> Layout | None:
        return PLAIN

    def result(self) -> Layout | None:
        return PLAIN

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        call = self.group.head
        assert call is not None
        shape = shape_of(call)
        length = shape[attrs_of(call).axis % len(shape)]
        source, result = Buffer("in0", "float32"), Buffer("out", "float32")
        kernel = softmax_kernel(
            name, prod(shape) // length, length, source, result, self.target.lanes("float32"),
            self.group.kind == "nn.log_softmax",
        )  # fmt: skip
        return Lowered([(kernel, (Place("out", 0), Place("in", 0)))])
