"""Schedules for convolutions: direct, depthwise and transposed, on blocked channels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import gcd, prod
from typing import Any, ClassVar

import numpy as np

from ixion.base.target import Target
from ixion.ir import Call, Expr
from ixion.kernel.access import Access, Operand
from ixion.kernel.conv_direct import ConvNest
from ixion.kernel.group import Group, extents_of
from ixion.kernel.layout import PLAIN, Layout
from ixion.kernel.scalars import Scalars, at_least, at_most, pieces
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
from ixion.kernel.sizes import (
    as_extent,
    ceil_div,
    fixed,
    is_static,
    product,
    same_extent,
)
from ixion.kernel.spatial import SpatialNest, spatial_kernel
from ixion.kernel.taps import Taps
from ixion.kernel.tile import LONGEST, TileShape, even_tiles, row_tile, vector_registers
from ixion.kernel.window import DepthwiseNest
from ixion.op.conv_chain import is_depthwise
from ixion.op.typed import attrs_of, dtype_of, shape_of
from ixion.op.window import Window
from ixion.te.stmt import Buffer
from ixion.te.tensor import Extent, Tensor

Array = np.ndarray[Any, np.dtype[Any]]
INPUT_CHUNK = 192 << 10  # bytes of input that the tasks of one chunk share; stays in L2
TASK_PRODUCTS = 1 << 19  # multiply-adds that a task should have at least


class SpatialSchedule(Schedule):
    """What schedules of blocked spatial kernels share; input 0 is the image."""

    def __init__(self, group: Group, target: Target) -> None:
        super().__init__(group, target)
        assert group.head is not None
        self.head: Call = group.head
        outputs, head = group.tensors(opaque=self.head)
        assert head is not None
        self.out, self.anchor = outputs[0], head
        self.block = block_size(target)
        self.data = group.operand(self.head, 0) or 0
        self.data_shape = sizes_of(self.head.args[0])
        self.out_shape = sizes_of(self.head)

    def wanted(self, i: int) -> Layout | None:
        return channel_block(self.target) if i == self.data else None

    def result(self) -> Layout | None:
        return channel_block(self.target)

    def access(self, inputs: Sequence[Layout], out: Layout) -> tuple[Access, list[Buffer]]:
        """Operands of the epilogue; constants that broadcast are laid out like the output."""
        access, buffers = Access(), []
        for i, (t, given) in enumerate(zip(self.group.inputs, inputs, strict=True)):
            layout = given
            if self.group.constant[i]:
                shape = [int(n) for n in t.shape]  # type: ignore[arg-type]
                layout = constant_layout(shape, self.out_shape, out)
            buffers.append(Buffer(f"in{i}", t.dtype))
            access.operands[t] = Operand(buffers[-1], layout)
        return access, buffers

    def packs(self, access: Access) -> dict[int, Pack]:
        return {
            i: layout_pack(access.operands[t].layout)
            for i, t in enumerate(self.group.inputs)
            if self.group.constant[i]
        }

    def finished(
        self,
        name: str,
        nests: list[SpatialNest],
        place: Operand,
        buffers: list[Buffer],
        packs: dict[int, Pack],
    ) -> Lowered:
        params = (place.buffer, *buffers)
        places = (Place("out", 0), *(Place("in", i) for i in range(len(buffers))))
        return Lowered([(spatial_kernel(name, nests, params), places)], packs)

    def blocks(self, channels: int) -> int:
        return -(-channels // self.block)


def sizes_of(node: Expr) -> tuple[Extent, ...]:
    """The shape of a tensor, each extent in its shortest form."""
    return tuple(as_extent(n) for n in extents_of(node))


def spatial_taps(
    window: Window, data: Sequence[Extent], out: Sequence[Extent]
) -> tuple[Taps, Taps]:
    """Rows and columns of a window; one spatial dim makes a single row."""
    axes = [
        Taps(
            out[2 + d],
            window.strides[d],
            -window.before[d],
            window.dilation[d],
            window.size[d],
            data[2 + d],
        )
        for d in range(window.rank)
    ]
    return (axes[0], axes[1]) if len(axes) == 2 else (Taps(1, 1, 0, 1, 1, 1), axes[0])


def flattened(rows: Taps, cols: Taps) -> tuple[Taps, Taps] | None:
    """A pointwise window over a whole image as one long row."""
    plain = all(
        t.taps == 1 and t.step == 1 and t.first == 0 and same_extent(t.count, t.extent)
        for t in (rows, cols)
    )
    if not plain or (isinstance(rows.count, int) and rows.count == 1):
        return None
    pixels = product([rows.count, cols.count])
    return Taps(1, 1, 0, 1, 1, 1), Taps(pixels, 1, 0, 1, 1, pixels)


def chunks(
    rows: Taps, cols: Taps, tile: TileShape, row_bytes: int, row_products: int
) -> tuple[int, int]:
    """Rows and columns per task: enough work each, and an input that stays in the cache."""
    assert isinstance(rows.count, int)
    assert isinstance(cols.count, int)
    if rows.count == 1:
        pixel_bytes = max(1, row_bytes // cols.count)
        pixels = max(tile.pixels, INPUT_CHUNK // pixel_bytes)
        need = -(-TASK_PRODUCTS * cols.count // max(1, row_products))
        pixels = max(min(pixels, max(need, 4 * tile.pixels)), tile.pixels)
        pieces = max(1, round(cols.count / pixels))
        size = -(-cols.count // pieces)
        return 1, min(cols.count, -(-size // tile.pixels) * tile.pixels)
    most = max(1, INPUT_CHUNK // max(1, row_bytes * rows.step))
    need = max(1, TASK_PRODUCTS // max(1, row_products))
    size = max(1, min(most, need))
    pieces = -(-rows.count // size)
    return -(-rows.count // pieces), cols.count


def pixel_chunks(
    rows: Taps, cols: Taps, tile: TileShape, channels: int, products: int
) -> tuple[Extent, Extent | None]:
    """``chunks`` for an image of ``channels`` whose results take ``products`` multiply-adds each.

    Where the length of a row is not known its tiles are counted, None is all of them.
    """
    if is_static(rows.count, cols.count, cols.extent):
        count = fixed(cols.count)
        return chunks(rows, cols, tile, 4 * fixed(cols.extent) * channels, count * products)
    if isinstance(rows.count, int) and rows.count == 1:
        near = INPUT_CHUNK // (4 * channels * cols.step)
        need = -(-TASK_PRODUCTS // max(1, products))
        pixels = max(min(near, max(need, 4 * tile.pixels)), tile.pixels)
        cuts = at_least((cols.count * 2 + pixels) // (2 * pixels), 1)
        return 1, pieces(pieces(cols.count, cuts), tile.pixels)
    near_rows = INPUT_CHUNK // at_least(cols.extent * (4 * channels * rows.step), 1)
    need_rows = TASK_PRODUCTS // at_least(cols.count * max(1, products), 1)
    cuts = pieces(rows.count, at_least(at_most(near_rows, need_rows), 1))
    return pieces(rows.count, at_least(cuts, 1)), None if cols.is_open else cols.count


def named_chunk(
    scalars: Scalars, chunk: tuple[Extent, Extent | None]
) -> tuple[Extent, Extent | None]:
    """Rows and columns of a chunk as numbers that the kernel is given."""
    rows, cols = chunk
    return scalars.named("rows", rows), None if cols is None else scalars.named("cols", cols)


def _is_float(group: Group, call: Call) -> bool:
    return all(dtype_of(a) == "float32" for a in call.args) and (dtype_of(call) == "float32")


def _weights_known(group: Group, call: Call) -> bool:
    i = group.operand(call, 1)
    return i is not None and group.constant[i] and group.operand(call, 0) is not None


def _plain_names(call: Call) -> bool:
    """Whether data and weights are in the channel-first layouts of the exporters."""
    return attrs_of(call).data_layout in ("NCHW", "NCW") and attrs_of(call).out_layout in (
        "",
        "NCHW",
        "NCW",
    )


def is_never_empty(node: Expr) -> bool:
    """Whether a tensor has elements, as far as its sizes are known."""
    return all(not isinstance(n, int) or n > 0 for n in sizes_of(node))


def has_channels_in_blocks(call: Call, target: Target) -> bool:
    """Whether each group of a convolution's channels, if there are several, is in whole blocks."""
    ins, outs = sizes_of(call.args[0])[1], sizes_of(call)[1]
    if not is_static(ins, outs) or not is_never_empty(call):
        return False
    groups, block = int(attrs_of(call).groups), block_size(target)
    whole = fixed(ins) // groups % block == 0 and fixed(outs) // groups % block == 0
    return groups == 1 or whole


