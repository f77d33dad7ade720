"""The schedule of pointwise and depthwise convolutions in one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ixion.base.target import Target
from ixion.ir import Expr
from ixion.kernel.access import Access, Operand
from ixion.kernel.group import Group
from ixion.kernel.layout import Layout
from ixion.kernel.scalars import Scalars
from ixion.kernel.schedule import (
    Lowered,
    Pack,
    Place,
    Schedule,
    block_size,
    channel_block,
    constant_layout,
    layout_pack,
    register_schedule,
)
from ixion.kernel.schedule_conv import pack_conv, pack_depthwise, sizes_of, window_tile
from ixion.kernel.separable import Separable, Strip, StripConv, StripDepthwise, strip, write_to
from ixion.kernel.separable_plan import SeparablePlan, depthwise_taps, separable_plan
from ixion.kernel.sizes import fixed, is_static, product
from ixion.kernel.taps import Taps
from ixion.kernel.tile import TileShape, row_tile
from ixion.op.conv_chain import is_depthwise
from ixion.op.typed import op_name
from ixion.te.expr import Var, wrap
from ixion.te.stmt import Buffer
from ixion.te.tensor import Extent, Tensor


@register_schedule("separable")
class SeparableSchedule(Schedule):
    """[1x1 and elementwise] depthwise and elementwise [1x1 and elementwise]."""

    rank = 10
    open_sizes = True

    def __init__(self, group: Group, target: Target) -> None:
        super().__init__(group, target)
        self.heads = [c for c in group.calls if op_name(c) == "nn.conv2d"]
        made = group.all_tensors(self.heads)
        results: list[Expr] = [*(h.args[0] for h in self.heads[1:]), group.function.body]
        self.anchors: list[Tensor] = [made[id(h)] for h in self.heads]
        self.outs: list[Tensor] = [made[id(r)] for r in results]
        self.block = block_size(target)
        self.data = group.operand(self.heads[0], 0)
        middle = next(i for i, h in enumerate(self.heads) if is_depthwise(h))
        self.expands, self.projects = middle > 0, middle + 1 < len(self.heads)
        self.middle = self.heads[middle]

    def wanted(self, i: int) -> Layout | None:
        return channel_block(self.target) if i == self.data else None

    def result(self) -> Layout | None:
        return channel_block(self.target)

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        self.packs: dict[int, Pack] = {}
        self.scalars = Scalars()
        self.access = Access()
        self.buffers = [Buffer(f"in{i}", t.dtype) for i, t in enumerate(self.group.inputs)]
        for i, t in enumerate(self.group.inputs):
            layout = self._constant(i, out) if self.group.constant[i] else inputs[i]
            self.access.operands[t] = Operand(self.buffers[i], layout)
            if self.group.constant[i]:
                self.packs[i] = layout_pack(layout)
        place = Operand(Buffer("out", self.outs[-1].dtype), out)
        kernel = self._nests(place).kernel(name, (place.buffer, *self.buffers))
        places = (Place("out", 0), *(Place("in", i) for i in range(len(self.buffers))))
        return Lowered([(kernel, places)], self.packs)

    def _constant(self, i: int, out: Layout) -> Layout:
        """A constant that broadcasts lies like the result of the convolution that it follows."""
        shape = [int(n) for n in self.group.inputs[i].shape]  # type: ignore[arg-type]
        param = self.group.params[i]
        user = next(c for c in self.group.calls if any(a is param for a in c.args))
        return constant_layout(shape, sizes_of(user), out)

    def _nests(self, place: Operand) -> Separable:
        plan, tile = self._plan()
        image, out = sizes_of(self.middle.args[0]), sizes_of(self.middle)
        blocks = -(-fixed(out[1]) // self.block)
        rows = self.scalars.named("band", plan.band)
        height = self.scalars.named("high", plan.height)
        under = band = None
        free: Extent = 0  # bytes of private memory in use
        if self.expands:
            first = wrap(0) if plan.whole else Var("under")
            under = strip(
                "rows", free, plan.panel, height, image[3], self.block, first, Var("base")
            )
            free = under.scratch
        if self.projects:
            band = strip("band", free, blocks, rows, out[3], self.block, Var("top"), wrap(0))
            free = band.scratch
        self.free = free
        depthwise = self._depthwise(rows, place, under, band)
        expand = project = None
        if under is not None:
            flat = (plan.whole and image[2] != 1) or not is_static(*image[2:])
            size = (1, product(image[2:])) if flat else image[2:]
            expand = self._pointwise(0, size, tile, Operand(under.buffer), size[0], None, flat)
            write_to(expand, under)
        if band is not None:
            wide = -(-fixed(sizes_of(self.heads[-1])[1]) // self.block)
            last = row_tile(self.target, self.block, out[3], wide)
            project = self._pointwise(-1, out[2:], last, place, rows, band, False)
        return Separable(depthwise, expand, project, under, band, plan.panel)

    def _plan(self) -> tuple[SeparablePlan, TileShape]:
        """The cut into tasks, and the tile of the first product."""
        height, width = sizes_of(self.middle.args[0])[2:]
        blocks = -(-fixed(sizes_of(self.middle)[1]) // self.block)
        length = product([height, width])
        plan, tile = self._planned(length, blocks)
        if not plan.whole and isinstance(length, int):
            length = width
            plan, tile = self._planned(length, blocks)
        if plan.panel < tile.blocks:
            tile = row_tile(self.target, self.block, length, plan.panel)
        return plan, tile

    def _planned(self, length: Extent, blocks: int) -> tuple[SeparablePlan, TileShape]:
        tile = row_tile(self.target, self.block, length, blocks)
        plan = separable_plan(self.heads, self.block, tile.blocks)
        assert plan is not None
        return plan, tile

    def _depthwise(
        self, chunk: Extent, place: Operand, read: Strip | None, write: Strip | None
    ) -> StripDepthwise:
        number = int(self.expands)
        rows, cols = depthwise_taps(self.middle)
        batch, channels = sizes_of(self.middle)[0], fixed(sizes_of(self.middle)[1])
        pack = Pack(f"depthwise:{self.block}", partial(pack_depthwise, block=self.block))
        nest = StripDepthwise(
            batch, rows, cols, self.block, -(-channels // self.block),
            window_tile(self.target, self.block, cols.count), self.outs[number],
            place if write is None else Operand(write.buffer), self.access, self.anchors[number],
            chunk, None if cols.is_open else cols.count, False, raw_offset=self.free,
            scalars=self.scalars, source=self._source(read), weights=self._weights(number, pack),
            strip=read,
        )  # fmt: skip
        if write is not None:
            write_to(nest, write)
        return nest

    def _pointwise(
        self, number: int, image: Sequence[Extent], tile: TileShape, place: Operand, chunk: Extent,
        read: Strip | None, flat: bool,
    ) -> StripConv:  # fmt: skip
        head = self.heads[number]
        batch, outs, ins = *sizes_of(head)[:2], fixed(sizes_of(head.args[0])[1])
        rows, cols = (Taps(n, 1, 0, 1, 1, n) for n in image)
        pack = Pack(f"conv:1:{tile.blocks}:{self.block}:{self.block}", partial(
            pack_conv, groups=1, blocks=tile.blocks, block=self.block, in_block=self.block
        ))  # fmt: skip
        return StripConv(
            batch, rows, cols, self.block, -(-fixed(outs) // self.block), tile, self.outs[number],
            place, self.access, self.anchors[number], chunk, None if cols.is_open else cols.count,
            flat, raw_offset=self.free, scalars=self.scalars, in_channels=ins,
            out_channels=fixed(outs), source=self._source(read),
            weights=self._weights(number, pack), strip=read,
        )  # fmt: skip

    def _source(self, read: Strip | None) -> Buffer:
        """What a nest reads: a strip, or the image."""
        assert self.data is not None
        return self.buffers[self.data] if read is None else read.buffer

    def _weights(self, number: int, pack: Pack) -> Buffer:
        i = self.group.operand(self.heads[number], 1)
        assert i is not None
        self.packs[i] = pack
        return self.buffers[i]
