"""Schedules for max and average pooling on blocked channels."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ixion.base.target import Target
from ixion.kernel.access import Operand
from ixion.kernel.group import Group
from ixion.kernel.layout import Layout
from ixion.kernel.scalars import Scalars
from ixion.kernel.schedule import Lowered, register_schedule
from ixion.kernel.schedule_conv import (
    SpatialSchedule,
    is_never_empty,
    named_chunk,
    sizes_of,
    spatial_taps,
    window_chunks,
    window_tile,
)
from ixion.kernel.sizes import as_extent, fixed
from ixion.kernel.window import AvgPoolNest, MaxPoolNest, WindowNest
from ixion.op.pool import pool_window
from ixion.op.typed import attrs_of, dtype_of
from ixion.te.stmt import Buffer

WIDEST = 16  # kernel columns are unrolled


@register_schedule("nn.max_pool2d", "nn.avg_pool2d", "nn.max_pool1d", "nn.avg_pool1d")
class Pool(SpatialSchedule):
    """Windows of moderate width; a whole-image window is a reduction."""

    rank = 10
    open_sizes = True

    @classmethod
    def accepts(cls, group: Group, target: Target) -> bool:
        call = group.head
        if call is None or dtype_of(call.args[0]) != "float32":
            return False
        if attrs_of(call).layout not in ("NCHW", "NCW") or group.operand(call, 0) is None:
            return False
        channels = sizes_of(call)[1]
        fits = isinstance(channels, int) and attrs_of(call).pool_size[-1] <= WIDEST
        return fits and is_never_empty(call)

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        window = pool_window(self.head.attrs)
        rows, cols = spatial_taps(window, self.data_shape, self.out_shape)
        tile = window_tile(self.target, self.block, cols.count)
        access, buffers = self.access(inputs, out)
        place = Operand(Buffer("out", self.out.dtype), out)
        scalars = Scalars()
        chunk = named_chunk(scalars, window_chunks(rows, cols, prod(window.size) * self.block))
        base = (
            self.out_shape[0], rows, cols, self.block, self.blocks(fixed(self.out_shape[1])), tile,
            self.out, place, access, self.anchor, *chunk, False, buffers[self.data],
        )  # fmt: skip
        nest: WindowNest
        if "max" in self.group.kind:
            nest = MaxPoolNest(*base, scalars=scalars)
        elif attrs_of(self.head).count_include_pad:
            ends = [as_extent(self.data_shape[2 + d] + window.after[d]) for d in range(window.rank)]
            row_limit = ends[0] if window.rank == 2 else 1
            nest = AvgPoolNest(*base, row_limit=row_limit, col_limit=ends[-1], scalars=scalars)
        else:
            nest = AvgPoolNest(*base, scalars=scalars)
        return self.finished(name, [nest], place, buffers, self.packs(access))
