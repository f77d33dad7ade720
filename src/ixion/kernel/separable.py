"""Pointwise and depthwise convolutions of one chain in one kernel.

``expand`` (1x1) makes channels, ``depthwise`` folds windows of each, ``project`` (1x1) joins them;
the first or the last may be missing.  A task takes a band of output rows.  For a panel of a few
channel blocks at a time the expanded rows under the band go to a strip of private memory and the
depthwise windows read them there, before they leave the near caches.  Without ``project`` each
panel is a task of its own and its results go to memory; with it they go to a second strip that
holds all channels of the band, which the product then reads.  Rows that two bands share are
expanded twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from ixion.kernel.conv_direct import ConvNest
from ixion.kernel.loops import decode
from ixion.kernel.scalars import largest, pieces, times
from ixion.kernel.spatial import SpatialNest, max_scratch
from ixion.kernel.window import DepthwiseNest
from ixion.te.expr import Expr, Var, maximum, minimum, wrap
from ixion.te.simplify import simplify
from ixion.te.stmt import Buffer, For, Kernel, Let, Stmt, seq
from ixion.te.tensor import Extent


@dataclass(eq=False)
class Strip:
    """Rows of some channel blocks in private memory, ``[block][row][column][c]``.

    Row 0 is row ``first`` of the image, block 0 is block ``base``.
    """

    buffer: Buffer
    height: Extent
    width: Extent
    block: int
    first: Expr
    base: Expr

    def at(self, block: Expr, row: Expr, col: Expr) -> Expr:
        """Where channel 0 of a block is, for a pixel of the image."""
        line = (block - self.base) * self.height + (row - self.first)
        return simplify((line * self.width + col) * self.block)

    @property
    def scratch(self) -> Extent:
        """Bytes of private memory up to its end, in whole cache lines."""
        return pieces(self.buffer.offset + 4 * self.buffer.size, 64) * 64


def strip(
    name: str, after: Extent, blocks: int, height: Extent, width: Extent, block: int, first: Expr,
    base: Expr,
) -> Strip:  # fmt: skip
    """A strip of ``blocks`` channel blocks that begins ``after`` so many bytes."""
    size = times([height, width, blocks * block])
    buffer = Buffer(name, "float32", "scratch", size, offset=after)
    return Strip(buffer, height, width, block, first, base)


@dataclass(eq=False)
class StripDepthwise(DepthwiseNest):
    """Depthwise convolution of rows in a strip."""

    strip: Strip | None = None

    def _source_at(self, col: Expr, t: Var) -> Expr:
        if self.strip is None:
            return super()._source_at(col, t)
        row = self.row * self.rows.step + (t * self.rows.delta + self.rows.first)
        return self.strip.at(self.cb, row, col * self.cols.step + self.cols.first)


@dataclass(eq=False)
class StripConv(ConvNest):
    """Pointwise convolution of rows in a strip."""

    strip: Strip | None = None

    def _source_at(self, col: Expr, ib: Var, t: Var) -> Expr:
        if self.strip is None:
            return super()._source_at(col, ib, t)
        return self.strip.at(ib, self.row, col)


def write_to(nest: SpatialNest, target: Strip) -> None:
    """Makes a strip the place of a nest's results."""
    nest.at = target.at(nest.ob, nest.orow, nest.ocol)


@dataclass(eq=False)
class Separable:
    """The nests of a chain; ``rows`` is the strip that depthwise reads, ``band`` its results'."""

    depthwise: StripDepthwise
    expand: StripConv | None
    project: StripConv | None
    rows: Strip | None
    band: Strip | None
    panel: int

    def kernel(self, name: str, params: tuple[Buffer, ...]) -> Kernel:
        """One kernel; a task is a band, without ``project`` a panel of a band."""
        dw, task = self.depthwise, Var("task")
        parts: list[tuple[Var, Extent]] = [(dw.n, dw.batch), (dw.row_chunk, dw.row_chunks)]
        panel = Var("panel")
        panels = -(-dw.blocks // self.panel)
        if self.project is None:
            parts.append((panel, panels))
            body = self._panel(panel)
        else:
            body = seq(For(panel, 0, panels, self._panel(panel)), self._projected(self.project))
        nests: list[SpatialNest] = [n for n in (self.expand, dw, self.project) if n is not None]
        strips = [s for s in (self.rows, self.band) if s is not None]
        private = [b for n in nests for b in n.private] + [s.buffer for s in strips]
        given = dw.scalars.values
        tasks = times(dw.scalars.value(n) for _, n in parts)
        scratch = dw.scalars.value(largest([*(s.scratch for s in strips), max_scratch(nests)]))
        return Kernel(
            name, params, task, tasks, decode(task, parts, self._bounded(body)), tuple(given),
            scratch, tuple(private), tuple(given.values()),
        )  # fmt: skip

    def _bounded(self, body: Stmt) -> Stmt:
        """Names the first row of the band, and of the rows of the image under it."""
        dw = self.depthwise
        first = dw.row_chunk * dw.chunk_rows
        if self.band is not None:
            body = _named(self.band.first, first, body)
        if self.rows is not None:
            body = _named(self.rows.first, maximum(first * dw.rows.step + dw.rows.first, 0), body)
        return body

    def _panel(self, panel: Var) -> Stmt:
        """Some channel blocks of the band, up to their depthwise results."""
        dw, part, base = self.depthwise, Var("part"), panel * self.panel
        count: Expr = wrap(self.panel)
        if dw.blocks % self.panel:
            count = minimum(wrap(dw.blocks) - base, self.panel)
        folded = For(part, 0, count, Let(dw.cb, base + part, dw.body()))
        if self.expand is None or self.rows is None:
            return folded
        expanded = _given(self.expand, dw, panel, self._expanded(self.expand, self.rows))
        return _named(self.rows.base, base, seq(expanded, folded))

    def _expanded(self, expand: StripConv, rows: Strip) -> Stmt:
        """The rows of the image under the band."""
        dw = self.depthwise
        if expand.flat and not expand.long:
            return expand.lines(wrap(0), wrap(1))
        last = (dw.row_chunk * dw.chunk_rows + (dw.chunk_rows - 1)) * dw.rows.step
        reach = dw.rows.first + (dw.rows.taps - 1) * dw.rows.delta
        end = minimum(last + (reach + 1), wrap(dw.rows.extent))
        if expand.long:
            return expand.stretch(rows.first * rows.width, (end - rows.first) * rows.width)
        return expand.lines(rows.first, end)

    def _projected(self, project: StripConv) -> Stmt:
        outs = Var("outs")
        body = Let(project.row_chunk, self.depthwise.row_chunk, project.body())
        return For(outs, 0, project.block_groups, _given(project, self.depthwise, outs, body))


def _given(nest: StripConv, outer: SpatialNest, group: Var, body: Stmt) -> Stmt:
    """``body`` of a pointwise nest with its coordinates."""
    return Let(nest.n, outer.n, Let(nest.g, wrap(0), Let(nest.og, group, body)))


def _named(name: Expr, value: Expr, body: Stmt) -> Stmt:
    return Let(name, value, body) if isinstance(name, Var) else body