@register_schedule("nn.conv2d", "nn.conv1d")
class DirectConv(SpatialSchedule):
    """Direct convolution, groups whole blocks wide."""

    rank = 20
    open_sizes = True
    nest: ClassVar[type[ConvNest]] = ConvNest

    @classmethod
    def accepts(cls, group: Group, target: Target) -> bool:
        call = group.head
        if call is None or not (_is_float(group, call) and _weights_known(group, call)):
            return False
        if not _plain_names(call) or attrs_of(call).kernel_layout not in ("OIHW", "OIW"):
            return False
        return has_channels_in_blocks(call, target)

    def __init__(self, group: Group, target: Target) -> None:
        super().__init__(group, target)
        attrs = attrs_of(self.head)
        weight = shape_of(self.head.args[1])
        self.window = Window.of(weight[2:], attrs.strides, attrs.dilation, attrs.padding)
        self.groups = attrs.groups
        self.in_channels = fixed(self.data_shape[1]) // self.groups
        self.out_channels = fixed(self.out_shape[1]) // self.groups
        self.plain = self.groups == 1 and self.in_channels < min(8, self.block)

    def wanted(self, i: int) -> Layout | None:
        if i == self.data and self.plain:
            return PLAIN
        return super().wanted(i)

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        rows, cols = spatial_taps(self.window, self.data_shape, self.out_shape)
        flat = None if self.plain else flattened(rows, cols)
        rows, cols = flat or (rows, cols)
        blocks = self.blocks(self.out_channels)
        tile = row_tile(self.target, self.block, cols.count, blocks)
        access, buffers = self.access(inputs, out)
        place = Operand(Buffer("out", self.out.dtype), out)
        weights = self.group.operand(self.head, 1)
        assert weights is not None
        products = prod(self.window.size) * self.in_channels * tile.blocks * self.block
        chunk = pixel_chunks(rows, cols, tile, self.in_channels, products)
        scalars = Scalars()
        nest = self.nest(
            self.out_shape[0], rows, cols, self.block, self.groups * blocks, tile, self.out, place,
            access, self.anchor, *named_chunk(scalars, chunk), flat is not None,
            groups=self.groups, in_channels=self.in_channels, out_channels=self.out_channels,
            plain=self.plain, source=buffers[self.data], weights=buffers[weights], scalars=scalars,
        )  # fmt: skip
        packs = self.packs(access)
        block_in = nest.in_block
        key = f"conv:{self.groups}:{tile.blocks}:{self.block}:{block_in}"
        packs[weights] = Pack(key, partial(
            pack_conv, groups=self.groups, blocks=tile.blocks, block=self.block, in_block=block_in
        ))  # fmt: skip
        return self.finished(name, [nest], place, buffers, packs)


