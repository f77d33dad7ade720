"""The Winograd schedule and its choice: which algorithm, how much at a time, or none at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from ixion.base.target import Target
from ixion.kernel.access import Operand
from ixion.kernel.group import Group
from ixion.kernel.layout import Layout
from ixion.kernel.samples import sampled, samples
from ixion.kernel.scalars import at_least, at_most, pieces
from ixion.kernel.schedule import Lowered, Pack, Place, block_size, register_schedule
from ixion.kernel.schedule_conv import DirectConv
from ixion.kernel.sizes import ceil_div, fixed, is_static, product
from ixion.kernel.tile import TileShape, choose_tile, usual_tile
from ixion.kernel.winograd import Image, Winograd, tiles_of
from ixion.kernel.winograd_math import MOST_POINTS, Axis, axis, map_cost, transformed_weights
from ixion.te.stmt import Buffer
from ixion.te.tensor import Extent

Array = np.ndarray[Any, np.dtype[Any]]
SCRATCH = 448 << 10  # bytes of transformed data per task
MOST_TILES = 56  # tiles of a chunk
FEWEST_TASKS = 4
PLANE_POINTS = 9  # along each of two axes; with more, errors exceed 1e-5 of the largest output
# Transformed weights up to FREELY bytes may be of any algorithm, others MOST_GROWTH times the plain
# ones; each byte beyond LIGHT counts as WEIGHT_COST cycles: memory is not free.
FREELY, MOST_GROWTH, LIGHT, WEIGHT_COST = 6 << 20, 4.1, 1 << 20, 0.2
# Bytes per cycle from the second-level cache, and of data between the phases.
NEAR_RATE, PHASE_RATE, PHASE_FAR_RATE = 24.0, 11.0, 3.0
QUICK = 6.0  # bytes per cycle from a third-level cache that data between phases may be in
PHASE_NEAR = 3 << 20  # bytes of them there


@dataclass(frozen=True)
class Shape:
    """What decides: channels and extents of a convolution, and its window."""

    batch: int
    ins: int
    outs: int
    height: int
    width: int
    size: tuple[int, int]
    strides: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Plan:
    """Algorithms, tiles per chunk, tasks per chunk, and whether the phases share one kernel."""

    rows: Axis
    cols: Axis
    tile: TileShape
    chunk: Extent
    splits: Extent
    fused: bool
    cycles: float
    # Where the number of tiles is known at run time only: most of a chunk, and a usual number.
    room: int = 0
    fewest: int = 1


@cache
def winograd_plan(
    target: Target,
    block: int,
    batch: int,
    channels: tuple[int, int],
    extents: tuple[int, int],
    size: tuple[int, int],
    strides: tuple[int, int],
) -> Plan | None:
    """The fastest variant by estimate, or None where the direct kernel is."""
    shape = Shape(batch, *channels, *extents, size, strides)
    plans = [
        plan(target, block, shape, rows, cols)
        for rows in _algorithms(size[0], strides[0], shape.height)
        for cols in _algorithms(size[1], strides[1], shape.width)
        if _fits(shape, rows, cols)
        for plan in (_fused, _phases)
    ]
    best = min(plans, key=lambda p: p.cycles, default=None)
    direct = _direct(target, block, shape)
    return best if best is not None and best.cycles < 0.93 * direct else None


def _fits(shape: Shape, rows: Axis, cols: Axis) -> bool:
    """Whether a pair of algorithms is exact enough, and its weights are not too large."""
    exact = min(shape.size) == 1 or max(rows.points, cols.points) <= PLANE_POINTS
    return exact and _affordable(shape, rows, cols)


def _direct(target: Target, block: int, shape: Shape) -> float:
    """Cycles of the direct kernel."""
    outs, taps = -(-shape.outs // block), shape.size[0] * shape.size[1]
    work = shape.batch * shape.height * shape.width * shape.ins * outs * taps
    plain = 4 * shape.ins * outs * block * taps
    return _overlapped(work / 0.97, plain / target.far_rate)


def layer_plan(
    target: Target,
    block: int,
    out: Sequence[Extent],
    channels: tuple[int, int],
    size: tuple[int, int],
    strides: tuple[int, int],
) -> Plan | None:
    """``winograd_plan`` for a result of shape ``out``, whose sizes may be known later."""
    if is_static(*out):
        n, _, height, width = (fixed(d) for d in out)
        return winograd_plan(target, block, n, channels, (height, width), size, strides)
    tried = tuple(_shape_for(given, out, channels, size, strides) for given in samples(out))
    found = _compromise(target, block, tried)
    return None if found is None else _open_plan(target, block, tried, found, out)


def _shape_for(
    given: dict[str, int], out: Sequence[Extent], channels: tuple[int, int],
    size: tuple[int, int], strides: tuple[int, int],
) -> Shape:  # fmt: skip
    """The shape for these values of its sizes, never empty."""
    n, _, height, width = (max(1, sampled(d, given)) for d in out)
    return Shape(n, *channels, height, width, size, strides)


@cache
def _compromise(target: Target, block: int, tried: tuple[Shape, ...]) -> Plan | None:
    """The variant that is nearest to the best one for each of several shapes; None for direct."""
    first = tried[0]
    direct = [_direct(target, block, shape) for shape in tried]
    plans = [
        [plan(target, block, shape, rows, cols) for shape in tried]
        for rows in _algorithms(first.size[0], first.strides[0], first.height)
        for cols in _algorithms(first.size[1], first.strides[1], first.width)
        if _fits(first, rows, cols)
        for plan in (_fused, _phases)
    ]
    best = [min([d, *(p[i].cycles for p in plans)]) for i, d in enumerate(direct)]

    def apart(cycles: Iterable[float]) -> float:
        return sum((c / b) ** 2 for c, b in zip(cycles, best, strict=True))

    found = min(plans, key=lambda p: apart(x.cycles for x in p), default=None)
    if found is None or apart(p.cycles for p in found) >= apart(0.93 * d for d in direct):
        return None
    return found[0]


def _open_plan(
    target: Target, block: int, tried: Sequence[Shape], plan: Plan, out: Sequence[Extent]
) -> Plan:
    """The variant with as many tiles at a time as ``_fused`` and ``_phases`` would take."""
    rows, cols, ins, outs = plan.rows, plan.cols, tried[0].ins, -(-tried[0].outs // block)
    counts = [s.batch * tiles_of(s.height, s.width, rows, cols) for s in tried]
    tiles = product([out[0], ceil_div(out[2], rows.m), ceil_div(out[3], cols.m)])
    blocks = -(-ins // block)
    if not plan.fused:
        tile = usual_tile(target, block, counts, outs)
        cuts = at_least(at_most(tiles // 8, -(-8 // blocks)), 1)
        chunk = pieces(tiles, cuts)
        return replace(plan, tile=tile, chunk=chunk, splits=1, room=1, fewest=counts[0])
    size = _most_tiles(rows, cols, blocks, block)
    sizes = [_even_chunk(n, max(1, round(n / size)), outs) for n in counts]
    tile = usual_tile(target, block, sizes, outs)
    cuts = at_least((tiles * 2 + size) // (2 * size), 1)
    even = (cuts + 1) // 2 * 2
    if outs > 2:  # then tasks share a single chunk by output blocks
        even = even - at_least(2 - cuts, 0)
    chunk = pieces(tiles, even)
    groups = -(-outs // tile.blocks)
    splits = at_most(at_least(FEWEST_TASKS // at_least(pieces(tiles, chunk), 1), 1), groups)
    room = size + size // 2 + 1
    return replace(plan, tile=tile, chunk=chunk, splits=splits, room=room, fewest=min(sizes))


def _held(weights: int) -> float:
    """Cycles that transformed weights count for the memory they take, small ones nothing."""
    return WEIGHT_COST * max(0, weights - LIGHT)


def _near(target: Target) -> float:
    """Bytes of weights that stay in the second-level cache beside the scratch."""
    return 0.56 * max(target.l2 - SCRATCH, 0)


def _between_rate(target: Target, size: int) -> float:
    """Bytes per cycle of data that one phase writes and the next reads."""
    near = max(0.6 * target.l2, PHASE_NEAR if target.far_rate >= QUICK else 0)
    return PHASE_RATE if size <= near else min(PHASE_FAR_RATE, target.far_rate)


def _affordable(shape: Shape, rows: Axis, cols: Axis) -> bool:
    growth = rows.points * cols.points / (rows.taps * cols.taps)
    plain = 4 * shape.ins * shape.outs * rows.taps * cols.taps
    return growth <= MOST_GROWTH or plain * growth <= FREELY


def _algorithms(taps: int, step: int, extent: int) -> Iterator[Axis]:
    if taps == 1 and step == 1:
        yield axis(1, 1, 1)
        return
    for m in (2, 3, 4, 6):
        longest = m + (taps if step == 1 else (taps + 1) // 2) - 1
        if longest <= MOST_POINTS and m < extent + 2:
            yield axis(m, taps, step)


def _transforms(rows: Axis, cols: Axis) -> tuple[float, float]:
    """Cycles per tile and block of the input and the output transform."""
    data, points, result = rows.side * cols.side, rows.points * cols.points, rows.m * cols.m
    if rows.plain or cols.plain:
        along = cols if rows.plain else rows
        ins, outs, between_in, between_out = map_cost("b", along), map_cost("a", along), 0, 0
    else:
        ins = cols.side * map_cost("b", rows) + rows.points * map_cost("b", cols)
        outs = cols.points * map_cost("a", rows) + rows.m * map_cost("a", cols)
        between_in, between_out = 2 * rows.points * cols.side, 2 * rows.m * cols.points
    ins, outs = ins + data + between_in + points, outs + points + between_out + 2 * result
    return 0.6 * ins, 0.6 * outs


def _efficiency(tile: TileShape) -> float:
    return 0.96 * min(1.0, tile.pixels * tile.blocks / 12)


def _overlapped(work: float, reads: float) -> float:
    return max(work, reads) + 0.3 * min(work, reads)


def _even_chunk(tiles: int, pieces: int, outs: int) -> int:
    """Tiles per chunk for about so many chunks: an even number of them, so that two can share."""
    if pieces == 1 and outs > 2:
        return tiles  # tasks share the chunk by output blocks
    sizes = [-(-tiles // p) for p in range(max(pieces, 2), pieces + 5)]
    return next((n for n in sizes if -(-tiles // n) % 2 == 0), sizes[0])


def _most_tiles(rows: Axis, cols: Axis, ins: int, block: int) -> int:
    """Tiles whose transformed data fits the scratch."""
    points = rows.points * cols.points
    return max(8, min(MOST_TILES, SCRATCH // (points * (ins + 2) * 4 * block)))


def _fused(target: Target, block: int, shape: Shape, rows: Axis, cols: Axis) -> Plan:
    ins, outs = -(-shape.ins // block), -(-shape.outs // block)
    points = rows.points * cols.points
    tiles = shape.batch * tiles_of(shape.height, shape.width, rows, cols)
    vector = 4 * block
    most = _most_tiles(rows, cols, ins, block)
    chunk = _even_chunk(tiles, max(1, round(tiles / most)), outs)
    pieces = -(-tiles // chunk)
    tile = choose_tile(target, block, chunk, outs)
    groups = -(-outs // tile.blocks)
    splits = min(groups, max(1, FEWEST_TASKS // pieces))
    weights = points * shape.ins * groups * tile.blocks * vector
    products = points * pieces * chunk * shape.ins * groups * tile.blocks / _efficiency(tile)
    again = NEAR_RATE if weights <= _near(target) else target.far_rate
    reads = weights / target.far_rate + weights * (pieces - 1) / again
    reads += points * pieces * chunk * ins * vector * groups / NEAR_RATE
    before, after = _transforms(rows, cols)
    moves = tiles * (ins * splits * before + outs * after)
    cycles = _overlapped(products, reads) + moves + _held(weights)
    return Plan(rows, cols, tile, chunk, splits, True, cycles)


def _phases(target: Target, block: int, shape: Shape, rows: Axis, cols: Axis) -> Plan:
    ins, outs = -(-shape.ins // block), -(-shape.outs // block)
    points = rows.points * cols.points
    tiles = shape.batch * tiles_of(shape.height, shape.width, rows, cols)
    vector = 4 * block
    tile = choose_tile(target, block, tiles, outs)
    groups = -(-outs // tile.blocks)
    products = points * tiles * shape.ins * groups * tile.blocks / _efficiency(tile)
    weights = points * shape.ins * groups * tile.blocks * vector
    before, after = _transforms(rows, cols)
    moves = tiles * (ins * before + outs * after)
    between = points * tiles * (ins + outs) * vector
    moves += between / _between_rate(target, between)
    pieces = max(1, min(tiles // 8, -(-8 // ins)))
    chunk = -(-tiles // pieces)
    cycles = _overlapped(products, weights / target.far_rate) + moves + _held(weights)
    return Plan(rows, cols, tile, chunk, 1, False, cycles)


@register_schedule("nn.conv2d")
class WinogradConv(DirectConv):
    """Windows of several taps, moving by 1 or 2, no dilation, one group, enough channels."""

    rank = 15

    @classmethod
    def accepts(cls, group: Group, target: Target) -> bool:
        if not super().accepts(group, target):
            return False
        schedule = DirectConv(group, target)
        window, block = schedule.window, block_size(target)
        if window.rank != 2 or set(window.dilation) != {1} or schedule.groups != 1:
            return False
        if min(schedule.in_channels, schedule.out_channels) < block:
            return False
        moves = set(window.strides) <= {1, 2} and max(window.size) > 1
        skips = any(k < s for k, s in zip(window.size, window.strides, strict=True))
        return moves and not skips and schedule_plan(schedule, target) is not None

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        plan = schedule_plan(self, self.target)
        assert plan is not None
        access, buffers = self.access(inputs, out)
        place = Operand(Buffer("out", self.out.dtype), out)
        weights = self.group.operand(self.head, 1)
        assert weights is not None
        layer = Winograd(
            plan.rows, plan.cols, self.out_shape[0],
            Image(self.in_channels, self.data_shape[2], self.data_shape[3]),
            Image(self.out_channels, self.out_shape[2], self.out_shape[3]),
            self.window.before[0], self.window.before[1], self.block, plan.tile,
            plan.chunk, plan.splits, buffers[self.data], buffers[weights], self.out,
            place, access, self.anchor, plan.room, plan.fewest,
        )  # fmt: skip
        packs = self.packs(access)
        rows, cols = plan.rows, plan.cols
        key = f"winograd:{rows.m}:{cols.m}:{self.window.strides}:{plan.tile.blocks}:{self.block}"
        packs[weights] = Pack(key, partial(
            pack_winograd, rows=rows, cols=cols, blocks=plan.tile.blocks, block=self.block
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
        return Lowered(kernels, packs, layer.temps())


def schedule_plan(schedule: DirectConv, target: Target) -> Plan | None:
    """The Winograd plan of a convolution, None where direct is faster."""
    shape, window = schedule.out_shape, schedule.window
    channels = (schedule.in_channels, schedule.out_channels)
    size, strides = (window.size[0], window.size[1]), (window.strides[0], window.strides[1])
    return layer_plan(target, schedule.block, shape, channels, size, strides)


def pack_winograd(weight: Array, *, rows: Axis, cols: Axis, blocks: int, block: int) -> Array:
    """``(O, I, kh, kw)`` as ``[point][O/(blocks*block)][I/block][block][blocks*block]``."""
    outs, ins = weight.shape[:2]
    wide, points = blocks * block, rows.points * cols.points
    groups, depth = -(-outs // wide), -(-ins // block) * block
    packed = np.zeros((points, groups, depth, wide), weight.dtype)
    for group in range(groups):  # a group at a time: the products in float64 are large
        part = transformed_weights(weight[group * wide : (group + 1) * wide], rows, cols)
        packed[:, group, :ins, : part.shape[0]] = part.transpose(2, 1, 0)
    return packed.reshape(-1)
