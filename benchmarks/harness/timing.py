"""Short bursts of runs, and medians over many of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

#: Shorter runs start with cold caches after another engine's burst: the first is left out.
_SHORT = 0.02
#: From here on reading the process's CPU clock around a run costs nothing.
_CLOCKED = 1e-3
_MOST = 20_000


@dataclass(frozen=True)
class Burst:
    """Milliseconds a run: median, least, and median of CPU time (0 where runs are too short)."""

    ms: float
    least: float
    cpu_ms: float
    runs: int


def burst(run: Callable[[], object], seconds: float, least: int = 3) -> Burst:
    """Run for about `seconds`, at least `least` times."""
    start = time.perf_counter()
    run()
    first = time.perf_counter() - start
    walls, clocks = _timed(run, seconds - first, least - 1, clocked=first > _CLOCKED)
    if first > _SHORT or not walls:
        walls.append(first)
    cpu = median(clocks) if clocks else 0.0
    return Burst(median(walls) * 1e3, min(walls) * 1e3, cpu * 1e3, len(walls))


def _timed(
    run: Callable[[], object], seconds: float, least: int, *, clocked: bool
) -> tuple[list[float], list[float]]:
    walls: list[float] = []
    clocks: list[float] = []
    end = time.perf_counter() + seconds
    while len(walls) < _MOST:
        cpu = time.process_time() if clocked else 0.0
        start = time.perf_counter()
        run()
        now = time.perf_counter()
        walls.append(now - start)
        if clocked:
            clocks.append(time.process_time() - cpu)
        if now >= end and len(walls) >= least:
            break
    return walls, clocks


def value(one: Burst, threads: int) -> float:
    """Milliseconds that a burst stands for.

    At one thread CPU time counts if it is less: then somebody else had the core meanwhile.
    """
    return min(one.ms, one.cpu_ms) if threads == 1 and one.cpu_ms else one.ms


def ratio_of_medians(rounds: Sequence[Mapping[str, float]], ours: str, theirs: str) -> float:
    """Median over rounds of ours / theirs; rounds that lack one of them do not count."""
    shared = [r[ours] / r[theirs] for r in rounds if ours in r and theirs in r]
    return median(shared)


def medians(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Median of every engine over the rounds that it took part in."""
    names = dict.fromkeys(name for one in rounds for name in one)
    return {name: median(r[name] for r in rounds if name in r) for name in names}
