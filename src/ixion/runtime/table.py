"""A program's steps as the flat int64 table the sequencer walks, and its distinct slot windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ixion.base.abi import (
    CLOCK_WEIGHT,
    MAX_LOOPS,
    STEP_WORDS,
    Opcode,
    StepWord,
    WorkerWord,
)
from ixion.base.errors import CodegenError
from ixion.runtime.program import Program, Slot, Step

#: Nanoseconds of one thread's work below which a further thread is not worth a barrier.
SHARE = 2_000.0
#: Nanoseconds of work to share below which a run does not wake anybody.
WAKE = 20_000.0
#: Weight of a step of unknown cost: the clock is read after this many of them.
UNKNOWN_WEIGHT = CLOCK_WEIGHT // 16


@dataclass(frozen=True)
class Table:
    """`words`: int64[steps + 1, 8], the last row END. `slots`: all windows, one after the other.

    `windows[i]` is the place of step i's first slot in `slots`. `shared`: whether any step wants
    more than one thread.
    """

    words: npt.NDArray[np.int64]
    slots: tuple[Slot, ...]
    windows: tuple[int, ...]
    shared: bool


def build_table(program: Program, address: Callable[[str], int], threads: int) -> Table:
    """Lay out `program.steps` for up to `threads` threads; `address` finds kernels.

    Steps too small to share run on the caller. Between two of those in a row no barrier is needed,
    nor before the end or a host step, where all workers meet anyway. A value that a branch or loop
    reads is waited for.
    """
    slots, windows = _windows(program.steps)
    words = np.zeros((len(program.steps) + 1, STEP_WORDS), np.int64)
    limits = _limits(program.steps, threads)
    barriers = _barriers(program.steps, limits)
    not_alone = not_solo(*_kinds_and_targets(program.steps), limits)
    for number, step in enumerate(program.steps):
        row = words[number]
        row[StepWord.OPCODE // 8] = Opcode[step.kind.upper()]
        row[StepWord.SLOTS // 8] = windows[number] * 8
        if step.kind == "call":
            kernel, barrier = address(step.kernel), barriers[number]
            _fill_call(row, step, kernel, limits[number], barrier, threads)
        elif step.kind != "host":
            _fill_control(row, step)
    go_on(words, not_alone)
    return Table(words, slots, windows, any(limit > 1 for limit in limits))


def _windows(steps: Sequence[Step]) -> tuple[tuple[Slot, ...], tuple[int, ...]]:
    """Equal windows are stored once."""
    known: dict[tuple[Slot, ...], int] = {}
    slots: list[Slot] = []
    windows = []
    for step in steps:
        if step.slots not in known:
            known[step.slots] = len(slots)
            slots.extend(step.slots)
        windows.append(known[step.slots])
    return tuple(slots), tuple(windows)


def _limits(steps: Sequence[Step], threads: int) -> list[int]:
    kinds, tasks, costs = ([getattr(s, n) for s in steps] for n in ("kind", "tasks", "cost"))
    return limits_of(kinds, tasks, costs, threads)


def limits_of(
    kinds: Sequence[str], tasks: Sequence[int], costs: Sequence[float], threads: int
) -> list[int]:
    """Most threads for each step; one everywhere if there is too little to share in all."""
    limits = [
        _limit(kind, count, cost, threads)
        for kind, count, cost in zip(kinds, tasks, costs, strict=True)
    ]
    shared = [cost for cost, limit in zip(costs, limits, strict=True) if limit > 1]
    if all(cost > 0 for cost in shared) and sum(shared) < WAKE:
        return [min(limit, 1) for limit in limits]
    return limits


def _limit(kind: str, tasks: int, cost: float, threads: int) -> int:
    if kind != "call":
        return 0
    worth = int(cost / SHARE) if cost > 0 else threads
    return max(1, min(threads, tasks, worth))


def _kinds_and_targets(steps: Sequence[Step]) -> tuple[list[str], list[int]]:
    return [step.kind for step in steps], [step.target for step in steps]


def _barriers(steps: Sequence[Step], limits: Sequence[int]) -> list[bool]:
    kinds, targets = _kinds_and_targets(steps)
    return kept_barriers(kinds, [step.barrier for step in steps], targets, limits)


def solos(kinds: Sequence[str], targets: Sequence[int], limits: Sequence[int]) -> set[int]:
    """The outermost solos without a step that is worth sharing, and the steps that end them."""
    found: set[int] = set()
    end = 0
    for number, kind in enumerate(kinds):
        if kind != "solo" or number < end:
            continue
        inside = range(number + 1, targets[number])
        if all(limits[i] <= 1 and kinds[i] != "host" for i in inside):
            end = targets[number]
            found |= {number, end}
    return found


def not_solo(kinds: Sequence[str], targets: Sequence[int], limits: Sequence[int]) -> list[int]:
    """The beginnings and ends of solos that are none."""
    alone = solos(kinds, targets, limits)
    marks = [i for i, kind in enumerate(kinds) if kind in ("solo", "together")]
    return [i for i in marks if i not in alone]


def go_on(words: npt.NDArray[np.int64], numbers: Sequence[int]) -> None:
    """Makes steps of the table do nothing."""
    for number in numbers:
        words[number, StepWord.OPCODE // 8] = Opcode.JUMP
        words[number, StepWord.TARGET // 8] = number + 1


def kept_barriers(
    kinds: Sequence[str], barriers: Sequence[bool], jumps: Sequence[int], limits: Sequence[int]
) -> list[bool]:
    """Which steps keep their barrier.

    A barrier left out after a step of the caller alone is owed by the next one. It can't be left
    out while an earlier shared step may still be running.
    """
    targets = set(jumps)
    alone = solos(kinds, jumps, limits)
    kept = []
    owed, running = False, False
    for number, (kind, barrier) in enumerate(zip(kinds, barriers, strict=True)):
        running = running or number in targets
        following = _following(kinds, limits, targets, number)
        if number + 1 in alone and number + 1 not in targets:
            following = "read"
        wanted = kind == "call" and (barrier or owed or following == "read")
        skipped = limits[number] == 1 and following == "alone" and not running
        kept.append(wanted and following != "end" and not skipped)
        owed = wanted and skipped
        running = not kept[-1] and (running or limits[number] != 1)
    return kept


def _following(
    kinds: Sequence[str], limits: Sequence[int], targets: set[int], number: int
) -> str:
    """What comes after a step: "end", "read", "alone" or "any"."""
    after = number + 1
    if after in targets:
        return "any"
    if after == len(kinds) or kinds[after] == "host":
        return "end"
    if kinds[after] in ("branch", "loop"):
        return "read"
    return "alone" if kinds[after] == "call" and limits[after] == 1 else "any"


def _fill_call(
    row: npt.NDArray[np.int64], step: Step, kernel: int, limit: int, barrier: bool, threads: int
) -> None:
    if not barrier and limit > 1:
        # Workers that sat a step out could claim later tasks of one that is still busy with it.
        limit = threads
    row[StepWord.KERNEL // 8] = kernel
    row[StepWord.TASKS // 8] = step.tasks
    row[StepWord.LIMIT // 8] = limit
    row[StepWord.BARRIER // 8] = barrier
    row[StepWord.WEIGHT // 8] = int(min(step.cost, 1e15)) if step.cost > 0 else UNKNOWN_WEIGHT


def _fill_control(row: npt.NDArray[np.int64], step: Step) -> None:
    if not 0 <= step.counter < MAX_LOOPS:
        raise CodegenError("loops nested too deep", where=step.label, found=step.counter)
    row[StepWord.TARGET // 8] = step.target
    row[StepWord.COUNTER // 8] = WorkerWord.COUNTERS + 16 * step.counter
    if step.kind in ("branch", "loop"):
        direct = step.slots[0].kind == "imm"
        row[StepWord.WIDTH // 8] = 0 if direct else step.width
