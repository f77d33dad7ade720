"""The schedule for everything that has a compute: one nest per materialised tensor.

A reduction that is read inside another one, by a larger tensor, or more than once gets memory of
its own; everything else is inlined into what reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ixion.base import dtype as dtypes
from ixion.base.target import Target
from ixion.kernel.access import Access, Operand, stride_of
from ixion.kernel.group import Group
from ixion.kernel.injective import element_space, injective
from ixion.kernel.layout import PLAIN, Layout
from ixion.kernel.loops import loads_of
from ixion.kernel.reduce import generic_reduce, reductions_of
from ixion.kernel.schedule import (
    Lowered,
    Pack,
    Place,
    Schedule,
    constant_layout,
    layout_pack,
    register_schedule,
)
from ixion.kernel.sizes import as_extent, product, same_extent, same_shape, typical
from ixion.te.expr import Expr, Load, Read, Reduce
from ixion.te.stmt import Buffer, Kernel
from ixion.te.tensor import Extent, Tensor


@register_schedule("")
class GenericSchedule(Schedule):
    """Any layout in and out; vectors along the innermost dim of the output."""

    rank = 100
    open_sizes = True

    def __init__(self, group: Group, target: Target) -> None:
        super().__init__(group, target)
        self.outputs, _ = group.tensors()
        self.stages = materialised(self.outputs)

    def cost(self, inputs: Sequence[Layout], out: Layout) -> float:
        """Elements touched, lanes loaded one by one counting in full."""
        tensor = self.outputs[0]
        if self.stages != self.outputs:
            return 0.0
        access, _ = self._access(inputs, out)
        place = Operand(Buffer("out", tensor.dtype), out)
        space, value, _ = element_space(tensor, place, access)
        if not space.vars:
            return 1.0
        lanes = self.target.lanes(tensor.dtype)
        ranges = space.ranges()
        rough = [
            x for x in loads_of(value) if stride_of(x.index, space.vars[-1], ranges) not in (0, 1)
        ]
        wide = min(typical(space.extents[-1]), lanes) / lanes
        total = prod(typical(n) for n in space.extents)
        return total * ((len(rough) * lanes + 1) / wide)

    def _access(self, inputs: Sequence[Layout], out: Layout) -> tuple[Access, list[Buffer]]:
        access = Access()
        buffers = []
        for i, (t, given) in enumerate(zip(self.group.inputs, inputs, strict=True)):
            layout = given
            if self.group.constant[i]:
                layout = self._constant(i, out)
            buffers.append(Buffer(f"in{i}", t.dtype))
            access.operands[t] = Operand(buffers[-1], layout)
        return access, buffers

    def _constant(self, i: int, out: Layout) -> Layout:
        shape = [as_extent(n) for n in self.group.inputs[i].shape]
        elementwise = self.group.elementwise_only()
        out_shape = [as_extent(n) for n in self.outputs[0].shape]
        return constant_layout(shape, out_shape, out) if elementwise else PLAIN

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        access, buffers = self._access(inputs, out)
        packs: dict[int, Pack] = {
            i: layout_pack(access.operands[self.group.inputs[i]].layout)
            for i, constant in enumerate(self.group.constant)
            if constant
        }
        temps: list[Extent] = []
        lowered = Lowered([], packs, temps)
        places: dict[Buffer, Place] = {b: Place("in", i) for i, b in enumerate(buffers)}
        for stage in self.stages:
            number = self.outputs.index(stage) if stage in self.outputs else None
            layout = out if number is not None else PLAIN
            target = Buffer("out" if number is not None else "temp", stage.dtype)
            if number is None:
                places[target] = Place("temp", len(temps))
                temps.append(as_extent(elements(stage) * dtypes.itemsize(stage.dtype)))
            else:
                places[target] = Place("out", number)
            operand = Operand(target, layout)
            kernel = self._stage(f"{name}_{len(lowered.kernels)}", stage, operand, access)
            lowered.kernels.append((kernel, tuple(places[b] for b in kernel.params)))
            access.operands[stage] = operand
        if len(self.stages) == 1 and self.group.elementwise_only():
            lowered.in_place = self._in_place(inputs, out)
        return lowered

    def _in_place(self, inputs: Sequence[Layout], out: Layout) -> frozenset[int]:
        """Inputs of the output's shape, layout and dtype: read where they are overwritten."""
        tensor = self.outputs[0]
        return frozenset(
            i for i, t in enumerate(self.group.inputs)
            if same_shape(t.shape, tensor.shape) and t.dtype == tensor.dtype and inputs[i] == out
            and not self.group.constant[i]
        )  # fmt: skip

    def _stage(self, name: str, tensor: Tensor, place: Operand, access: Access) -> Kernel:
        lanes = self.target.lanes(tensor.dtype)
        lanes = min(lanes, self.target.lanes("float32"))
        build = generic_reduce if has_reduction(tensor, access) else injective
        kernel = build(name, tensor, place, access, lanes, ())
        kernel.params = (place.buffer, *_buffers_read(tensor, access))
        return kernel


