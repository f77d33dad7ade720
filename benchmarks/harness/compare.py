"""One network in all engines: fresh processes first, then turns at one thread and at two."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from harness.engines import is_peer
from harness.networks import Network
from harness.processes import Worker
from harness.timing import Burst, medians, ratio_of_medians, value

Record = dict[str, Any]
Ask = Callable[[float], Record]

LEAST_ROUNDS = 5
BURST_SECONDS = 0.04
#: A peer that is so many times slower than the fastest takes no further turns.
HOPELESS = 3.0


@dataclass
class Turns:
    """Milliseconds of each engine by round, the least ever seen, and who dropped out why."""

    rounds: list[dict[str, float]] = field(default_factory=list)
    least: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def note(self, engine: str, one: Burst, threads: int) -> None:
        self.rounds[-1][engine] = value(one, threads)
        self.least[engine] = min(one.least, self.least.get(engine, one.least))


def compare(
    network: Network,
    engines: Sequence[str],
    threads: Sequence[int],
    seconds: float,
    work: Path,
    say: Callable[[str], None],
) -> Record:
    """Everything about one network; engines that cannot take it have a `reason`."""
    cache = work / "cache" / network.name
    record: Record = {"gflop": network.gflop, "engines": {}}
    for engine in engines:
        say(f"{network.name}: {engine}: fresh process")
        record["engines"][engine] = _fresh(network, engine, work, cache)
    sound = [name for name, entry in record["engines"].items() if entry["ok"]]
    for count in threads:
        say(f"{network.name}: {', '.join(sound)}: {count} thread{'s' * (count > 1)}")
        turns = take_turns(network, sound, count, seconds, work, cache)
        _write_down(record, turns, count)
    if network.name == "mlp" and "ixion" in sound:
        record["overhead"] = _overhead(network, work, cache)
    return record


def _fresh(network: Network, engine: str, work: Path, cache: Path) -> Record:
    """Load and first run in a process of its own; ours also from the cache.

    Times exclude imports; our memory is that of a process which imports no more than it needs.
    """
    network.model.read_bytes()  # the page cache is warm for everybody
    if not is_peer(engine):
        shutil.rmtree(cache, ignore_errors=True)
    with Worker(cache) as worker:
        paths = {"model": str(network.model), "work": str(work)}
        prepared = worker.ask("prepare", 1200, engine=engine, **paths)
    if not prepared["ok"]:
        return prepared
    found = _loaded_alone(network, engine, work, cache)
    if is_peer(engine) or not found["ok"]:
        return found
    cached = _loaded_alone(network, engine, work, cache)
    lean = _loaded_alone(network, engine, work, cache, imports=False)
    shutil.rmtree(cache, ignore_errors=True)
    cold = _loaded_alone(network, engine, work, cache, imports=False)
    for one in (cached, lean, cold):
        if not one["ok"]:
            return one
    times = {f"cached_{part}": cached[part] for part in ("load_s", "first_s")}
    peaks = {"peak_bytes": cold["peak_bytes"], "cached_peak_bytes": lean["peak_bytes"]}
    return {**found, **times, **peaks}


def _loaded_alone(
    network: Network, engine: str, work: Path, cache: Path, *, imports: bool = True
) -> Record:
    with Worker(cache) as worker:
        return load(worker, network, engine, 1, work, imports=imports)


def load(
    worker: Worker,
    network: Network,
    engine: str,
    threads: int,
    work: Path,
    *,
    imports: bool = True,
) -> Record:
    """Ask a worker to load an engine."""
    paths = {"model": network.model, "inputs": network.inputs, "expect": network.expect}
    texts = {name: str(path) for name, path in (*paths.items(), ("work", work))}
    return worker.ask("load", 1200, engine=engine, threads=threads, imports=imports, **texts)


def take_turns(
    network: Network,
    engines: Sequence[str],
    threads: int,
    seconds: float,
    work: Path,
    cache: Path,
) -> Turns:
    """Bursts of all engines for about `seconds`.

    One thread: in one process, so that all see the same core, clock and memory. More: in a process
    each, and only one of them is not stopped. If one process cannot hold them all (libraries may
    clash), each gets its own at one thread too.
    """
    if threads == 1:
        turns = _together(network, engines, seconds, work, cache)
        if not turns.failed:
            return turns
    return _apart(network, engines, threads, seconds, work, cache)


def _together(
    network: Network, engines: Sequence[str], seconds: float, work: Path, cache: Path
) -> Turns:
    turns = Turns()
    with Worker(cache) as worker:
        for engine in engines:
            answer = load(worker, network, engine, 1, work)
            if not answer["ok"]:
                turns.failed[engine] = answer["reason"]
                return turns
        asks = {e: partial(_ask, worker, e) for e in engines}
        return alternate(asks, seconds, 1)


def _apart(
    network: Network,
    engines: Sequence[str],
    threads: int,
    seconds: float,
    work: Path,
    cache: Path,
) -> Turns:
    failed: dict[str, str] = {}
    asks: dict[str, Ask] = {}
    with ExitStack() as stack:
        for engine in engines:
            worker = stack.enter_context(Worker(cache, stopped=True))
            answer = load(worker, network, engine, threads, work)
            if answer["ok"]:
                asks[engine] = partial(_ask, worker, engine)
            else:
                failed[engine] = answer["reason"]
        turns = alternate(asks, seconds, threads)
    turns.failed.update(failed)
    return turns


def _ask(worker: Worker, engine: str, seconds: float) -> Record:
    return worker.ask("measure", 300, engine=engine, seconds=seconds)


def alternate(asks: Mapping[str, Ask], seconds: float, threads: int) -> Turns:
    """Rounds of one burst an engine; each round begins with another engine."""
    turns, going = Turns(), list(asks)
    end = time.monotonic() + seconds
    number = 0
    while going and (number < LEAST_ROUNDS or time.monotonic() < end):
        turns.rounds.append({})
        first = number % len(going)
        for engine in (*going[first:], *going[:first]):
            answer = asks[engine](BURST_SECONDS)
            if answer.pop("ok"):
                turns.note(engine, Burst(**answer), threads)
            else:
                turns.failed[engine] = answer["reason"]
        number += 1
        going = [e for e in going if e not in turns.failed]
        if number >= 2:
            going = [e for e in going if not _hopeless(e, turns)]
    return turns


def _hopeless(engine: str, turns: Turns) -> bool:
    found = medians(turns.rounds)
    peers = [ms for name, ms in found.items() if is_peer(name)]
    return is_peer(engine) and found[engine] > HOPELESS * min(peers)


def _write_down(record: Record, turns: Turns, threads: int) -> None:
    """Times of each engine, and ours against the fastest peer."""
    key = str(threads)
    found = medians(turns.rounds)
    for name, entry in record["engines"].items():
        if name in found:
            count = sum(name in one for one in turns.rounds)
            entry[key] = {"ms": found[name], "least_ms": turns.least[name], "rounds": count}
        elif name in turns.failed:
            entry[key] = {"reason": turns.failed[name]}
    peers = {name: ms for name, ms in found.items() if is_peer(name)}
    if "ixion" in found and peers:
        fastest = min(peers, key=lambda name: peers[name])
        ratio = ratio_of_medians(turns.rounds, "ixion", fastest)
        record.setdefault("ratio", {})[key] = {"value": ratio, "against": fastest}


def _overhead(network: Network, work: Path, cache: Path) -> Record:
    found = []
    for _ in range(3):
        with Worker(cache) as worker:
            if load(worker, network, "ixion", 1, work)["ok"]:
                found.append(worker.ask("overhead", engine="ixion"))
    good = [one for one in found if one["ok"]]
    keys = ("run_us", "native_us", "overhead_us")
    return {key: median(one[key] for one in good) for key in keys} if good else {}
