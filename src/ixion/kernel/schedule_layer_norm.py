"""The schedule for layer norm along the last axis, with elementwise work and moves around it."""

from __future__ import annotations

from collections.abc import Sequence

from ixion.base.target import Target
from ixion.ir import Call, Constant
from ixion.kernel.access import Access, Operand
from ixion.kernel.group import Group, constant_tensor, extents_of
from ixion.kernel.layer_norm import LayerNormNest
from ixion.kernel.layout import PLAIN, Layout
from ixion.kernel.norm_rows import Norm, rows_of
from ixion.kernel.schedule import (
    Lowered,
    Place,
    Schedule,
    block_size,
    channel_block,
    layout_pack,
    register_schedule,
)
from ixion.kernel.sizes import product, same_extent, same_shape
from ixion.op.define import OpPattern
from ixion.op.typed import attrs_of, dims_of, dtype_of, op_attr
from ixion.te.stmt import Buffer
from ixion.te.tensor import Tensor


@register_schedule("nn.layer_norm")
class LayerNorm(Schedule):
    """Rows of a plain tensor, or pixels of one with blocked channels, in and out."""

    rank = 10
    open_sizes = True

    def __init__(self, group: Group, target: Target) -> None:
        super().__init__(group, target)
        self.norm, self.out = _norm_of(group)
        rows = rows_of(self.norm, self.out, group.inputs)
        assert rows is not None
        self.rows = rows

    @classmethod
    def accepts(cls, group: Group, target: Target) -> bool:
        call = group.head
        if call is None or len(group.out_types) != 1 or 0 in dims_of(call):
            return False
        if not isinstance(dims_of(call)[-1], int):
            return False
        same = dtype_of(call) == group.out_type.dtype == "float32"
        if not same or attrs_of(call).axis not in (-1, len(dims_of(call)) - 1):
            return False
        norm, out = _norm_of(group)
        return rows_of(norm, out, group.inputs) is not None

    def wanted(self, i: int) -> Layout | None:
        """Blocked channels where an operand's columns are its channels."""
        tensor = self.group.inputs[i]
        pixels = product(tensor.shape[2:])
        if self.group.constant[i] or tensor.ndim < 3 or same_extent(pixels, 1):
            return PLAIN
        strides = self.rows.strides[tensor]
        by_channels = bool(strides) and all(
            s is not None and same_extent(s, pixels) for s in strides
        )
        return channel_block(self.target) if by_channels else PLAIN

    def result(self) -> Layout | None:
        last = self.rows.axis == len(self.out.shape) - 1
        return PLAIN if last else channel_block(self.target)

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        access, buffers = Access(), []
        for i, t in enumerate(self.group.inputs):
            buffers.append(Buffer(f"in{i}", t.dtype))
            layout = PLAIN if self.group.constant[i] else inputs[i]
            access.operands[t] = Operand(buffers[-1], layout)
        place = Operand(Buffer("out", "float32"), out)
        lanes = block_size(self.target)
        nest = LayerNormNest(self.norm, self.out, self.rows, place, access, lanes)
        packs = {i: layout_pack(PLAIN) for i, c in enumerate(self.group.constant) if c}
        kernel = nest.kernel(name, (place.buffer, *buffers))
        places = (Place("out", 0), *(Place("in", i) for i in range(len(buffers))))
        return Lowered([(kernel, places)], packs, in_place=self._in_place(inputs, out))

    def _in_place(self, inputs: Sequence[Layout], out: Layout) -> frozenset[int]:
        """Inputs that are read where they are overwritten: those that nothing moves."""
        others = [c for c in self.group.calls if c is not self.group.head]
        if any(not _is_elementwise(c, self.out) for c in others):
            return frozenset()
        return frozenset(
            i for i, t in enumerate(self.group.inputs)
            if same_shape(t.shape, self.out.shape) and t.dtype == "float32" and inputs[i] == out
            and not self.group.constant[i]
        )  # fmt: skip


def _norm_of(group: Group) -> tuple[Norm, Tensor]:
    """The head as a norm, and the kernel's output."""
    call = group.head
    assert call is not None
    made, attrs = group.all_tensors([call]), attrs_of(call)
    source, gamma, beta = (
        constant_tensor(a) if isinstance(a, Constant) else made[id(a)] for a in call.args
    )
    parameters = gamma if attrs.scale else None, beta if attrs.center else None
    norm = Norm(source, *parameters, attrs.epsilon, made[id(call)])
    return norm, made[id(group.function.body)]


def _is_elementwise(call: Call, out: Tensor) -> bool:
    pattern = op_attr(call, "TOpPattern")
    fits = pattern is not None and pattern <= OpPattern.BROADCAST
    return fits and same_shape(extents_of(call), out.shape)
