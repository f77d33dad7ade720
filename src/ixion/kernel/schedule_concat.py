"""The schedule for concatenation: each input is copied to its place by a kernel of its own.

Elementwise work on the result is done on the way.  On blocked channels every boundary between
inputs must fall between blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

from ixion import te
from ixion.base.target import Target
from ixion.kernel.access import Access, Operand
from ixion.kernel.group import Group, extents_of
from ixion.kernel.injective import injective
from ixion.kernel.layout import PLAIN, Layout
from ixion.kernel.schedule import (
    Lowered,
    Place,
    Schedule,
    channel_block,
    constant_layout,
    layout_pack,
    register_schedule,
)
from ixion.kernel.sizes import as_extent, divides, typical
from ixion.op.typed import attrs_of
from ixion.te.expr import Expr, Read
from ixion.te.stmt import Buffer
from ixion.te.tensor import Extent, Tensor


@register_schedule("concatenate")
class Concatenate(Schedule):
    """Inputs of any layout, output plain or blocked where the boundaries allow."""

    rank = 10
    open_sizes = True

    @classmethod
    def accepts(cls, group: Group, target: Target) -> bool:
        call = group.head
        if call is None or any(i is None for i in group.fields(call)):
            return False
        return all(not isinstance(n, int) or n > 0 for n in extents_of(call))

    def __init__(self, group: Group, target: Target) -> None:
        super().__init__(group, target)
        assert group.head is not None
        self.fields = [i for i in group.fields(group.head) if i is not None]
        self.shape = [as_extent(n) for n in extents_of(group.head)]
        self.axis = int(attrs_of(group.head).axis) % len(self.shape)
        self.sizes = [as_extent(extents_of(group.params[i])[self.axis]) for i in self.fields]

    def aligned(self, layout: Layout) -> bool:
        """Whether every boundary falls between blocks of the layout."""
        if layout.axis != self.axis:
            return True
        return all(divides(layout.block, n) for n in self.sizes[:-1])

    def result(self) -> Layout | None:
        return None

    def cost(self, inputs: Sequence[Layout], out: Layout) -> float:
        block = channel_block(self.target).block
        if not out.plain and (len(self.shape) < 3 or not self.aligned(out)):
            return float("inf")
        sizes = [typical(n) for n in self.sizes]
        alike = [n for i, n in zip(self.fields, sizes, strict=True) if inputs[i] == out]
        return float(sum(sizes) + (sum(sizes) - sum(alike)) * block)

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        lowered = Lowered([])
        start: Extent = 0
        for number, (i, size) in enumerate(zip(self.fields, self.sizes, strict=True)):
            if not isinstance(size, int) or size:
                self._copy(lowered, f"{name}_{number}", i, start, size, inputs, out)
            start = as_extent(start + size)
        return lowered

    def _copy(
        self,
        lowered: Lowered,
        name: str,
        field: int,
        start: Extent,
        size: Extent,
        inputs: Sequence[Layout],
        out: Layout,
    ) -> None:
        assert self.group.head is not None
        outputs, head = self.group.tensors(opaque=self.group.head)
        assert head is not None
        access, buffers, places = Access(), [], []
        for i, t in enumerate(self.group.inputs):
            if i in self.fields and i != field:
                continue
            layout = inputs[i]
            if self.group.constant[i]:
                layout = PLAIN if i in self.fields else self._constant(t, out)
                lowered.packs[i] = layout_pack(layout)
            buffers.append(Buffer(f"in{i}", t.dtype))
            places.append(Place("in", i))
            access.operands[t] = Operand(buffers[-1], layout)
        source = self.group.inputs[field]

        def from_source(index: tuple[Expr, ...]) -> Expr:
            moved = list(index)
            moved[self.axis] = moved[self.axis] - start
            return Read(source, tuple(moved))

        whole = outputs[0]
        dims = [size if d == self.axis else n for d, n in enumerate(self.shape)]
        part = te.compute(dims, lambda *i: self._shifted(whole, i, start), "part")
        place = Operand(Buffer("out", whole.dtype), out)
        access.redirect[head] = from_source
        base = self._offset(out, start)
        lanes = self.target.lanes("float32")
        params = (place.buffer, *buffers)
        kernel = injective(name, part, place, access, lanes, params, self.shape, base)
        pure = len(self.group.calls) == 1 and inputs[field] == out
        if pure and all(isinstance(n, int) and n == 1 for n in self.shape[: self.axis]):
            lowered.copies[len(lowered.kernels)] = (field, base)
        lowered.kernels.append((kernel, (Place("out", 0), *places)))

    def _constant(self, tensor: Tensor, out: Layout) -> Layout:
        shape = [int(n) for n in tensor.shape]  # type: ignore[arg-type]
        return constant_layout(shape, self.shape, out)

    def _shifted(self, whole: Tensor, index: Sequence[Expr], start: Extent) -> Expr:
        moved = list(index)
        moved[self.axis] = moved[self.axis] + start
        return Read(whole, tuple(moved))

    def _offset(self, out: Layout, start: Extent) -> Extent:
        """Element offset of the part's first element in the whole output."""
        strides = out.strides(self.shape)
        step = start // out.block if out.axis == self.axis else start
        return as_extent(step * strides[self.axis])
