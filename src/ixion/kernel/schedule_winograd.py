"""The schedule for 3x3 convolutions by Winograd's algorithm, where it saves time.

Estimates in cycles decide between the direct kernel, F(2, 3) and F(4, 3): products, reading the
weights (once per chunk of tiles) and the transforms; tiles that hang over the border count whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ixion.base.target import Target
from ixion.kernel.access import Operand
from ixion.kernel.group import Group
from ixion.kernel.layout import Layout
from ixion.kernel.schedule import Lowered, Pack, Place, block_size, register_schedule
from ixion.kernel.schedule_conv import DirectConv
from ixion.kernel.tile import choose_tile
from ixion.kernel.winograd import Winograd, tiles_of
from ixion.kernel.winograd_math import transformed_weights
from ixion.te.stmt import Buffer

Array = np.ndarray[Any, np.dtype[Any]]
SCRATCH = 448 << 10  # bytes of transformed data per task
FEW = 4 << 20  # bytes of weights up to which every chunk may read them again


@dataclass(frozen=True)
class Plan:
    """``m`` of F(m, 3), tiles per chunk, and whether the phases share one kernel."""

    m: int
    chunk: int
    fused: bool
    cycles: float


def winograd_plan(
    target: Target, block: int, batch: int, channels: tuple[int, int], size: tuple[int, int]
) -> Plan | None:
    """The fastest variant by estimate, or None where the direct kernel is."""
    direct = batch * size[0] * size[1] * channels[0] * channels[1] * 9 / block
    plans = [_plan(target, block, batch, channels, size, m) for m in (2, 4)]
    best = min(plans, key=lambda p: p.cycles)
    return best if best.cycles < 0.9 * direct else None


def _plan(
    target: Target, block: int, batch: int, channels: tuple[int, int], size: tuple[int, int], m: int
) -> Plan:
    ins, outs = (-(-c // block) for c in channels)
    points = (m + 2) ** 2
    tiles = batch * tiles_of(*size, m)
    weights = points * channels[0] * outs * block * 4
    per_tile = points * ins * block * 4
    chunk = max(8, min(56, SCRATCH // (per_tile + points * 2 * block * 4)))
    pieces = max(1, round(tiles / chunk))
    chunk = -(-tiles // pieces)
    fused = weights <= FEW
    tile = choose_tile(target, block, chunk if fused else tiles, outs)
    efficiency = 0.9 * min(1.0, tile.pixels * tile.blocks / 12)
    products = points * tiles * channels[0] * outs / efficiency
    reads = weights * (pieces if fused else 1) / (24.0 if fused else 8.0)
    transforms = tiles * points * (ins + outs) * (3.0 + m / 2)
    return Plan(m, chunk, fused, max(products, reads) + 0.3 * min(products, reads) + transforms)


@register_schedule("nn.conv2d")
class WinogradConv(DirectConv):
    """3x3, stride 1, no dilation, one group, enough channels."""

    rank = 15

    @classmethod
    def accepts(cls, group: Group, target: Target) -> bool:
        if not super().accepts(group, target):
            return False
        schedule = DirectConv(group, target)
        window, block = schedule.window, block_size(target)
        regular = window.size == (3, 3) and window.strides == (1, 1) and window.dilation == (1, 1)
        wide = schedule.in_channels >= block and schedule.out_channels >= block
        if not regular or schedule.groups != 1 or not wide:
            return False
        return schedule_plan(schedule, target) is not None

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        plan = schedule_plan(self, self.target)
        assert plan is not None
        access, buffers = self.access(inputs, out)
        place = Operand(Buffer("out", self.out.dtype), out)
        weights = self.group.operand(self.head, 1)
        assert weights is not None
        blocks = self.blocks(self.out_channels)
        tiles = self.out_shape[0] * tiles_of(self.out_shape[2], self.out_shape[3], plan.m)
        tile = choose_tile(self.target, self.block, plan.chunk if plan.fused else tiles, blocks)
        layer = Winograd(
            plan.m, self.out_shape[0], self.in_channels, self.data_shape[2], self.data_shape[3],
            self.out_channels, self.out_shape[2], self.out_shape[3], self.window.before[0],
            self.window.before[1], self.block, tile, plan.chunk, buffers[self.data],
            buffers[weights], self.out, place, access, self.anchor,
        )  # fmt: skip
        packs = self.packs(access)
        key = f"winograd:{plan.m}:{tile.blocks}:{self.block}"
        packs[weights] = Pack(key, partial(
            pack_winograd, m=plan.m, blocks=tile.blocks, block=self.block
        ))  # fmt: skip
        params = (place.buffer, *buffers)
        places = {place.buffer: Place("out", 0)}
        places.update({b: Place("in", i) for i, b in enumerate(buffers)})
        if plan.fused:
            kernel = layer.fused(name, params)
            return Lowered([(kernel, tuple(places[b] for b in params))], packs)
        return self._phases(name, layer, params, places, packs)

    def _phases(
        self,
        name: str,
        layer: Winograd,
        params: tuple[Buffer, ...],
        places: dict[Buffer, Place],
        packs: dict[int, Pack],
    ) -> Lowered:
        v, mm = Buffer("v", "float32"), Buffer("m", "float32")
        places = {**places, v: Place("temp", 0), mm: Place("temp", 1)}
        kernels = [
            (kernel, tuple(places[b] for b in buffers))
            for kernel, buffers in layer.phases(name, v, mm, params)
        ]
        temps = [4 * layer.v_size(layer.tiles), 4 * layer.m_size(layer.tiles, layer.out_blocks)]
        return Lowered(kernels, packs, temps)


def schedule_plan(schedule: DirectConv, target: Target) -> Plan | None:
    """The Winograd plan of a convolution, None where direct is faster."""
    shape = schedule.out_shape
    channels = (schedule.in_channels, schedule.out_channels)
    return winograd_plan(target, schedule.block, shape[0], channels, (shape[2], shape[3]))


def pack_winograd(weight: Array, *, m: int, blocks: int, block: int) -> Array:
    """``(O, I, 3, 3)`` as ``[point][O/(blocks*block)][I/block][block][blocks*block]``."""
    u = transformed_weights(weight, m)
    points, outs, ins = u.shape
    wide = blocks * block
    u = np.pad(u, ((0, 0), (0, -outs % wide), (0, -ins % block)))
    u = u.reshape(points, -1, wide, u.shape[2] // block, block).transpose(0, 1, 3, 4, 2)
    return np.ascontiguousarray(u).reshape(-1)
