"""The schedule for dense layers with weights known at compile time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ixion.base.target import Target
from ixion.kernel.access import Access, Operand
from ixion.kernel.dense import DenseNest, dense_chunk, dense_tile, depth_parts
from ixion.kernel.dense_open import OneRow, OpenDense, open_chunk, open_tile
from ixion.kernel.group import Group, extents_of
from ixion.kernel.layout import PLAIN, Layout
from ixion.kernel.open_rows import MANY
from ixion.kernel.schedule import (
    Lowered,
    Pack,
    Place,
    Schedule,
    block_size,
    channel_block,
    layout_pack,
    register_schedule,
)
from ixion.kernel.sizes import product
from ixion.kernel.tile import TileShape
from ixion.op.typed import dims_of, dtype_of, op_name, shape_of
from ixion.te.expr import wrap
from ixion.te.stmt import Buffer, Kernel
from ixion.te.tensor import Extent

Array = np.ndarray[Any, np.dtype[Any]]


@register_schedule("nn.dense")
class Dense(Schedule):
    """Plain rows in, packed weights, and out come plain rows or blocks of channels.

    The latter where the kernel moves the columns to the second place: they are channels then.
    """

    rank = 10

    open_sizes = True

    @classmethod
    def accepts(cls, group: Group, target: Target) -> bool:
        call = group.head
        if call is None or group.operand(call, 0) is None:
            return False
        weight = group.operand(call, 1)
        known = weight is not None and group.constant[weight]
        tensors = (*call.args, call)
        floats = all(dtype_of(t) == "float32" for t in tensors)
        return known and floats and not any(0 in dims_of(t) for t in tensors)

    def wanted(self, i: int) -> Layout | None:
        assert self.group.head is not None
        if i == self.group.operand(self.group.head, 0):
            return PLAIN
        same = dims_of(self.group.params[i]) == dims_of(self.group.function.body)
        known = self.group.constant[i]
        return channel_block(self.target) if self._turned() and same and not known else None

    def result(self) -> Layout | None:
        return channel_block(self.target) if self._turned() else PLAIN

    def _turned(self) -> bool:
        return any(op_name(c) == "transpose" for c in self.group.calls)

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        self._look(inputs, out)
        return self._open(name) if self.group.is_open else self._static(name)

    def _look(self, inputs: Sequence[Layout], out: Layout) -> None:
        """Sizes, operands and places."""
        head = self.group.head
        assert head is not None
        self.outputs, anchor = self.group.tensors(opaque=head)
        assert anchor is not None
        self.anchor = anchor
        data, weight = self.group.operand(head, 0), self.group.operand(head, 1)
        assert data is not None
        assert weight is not None
        self.data, self.weight = data, weight
        self.rows = product(extents_of(head)[:-1])
        self.columns, self.depth = shape_of(head.args[1])
        self.lanes = block_size(self.target) if self._turned() else self.target.lanes("float32")
        self.access, self.buffers = Access(), list[Buffer]()
        for i, t in enumerate(self.group.inputs):
            self.buffers.append(Buffer(f"in{i}", t.dtype))
            layout = PLAIN if self.group.constant[i] else inputs[i]
            self.access.operands[t] = Operand(self.buffers[-1], layout)
        self.place = Operand(Buffer("out", self.outputs[0].dtype), out)
        self.places = {buffer: Place("in", i) for i, buffer in enumerate(self.buffers)}
        self.places[self.place.buffer] = Place("out", 0)
        self.params = (self.place.buffer, *self.buffers)

    def _nest(
        self, kind: type[DenseNest], rows: Extent, tile: TileShape, chunk: Extent,
        span: tuple[int, int] | None = None, sums: Buffer | None = None,
    ) -> DenseNest:  # fmt: skip
        return kind(
            rows, self.depth, self.columns, self.lanes, tile, self.buffers[self.data],
            self.buffers[self.weight], self.outputs[0], self.place, self.access, self.anchor,
            chunk, span=span, partial=sums, axis=1 if self._turned() else -1,
        )  # fmt: skip

    def _static(self, name: str) -> Lowered:
        rows = self.rows
        assert isinstance(rows, int)
        blocks = -(-self.columns // self.lanes)
        tile = dense_tile(self.target, self.lanes, rows, blocks, self.depth)
        groups = -(-blocks // tile.blocks)
        parts = depth_parts(self.target, rows, self.depth, self.columns, self.lanes)
        chunk = dense_chunk(self.target, rows, parts[0][1], groups, tile)
        packs = self._packs(tile)
        if len(parts) == 1:
            kernel = self._nest(DenseNest, rows, tile, chunk, parts[0]).kernel(name, self.params)
            return Lowered([(kernel, self._places(kernel))], packs)
        sums = Buffer("partial", "float32")
        self.places[sums] = Place("temp", 0)
        kernels = []
        for number, span in enumerate(parts):
            last = span[1] == self.depth
            first = (sums, self.buffers[self.data], self.buffers[self.weight])
            used = (*self.params, sums) if last else first
            nest = self._nest(DenseNest, rows, tile, chunk, span, sums)
            kernel = nest.kernel(f"{name}_{number}", used)
            kernels.append((kernel, self._places(kernel)))
        return Lowered(kernels, packs, [4 * groups * rows * tile.blocks * self.lanes])

    def _open(self, name: str) -> Lowered:
        """A kernel for one row, and one for more."""
        rows, blocks = self.rows, -(-self.columns // self.lanes)
        tile = open_tile(self.target, self.lanes, blocks, self.depth)
        chunk = open_chunk(self.target, rows, self.depth, -(-blocks // tile.blocks))
        one = self._nest(OneRow, 1, TileShape(1, tile.blocks), 1).kernel(f"{name}_0", self.params)
        one.when = (wrap(rows), 1, 1)
        more = self._nest(OpenDense, rows, tile, chunk).kernel(f"{name}_1", self.params)
        more.when = (wrap(rows), 2, MANY)
        kernels = [(kernel, self._places(kernel)) for kernel in (one, more)]
        return Lowered(kernels, self._packs(tile))

    def _places(self, kernel: Kernel) -> tuple[Place, ...]:
        return tuple(self.places[p] for p in kernel.params)

    def _packs(self, tile: TileShape) -> dict[int, Pack]:
        packs = {i: layout_pack(PLAIN) for i, c in enumerate(self.group.constant) if c}
        key = f"dense:{tile.blocks}:{self.lanes}"
        packs[self.weight] = Pack(key, partial(pack_dense, blocks=tile.blocks, lanes=self.lanes))
        return packs


def pack_dense(weight: Array, *, blocks: int, lanes: int) -> Array:
    """``(N, K)`` as ``[N/(blocks*lanes)][K][blocks*lanes]``, outputs padded with zeros."""
    n, k = weight.shape
    wide = blocks * lanes
    w = np.pad(weight, ((0, -n % wide), (0, 0)))
    return np.ascontiguousarray(w.reshape(-1, wide, k).transpose(0, 2, 1)).reshape(-1)
