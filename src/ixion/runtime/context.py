"""A context: every byte a run changes. It serves one run at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ixion.base import dtype as dtypes
from ixion.base.abi import RunWord, WorkerWord
from ixion.runtime.arena import address_of, allocate
from ixion.runtime.program import Program, Slot, TensorSpec, aligned
from ixion.runtime.table import Table

Array = npt.NDArray[Any]

#: Inputs and outputs up to this many bytes are copied; larger ones are used where they lie.
COPY_LIMIT = 64 << 10
#: Nanoseconds after which a run looks in on Python, so that signal handlers get their turn.
TURN = 50_000_000
# Two lines: the prefetcher fetches lines in pairs.
_FALSE_SHARING = 128


@dataclass(frozen=True)
class Binding:
    """What all contexts of an executable share."""

    program: Program
    table: Table
    states: Sequence[Array]
    threads: int
    spin: int


@dataclass
class _Layout:
    """Offsets of the parts of a context's block."""

    size: int = 0
    copies: list[int | None] = field(default_factory=list)

    def take(self, size: int) -> int:
        place = self.size
        self.size += aligned(size, _FALSE_SHARING)
        return place

    def take_copies(
        self, specs: Sequence[TensorSpec], carried: Sequence[int] = ()
    ) -> list[int | None]:
        return [
            self.take(s.nbytes) if s.nbytes <= COPY_LIMIT and i not in carried else None
            for i, s in enumerate(specs)
        ]


class Memory:
    """Arena and scratch of runs of any sizes in turn; grows, never shrinks."""

    def __init__(self) -> None:
        self.block = allocate(0)

    def room(self, size: int) -> npt.NDArray[np.uint8]:
        """At least `size` bytes, the same ones as long as they suffice."""
        if len(self.block) < size:
            self.block = allocate(aligned(size + size // 4, _FALSE_SHARING))
        return self.block


class Context:
    """Run and worker records, slots, arena, scratch and copies of small inputs and outputs.

    `inputs` and `outputs` are views of the copies, None for tensors used where they lie (bound by
    `bind`). `words` is the run record, int64[16]; `record` its address.
    """

    def __init__(self, binding: Binding, pool: int) -> None:
        program, threads = binding.program, binding.threads
        layout = _Layout()
        layout.take(RunWord.SIZE)
        self._workers_at = layout.take(WorkerWord.SIZE * threads)
        self._slots_at = layout.take(8 * len(binding.table.slots))
        inputs = layout.take_copies(program.inputs, program.carried)
        outputs = layout.take_copies(program.outputs)
        self._arena_at = layout.take(program.arena_size)
        scratch = [layout.take(program.scratch_size) for _ in range(threads)]
        self._block = allocate(layout.size)
        self.record = address_of(self._block)
        self._binding = binding
        self.inputs = [self._copy(at, s) for at, s in zip(inputs, program.inputs, strict=True)]
        self.outputs = [self._copy(at, s) for at, s in zip(outputs, program.outputs, strict=True)]
        #: Copies of inputs with shape and dtype; where outputs lie if all have a fixed place.
        self.copies = [(copy, copy.shape, copy.dtype) for copy in self.inputs if copy is not None]
        self.results: list[Array] = []
        #: What a run of one input and one output needs: the copy with shape and dtype, the record,
        #: and what makes the result; all at hand in one look.
        self.single: tuple[Array, tuple[int, ...], np.dtype[Any], int, Callable[[], Array]]
        self._bound: dict[tuple[str, int], Array] = {}
        self._positions = _positions(binding.table.slots)
        self.words = self._int64(0, RunWord.SIZE // 8)
        self._workers = self._int64(self._workers_at, WorkerWord.SIZE // 8 * threads)
        self._slots = self._int64(self._slots_at, len(binding.table.slots))
        self._fill_records(scratch, pool)
        self._slots[:] = [self._word(slot) for slot in binding.table.slots]

    def bind(self, kind: str, index: int, array: Array) -> None:
        """Let "input" or "output" `index` lie in `array` (dense, 16-byte aligned) for this run."""
        self._bound[kind, index] = array
        address = address_of(array)
        for position, offset in self._positions.get((kind, index), ()):
            self._slots[position] = address + offset

    def unbind(self) -> None:
        """Let go of the arrays of `bind`."""
        self._bound.clear()

    def reset(self) -> None:
        """Forget a run that did not end, so that the next one starts at the first step."""
        for word in (RunWord.STEP, RunWord.STOP, RunWord.CODE, RunWord.YIELD):
            self.words[word // 8] = 0

    def error_index(self, worker: int) -> int:
        """The index word of a worker record."""
        return int(self._workers[(worker * WorkerWord.SIZE + WorkerWord.ERROR_INDEX) // 8])

    def view(self, slot: Slot, spec: TensorSpec) -> Array:
        """The tensor at a slot's address, as an array of a spec's shape and dtype."""
        dtype = dtypes.to_numpy(spec.dtype)
        buffer, offset = self._buffer(slot)
        return np.ndarray(spec.shape, dtype, buffer=buffer, offset=offset + slot.offset)

    def _buffer(self, slot: Slot) -> tuple[Array, int]:
        if slot.kind == "arena":
            return self._block, self._arena_at
        return _bytes(self._tensor(slot.kind, slot.index)), 0

    def _tensor(self, kind: str, index: int) -> Array:
        if kind == "const":
            return self._binding.program.constants[index]
        if kind == "state":
            return self._binding.states[index]
        copy = (self.inputs if kind == "input" else self.outputs)[index]
        return self._bound[kind, index] if copy is None else copy

    def _word(self, slot: Slot) -> int:
        """Value of a slot; 0 while its tensor is not bound."""
        if slot.kind == "imm":
            return slot.offset
        if slot.kind == "arena":
            return self.record + self._arena_at + slot.offset
        if slot.kind in ("input", "output"):
            copy = (self.inputs if slot.kind == "input" else self.outputs)[slot.index]
            return 0 if copy is None else address_of(copy) + slot.offset
        return address_of(self._tensor(slot.kind, slot.index)) + slot.offset

    def _fill_records(self, scratch: Sequence[int], pool: int) -> None:
        table = address_of(self._binding.table.words)
        values = {
            RunWord.TABLE: table,
            RunWord.SLOTS: self.record + self._slots_at,
            RunWord.WORKERS: self.record + self._workers_at,
            RunWord.THREADS: self._binding.threads,
            RunWord.POOL: pool,
            RunWord.BUDGET: TURN,
            RunWord.SPIN: self._binding.spin,
        }
        for word, value in values.items():
            self.words[word // 8] = value
        for worker, place in enumerate(scratch):
            self._workers[worker * WorkerWord.SIZE // 8] = self.record + place

    def _int64(self, offset: int, count: int) -> npt.NDArray[np.int64]:
        return np.ndarray((count,), np.int64, buffer=self._block, offset=offset)

    def _copy(self, offset: int | None, spec: TensorSpec) -> Array | None:
        if offset is None:
            return None
        dtype = dtypes.to_numpy(spec.dtype)
        return np.ndarray(spec.shape, dtype, buffer=self._block, offset=offset)


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


def _positions(slots: Sequence[Slot]) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """(place in the table of slots, offset) of every input and output slot."""
    found: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for position, slot in enumerate(slots):
        if slot.kind in ("input", "output"):
            found.setdefault((slot.kind, slot.index), []).append((position, slot.offset))
    return found
