"""A context: every byte a run changes. One run at a time; executables keep a pool of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ixion.base import dtype as dtypes
from ixion.base.abi import RunWord, WorkerWord
from ixion.runtime.arena import address_of, allocate
from ixion.runtime.program import ALIGNMENT, Program, Slot, TensorSpec, aligned
from ixion.runtime.table import Table

Array = npt.NDArray[Any]

#: Inputs and outputs up to this many bytes are copied; larger ones are used where they lie.
COPY_LIMIT = 64 << 10
#: Nanoseconds after which a run looks in on Python, so that signal handlers get their turn.
TURN = 50_000_000
_FALSE_SHARING = 128


@dataclass(frozen=True)
class Binding:
    """What all contexts of an executable share."""

    program: Program
    table: Table
    constants: Sequence[Array]
    states: Sequence[Array]
    threads: int


class Context:
    """Run and worker records, slots, arena, scratch and copies of small inputs and outputs.

    `inputs` and `outputs` are views of the copies, None for tensors used where they lie. `words`
    is the run record as int64s.
    """

    def __init__(self, binding: Binding, pool: int) -> None:
        self.binding = binding
        program = binding.program
        layout = _Layout()
        run = layout.take(RunWord.SIZE)
        workers = layout.take(WorkerWord.SIZE * binding.threads)
        slots = layout.take(8 * len(binding.table.slots))
        profile = layout.take(0)
        copies = [layout.tensor(spec) for spec in (*program.inputs, *program.outputs)]
        arena = layout.take(program.arena_size)
        scratch = [layout.take(program.scratch_size) for _ in range(binding.threads)]
        self.block = allocate(layout.size)
        self.base = address_of(self.block)
        del profile
        self._arena = arena
        self.words = self._int64(run, RunWord.SIZE // 8)
        self._workers = self._int64(workers, binding.threads * WorkerWord.SIZE // 8)
        self.slots = self._int64(slots, len(binding.table.slots))
        views = [self._copy(place, spec) for place, spec in zip(copies, self._specs(), strict=True)]
        self.inputs, self.outputs = views[: len(program.inputs)], views[len(program.inputs) :]
        self._fill_records(slots, workers, scratch, pool)
        self._fill_slots()

    @property
    def record(self) -> int:
        """Address of the run record."""
        return self.base

    def _specs(self) -> list[TensorSpec]:
        return [*self.binding.program.inputs, *self.binding.program.outputs]

    def _int64(self, offset: int, count: int) -> npt.NDArray[np.int64]:
        return np.ndarray((count,), np.int64, buffer=self.block, offset=offset)

    def _copy(self, offset: int | None, spec: TensorSpec) -> Array | None:
        if offset is None:
            return None
        return np.ndarray(spec.shape, dtypes.to_numpy(spec.dtype), buffer=self.block, offset=offset)
