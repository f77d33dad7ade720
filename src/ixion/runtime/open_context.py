"""The context of an open executable: every byte a run changes, whatever its sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ixion.base import dtype as dtypes
from ixion.base.abi import RunWord, WorkerWord
from ixion.runtime.arena import address_of, allocate
from ixion.runtime.context import TURN, Array, Memory
from ixion.runtime.outline import Outline
from ixion.runtime.plan import Plan, Planner
from ixion.runtime.program import aligned

_LINE = 128


class OpenContext:
    """Run and worker records, slots, and memory that grows with the largest plan."""

    def __init__(
        self, outline: Outline, planner: Planner, states: Sequence[Array], pool: int, spin: int
    ) -> None:
        self.outline, self.planner = outline, planner
        threads = planner.threads
        workers = aligned(RunWord.SIZE, _LINE)
        slots = workers + aligned(WorkerWord.SIZE * threads, _LINE)
        self._block = allocate(slots + 8 * max(1, len(planner.slot_room)))
        self.record = address_of(self._block)
        self.words = self._int64(0, RunWord.SIZE // 8)
        self._workers = self._int64(workers, WorkerWord.SIZE // 8 * threads)
        self._slots = self._int64(slots, len(planner.slot_room))
        self._memory = Memory()
        self._states = list(states)
        self._bases = np.zeros(planner.bases, np.int64)
        self._plan: Plan | None = None
        self._pool = pool
        for word, value in (
            (RunWord.SLOTS, self.record + slots), (RunWord.WORKERS, self.record + workers),
            (RunWord.THREADS, threads), (RunWord.BUDGET, TURN), (RunWord.SPIN, spin),
        ):  # fmt: skip
            self.words[word // 8] = value
        self._fill_bases()

    def _int64(self, offset: int, count: int) -> npt.NDArray[np.int64]:
        return np.ndarray((count,), np.int64, buffer=self._block, offset=offset)

    def _fill_bases(self) -> None:
        first = self.planner.first
        for kind, arrays in (("const", self.outline.constants), ("state", self._states)):
            for i, array in enumerate(arrays):
                self._bases[first[kind] + i] = address_of(array) if array.nbytes else 0

    def enter(self, plan: Plan, inputs: Sequence[Array], outputs: Sequence[Array | None]) -> None:
        """Makes ready for a run: arrays at 16 bytes, dense; None for results that lie elsewhere."""
        if self._plan is not plan:
            self._change(plan)
        first, bases = self.planner.first, self._bases
        for i, array in enumerate(inputs, first["input"]):
            bases[i] = address_of(array)
        for i, result in enumerate(outputs, first["output"]):
            bases[i] = 0 if result is None else address_of(result)
        np.add(bases[plan.slot_base], plan.slot_offset, out=self._slots)
        self._inputs, self._outputs = inputs, outputs

    def leave(self) -> None:
        """Lets go of the arrays of ``enter``."""
        self._inputs, self._outputs = (), ()

    def _change(self, plan: Plan) -> None:
        body = self._memory.room(self.planner.body_size(plan))
        self._body = body
        start = address_of(body)
        self._bases[1] = start
        place = start + aligned(plan.arena_size, _LINE)
        for worker in range(self.planner.threads):
            self._workers[worker * WorkerWord.SIZE // 8] = place
            place += aligned(plan.scratch_size, _LINE)
        self.words[RunWord.TABLE // 8] = address_of(plan.words)
        self.words[RunWord.POOL // 8] = self._pool if plan.shared else 0
        self._plan = plan

    def reset(self) -> None:
        """Forgets a run that did not end, so that the next one starts at the first step."""
        for word in (RunWord.STEP, RunWord.STOP, RunWord.CODE, RunWord.YIELD):
            self.words[word // 8] = 0

    def error_index(self, worker: int) -> int:
        """The index word of a worker record."""
        return int(self._workers[(worker * WorkerWord.SIZE + WorkerWord.ERROR_INDEX) // 8])

    def result(self, base: int, offset: int, shape: tuple[int, ...], dtype: str) -> Array:
        """A tensor as it lies after a run, at a base and an offset."""
        kind = dtypes.to_numpy(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        if size == 0:
            return np.zeros(shape, kind)
        return np.ndarray(shape, kind, buffer=_bytes(self._owner(base)), offset=offset)

    def _owner(self, base: int) -> Array:
        if base == 1:
            return self._body
        first = self.planner.first
        for kind, arrays in (
            ("state", self._states), ("output", self._outputs), ("input", self._inputs),
            ("const", self.outline.constants),
        ):  # fmt: skip
            if base >= first[kind]:
                found: Any = arrays[base - first[kind]]
                return found  # type: ignore[no-any-return]
        raise IndexError(base)


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)
