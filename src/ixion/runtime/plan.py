"""Plans: what changes from one combination of sizes to the next, as arrays of numbers.

Everything else of an outline is turned into arrays once: which dims the tasks, slots and pieces of
memory of each step are.  A plan evaluates the dims and gathers them.  The memory plan and the
barriers depend on sizes only through those of the pieces of memory, in whole cache lines, and are
kept for combinations that give the same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ixion.base.abi import STEP_WORDS, Opcode, StepWord, WorkerWord
from ixion.base.dim import Dim
from ixion.runtime.barriers import Touch, needed_barriers
from ixion.runtime.memory import Room, plan
from ixion.runtime.outline import Outline, OutlineStep
from ixion.runtime.program import aligned
from ixion.runtime.table import UNKNOWN_WEIGHT, go_on, kept_barriers, limits_of, not_solo

Ints = npt.NDArray[np.int64]
Shape = tuple[int, ...]
REMEMBERED = 64  # memory plans and sets of barriers kept
SLACK = 4096
# What an address is relative to: nothing, the arena, then constants, inputs, outputs, states.
_NOTHING, _ARENA, _FIRST = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Plan:
    """One combination of sizes.

    ``words``: the step table; ``numbers``: the outline's number of each of its steps.  Slot i is
    ``bases[slot_base[i]] + slot_offset[i]``, bases as ``Planner.bases`` numbers them.
    ``places[i]``: base and offset of result i, None where it is written by steps.
    """

    words: Ints
    numbers: tuple[int, ...]
    slot_base: Ints
    slot_offset: Ints
    windows: tuple[int, ...]
    arena_size: int
    scratch_size: int
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    places: tuple[tuple[int, int] | None, ...]
    shared: bool
    sizes: Mapping[str, int]


@dataclass(frozen=True)
class _Memory:
    """Arena offsets by room, of those that have one, and the arena's size."""

    offsets: Ints
    size: int


