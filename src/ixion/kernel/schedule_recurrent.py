"""Schedules for recurrent layers: a kernel or two for a step, called again for every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ixion.ir import Call
from ixion.kernel.dense import chunk_rows
from ixion.kernel.layout import PLAIN, Layout
from ixion.kernel.recurrent import Cell, Lane, StepNest, pack_gates, packing, step_tile
from ixion.kernel.schedule import Lowered, Pack, Place, Schedule, layout_pack, register_schedule
from ixion.kernel.tile import TileShape
from ixion.op.typed import attrs_of, shape_of
from ixion.te.expr import Const, Expr, Var, intrinsic, maximum
from ixion.te.stmt import Buffer, Kernel, Let, Stmt, seq

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class Phase:
    """A kernel of a step: it multiplies ``source`` with ``gates`` of the weight, from ``first`` on.

    ``params`` are buffers by the name of their place, what the kernel writes first.
    """

    first: int
    gates: int
    source: str
    params: dict[str, Buffer]
    cell: Cell


class Recurrent(Schedule):
    """Everything plain; weights packed by gates, by a kernel of their own where computed."""

    gates: ClassVar[int]
    hidden: ClassVar[int] = 2  # the argument with the first hidden state
    kept: ClassVar[int] = 0  # temporaries as large as a state

    def wanted(self, i: int) -> Layout | None:
        return PLAIN

    def result(self) -> Layout | None:
        return PLAIN

    def phases(self) -> list[Phase]:
        raise TypeError(type(self).__name__)

    @property
    def call(self) -> Call:
        assert self.group.head is not None
        return self.group.head

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        self.steps, self.batch, _ = shape_of(self.call.args[0])
        self.units = shape_of(self.call.args[1])[1]
        packs = {i: layout_pack(PLAIN) for i, c in enumerate(self.group.constant) if c}
        lowered = Lowered([], packs)
        phases = self.phases()
        tiles = [self._tile(phase) for phase in phases]
        kernels = [self._kernel(name, p, t) for p, t in zip(phases, tiles, strict=True)]
        known = self.group.constant[self._operand(1)]
        pack = self._pack_known if known else self._pack_computed
        weights = pack(name, phases, tiles, lowered)
        self.first_kept = len(lowered.temps)
        lowered.temps += [4 * self.batch * self.units] * self.kept
        before: int | None = None
        for at in self._order():
            for phase, kernel, weight in zip(phases, kernels, weights, strict=True):
                first, *rest = (self.place(p, at, before) for p in phase.params)
                lowered.kernels.append((kernel, (first, weight, *rest)))
            before = at
        return lowered

    def place(self, name: str, at: int, before: int | None) -> Place:
        """Where a parameter of step ``at`` lies; ``before`` is the step done before it."""
        state = self.batch * self.units
        if name == "gates":
            whole = state * self.gates
            return Place("in", self._operand(0), at * whole, whole)
        if name == "out":
            return Place("out", 0, at * state, state)
        if name == "hidden" and before is not None:
            return Place("out", 0, before * state, state, read=True)
        if name == "hidden":
            return Place("in", self._operand(self.hidden))
        return Place("temp", self.first_kept + int(name.removeprefix("kept")))

    def _order(self) -> Sequence[int]:
        steps = range(self.steps)
        return steps[::-1] if attrs_of(self.call).reverse else steps

    def _operand(self, number: int) -> int:
        found = self.group.operand(self.call, number)
        assert found is not None
        return found

    def _tile(self, phase: Phase) -> TileShape:
        return step_tile(self.target, self.batch, self.units, phase.gates)

    def _kernel(self, name: str, phase: Phase, tile: TileShape) -> Kernel:
        weight, buffers = Buffer("weight", "float32"), list(phase.params.values())
        nest = StepNest(
            self.batch, self.units, phase.gates, self.target.lanes("float32"), tile,
            phase.params[phase.source], weight, chunk_rows(self.batch, tile), phase.cell,
        )  # fmt: skip
        return nest.kernel(name, (buffers[0], weight, *buffers[1:]))

    def _pack_known(
        self, name: str, phases: list[Phase], tiles: list[TileShape], lowered: Lowered
    ) -> list[Place]:
        """One constant with the weights of all phases behind each other."""
        number, lanes = self._operand(1), self.target.lanes("float32")
        parts = tuple(
            (p.first, p.gates, t.blocks // p.gates) for p, t in zip(phases, tiles, strict=True)
        )
        key = f"gates:{self.gates}:{parts}:{lanes}"
        lowered.packs[number] = Pack(
            key, partial(_packed, gates=self.gates, parts=parts, lanes=lanes)
        )
        places, at = [], 0
        for phase, tile in zip(phases, tiles, strict=True):
            size = self._packed_size(phase, tile)
            places.append(Place("in", number, at, size))
            at += size
        return places

    def _pack_computed(
        self, name: str, phases: list[Phase], tiles: list[TileShape], lowered: Lowered
    ) -> list[Place]:
        lanes = self.target.lanes("float32")
        places = []
        for phase, tile in zip(phases, tiles, strict=True):
            kernel = packing(
                name, Buffer("rows", "float32"), phase.first * self.units, self.units, tile,
                phase.gates, lanes,
            )  # fmt: skip
            places.append(Place("temp", len(lowered.temps)))
            lowered.temps.append(4 * self._packed_size(phase, tile))
            lowered.kernels.append((kernel, (places[-1], Place("in", self._operand(1)))))
        return places

    def _packed_size(self, phase: Phase, tile: TileShape) -> int:
        lanes = self.target.lanes("float32")
        groups = -(-self.units // (tile.blocks // phase.gates * lanes))
        return groups * self.units * tile.blocks * lanes


def _packed(
    weight: Array, *, gates: int, parts: tuple[tuple[int, int, int], ...], lanes: int
) -> Array:
    rows = weight.reshape(gates, -1, weight.shape[1])
    return np.concatenate([
        pack_gates(rows[first : first + count], parts=vectors, lanes=lanes)
        for first, count, vectors in parts
    ])  # fmt: skip


def _buffers(*names: str) -> dict[str, Buffer]:
    return {name: Buffer(name, "float32") for name in names}


@register_schedule("nn.lstm_sequence")
class LSTM(Recurrent):
    gates = 4

    def phases(self) -> list[Phase]:
        params = _buffers("out", "cell_out", "gates", "hidden", "cell")
        return [Phase(0, 4, "hidden", params, partial(self._cell, params))]

    def place(self, name: str, at: int, before: int | None) -> Place:
        if name == "cell_out":
            return Place("out", 1)
        if name == "cell":
            first = before is None
            return Place("in", self._operand(3)) if first else Place("out", 1, read=True)
        return super().place(name, at, before)

    def _cell(self, params: dict[str, Buffer], sums: Sequence[Expr], lane: Lane) -> Stmt:
        units = self.units
        totals = [s + lane.load(params["gates"], 4 * units, n * units) for n, s in enumerate(sums)]
        i, f, g, o = totals
        old = lane.load(params["cell"], units)
        # Named, as its store ends what may be loaded again: both cells can be the same memory.
        cell, output = (Var(name, "float32", lane.lanes) for name in ("cell", "output"))
        stores = seq(
            lane.store(params["cell_out"], units, cell),
            lane.store(params["out"], units, output * _tanh(cell)),
        )
        value = _sigmoid(f) * old + _sigmoid(i) * _tanh(g)
        return Let(output, _sigmoid(o), Let(cell, value, stores))


@register_schedule("nn.gru_sequence")
class GRU(Recurrent):
    """With the reset gate before the product a step has two kernels."""

    gates = 3
    hidden = 3
    kept = 2  # reset times state, and the update gate

    def phases(self) -> list[Phase]:
        if attrs_of(self.call).reset_after:
            params = _buffers("out", "gates", "hidden", "bias")
            return [Phase(0, 3, "hidden", params, partial(self._cell, params))]
        gates = _buffers("kept0", "kept1", "gates", "hidden")
        new = _buffers("out", "kept0", "kept1", "gates", "hidden", "bias")
        return [
            Phase(0, 2, "hidden", gates, partial(self._both_gates, gates)),
            Phase(2, 1, "kept0", new, partial(self._new, new)),
        ]

    def place(self, name: str, at: int, before: int | None) -> Place:
        return Place("in", self._operand(2)) if name == "bias" else super().place(name, at, before)

    def _cell(self, params: dict[str, Buffer], sums: Sequence[Expr], lane: Lane) -> Stmt:
        reset, update = (_sigmoid(self._total(params, sums[n], lane, n)) for n in range(2))
        inner = reset * (sums[2] + self._bias(params, lane))
        return self._blend(params, self._total(params, inner, lane, 2), update, lane)

    def _both_gates(self, params: dict[str, Buffer], sums: Sequence[Expr], lane: Lane) -> Stmt:
        reset, update = (_sigmoid(self._total(params, sums[n], lane, n)) for n in range(2))
        old = lane.load(params["hidden"], self.units)
        name = Var("update", "float32", lane.lanes)
        stores = seq(
            lane.store(params["kept0"], self.units, reset * old),
            lane.store(params["kept1"], self.units, name),
        )
        return Let(name, update, stores)

    def _new(self, params: dict[str, Buffer], sums: Sequence[Expr], lane: Lane) -> Stmt:
        total = self._total(params, sums[0] + self._bias(params, lane), lane, 2)
        return self._blend(params, total, lane.load(params["kept1"], self.units), lane)

    def _total(self, params: dict[str, Buffer], value: Expr, lane: Lane, gate: int) -> Expr:
        return value + lane.load(params["gates"], 3 * self.units, gate * self.units)

    def _bias(self, params: dict[str, Buffer], lane: Lane) -> Expr:
        return lane.load(params["bias"], 0)

    def _blend(self, params: dict[str, Buffer], total: Expr, update: Expr, lane: Lane) -> Stmt:
        new = _tanh(total)
        old = lane.load(params["hidden"], self.units)
        return lane.store(params["out"], self.units, new + update * (old - new))


@register_schedule("nn.rnn_sequence")
class RNN(Recurrent):
    gates = 1

    def phases(self) -> list[Phase]:
        params = _buffers("out", "gates", "hidden")
        return [Phase(0, 1, "hidden", params, partial(self._cell, params))]

    def _cell(self, params: dict[str, Buffer], sums: Sequence[Expr], lane: Lane) -> Stmt:
        total = sums[0] + lane.load(params["gates"], self.units)
        relu = attrs_of(self.call).activation == "relu"
        value = maximum(total, Const(0.0, "float32", lane.lanes)) if relu else _tanh(total)
        return lane.store(params["out"], self.units, value)


def _sigmoid(x: Expr) -> Expr:
    return intrinsic("sigmoid", x)


def _tanh(x: Expr) -> Expr:
    return intrinsic("tanh", x)