def pack_conv(weight: Array, *, groups: int, blocks: int, block: int, in_block: int) -> Array:
    """``(O, I/g, kh, kw)`` as ``[g][O/wide][I/in_block][kh][kw][in_block][wide]``.

    ``wide`` is ``blocks * block``; what is missing to whole blocks is zero.
    """
    w = weight[:, :, None, :] if weight.ndim == 3 else weight
    out_channels, in_channels, kh, kw = w.shape
    per = out_channels // groups
    wide = blocks * block
    og, ib = -(-per // wide), -(-in_channels // in_block)
    w = w.reshape(groups, per, in_channels, kh, kw)
    pads = ((0, 0), (0, og * wide - per), (0, ib * in_block - in_channels), (0, 0), (0, 0))
    w = np.pad(w, pads) if any(p != (0, 0) for p in pads) else w
    w = w.reshape(groups, og, wide, ib, in_block, kh, kw).transpose(0, 1, 3, 5, 6, 4, 2)
    return np.ascontiguousarray(w).reshape(-1)


@register_schedule("nn.conv2d", "nn.conv1d")
class DepthwiseConv(SpatialSchedule):
    """One filter per channel."""

    rank = 10
    open_sizes = True

    @classmethod
    def accepts(cls, group: Group, target: Target) -> bool:
        call = group.head
        if call is None or not (_is_float(group, call) and _weights_known(group, call)):
            return False
        if not _plain_names(call) or attrs_of(call).kernel_layout not in ("OIHW", "OIW"):
            return False
        return is_never_empty(call) and is_depthwise(call)

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        attrs = attrs_of(self.head)
        weight = shape_of(self.head.args[1])
        window = Window.of(weight[2:], attrs.strides, attrs.dilation, attrs.padding)
        rows, cols = spatial_taps(window, self.data_shape, self.out_shape)
        tile = window_tile(self.target, self.block, cols.count)
        access, buffers = self.access(inputs, out)
        place = Operand(Buffer("out", self.out.dtype), out)
        weights = self.group.operand(self.head, 1)
        assert weights is not None
        scalars = Scalars()
        chunk = window_chunks(rows, cols, prod(window.size) * self.block)
        nest = DepthwiseNest(
            self.out_shape[0], rows, cols, self.block, self.blocks(fixed(self.out_shape[1])), tile,
            self.out, place, access, self.anchor, *named_chunk(scalars, chunk), False,
            source=buffers[self.data], weights=buffers[weights], scalars=scalars,
        )  # fmt: skip
        packs = self.packs(access)
        packs[weights] = Pack(f"depthwise:{self.block}", partial(pack_depthwise, block=self.block))
        return self.finished(name, [nest], place, buffers, packs)


def pack_depthwise(weight: Array, *, block: int) -> Array:
    """``(C, 1, kh, kw)`` as ``[C/block][kh][kw][block]``."""
    channels = weight.shape[0]
    w = weight.reshape(channels, -1)
    w = np.pad(w, ((0, -channels % block), (0, 0)))
    return np.ascontiguousarray(w.reshape(-1, block, w.shape[1]).transpose(0, 2, 1)).reshape(-1)


def window_tile(target: Target, block: int, length: Extent) -> TileShape:
    """Pixels per tile of a depthwise or pooling kernel; weights and inputs need registers too."""
    widest = max(2, vector_registers(target, block) // 2 - 2)
    if not isinstance(length, int):
        return TileShape(min(widest, LONGEST), 1)
    return TileShape(even_tiles(length, widest)[0], 1)


def window_chunks(rows: Taps, cols: Taps, products: int) -> tuple[Extent, Extent | None]:
    """Rows and columns per task of a depthwise or pooling kernel.

    ``products`` counts those of a pixel.  Where the length of a row is not known None is all of it.
    """
    work = TASK_PRODUCTS // 4
    need = at_least(pieces(work, at_least(cols.count * products, 1)), 1)
    cuts = at_least(rows.count // need, 1)
    return pieces(rows.count, cuts), None if cols.is_open else cols.count


@register_schedule("nn.conv2d_transpose")
class TransposedConv(SpatialSchedule):
    """Stride phases, each a direct convolution over its own kernel positions."""

    rank = 20
    open_sizes = True

    @classmethod
    def accepts(cls, group: Group, target: Target) -> bool:
        call = group.head
        if call is None or not (_is_float(group, call) and _weights_known(group, call)):
            return False
        if not _plain_names(call) or attrs_of(call).kernel_layout != "IOHW":
            return False
        return has_channels_in_blocks(call, target)

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        attrs = attrs_of(self.head)
        kernel = shape_of(self.head.args[1])[2:]
        window = Window.of(kernel, attrs.strides, attrs.dilation, attrs.padding)
        access, buffers = self.access(inputs, out)
        place = Operand(Buffer("out", self.out.dtype), out)
        weights = self.group.operand(self.head, 1)
        assert weights is not None
        groups = attrs.groups
        in_channels = fixed(self.data_shape[1]) // groups
        out_channels = fixed(self.out_shape[1]) // groups
        blocks = self.blocks(out_channels)
        phases = [
            (r, c)
            for r in phase_taps(window, 0, self.data_shape, self.out_shape)
            for c in phase_taps(window, 1, self.data_shape, self.out_shape)
        ]
        tile = row_tile(self.target, self.block, phases[0][1][0].count, blocks)
        nests: list[SpatialNest] = []
        base = 0
        for (rows, _), (cols, _) in phases:
            products = rows.taps * cols.taps * in_channels * tile.blocks * self.block
            chunk = pixel_chunks(rows, cols, tile, in_channels, products)
            if isinstance(rows.count, int) and rows.count == 1:
                chunk = (1, None if cols.is_open else cols.count)
            scalars = Scalars()
            nest = ConvNest(
                self.out_shape[0], rows, cols, self.block, groups * blocks, tile, self.out, place,
                access, self.anchor, *named_chunk(scalars, chunk), False, groups=groups,
                in_channels=in_channels, out_channels=out_channels, source=buffers[self.data],
                weights=buffers[weights], weight_base=base, scalars=scalars,
            )  # fmt: skip
            nests.append(nest)
            base += nest.weight_size
        packs = self.packs(access)
        order = tuple((rk, ck) for (_, rk), (_, ck) in phases)
        key = f"transposed:{groups}:{tile.blocks}:{self.block}:{order}"
        packs[weights] = Pack(key, partial(
            pack_transposed, groups=groups, blocks=tile.blocks, block=self.block, order=order
        ))  # fmt: skip
        return self.finished(name, nests, place, buffers, packs)


def phase_taps(
    window: Window, axis: int, data: Sequence[Extent], out: Sequence[Extent]
) -> list[tuple[Taps, tuple[int, ...]]]:
    """For each phase of an axis: its taps, and the kernel positions they stand for in order."""
    s, d, k = window.strides[axis], window.dilation[axis], window.size[axis]
    before, n, m = window.before[axis], data[2 + axis], out[2 + axis]
    found = []
    for phase in range(min(s, m) if isinstance(m, int) else s):
        taps = sorted(
            ((phase + before - i * d) // s, i)
            for i in range(k)
            if (phase + before - i * d) % s == 0
        )
        first = taps[0][0] if taps else 0
        delta = d // gcd(s, d) if len(taps) > 1 else 1
        count = ceil_div(as_extent(m - phase), s)
        found.append((
            Taps(count, 1, first, delta, len(taps), n, phase, s), tuple(i for _, i in taps)
        ))  # fmt: skip
    return found


def pack_transposed(
    weight: Array,
    *,
    groups: int,
    blocks: int,
    block: int,
    order: Sequence[tuple[tuple[int, ...], tuple[int, ...]]],
) -> Array:
    """``(I, O/g, kh, kw)`` as the packed weights of every phase, one after another."""
    in_all, per, _, _ = weight.shape
    w = weight.reshape(groups, in_all // groups, per, *weight.shape[2:])
    w = w.transpose(0, 2, 1, 3, 4).reshape(groups * per, in_all // groups, *weight.shape[2:])
    parts = [
        pack_conv(
            w[:, :, list(rows)][:, :, :, list(cols)],
            groups=groups,
            blocks=blocks,
            block=block,
            in_block=block,
        )
        for rows, cols in order
    ]
    return np.concatenate(parts) if parts else np.zeros(0, weight.dtype)


__all__ = ["DepthwiseConv", "DirectConv", "SpatialSchedule", "Tensor", "TransposedConv"]
