"""The schedule of first layers: few channels, a large window that moves by 2."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from ixion.base.target import Target
from ixion.kernel.access import Operand
from ixion.kernel.group import Group
from ixion.kernel.layout import PLAIN, Layout
from ixion.kernel.samples import sampled, samples
from ixion.kernel.schedule import Lowered, Pack, Place, register_schedule
from ixion.kernel.schedule_conv import DirectConv
from ixion.kernel.schedule_winograd import Array, Plan, layer_plan, pack_winograd
from ixion.kernel.sizes import as_extent
from ixion.kernel.space_to_depth import Halved, SpaceToDepth, halved_weights
from ixion.kernel.winograd import Image, Winograd
from ixion.kernel.winograd_math import Axis
from ixion.te.stmt import Buffer

SMALLEST = 5  # taps along both axes from which on it pays


@register_schedule("nn.conv2d")
class StemConv(DirectConv):
    """Stride 2 over an image of few channels: neighbours to channels, then Winograd."""

    rank = 12

    @classmethod
    def accepts(cls, group: Group, target: Target) -> bool:
        if not super().accepts(group, target):
            return False
        stem = cls(group, target)
        window = stem.window
        regular = window.strides == (2, 2) and set(window.dilation) == {1}
        if not (regular and stem.plain and min(window.size) >= SMALLEST):
            return False
        plan = stem.plan()
        if plan is None:
            return False
        outs = stem.blocks(stem.out_channels) * stem.block
        n, _, *image = (max(1, sampled(d, samples(stem.out_shape)[0])) for d in stem.out_shape)
        work = prod(image) * stem.in_channels * prod(window.size) * outs / stem.block
        size = max(1, sampled(stem.halved_image().size, samples(stem.out_shape)[0]))
        moved = size / stem.block * 2 * 4 * stem.in_channels
        return bool(plan.cycles + moved < 0.9 * work * n)

    def __init__(self, group: Group, target: Target) -> None:
        super().__init__(group, target)
        if self.window.rank == 2:
            self.halves = [
                Halved.of(k, pad)
                for k, pad in zip(self.window.size, self.window.before, strict=True)
            ]

    def halved_image(self) -> SpaceToDepth:
        rows, cols = self.halves
        return SpaceToDepth(
            self.out_shape[0], self.in_channels, self.data_shape[2], self.data_shape[3],
            as_extent(self.out_shape[2] + rows.taps - 1),
            as_extent(self.out_shape[3] + cols.taps - 1), rows.before, cols.before, self.block,
        )  # fmt: skip

    def plan(self) -> Plan | None:
        """The Winograd plan of the convolution over the halved image."""
        rows, cols = self.halves
        plan = layer_plan(
            self.target, self.block, self.out_shape, (4 * self.in_channels, self.out_channels),
            (rows.taps, cols.taps), (1, 1),
        )  # fmt: skip
        return plan if plan is not None and plan.fused else None

    def wanted(self, i: int) -> Layout | None:
        return PLAIN if i == self.data else super().wanted(i)

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        plan = self.plan()
        assert plan is not None
        access, buffers = self.access(inputs, out)
        place = Operand(Buffer("out", self.out.dtype), out)
        weights = self.group.operand(self.head, 1)
        assert weights is not None
        image = self.halved_image()
        halved = Buffer("halved", "float32")
        layer = Winograd(
            plan.rows, plan.cols, self.out_shape[0],
            Image(4 * self.in_channels, image.rows, image.cols),
            Image(self.out_channels, self.out_shape[2], self.out_shape[3]), 0, 0, self.block,
            plan.tile, plan.chunk, plan.splits, halved, buffers[weights], self.out, place, access,
            self.anchor, plan.room, plan.fewest,
        )  # fmt: skip
        packs = self.packs(access)
        packs[weights] = self._pack(plan)
        source = buffers[self.data]
        params = (place.buffer, halved, *(b for b in buffers if b is not source))
        places = {place.buffer: Place("out", 0), halved: Place("temp", 0)}
        places.update({b: Place("in", i) for i, b in enumerate(buffers)})
        kernels = [
            image.kernel(f"{name}_halved", halved, source), layer.fused(name, params)
        ]  # fmt: skip
        return Lowered(
            [(k, tuple(places[b] for b in k.params)) for k in kernels], packs,
            [as_extent(4 * image.size)],
        )  # fmt: skip

    def _pack(self, plan: Plan) -> Pack:
        rows, cols = self.halves
        key = f"stem:{rows}:{cols}:{plan.rows.m}:{plan.cols.m}:{plan.tile.blocks}:{self.block}"
        return Pack(key, partial(
            pack_stem, halves=(rows, cols), axes=(plan.rows, plan.cols), blocks=plan.tile.blocks,
            block=self.block,
        ))  # fmt: skip


def pack_stem(
    weight: Array,
    *,
    halves: tuple[Halved, Halved],
    axes: tuple[Axis, Axis],
    blocks: int,
    block: int,
) -> Array:
    """Weights over the halved image, as for Winograd."""
    w = halved_weights(weight, *halves)
    return pack_winograd(w, rows=axes[0], cols=axes[1], blocks=blocks, block=block)
