"""The schedule for formed attention: two batched products with a softmax between.

The formed kernel still is the model's own program: products, reshapes, transposes, scale, mask,
softmax.  The schedule finds the three calls that matter and asks the tensor expressions around
them where each element comes from and goes to.
"""

from __future__ import annotations

from collections.abc import Sequence

from ixion.base.dim import Dim
from ixion.base.target import Target
from ixion.kernel.access import Access, Operand
from ixion.kernel.attention import Attention, AttentionParts, attention_tile, result_blocks
from ixion.kernel.attention_blocks import BLOCK, attention_class
from ixion.kernel.attention_open import OpenAttention, OpenBlockedAttention, open_attention_tile
from ixion.kernel.attention_output import NotAttentionError
from ixion.kernel.attention_parts import Parts, Products, Sizes
from ixion.kernel.group import Group, extents_of
from ixion.kernel.layout import PLAIN, Layout
from ixion.kernel.open_rows import MANY
from ixion.kernel.schedule import Lowered, Place, Schedule, layout_pack, register_schedule
from ixion.kernel.sizes import as_extent, ceil_div, is_static, least, most
from ixion.kernel.tile import TileShape, vector_registers
from ixion.op.typed import attrs_of, dims_of, dtype_of
from ixion.te.expr import Expr, wrap
from ixion.te.stmt import Buffer
from ixion.te.tensor import Extent

When = tuple[Expr, int, int]

CHUNK = 512  # most query rows per task
LEAST = 48  # fewest, where heads alone are too few tasks
TASKS = 8
WIDEST = 512
LONGEST = 8192


@register_schedule("attention")
class AttentionSchedule(Schedule):
    """Plain operands of any strides, plain result."""

    rank = 10
    open_sizes = True

    @classmethod
    def accepts(cls, group: Group, target: Target) -> bool:
        calls = Products(group)
        if not calls.ok or any(dtype_of(c) != "float32" for c in (calls.scores, calls.output)):
            return False
        keys, width = dims_of(calls.scores)[2], dims_of(calls.output)[2]
        if not isinstance(width, int) or width > WIDEST or not isinstance(_depth(calls), int):
            return False
        if isinstance(keys, int) and keys > LONGEST:
            return False
        try:
            cls(group, target).nests()
        except NotAttentionError:
            return False
        return True

    def wanted(self, i: int) -> Layout | None:
        return PLAIN

    def result(self) -> Layout | None:
        return PLAIN

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        nests, params = self.nests(), self.params
        places = (Place("out", 0), *(Place("in", i) for i in range(len(params) - 1)))
        packs = {i: layout_pack(PLAIN) for i, c in enumerate(self.group.constant) if c}
        kernels = []
        for number, (nest, when) in enumerate(nests):
            kernel = nest.kernel(name if len(nests) == 1 else f"{name}_{number}", params)
            kernel.when = when
            kernels.append((kernel, places))
        return Lowered(kernels, packs)

    def nests(self) -> list[tuple[Attention, When | None]]:
        """The nest, or more than one and when each is run, over ``params``.

        NotAttentionError where the form does not fit.
        """
        calls = Products(self.group)
        made = self.group.all_tensors((calls.scores, calls.softmax, calls.output))
        access, buffers = Access(), []
        for i, t in enumerate(self.group.inputs):
            buffers.append(Buffer(f"in{i}", t.dtype))
            access.operands[t] = Operand(buffers[-1], PLAIN)
        heads, rows, keys = (as_extent(n) for n in extents_of(calls.scores))
        width, depth = as_extent(extents_of(calls.output)[2]), _depth(calls)
        assert isinstance(width, int)
        assert isinstance(depth, int)
        self.params = (Buffer("out", "float32"), *buffers)
        sizes = Sizes(heads, rows, keys, depth, width)
        parts = Parts(self.group, calls, made, access, self.target.lanes("float32"), sizes)
        self.guarded = calls.guarded
        nests = self._nests(sizes, parts.all(made[id(self.group.function.body)]))
        parts.check()
        return nests

    def _nests(self, sizes: Sizes, parts: AttentionParts) -> list[tuple[Attention, When | None]]:
        heads, rows, keys = sizes[:3]
        lanes, registers = self.target.lanes("float32"), self._registers()
        chunk = chunk_rows(heads, rows)
        if is_static(heads, rows, keys):
            assert isinstance(chunk, int)
            assert isinstance(keys, int)
            tile = attention_tile(self.target, lanes, chunk, keys, sizes.depth, sizes.width)
            kind = attention_class(self.target, tile.pixels, keys)
            return [(kind(
                *sizes, lanes, tile, chunk, "float32", self.params[0], parts,
                result_blocks(registers, tile.pixels), guarded=self.guarded,
            ), None)]  # fmt: skip
        tile = open_attention_tile(self.target, lanes, sizes.depth, sizes.width)
        if isinstance(rows, int):
            tile = TileShape(min(tile.pixels, rows), tile.blocks)
        common = (
            *sizes, lanes, tile, chunk, "float32", self.params[0], parts,
            result_blocks(registers, tile.pixels),
        )  # fmt: skip
        # As attention_class, for tiles of full height.
        limit = max(BLOCK, self.target.l1 // (4 * tile.pixels))
        short = OpenAttention(*common, guarded=self.guarded, most=limit)
        long = OpenBlockedAttention(*common, guarded=self.guarded)
        if isinstance(keys, int):
            return [(short if keys <= limit else long, None)]
        return [(short, (wrap(keys), 0, limit)), (long, (wrap(keys), limit + 1, MANY))]

    def _registers(self) -> int:
        return vector_registers(self.target, self.target.lanes("float32"))


def chunk_rows(heads: Extent, rows: Extent) -> Extent:
    """Query rows of one task: many, as each packs keys and values; fewer where heads are few."""
    few = least(ceil_div(TASKS, heads), as_extent(rows // LEAST))
    pieces = most(ceil_div(rows, CHUNK), few)
    return ceil_div(rows, most(pieces, 1))


def _depth(calls: Products) -> Dim:
    shape = dims_of(calls.scores.args[0])
    return shape[1] if attrs_of(calls.scores).transpose_a else shape[2]