class Planner:
    """Makes plans of an outline; ``address`` finds kernels."""

    def __init__(self, outline: Outline, address: Callable[[str], int], threads: int) -> None:
        self.outline, self.threads = outline, threads
        self.table = outline.size_table()
        self._number_bases()
        self._read_rooms()
        self._read_steps(address)
        self._memories: OrderedDict[bytes, _Memory] = OrderedDict()
        self._barriers: OrderedDict[bytes, list[bool]] = OrderedDict()
        self._specs = [self._shape(s.shape) for s in outline.inputs]
        self._results = [self._shape(s.shape) for s in outline.outputs]

    def _dims(self, dims: Iterable[Dim]) -> Ints:
        return np.array([self.table.add(d) for d in dims], np.int64)

    def _shape(self, shape: Sequence[Any]) -> list[int]:
        return [self.table.add(d) for d in shape]

    def _number_bases(self) -> None:
        """Where the bases of each kind of memory begin."""
        outline = self.outline
        counts = {
            "const": len(outline.constants), "input": len(outline.inputs),
            "output": len(outline.outputs), "state": len(outline.states),
        }  # fmt: skip
        self.first: dict[str, int] = {}
        self.bases = _FIRST
        for kind, count in counts.items():
            self.first[kind] = self.bases
            self.bases += count
        self.first["carried"] = self.first["input"]

    def _read_rooms(self) -> None:
        rooms = self.outline.rooms
        self.nbytes = self._dims(r.nbytes for r in rooms)
        self.at = self._dims(r.at for r in rooms)
        self.inner = [(i, r.parent) for i, r in enumerate(rooms) if r.parent >= 0]
        root = list(range(len(rooms)))
        for i, parent in self.inner:
            root[i] = root[parent]
        self.root = np.array(root, np.int64)
        self.base = np.array([self._base(rooms[n].kind, rooms[n].index) for n in root], np.int64)
        roots = [
            i for i, r in enumerate(rooms) if r.kind == "arena" and r.parent < 0 and r.first >= 0
        ]
        self.arena = np.array(roots, np.int64)
        self.is_input = np.array([rooms[n].kind == "input" for n in root], bool)

    def _base(self, kind: str, index: int) -> int:
        return _ARENA if kind == "arena" else self.first[kind] + index

    def _read_steps(self, address: Callable[[str], int]) -> None:
        steps = self.outline.steps
        self.tasks = self._dims(s.tasks for s in steps)
        self.scratch = self._dims(s.scratch for s in steps)
        self.products = self._dims(s.products for s in steps)
        self.moved = self._dims(s.moved for s in steps)
        self.calls = np.array([s.kind == "call" for s in steps], bool)
        self.guarded = [
            (i, self.table.add(s.when[0]), s.when[1], s.when[2])
            for i, s in enumerate(steps)
            if s.when is not None
        ]
        rooms: list[int] = []
        scalars: list[int] = []
        windows: list[int] = []
        for s in steps:
            windows.append(len(rooms))
            rooms += [*s.rooms, *(-1 for _ in s.scalars)]
            scalars += [*(0 for _ in s.rooms), *(self.table.add(d) for d in s.scalars)]
        self.windows = tuple(windows)
        self.slot_room = np.array(rooms, np.int64)
        self.slot_dim = np.array(scalars, np.int64)
        self.rows = np.zeros((len(steps), STEP_WORDS), np.int64)
        for row, step, window in zip(self.rows, steps, windows, strict=True):
            row[StepWord.OPCODE // 8] = Opcode[step.kind.upper()]
            row[StepWord.SLOTS // 8] = window * 8
            if step.kind == "call":
                row[StepWord.KERNEL // 8] = address(step.kernel)
            elif step.kind != "host":
                row[StepWord.COUNTER // 8] = WorkerWord.COUNTERS + 16 * step.counter
                direct = bool(step.scalars)
                if step.kind in ("branch", "loop"):
                    row[StepWord.WIDTH // 8] = 0 if direct else step.width

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """The plan for these values of the symbols."""
        values = np.array(self.table.values(sizes), np.int64)
        # Memory is taken as if no size were 0: what is not there may still be looked at.
        roomy = values
        if 0 in sizes.values():
            roomy = np.array(self.table.values({n: max(s, 1) for n, s in sizes.items()}), np.int64)
        at = values[self.at]
        for i, parent in self.inner:
            at[i] += at[parent]
        memory = self._memory(roomy[self.nbytes])
        kept = self._kept(values)
        slack = self._slack(values, roomy)
        base, offsets = self._places(values, memory, at, slack)
        tasks, costs = values[self.tasks], self._costs(values)
        barriers = self._needed(kept, roomy[self.nbytes], offsets)
        words, shared = self._table(kept, tasks, costs, barriers)
        inside = self.slot_room >= 0
        rooms = self.slot_room[inside]
        slot_base = np.zeros(len(self.slot_room), np.int64)
        slot_base[inside] = base[rooms]
        slot_offset = values[self.slot_dim]
        slot_offset[inside] = offsets[rooms]
        return Plan(
            words, tuple(kept.tolist()), slot_base, slot_offset, self.windows,
            memory.size + 2 * slack,
            int(values[self.scratch][kept].max(initial=0)),
            tuple(tuple(values[s].tolist()) for s in self._specs),
            tuple(tuple(values[s].tolist()) for s in self._results),
            tuple(
                None if n < 0 else (int(base[n]), int(offsets[n]))
                for n in self.outline.output_rooms
            ),
            shared, dict(sizes),
        )  # fmt: skip

    def _slack(self, values: Ints, roomy: Ints) -> int:
        """Bytes around the arena for looks at tensors that have no elements.

        The last of none is the one before the first, so they go both ways.
        """
        if values[self.nbytes].all():
            return 0
        return aligned(int(roomy[self.nbytes].max(initial=0))) + SLACK

    def _places(
        self, values: Ints, memory: _Memory, at: Ints, slack: int
    ) -> tuple[Ints, Ints]:
        """Base and offset of every room; inputs without elements lie in the arena."""
        base = self.base
        offsets = np.where(base == _ARENA, memory.offsets[self.root] + slack, 0) + at
        nothing = self.is_input & (values[self.nbytes][self.root] == 0)
        if nothing.any():
            base, offsets = np.where(nothing, _ARENA, base), np.where(nothing, slack, offsets)
        return base, offsets

    def _memory(self, nbytes: Ints) -> _Memory:
        """Where rooms lie, by their sizes in whole lines."""
        lines = (np.maximum(nbytes[self.arena], 1) + 63) // 64 * 64
        key = lines.tobytes()
        found = self._memories.get(key)
        if found is None:
            specs = [self.outline.rooms[i] for i in self.arena.tolist()]
            rooms = [
                Room("arena", size, 0, s.first, s.last)
                for s, size in zip(specs, lines.tolist(), strict=True)
            ]
            size = plan(rooms)
            offsets = np.zeros(len(self.outline.rooms), np.int64)
            offsets[self.arena] = [r.offset for r in rooms]
            found = _remember(self._memories, key, _Memory(offsets, size))
        return found

    def _kept(self, values: Ints) -> Ints:
        runs = ~self.calls | (values[self.tasks] > 0)
        for i, dim, least, most in self.guarded:
            runs[i] &= least <= values[dim] <= most
        return np.flatnonzero(runs)

    def _costs(self, values: Ints) -> npt.NDArray[np.float64]:
        """Expected nanoseconds on one thread: arithmetic at 100 GFLOP/s, memory at 20 GB/s."""
        return np.maximum(np.maximum(values[self.products] / 50.0, values[self.moved] / 20.0), 1.0)

    def _needed(self, kept: Ints, nbytes: Ints, offsets: Ints) -> list[bool]:
        """Which steps must be waited for, with pieces of memory up to the end of their line."""
        ends = offsets + (nbytes + 63) // 64 * 64
        key = kept.tobytes() + offsets.tobytes() + ends.tobytes()
        found = self._barriers.get(key)
        if found is None:
            first, last = offsets.tolist(), ends.tolist()
            steps = [self._touch(self.outline.steps[i], first, last) for i in kept.tolist()]
            found = _remember(self._barriers, key, needed_barriers(steps))
        return found

    def _touch(self, step: OutlineStep, first: Sequence[int], last: Sequence[int]) -> Touch:
        places = []
        for n, writes in zip(step.rooms, step.written, strict=True):
            base = int(self.base[n])
            fixed = self.first["const"] <= base < self.first["input"] or bool(self.is_input[n])
            places.append((None if fixed else (base, first[n], last[n]), writes))
        return Touch(tuple(places), step.joint, step.kind != "call")

    def _table(
        self, kept: Ints, tasks: Ints, costs: npt.NDArray[np.float64], barriers: list[bool]
    ) -> tuple[Ints, bool]:
        """The step table, and whether any step wants more than one thread."""
        steps = [self.outline.steps[i] for i in kept.tolist()]
        kinds = [s.kind for s in steps]
        own_costs = costs[kept]
        limits = limits_of(kinds, tasks[kept].tolist(), own_costs.tolist(), self.threads)
        targets = self._targets(kept, steps)
        held = kept_barriers(kinds, barriers, targets, limits)
        words = np.zeros((len(steps) + 1, STEP_WORDS), np.int64)
        words[:-1] = self.rows[kept]
        body, calls = words[:-1], self.calls[kept]
        limit = np.array(limits, np.int64)
        hold = np.array(held, bool)
        # Workers that sat a step out could claim later tasks of one that is still busy with it.
        limit[calls & ~hold & (limit > 1)] = self.threads
        body[calls, StepWord.TASKS // 8] = tasks[kept][calls]
        body[calls, StepWord.LIMIT // 8] = limit[calls]
        body[calls, StepWord.BARRIER // 8] = hold[calls]
        weights = np.where(own_costs > 0, np.minimum(own_costs, 1e15), UNKNOWN_WEIGHT)
        body[calls, StepWord.WEIGHT // 8] = weights[calls].astype(np.int64)
        for number, target in enumerate(targets):
            if target >= 0:
                body[number, StepWord.TARGET // 8] = target
        go_on(body, not_solo(kinds, targets, limits))
        return words, any(n > 1 for n in limits)

    def _targets(self, kept: Ints, steps: Sequence[OutlineStep]) -> list[int]:
        """Where jumps go: to the first kept step from their target on."""
        if all(s.target < 0 for s in steps):
            return [-1] * len(steps)
        moved = np.searchsorted(kept, [max(s.target, 0) for s in steps]).tolist()
        return [m if s.target >= 0 else -1 for m, s in zip(moved, steps, strict=True)]

    def body_size(self, made: Plan) -> int:
        """Bytes of arena and scratch that a run needs."""
        return aligned(made.arena_size, 128) + self.threads * aligned(made.scratch_size, 128)


def _remember(known: OrderedDict[bytes, Any], key: bytes, made: Any) -> Any:
    known[key] = made
    while len(known) > REMEMBERED:
        known.popitem(last=False)
    return made
