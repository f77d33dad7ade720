"""The schedule for softmax along the last axis of a plain tensor."""

from __future__ import annotations

from collections.abc import Sequence

from ixion.base.target import Target
from ixion.kernel.group import Group, extents_of
from ixion.kernel.layout import PLAIN, Layout
from ixion.kernel.schedule import Lowered, Place, Schedule, register_schedule
from ixion.kernel.sizes import as_extent, product, same_extent
from ixion.kernel.softmax import softmax_kernel
from ixion.op.typed import attrs_of, dims_of, dtype_of
from ixion.te.stmt import Buffer


@register_schedule("nn.softmax", "nn.log_softmax")
class Softmax(Schedule):
    """Contiguous rows."""

    rank = 10
    open_sizes = True

    @classmethod
    def accepts(cls, group: Group, target: Target) -> bool:
        call = group.head
        if call is None or len(group.calls) != 1 or dtype_of(call) != "float32":
            return False
        shape = extents_of(call)
        after = product(shape[attrs_of(call).axis % len(shape) + 1 :])
        return 0 not in dims_of(call) and same_extent(after, 1)

    def wanted(self, i: int) -> Layout | None:
        return PLAIN

    def result(self) -> Layout | None:
        return PLAIN

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        call = self.group.head
        assert call is not None
        shape = extents_of(call)
        axis = attrs_of(call).axis % len(shape)
        rows, length = product(shape[:axis]), as_extent(shape[axis])
        source, result = Buffer("in0", "float32"), Buffer("out", "float32")
        kernel = softmax_kernel(
            name, rows, length, source, result, self.target.lanes("float32"),
            self.group.kind == "nn.log_softmax",
        )  # fmt: skip
        return Lowered([(kernel, (Place("out", 0), Place("in", 0)))])
