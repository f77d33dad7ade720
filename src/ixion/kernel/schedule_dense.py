"""The schedule for dense layers with weights known at compile time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ixion.base.target import Target
from ixion.kernel.access import Access, Operand
from ixion.kernel.dense import DenseNest, dense_chunk, dense_tile, depth_parts
from ixion.kernel.group import Group
from ixion.kernel.layout import PLAIN, Layout
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
from ixion.op.typed import dtype_of, op_name, shape_of
from ixion.te.stmt import Buffer

Array = np.ndarray[Any, np.dtype[Any]]


@register_schedule("nn.dense")
class Dense(Schedule):
    """Plain rows in, packed weights, and out come plain rows or blocks of channels.

    The latter where the kernel moves the columns to the second place: they are channels then.
    """

    rank = 10

    @classmethod
    def accepts(cls, group: Group, target: Target) -> bool:
        call = group.head
        if call is None or group.operand(call, 0) is None:
            return False
        weight = group.operand(call, 1)
        known = weight is not None and group.constant[weight]
        tensors = (*call.args, call)
        floats = all(dtype_of(t) == "float32" for t in tensors)
        return known and floats and all(prod(shape_of(t)) > 0 for t in tensors)

    def wanted(self, i: int) -> Layout | None:
        assert self.group.head is not None
        if i == self.group.operand(self.group.head, 0):
            return PLAIN
        same = shape_of(self.group.params[i]) == shape_of(self.group.function.body)
        known = self.group.constant[i]
        return channel_block(self.target) if self._turned() and same and not known else None

    def result(self) -> Layout | None:
        return channel_block(self.target) if self._turned() else PLAIN

    def _turned(self) -> bool:
        return any(op_name(c) == "transpose" for c in self.group.calls)

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        head = self.group.head
        assert head is not None
        outputs, anchor = self.group.tensors(opaque=head)
        assert anchor is not None
        data, weight = self.group.operand(head, 0), self.group.operand(head, 1)
        assert data is not None
        assert weight is not None
        shape = shape_of(head)
        rows, columns = prod(shape[:-1]), shape[-1]
        depth = shape_of(head.args[0])[-1]
        turned = self._turned()
        lanes = block_size(self.target) if turned else self.target.lanes("float32")
        blocks = -(-columns // lanes)
        tile = dense_tile(self.target, lanes, rows, blocks, depth)
        groups = -(-blocks // tile.blocks)
        access, buffers = Access(), []
        for i, t in enumerate(self.group.inputs):
            buffers.append(Buffer(f"in{i}", t.dtype))
            layout = PLAIN if self.group.constant[i] else inputs[i]
            access.operands[t] = Operand(buffers[-1], layout)
        place = Operand(Buffer("out", outputs[0].dtype), out)
        parts = depth_parts(self.target, rows, depth, columns, lanes)
        chunk = dense_chunk(self.target, rows, parts[0][1], groups, tile)

        def nest(span: tuple[int, int], partial_sums: Buffer | None) -> DenseNest:
            return DenseNest(
                rows, depth, columns, lanes, tile, buffers[data], buffers[weight], outputs[0],
                place, access, anchor, chunk, span=span, partial=partial_sums,
                axis=1 if turned else -1,
            )  # fmt: skip

        packs = {i: layout_pack(PLAIN) for i, c in enumerate(self.group.constant) if c}
        key = f"dense:{tile.blocks}:{lanes}"
        packs[weight] = Pack(key, partial(pack_dense, blocks=tile.blocks, lanes=lanes))
        places = {buffer: Place("in", i) for i, buffer in enumerate(buffers)}
        places[place.buffer] = Place("out", 0)
        params = (place.buffer, *buffers)
        if len(parts) == 1:
            kernel = nest(parts[0], None).kernel(name, params)
            return Lowered([(kernel, tuple(places[p] for p in params))], packs)
        sums = Buffer("partial", "float32")
        places[sums] = Place("temp", 0)
        kernels = []
        for number, span in enumerate(parts):
            last = span[1] == depth
            used = (*params, sums) if last else (sums, buffers[data], buffers[weight])
            kernel = nest(span, sums).kernel(f"{name}_{number}", used)
            kernels.append((kernel, tuple(places[p] for p in used)))
        return Lowered(kernels, packs, [4 * groups * rows * tile.blocks * lanes])


def pack_dense(weight: Array, *, blocks: int, lanes: int) -> Array:
    """``(N, K)`` as ``[N/(blocks*lanes)][K][blocks*lanes]``, outputs padded with zeros."""
    n, k = weight.shape
    wide = blocks * lanes
    w = np.pad(weight, ((0, -n % wide), (0, 0)))
    return np.ascontiguousarray(w.reshape(-1, wide, k).transpose(0, 2, 1)).reshape(-1)