def elements(tensor: Tensor) -> Extent:
    """How many elements a tensor has."""
    return product(as_extent(n) for n in tensor.shape)


def _buffers_read(tensor: Tensor, access: Access) -> list[Buffer]:
    """Memory that a tensor's element depends on, inputs in order."""
    found: list[Buffer] = []
    seen: set[Tensor] = set()
    stack = [tensor]
    while stack:
        t = stack.pop()
        if t in seen:
            continue
        seen.add(t)
        if t in access.operands and t is not tensor:
            found.append(access.operands[t].buffer)
        elif t.body is not None:
            stack.extend(reversed(read_by(t.body)))
    return found


def read_by(expr: Expr) -> list[Tensor]:
    """Tensors that an expression reads, in first-use order."""
    found: dict[Tensor, None] = {}
    visited: set[int] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        if isinstance(node, Read):
            found.setdefault(node.tensor)
        stack.extend(reversed(node.children()))
    return list(found)


def has_reduction(tensor: Tensor, access: Access) -> bool:
    """Whether the element, with everything inlined, holds a reduction."""
    seen: set[Tensor] = set()
    stack = [tensor]
    while stack:
        t = stack.pop()
        if t in seen or t.body is None or (t in access.operands and t is not tensor):
            continue
        seen.add(t)
        if reductions_of(t.body):
            return True
        stack.extend(read_by(t.body))
    return False


def materialised(outputs: Sequence[Tensor]) -> list[Tensor]:
    """Tensors that get memory, each after those it reads; the outputs come last."""
    order = _topological(outputs)
    readers: dict[Tensor, list[Tensor]] = {t: [] for t in order}
    for t in order:
        for source in read_by(t.body) if t.body is not None else ():
            readers.setdefault(source, []).append(t)
    folded = {t: t.body is not None and bool(reductions_of(t.body)) for t in order}
    deep: dict[Tensor, bool] = {}
    stages = []
    for t in order:
        if t.body is None:
            continue
        inner = any(deep.get(s, False) for s in read_by(t.body))
        deep[t] = folded[t] or inner
        if t in outputs:
            stages.append(t)
        elif deep[t] and not _inlinable(t, readers[t], folded):
            stages.append(t)
            deep[t] = False
    return stages


def _inlinable(tensor: Tensor, readers: list[Tensor], folded: dict[Tensor, bool]) -> bool:
    if len(readers) != 1:
        return False
    reader = readers[0]
    if folded[reader] or not _no_larger(reader, tensor):
        return False
    assert reader.body is not None
    reads = {tuple(id(i) for i in n.indices) for n in _reads(reader.body) if n.tensor is tensor}
    return len(reads) == 1


def _no_larger(a: Tensor, b: Tensor) -> bool:
    x, y = elements(a), elements(b)
    if isinstance(x, int) and isinstance(y, int):
        return x <= y
    return same_extent(x, y)


def _reads(expr: Expr) -> list[Read]:
    found: list[Read] = []
    visited: set[int] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        if isinstance(node, Read):
            found.append(node)
        stack.extend(node.children())
    return found


def _topological(outputs: Sequence[Tensor]) -> list[Tensor]:
    order: dict[Tensor, None] = {}
    stack: list[tuple[Tensor, bool]] = [(t, False) for t in reversed(outputs)]
    while stack:
        t, done = stack.pop()
        if t in order:
            continue
        if done or t.body is None:
            order[t] = None
            continue
        stack.append((t, True))
        stack.extend((s, False) for s in read_by(t.body))
    return list(order)


__all__ = ["GenericSchedule", "Load", "Reduce", "materialised", "read_by"]
