"""The schedule for formed attention: two batched products with a softmax between.

The formed kernel still is the model's own program: products, reshapes, transposes, scale, mask,
softmax.  The schedule finds the three calls that matter and asks the tensor expressions around
them where each element comes from and goes to.
"""

from __future__ import annotations

from collections.abc import Sequence

from ixion.base.target import Target
from ixion.ir import Call
from ixion.kernel.access import Access, Operand
from ixion.kernel.attention import Attention, attention_tile, result_blocks
from ixion.kernel.attention_blocks import attention_class
from ixion.kernel.attention_parts import NotAttentionError, Parts, Products
from ixion.kernel.group import Group
from ixion.kernel.layout import PLAIN, Layout
from ixion.kernel.schedule import Lowered, Place, Schedule, layout_pack, register_schedule
from ixion.kernel.tile import vector_registers
from ixion.op.typed import attrs_of, dtype_of, shape_of
from ixion.te.stmt import Buffer

CHUNK = 512  # most query rows per task
LEAST = 48  # fewest, where heads alone are too few tasks
TASKS = 8
WIDEST = 512
LONGEST = 8192


@register_schedule("attention")
class AttentionSchedule(Schedule):
    """Plain operands of any strides, plain result."""

    rank = 10

    @classmethod
    def accepts(cls, group: Group, target: Target) -> bool:
        calls = Products(group)
        if not calls.ok or any(dtype_of(c) != "float32" for c in (calls.scores, calls.output)):
            return False
        keys, width = shape_of(calls.scores)[2], shape_of(calls.output)[2]
        if width > WIDEST or keys > LONGEST:
            return False
        try:
            cls(group, target).nest()
        except NotAttentionError:
            return False
        return True

    def wanted(self, i: int) -> Layout | None:
        return PLAIN

    def result(self) -> Layout | None:
        return PLAIN

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        nest, result, buffers = self.nest()
        kernel = nest.kernel(name, (result, *buffers))
        places = (Place("out", 0), *(Place("in", i) for i in range(len(buffers))))
        packs = {i: layout_pack(PLAIN) for i, c in enumerate(self.group.constant) if c}
        return Lowered([(kernel, places)], packs)

    def nest(self) -> tuple[Attention, Buffer, list[Buffer]]:
        """The nest, its result and its inputs; NotAttentionError where the form does not fit."""
        calls = Products(self.group)
        made = self.group.all_tensors((calls.scores, calls.softmax, calls.output))
        access, buffers = Access(), []
        for i, t in enumerate(self.group.inputs):
            buffers.append(Buffer(f"in{i}", t.dtype))
            access.operands[t] = Operand(buffers[-1], PLAIN)
        heads, rows, keys = shape_of(calls.scores)
        width = shape_of(calls.output)[2]
        depth = _depth(calls.scores)
        lanes = self.target.lanes("float32")
        chunk = chunk_rows(heads, rows)
        tile = attention_tile(self.target, lanes, chunk, keys, depth, width)
        result = Buffer("out", "float32")
        parts = Parts(self.group, calls, made, access, lanes, (heads, rows, keys, depth, width))
        nest = attention_class(self.target, tile.pixels, keys)(
            heads, rows, keys, depth, width, lanes, tile, chunk, "float32", result,
            parts.all(made[id(self.group.function.body)]),
            result_blocks(vector_registers(self.target, lanes), tile.pixels),
        )  # fmt: skip
        parts.check()
        return nest, result, buffers


def chunk_rows(heads: int, rows: int) -> int:
    """Query rows of one task: many, as each packs keys and values; fewer where heads are few."""
    pieces = max(-(-rows // CHUNK), min(-(-TASKS // heads), rows // LEAST))
    return -(-rows // max(pieces, 1))


def _depth(call: Call) -> int:
    shape = shape_of(call.args[0])
    return shape[1] if attrs_of(call).transpose_a else shape[2]
