"""One step of a recurrent layer: the state's product and all that a cell does with it, together.

Weights are packed so that the vectors of a tile are all gates of the same units,
``[group][k][units' vectors][gates][lanes]``.  A task then has what it needs to finish its units:
no sum is ever in memory that others read, and the new state is all that a step writes.

With few rows a step is as fast as its weights come from the second-level cache, so a tile has just
enough vectors to hide the latency of the products, and there are many tasks to share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ixion.base.target import Target
from ixion.kernel.dense import tile_cost
from ixion.kernel.panels import STREAMED, Panels
from ixion.kernel.tile import TileShape, even_tiles, vector_registers
from ixion.te.expr import Const, Expr, Var, wrap
from ixion.te.simplify import simplify
from ixion.te.stmt import Buffer, For, If, Kernel, Stmt, seq

Array = np.ndarray[Any, np.dtype[Any]]
MOST_VECTORS = 8
# Vectors of products that hide a product's latency, per 512 bits and for shorter vectors.
CHAINS_WIDE, CHAINS = 4, 8


@dataclass(frozen=True)
class Lane:
    """A vector of units of one row: where it starts, and how many lanes are real."""

    row: Expr
    unit: Expr
    lanes: int
    count: Expr | None

    def load(self, buffer: Buffer, width: int, start: int = 0) -> Expr:
        """From a tensor of ``width`` elements a row, whose units begin at ``start``."""
        at = simplify(self.row * width + self.unit + start)
        return buffer.load(at, self.lanes, 1, self.count)

    def store(self, buffer: Buffer, width: int, value: Expr) -> Stmt:
        return buffer.store(simplify(self.row * width + self.unit), value, self.count)


Cell = Callable[[Sequence[Expr], Lane], Stmt]


def step_tile(target: Target, rows: int, units: int, gates: int) -> TileShape:
    """Rows and vectors of a tile, all gates of some vectors of units."""
    lanes = target.lanes("float32")
    vectors = -(-units // lanes)
    if rows == 1:
        chains = CHAINS_WIDE if target.vector_bits >= 512 else CHAINS
        return TileShape(1, gates * min(vectors, -(-chains // gates)))
    registers = vector_registers(target, lanes)
    found: list[tuple[float, TileShape]] = []
    for b in range(gates, max(MOST_VECTORS, gates) + 1, gates):
        most = max(1, (registers - b - 1) // b)
        if b > gates * vectors:
            break
        sizes = {even_tiles(rows, limit)[0] for limit in range(max(1, most - 3), most + 1)}
        found += [
            (tile_cost(rows, p, vectors * gates, b, units), TileShape(p, b)) for p in sizes
        ]
    return min(found, key=lambda f: (round(f[0], 6), f[1].pixels))[1]


@dataclass(eq=False)
class StepNest(Panels):
    """``cell`` gets the sums of a vector of units, one per gate, and stores what comes of them."""

    rows: int
    units: int
    gates: int
    lanes: int
    tile: TileShape
    source: Buffer
    weights: Buffer
    chunk_rows: int
    cell: Cell
    partial: Buffer | None = None

    def __post_init__(self) -> None:
        self.begin, self.end = 0, self.units
        self.depth = self.units
        self.parts = self.tile.blocks // self.gates
        self.groups = -(-self.units // (self.parts * self.lanes))
        self.prepare("float32")
        # One vector of units is finished in registers, more go through memory of the worker.
        self.direct = self.tile.pixels * self.parts == 1
        size = 0 if self.direct else self.tile.pixels * self.wide
        self.sums = Buffer("sums", "float32", "scratch", size)

    def kernel(self, name: str, params: tuple[Buffer, ...]) -> Kernel:
        task = Var("task")
        scratch = () if self.direct else (self.sums,)
        return Kernel(
            name, params, task, self.chunks * self.groups, self.body(task),
            scratch=4 * self.sums.size, locals=(self.acc.buffer, *scratch),
        )  # fmt: skip

    def _ahead(self, k: Var, number: Expr, tiles: int) -> list[Stmt]:
        """Nothing where the weights stay in the near cache from one step to the next."""
        if 4 * self.weight_size <= STREAMED:
            return []
        return super()._ahead(k, number, tiles)

    def _finish(self, row: Expr, size: int) -> Stmt:
        if self.direct:
            sums = [self.acc.get(0, gate) for gate in range(self.gates)]
            return self._vector(sums, row, self.group)
        keep = [
            self.sums.store(i * self.lanes, self.acc.buffer.load(i))
            for i in range(size * self.tile.blocks)
        ]
        pixel, part = Var("pixel"), Var("part")
        at = pixel * self.wide + part * (self.gates * self.lanes)
        kept = [
            self.sums.load(simplify(at + gate * self.lanes), self.lanes)
            for gate in range(self.gates)
        ]
        vector = self._vector(kept, row + pixel, self.group * self.parts + part)
        return seq(*keep, For(pixel, 0, size, For(part, 0, self.parts, vector)))

    def _vector(self, sums: Sequence[Expr], row: Expr, number: Expr) -> Stmt:
        """The cell of a vector of units; the last one may be short, those after it are nothing."""
        whole, tail = divmod(self.units, self.lanes)
        unit = simplify(number * self.lanes)
        full = self.cell(sums, Lane(row, unit, self.lanes, None))
        even = whole % self.parts == 0
        if tail == 0:
            return full if even else If(number < whole, full)
        last = self.cell(sums, Lane(row, wrap(whole * self.lanes), self.lanes, wrap(tail)))
        if (whole + 1) % self.parts:
            last = If(number.equal(whole), last)
        return If(number < whole, full, last) if whole else last


def pack_gates(weight: Array, *, parts: int, lanes: int) -> Array:
    """``(gates, units, depth)`` as ``[group][depth][parts][gates][lanes]``, padded with zeros."""
    gates, units, depth = weight.shape
    w = np.pad(weight, ((0, 0), (0, -units % (parts * lanes)), (0, 0)))
    w = w.reshape(gates, -1, parts, lanes, depth).transpose(1, 4, 2, 0, 3)
    return np.ascontiguousarray(w).reshape(-1)


def packing(
    name: str, source: Buffer, first: int, units: int, tile: TileShape, gates: int, lanes: int
) -> Kernel:
    """A kernel that packs weights known only at run time, from row ``first`` on."""
    out = Buffer("packed", "float32")
    task, k, part = Var("task"), Var("k"), Var("part")
    parts = tile.blocks // gates
    number = task * parts + part
    whole, tail = divmod(units, lanes)

    def vectors(count: int) -> Stmt:
        stores = []
        for gate in range(gates):
            row = number * lanes + (first + gate * units)
            at = (task * units + k) * (tile.blocks * lanes) + (part * gates + gate) * lanes
            value: Expr = Const(0.0, "float32", lanes)
            if count:
                limit = wrap(count) if count < lanes else None
                value = source.load(simplify(row * units + k), lanes, units, limit)
            stores.append(out.store(simplify(at), value))
        return For(k, 0, units, seq(*stores))

    last = If(number.equal(whole), vectors(tail), vectors(0)) if tail else vectors(0)
    body = If(number < whole, vectors(lanes), last)
    groups = -(-units // (parts * lanes))
    return Kernel(name, (out, source), task, groups, For(part, 0, parts, body))
