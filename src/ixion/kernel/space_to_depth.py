"""The first layer's image with neighbouring pixels as channels, so that stride 2 becomes 1.

Output position ``(i, j)`` holds pixels ``(2 i + a - top, 2 j + b - left)`` of every channel as
channel ``4 c + 2 a + b``; pixels outside the image are 0.  A window of ``k`` taps that moves by 2
becomes one of about ``k / 2`` taps that moves by 1, over four times the channels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ixion.kernel.loops import decode
from ixion.kernel.sizes import as_extent, ceil_div, least, most, product
from ixion.te.expr import Const, Expr, Lanes, Var, logical_and, minimum, select, wrap
from ixion.te.stmt import Buffer, For, If, Kernel, Let, Stmt, seq
from ixion.te.tensor import Extent

Array = np.ndarray[Any, np.dtype[Any]]
TASK_ROWS = 8


@dataclass(frozen=True)
class Halved:
    """One axis of the window in halves: ``taps`` pairs, the image shifted by ``before``.

    Tap ``t`` is half ``(t + late) % 2`` of pair ``(t + late) // 2``.
    """

    taps: int
    before: int
    late: int

    @staticmethod
    def of(size: int, pad: int) -> Halved:
        late = pad % 2
        return Halved((size + late + 1) // 2, pad + late, late)


@dataclass(frozen=True, eq=False)
class SpaceToDepth:
    """A plain image of ``batch x channels x height x width`` to ``rows x cols`` positions."""

    batch: Extent
    channels: int
    height: Extent
    width: Extent
    rows: Extent
    cols: Extent
    top: int
    left: int
    block: int

    @property
    def blocks(self) -> int:
        return -(-4 * self.channels // self.block)

    @property
    def size(self) -> Extent:
        """Elements written."""
        return product([self.batch, self.blocks, self.rows, self.cols, self.block])

    def kernel(self, name: str, out: Buffer, source: Buffer) -> Kernel:
        """Tasks are runs of output rows of one image and block of channels."""
        task, n, b, chunk, row = Var("task"), Var("n"), Var("b"), Var("chunk"), Var("row")
        chunks = ceil_div(self.rows, TASK_ROWS)
        parts: list[tuple[Var, Extent]] = [(n, self.batch), (b, self.blocks), (chunk, chunks)]
        line: Stmt = seq()
        for number in reversed(range(self.blocks)):
            one = self._line(out, source, n, number, row)
            line = If(b.equal(number), one, line) if number < self.blocks - 1 else one
        end = minimum((chunk + 1) * TASK_ROWS, wrap(self.rows))
        body = decode(task, parts, For(row, chunk * TASK_ROWS, end, line))
        return Kernel(name, (out, source), task, product(n for _, n in parts), body)

    def _line(self, out: Buffer, source: Buffer, n: Var, number: int, row: Var) -> Stmt:
        """One row: positions whose pixels are all inside the image, and those at its ends."""
        first = least(-(-self.left // 2), self.cols)
        last = most(first, least(self.cols, as_extent((self.width + self.left) // 2)))
        col, base = Var("col"), Var("base")
        block = (n * self.blocks + number) * (self.rows * self.cols * self.block)
        at = block + (row * self.cols + col) * self.block
        top, bottom = row * 2 - self.top >= 0, row * 2 + 1 - self.top < wrap(self.height)

        def store(careful: bool) -> Stmt:
            return out.store(at, self._position(source, n, number, row, col, base, careful))

        def run(lo: Extent, hi: Extent, careful: bool) -> list[Stmt]:
            nothing = isinstance(lo, int) and isinstance(hi, int) and hi <= lo
            return [] if nothing else [For(col, lo, hi, store(careful))]

        edges = [*run(0, first, True), *run(last, self.cols, True)]
        inner = If(
            logical_and(top, bottom), seq(*run(first, last, False)), seq(*run(first, last, True))
        )
        body = seq(*edges, inner) if run(first, last, False) else seq(*edges)
        start = (n * self.channels * self.height + row * 2 - self.top) * self.width - self.left
        return Let(base, start, body)

    def _position(
        self, source: Buffer, n: Var, number: int, row: Var, col: Var, base: Var, careful: bool
    ) -> Expr:
        lanes: list[Expr] = []
        for lane in range(self.block):
            channel = number * self.block + lane
            c, a, b = channel // 4, channel % 4 // 2, channel % 2
            if c >= self.channels:
                lanes.append(Const(0, source.dtype))
                continue
            index = base + col * 2 + (c * self.height + a) * self.width + b
            if not careful:
                lanes.append(source.load(index))
                continue
            y, x = row * 2 + (a - self.top), col * 2 + (b - self.left)
            inside = logical_and(
                logical_and(y >= 0, y < wrap(self.height)),
                logical_and(x >= 0, x < wrap(self.width)),
            )
            value = source.load(select(inside, index, wrap(0)))
            lanes.append(select(inside, value, Const(0, source.dtype)))
        return Lanes(tuple(lanes))


def halved_weights(weight: Array, rows: Halved, cols: Halved) -> Array:
    """``(O, I, kh, kw)`` as ``(O, 4 I, rows.taps, cols.taps)``, absent taps 0."""
    outs, ins, kh, kw = weight.shape
    whole = np.zeros((outs, ins, 2 * rows.taps, 2 * cols.taps), weight.dtype)
    whole[:, :, rows.late : rows.late + kh, cols.late : cols.late + kw] = weight
    split = whole.reshape(outs, ins, rows.taps, 2, cols.taps, 2).transpose(0, 1, 3, 5, 2, 4)
    return np.ascontiguousarray(split).reshape(outs, 4 * ins, rows.taps, cols.taps)
