"""The schedule for writes into state: the new elements go to their place, nothing else moves."""

from __future__ import annotations

from collections.abc import Sequence

from ixion import te
from ixion.kernel.access import Access, Operand
from ixion.kernel.injective import injective
from ixion.kernel.layout import PLAIN, Layout
from ixion.kernel.schedule import Lowered, Place, Schedule, register_schedule
from ixion.kernel.sizes import as_extent
from ixion.op.extent import extent
from ixion.op.typed import attrs_of
from ixion.te.expr import Expr
from ixion.te.stmt import Buffer


@register_schedule("state.append")
class StateAppend(Schedule):
    """Plain operands; the buffer is the output."""

    open_sizes = True

    def wanted(self, i: int) -> Layout | None:
        return PLAIN

    def result(self) -> Layout | None:
        return PLAIN

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        call = self.group.head
        assert call is not None
        at = self.group.operand(call, 0), self.group.operand(call, 1)
        assert at[0] is not None
        assert at[1] is not None
        state, new = self.group.inputs[at[0]], self.group.inputs[at[1]]
        whole = [as_extent(n) for n in state.shape]
        axis = attrs_of(call).axis
        place, source = Operand(Buffer("out", state.dtype)), Buffer("new", new.dtype)
        access = Access({new: Operand(source)})

        def same(*index: Expr) -> Expr:
            return new(*index)

        part = te.compute(new.shape, same, "part")
        base = as_extent(PLAIN.strides(whole)[axis] * extent(attrs_of(call).offset))
        lanes = min(self.target.lanes(state.dtype), self.target.lanes("float32"))
        params = (place.buffer, source)
        kernel = injective(name, part, place, access, lanes, params, whole, base)
        return Lowered([(kernel, (Place("out", 0), Place("in", at[1])))])
