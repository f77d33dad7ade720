"""Where the time of a run goes, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ixion.base.abi import ProfileWord
from ixion.runtime.program import Program, Step

_WORDS = ProfileWord.SIZE // 8


@dataclass(frozen=True)
class StepTime:
    """Time of one step over all profiled runs.

    `total` nanoseconds in `count` executions, waiting for other threads included; `start` and
    `end` of the last one on the monotonic clock.
    """

    number: int
    kind: str
    kernel: str
    label: str
    tasks: int
    count: int
    total: int
    start: int
    end: int

    @property
    def mean(self) -> float:
        """Nanoseconds per execution; 0 for a step that never ran."""
        return self.total / self.count if self.count else 0.0


@dataclass(frozen=True)
class Profile:
    """Times of a program's steps over `runs` runs, in the program's order."""

    steps: tuple[StepTime, ...]
    runs: int

    @property
    def total(self) -> int:
        """Nanoseconds of all steps in all runs."""
        return sum(step.total for step in self.steps)

    def hottest(self) -> list[StepTime]:
        """Steps by total time, the longest first."""
        return sorted(self.steps, key=lambda step: -step.total)


def new_counters(program: Program) -> npt.NDArray[np.int64]:
    """Zeroed records for every step and the end: int64[steps + 1, 4]."""
    return np.zeros((len(program.steps) + 1, _WORDS), np.int64)


def make_profile(
    steps: Sequence[Step], counters: npt.NDArray[np.int64], host: Sequence[int], runs: int
) -> Profile:
    """Read the records. `host[i]` are nanoseconds that Python spent on host step i."""
    times = []
    for number, step in enumerate(steps):
        count, total, start, end = (int(word) for word in counters[number])
        label, total = step.label or step.kernel or step.kind, total + host[number]
        kernel = step.kernel
        times.append(
            StepTime(number, step.kind, kernel, label, step.tasks, count, total, start, end)
        )
    return Profile(tuple(times), runs)
