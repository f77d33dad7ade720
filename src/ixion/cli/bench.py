"""`ixion bench`: time per run, alone or interleaved with another engine.

Interleaving matters: on a shared machine two engines measured one after the other see different
neighbours, while the ratio of medians of alternating runs stays put.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ixion.base.errors import IxionError
from ixion.cli import options
from ixion.cli.screen import Screen, table

if TYPE_CHECKING:
    from rich.console import Console

    from ixion.cli.arrays import Array
    from ixion.driver import Executable

Run = Callable[[], "dict[str, Array]"]


class Rival(StrEnum):
    """Engines to compare with."""

    ONNXRUNTIME = "onnxruntime"


@dataclass(frozen=True)
class Timing:
    """Milliseconds per run of one engine."""

    engine: str
    median_ms: float
    best_ms: float
    rounds: int


@dataclass(frozen=True)
class Comparison:
    """All timings, the ratio of the first median to the second, and how far outputs differ."""

    timings: list[Timing]
    ratio: float | None = None
    largest_difference: float | None = None


def bench_model(
    model: Path,
    settings: options.Settings,
    *,
    vs: str | None = None,
    inputs: Path | None = None,
    rounds: int = 50,
    screen: Screen,
) -> Comparison:
    """Time `model`, alternating with the engine `vs`. Raises IxionError."""
    from ixion.cli import arrays

    given = arrays.read_npz(inputs) if inputs is not None else None
    with screen.working(f"compiling {model.name}"):
        exe = settings.compile(model)
        feeds = random_feeds(exe) if given is None else named_feeds(exe, given)
        runs: dict[str, Run] = {"ixion": lambda: exe.run(feeds)}
        if vs is not None:
            runs[vs] = rival(vs, model, feeds, settings.threads)
    firsts = [run() for run in runs.values()]
    times = interleaved(list(runs.values()), rounds, screen)
    timings = [
        Timing(name, median(taken) * 1e3, min(taken) * 1e3, rounds)
        for name, taken in zip(runs, times, strict=True)
    ]
    if vs is None:
        return Comparison(timings)
    ratio = timings[0].median_ms / timings[1].median_ms
    return Comparison(timings, ratio, largest_difference(*firsts))


def interleaved(runs: Sequence[Run], rounds: int, screen: Screen) -> list[list[float]]:
    """Seconds of each run, `rounds` of each, taking turns; a tenth more come first to warm up."""
    taken: list[list[float]] = [[] for _ in runs]
    warm = max(1, rounds // 10)
    with screen.working("measuring", total=rounds + warm) as advance:
        for turn in range(rounds + warm):
            for slot, run in zip(taken, runs, strict=True):
                start = time.perf_counter()
                run()
                slot.append(time.perf_counter() - start)
            if turn == warm - 1:
                taken = [[] for _ in runs]
            advance()
    return taken


def random_feeds(exe: Executable) -> dict[str, Array]:
    """Seeded inputs: floats normal, integers 0 or 1, so that they are valid as indices too.

    A dimension without a fixed size becomes 1.
    """
    import numpy as np

    from ixion.base.dtype import is_float, to_numpy

    rng = np.random.default_rng(0)
    feeds: dict[str, Array] = {}
    for operand in exe.inputs:
        shape = [dim if isinstance(dim, int) else 1 for dim in operand.shape]
        drawn = rng.standard_normal(shape) if is_float(operand.dtype) else rng.integers(0, 2, shape)
        feeds[operand.name] = np.asarray(drawn).astype(to_numpy(operand.dtype))
    return feeds


def named_feeds(exe: Executable, given: Mapping[str, Array]) -> dict[str, Array]:
    """Inputs from an .npz, as `ixion run` reads them. Raises InputError."""
    from ixion.cli import arrays

    names = [operand.name for operand in exe.inputs]
    feeds = arrays.pick_inputs(given, names, [operand.name for operand in exe.outputs])
    return {o.name: arrays.typed(feeds[o.name], o.dtype) for o in exe.inputs}


def rival(name: str, model: Path, feeds: dict[str, Array], threads: int | None) -> Run:
    """A run of the same model by another engine, with equally many threads."""
    if model.suffix != ".onnx":
        hint = "give the model's .onnx file, or leave out --vs"
        raise IxionError(f"{name} reads ONNX files only", where=str(model), hint=hint)
    try:
        import onnxruntime
    except ImportError as error:
        hint = "pip install 'ixion[bench]'"
        raise IxionError(f"{name} is not installed", hint=hint) from error
    from ixion.runtime.pool import default_threads

    configuration = onnxruntime.SessionOptions()
    configuration.intra_op_num_threads = threads or default_threads()
    configuration.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        str(model), configuration, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return lambda: dict(zip(names, session.run(names, feeds), strict=True))


def largest_difference(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> float:
    """Largest absolute difference over all outputs that both have."""
    from ixion.cli.arrays import difference

    shared = [name for name in ours if name in theirs]
    return max((difference(ours[n], theirs[n], 0.0, 1.0).largest for n in shared), default=0.0)


def draw(console: Console, result: Comparison) -> None:
    rows = [(t.engine, f"{t.median_ms:.3f}", f"{t.best_ms:.3f}", t.rounds) for t in result.timings]
    console.print(table("engine", ">median ms", ">best ms", ">runs", rows=rows))
    if result.ratio is not None:
        console.print(f"ratio of medians {result.ratio:.3f}")
        console.print(f"largest difference between outputs {result.largest_difference:.3g}")


def command(
    model: options.Model,
    vs: Annotated[Rival | None, typer.Option("--vs", help="Engine to alternate with.")] = None,
    inputs: Annotated[
        Path | None, typer.Option("--inputs", help="Input arrays, an .npz; default: random ones.")
    ] = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Runs to measure.")] = 50,
    threads: options.Threads = None,
    target: options.Target = "native",
    executor: options.ExecutorOption = options.Executor.COMPILED,
    opt_level: options.OptLevel = 3,
    as_json: options.Json = False,
) -> None:
    """Measure a model's time per run, alternating with another engine if asked."""
    screen = Screen(as_json=as_json)
    settings = options.Settings(target, opt_level, threads, executor.value)
    rival_name = vs.value if vs is not None else None
    result = bench_model(
        model, settings, vs=rival_name, inputs=inputs, rounds=rounds, screen=screen
    )
    document: dict[str, Any] = asdict(result)
    screen.show(document, lambda console: draw(console, result))
