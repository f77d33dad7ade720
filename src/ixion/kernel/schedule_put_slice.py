"""The schedule for put_slice: the old tensor is copied, unless it may go, and the part written."""

from __future__ import annotations

from collections.abc import Sequence

from ixion import te
from ixion.kernel.access import Access, Operand
from ixion.kernel.group import extents_of
from ixion.kernel.injective import injective
from ixion.kernel.layout import PLAIN, Layout
from ixion.kernel.schedule import Lowered, Place, Schedule, register_schedule
from ixion.kernel.sizes import as_extent, product
from ixion.op.typed import attrs_of, dtype_of
from ixion.te.expr import Checked, Var, cast, wrap
from ixion.te.stmt import Buffer, Kernel, Let
from ixion.te.tensor import Extent, Tensor


@register_schedule("put_slice")
class PutSlice(Schedule):
    """Plain tensors; the position is checked before anything is written."""

    rank = 10
    open_sizes = True

    def wanted(self, i: int) -> Layout | None:
        return PLAIN

    def result(self) -> Layout | None:
        return PLAIN

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        call = self.group.head
        assert call is not None
        data, part = (extents_of(call.args[i]) for i in (0, 1))
        axis = attrs_of(call).axis % len(data)
        positions = [self.group.operand(call, i) for i in range(3)]
        whole, piece, begin = (p for p in positions if p is not None)
        copy = self._moved(f"{name}_0", [product(data)], [product(data)], None)
        rows = product(data[:axis])
        inner = product(data[axis + 1 :])
        ends = [as_extent(inner * n) for n in (part[axis], data[axis])]
        put = self._moved(f"{name}_1", [rows, ends[0]], [rows, ends[1]], inner)
        room = as_extent(data[axis] - part[axis] + 1)
        put = self._at_begin(put, room, begin)
        kept = Place("out", 0, keeps=True)
        return Lowered(
            [(copy, (Place("out", 0), Place("in", whole))),
             (put, (kept, Place("in", piece), Place("in", begin)))],
            moves=frozenset((0,)),
        )  # fmt: skip

    def _moved(
        self, name: str, shape: list[Extent], whole: list[Extent], inner: Extent | None
    ) -> Kernel:
        """A kernel that copies ``in0`` into a part of the output; ``inner``: to where ``at`` says,
        in units of so many elements.
        """
        dtype = dtype_of(self.group.out_type)
        source = te.placeholder(shape, dtype, "source")
        made: Tensor = te.compute(shape, source, "moved")
        target, buffer = Buffer("out", dtype), Buffer("in0", dtype)
        access = Access()
        access.operands[source] = Operand(buffer, PLAIN)
        self.at = Var("at")
        base: Extent = 0 if inner is None else self.at * inner
        lanes = min(self.target.lanes(dtype), self.target.lanes("float32"))
        return injective(
            name, made, Operand(target, PLAIN), access, lanes, (target, buffer), whole, base
        )

    def _at_begin(self, kernel: Kernel, room: Extent, begin: int) -> Kernel:
        index = Buffer("begin", dtype_of(self.group.params[begin]))
        first = Checked(cast(index.load(wrap(0)), "int64"), room)
        kernel.params = (*kernel.params, index)
        kernel.body = Let(self.at, first, kernel.body)
        return kernel
