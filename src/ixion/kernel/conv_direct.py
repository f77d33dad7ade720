"""Direct convolution on blocked channels, and transposed convolution as several of them.

Input NCHWc (or plain NCHW for the few channels of a first layer), weights packed
``[group][group of blocks][input block][kh][kw][c in][blocks * c out]``, output NCHWc.  A pointwise
convolution with stride 1 sees the image as one long row.

A transposed convolution with stride ``s`` splits into ``s * s`` phases: outputs of one phase meet
the same subset of kernel positions at consecutive inputs, which is a plain convolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ixion.kernel.ahead import KEPT, Share
from ixion.kernel.loops import decode
from ixion.kernel.samples import usual_batch, usual_side
from ixion.kernel.sizes import is_static, product
from ixion.kernel.spatial import SpatialNest, Valid
from ixion.kernel.tile import multiply_step
from ixion.te.expr import Expr, Var, minimum, select, wrap
from ixion.te.simplify import simplify
from ixion.te.stmt import Buffer, For, Let, Stmt, seq, unroll
from ixion.te.tensor import Extent

# Channels per unrolled step.  Code at the borders is rarely run and there is a lot of it.
UNROLL = 4
EDGE_UNROLL = 2


@dataclass(eq=False)
class ConvNest(SpatialNest):
    """One convolution; channels are per group.  ``weight_base`` is where its weights start."""

    groups: int = 1
    in_channels: int = 1
    out_channels: int = 1
    plain: bool = False
    source: Buffer | None = None
    weights: Buffer | None = None
    weight_base: int = 0

    def __post_init__(self) -> None:
        self.g, self.og = Var("g"), Var("og")
        self.in_block = 1 if self.plain else self.block
        self.in_blocks = -(-self.in_channels // self.in_block)
        self.group_blocks = -(-self.out_channels // self.block)
        self.block_groups = -(-self.group_blocks // self.tile.blocks)
        super().__post_init__()

    @property
    def weight_size(self) -> int:
        """Elements of the packed weights."""
        per = self.in_blocks * self.rows.taps * self.cols.taps * self.in_block
        return self.groups * self.block_groups * per * self.tile.blocks * self.block

    def channel_parts(self) -> list[tuple[Var, Extent]]:
        return [(self.g, self.groups), (self.og, self.block_groups)]

    def parts(self) -> list[tuple[Var, Extent]]:
        """Neighbours share what is larger: weights in deep layers on small maps, else the image."""
        if not self.weights_outermost():
            return super().parts()
        return [*self.channel_parts(), *self.pixel_parts()]

    def image_size(self) -> Extent:
        """Elements of the image."""
        channels = self.groups * self.in_blocks * self.in_block
        return product([self.batch, channels, self.rows.extent, self.cols.extent])

    def weights_outermost(self) -> bool:
        """Whether all tiles that use a group of weights follow each other.

        Where the size of the image is known at run time only: whether they may.
        """
        pixels = usual_side(self.rows.extent) * usual_side(self.cols.extent)
        image = usual_batch(self.batch) * self.groups * self.in_blocks * self.in_block * pixels
        return self.weight_size > image

    def decoded(self, task: Var) -> Stmt:
        image, groups = self.image_size(), self.groups * self.block_groups
        if isinstance(image, int) or groups == 1 or not self.weights_outermost():
            return super().decoded(task)
        pixels, group = Var("pixels"), Var("group")
        count = product(n for _, n in self.pixel_parts())
        deep = wrap(image) < self.weight_size
        body = decode(group, self.channel_parts(), self.body())
        body = decode(pixels, self.pixel_parts(), body)
        body = Let(group, select(deep, task // count, task % groups), body)
        return Let(pixels, select(deep, task % count, task // groups), body)

    def first_block(self) -> Expr:
        return self.g * self.group_blocks + self.og * self.tile.blocks

    def blocks_left(self) -> Expr | None:
        if self.group_blocks % self.tile.blocks == 0:
            return None
        return wrap(self.group_blocks) - self.og * self.tile.blocks

    def accumulate(self, col: Expr, size: int, valid: Valid) -> Stmt:
        ib, t, x, w = Var("ib"), Var("t"), Var("x"), Var("w")
        self.step_at = (ib * self.rows.taps + t) * (self.cols.taps * self.in_block)
        if valid is None:
            inner = self._all_taps(x, w, size, ib)
        elif valid == "careful":
            inner = self._careful_taps(x, w, col, size, ib)
        else:
            inner = seq(
                *(
                    self._channels(
                        x + self._tap_step(j), w + self._tap_weights(j), pixels, ib, wrap(j),
                        EDGE_UNROLL,
                    )
                    for j, pixels in enumerate(valid)
                    if pixels
                )
            )
        body = Let(x, self._source_at(col, ib, t), Let(w, self._weights_at(ib, t), inner))
        return For(ib, 0, self.in_blocks, For(t, self.lo, self.hi, body))

    def _source_at(self, col: Expr, ib: Var, t: Var) -> Expr:
        """Where tap 0 of the tile's first pixel reads, in kernel row ``t``."""
        line = self.cols.extent * self.in_block
        block = (self.n * self.groups + self.g) * self.in_blocks + ib
        row = self.row * self.rows.step + (t * self.rows.delta + self.rows.first)
        across = (col * self.cols.step + self.cols.first) * self.in_block
        return simplify(block * (self.rows.extent * line) + row * line + across)

    def _weights_at(self, ib: Var, t: Var) -> Expr:
        line = self.cols.taps * self._tap_weights(1)
        group = (self.g * self.block_groups + self.og) * self.in_blocks + ib
        return simplify(group * (self.rows.taps * line) + t * line + self.weight_base)

    def _tap_step(self, j: int) -> int:
        return j * self.cols.delta * self.in_block

    def _tap_weights(self, j: int) -> int:
        return j * self.in_block * self.tile.blocks * self.block

    def _all_taps(self, x: Var, w: Var, size: int, ib: Var) -> Stmt:
        if self.cols.taps == 1:
            return self._channels(x, w, range(size), ib, wrap(0))
        j = Var("j")
        inner = self._channels(
            x + j * self._tap_step(1), w + j * self._tap_weights(1), range(size), ib, j
        )
        return For(j, 0, self.cols.taps, inner, unrolled=self.in_block == 1)

    def _careful_taps(self, x: Var, w: Var, col: Expr, size: int, ib: Var) -> Stmt:
        """Each kernel column for the pixels that it turns out to reach."""
        j = Var("j")

        def cells(pixels: Sequence[int]) -> Stmt:
            at, weights = x + j * self._tap_step(1), w + j * self._tap_weights(1)
            return self._channels(at, weights, pixels, ib, j, EDGE_UNROLL)

        return For(j, 0, self.cols.taps, self.reached(col, j, size, cells))

    def _channels(
        self, x: Expr, w: Expr, pixels: Sequence[int], ib: Var, j: Expr, most: int = UNROLL
    ) -> Stmt:
        """All input channels of one block at one kernel position."""
        if self.in_block == 1:
            return self._step(x, w, pixels)
        k, u = Var("k"), Var("u")
        wide = self.tile.blocks * self.block
        times = channel_unroll(self.in_channels, self.in_block, most)
        step = unroll(u, times, self._step(x + k + u, w + k * wide + u * wide, pixels))
        left = minimum(wrap(self.in_channels) - ib * self.in_block, self.in_block)
        whole = self.in_channels % self.in_block == 0
        ahead = self._ahead(self.step_at + j * self.in_block + k, times)
        return For(k, 0, self.in_block if whole else left, seq(*ahead, step), step=times)

    def _ahead(self, position: Expr, times: int) -> list[Stmt]:
        """Asks for the next group's weights: each tile, at each step of its depth, for a part."""
        groups = self.groups * self.block_groups
        size = self.weight_size // groups
        if not self.weights_outermost() or 4 * self.weight_size <= KEPT or groups == 1:
            return []
        assert self.weights is not None
        lines = usual_batch(self.batch) * usual_side(self.rows.count)
        tiles = lines * usual_side(self.tiles_of_row)
        steps = size // (self.tile.blocks * self.block) // times
        tile = (self.n * self.rows.count + self.row) * self.tiles_of_row + self.number
        following = minimum(self.g * self.block_groups + self.og + 1, groups - 1)
        more = not is_static(self.batch, self.rows.count, self.tiles_of_row)
        share = Share(tile, tiles, steps, times, size, more)
        return share.ask(self.weights, following * size + self.weight_base, position)

    def _step(self, x: Expr, w: Expr, pixels: Sequence[int]) -> Stmt:
        assert self.source is not None
        assert self.weights is not None
        source, weights = self.source, self.weights
        apart = self.cols.step * self.in_block
        return multiply_step(
            self.acc, pixels, self.tile.blocks,
            lambda b: weights.load(w + b * self.block, self.block),
            lambda p: source.load(x + p * apart),
        )  # fmt: skip


def channel_unroll(channels: int, block: int, most: int) -> int:
    """Channels per unrolled step: the largest power of two up to ``most`` dividing both counts."""
    times = most
    while times > 1 and (block % times or channels % times):
        times //= 2
    return times
