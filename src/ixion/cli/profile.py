"""`ixion profile`: where a run's time goes, and how near each part is to the machine's best."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ixion.base.errors import ConfigError
from ixion.cli import options
from ixion.cli.screen import Screen, table

if TYPE_CHECKING:
    from rich.console import Console

    from ixion.cli.arrays import Array
    from ixion.driver import Executable
    from ixion.driver.executable import CompiledExecutable
    from ixion.driver.roofline import Roofline
    from ixion.runtime.profile import Profile
    from ixion.runtime.program import Program


@dataclass(frozen=True)
class StepReport:
    """One step of the program: median milliseconds, and bytes it reads and writes."""

    step: int
    kernel: str
    label: str
    tasks: int
    ms: float
    bytes: int


@dataclass(frozen=True)
class KernelReport:
    """One formed kernel: operators of the network that became one step or a few in a row.

    `gflops` counts the operators' own operations, so that Winograd can pass the peak; `roofline` is
    the least possible time over the real one. Both are None where nobody knows the operations.
    """

    ops: list[str]
    nodes: list[str]
    ms: float
    share: float
    flops: int
    gflops: float | None
    bytes: int
    roofline: float | None
    steps: list[StepReport]


@dataclass(frozen=True)
class ProfileReport:
    """Times of a whole network; `ms` is the sum of the steps' medians."""

    threads: int
    runs: int
    ms: float
    gflop: float
    peak_gflops: float
    memory_gbps: dict[str, float]
    kernels: list[KernelReport]


def profile_model(
    model: Path,
    settings: options.Settings,
    *,
    runs: int = 20,
    inputs: Path | None = None,
    screen: Screen,
) -> tuple[ProfileReport, dict[str, Any]]:
    """The report and the Chrome trace of `runs` runs of `model`.

    Raises IxionError; ConfigError for a model that did not become native code.
    """
    from ixion.base.target import Target
    from ixion.driver.roofline import measure

    with screen.working(f"compiling {model.name}"):
        exe, feeds = prepare(model, settings, inputs)
    native = exe.native
    values = list(feeds.values())
    with screen.working("measuring", total=runs) as advance:
        roofline = measure(Target.parse(settings.target), native.threads)
        native.profile(values, 1)
        profiles = []
        for _ in range(runs):
            profiles.append(native.profile(values, 1))
            advance()
    report = make_report(profiles, native.program, roofline)
    return report, trace_of(profiles, report, model.name)


def prepare(
    model: Path, settings: options.Settings, inputs: Path | None
) -> tuple[CompiledExecutable, dict[str, Array]]:
    """The compiled model and inputs in its order, open sizes bound to the inputs' own."""
    from ixion import driver
    from ixion.cli import arrays
    from ixion.cli.bench import named_feeds, random_feeds
    from ixion.driver.executable import CompiledExecutable

    exe: Executable = settings.compile(model)
    given = arrays.read_npz(inputs) if inputs is not None else None
    feeds = random_feeds(exe) if given is None else named_feeds(exe, given)
    if exe.program is None:
        shapes = {name: array.shape for name, array in feeds.items()}
        exe = driver.compile(
            model, settings.target, settings.opt_level, settings.threads, inputs=shapes
        )
    if not isinstance(exe, CompiledExecutable):
        raise ConfigError("the model has no native program to profile", where=str(model))
    return exe, feeds


def accounts(program: Program) -> list[dict[str, Any]]:
    """What each formed kernel stands for, as `ixion.lower.account` says; else the steps' labels."""
    records: list[dict[str, Any]] = program.meta.get("account", [])
    if sum(record["steps"] for record in records) == len(program.steps):
        return records
    return [_unknown(step.label or step.kernel or step.kind) for step in program.steps]


def make_report(profiles: Sequence[Profile], program: Program, roofline: Roofline) -> ProfileReport:
    """Median times of all runs, joined with what the program says about its steps."""
    steps = profiles[0].steps
    times = [median(p.steps[i].total for p in profiles) / 1e6 for i in range(len(steps))]
    total = sum(times) or 1.0
    resident = program.arena_size + sum(constant.nbytes for constant in program.constants)
    kernels, at = [], 0
    for record in accounts(program):
        numbers = range(at, at + record["steps"])
        parts = [
            StepReport(n, steps[n].kernel, steps[n].label, steps[n].tasks, times[n],
                       record["moved"][n - at] + record["weights"][n - at])
            for n in numbers
        ]  # fmt: skip
        kernels.append(_kernel(record, parts, total, resident, roofline))
        at += record["steps"]
    gflop = sum(k.flops for k in kernels) / 1e9
    speeds = {level.name: level.speed / 1e9 for level in roofline.levels}
    return ProfileReport(
        roofline.threads, len(profiles), sum(times), gflop, roofline.flops / 1e9, speeds, kernels
    )


def _unknown(label: str) -> dict[str, Any]:
    return {"steps": 1, "ops": [label], "nodes": [], "flops": 0, "moved": [0], "weights": [0]}


def _kernel(
    record: Mapping[str, Any],
    parts: list[StepReport],
    total: float,
    resident: int,
    roofline: Roofline,
) -> KernelReport:
    ms, flops = sum(part.ms for part in parts), int(record["flops"])
    pairs = zip(record["moved"], record["weights"], strict=True)
    memory = sum(roofline.bound(0, moved, weights, resident) for moved, weights in pairs)
    least = max(memory, flops / roofline.flops) * 1e3
    known = flops > 0 and ms > 0
    return KernelReport(
        list(record["ops"]), list(record["nodes"]), ms, ms / total, flops,
        flops / ms / 1e6 if known else None, sum(part.bytes for part in parts),
        least / ms if known else None, parts,
    )  # fmt: skip


def trace_of(profiles: Sequence[Profile], report: ProfileReport, name: str) -> dict[str, Any]:
    """The runs as Chrome-trace JSON, each step with its kernel's nodes and rates."""
    from ixion.runtime.trace import chrome_trace

    details = [
        {"nodes": k.nodes, "GFLOP/s": k.gflops, "bytes": s.bytes, "of roofline": k.roofline}
        for k in report.kernels
        for s in k.steps
    ]
    return chrome_trace(profiles, name, details)


def draw(console: Console, report: ProfileReport, top: int | None) -> None:
    kernels = report.kernels
    if top is not None:
        kernels = sorted(kernels, key=lambda k: -k.ms)[:top]
    rows = [row for kernel in kernels for row in _rows(kernel)]
    columns = ("step", "operators", ">ms", ">share", ">GFLOP/s", ">MB", ">of roofline", "nodes")
    console.print(table(*columns, rows=rows))
    rate = report.gflop / report.ms * 1e3 if report.ms else 0.0
    memories = ", ".join(f"{name} {speed:.0f}" for name, speed in report.memory_gbps.items())
    console.print(
        f"{report.ms:.3f} ms in {len(report.kernels)} kernels, {report.gflop:.3f} GFLOP: "
        f"{rate:.1f} GFLOP/s of {report.peak_gflops:.1f} (threads: {report.threads}); "
        f"GB/s: {memories}"
    )


def _rows(kernel: KernelReport) -> list[tuple[str, ...]]:
    """The kernel's row; if it takes several steps, one more for each."""
    first, last = kernel.steps[0].step, kernel.steps[-1].step
    ops = "+".join(op.removeprefix("nn.") for op in kernel.ops)
    number = str(first) if first == last else f"{first}-{last}"
    rate = "" if kernel.gflops is None else f"{kernel.gflops:.1f}"
    share = "" if kernel.roofline is None else f"{kernel.roofline:.0%}"
    nodes = kernel.nodes[0] if kernel.nodes else ""
    if len(kernel.nodes) > 1:
        nodes += f" and {len(kernel.nodes) - 1} more"
    whole = (number, _short(ops), f"{kernel.ms:.4f}", f"{kernel.share:.1%}", rate,
             f"{kernel.bytes / 1e6:.3f}", share, nodes)  # fmt: skip
    if first == last:
        return [whole]
    return [whole, *(
        (f"  {s.step}", f"  {s.kernel[:16]}", f"{s.ms:.4f}", "", "", f"{s.bytes / 1e6:.3f}", "", "")
        for s in kernel.steps
    )]  # fmt: skip


def _short(text: str, width: int = 40) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."


def command(
    model: options.Model,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs to measure.")] = 20,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", metavar="OUT.json", help="Write the runs as a Chrome trace."),
    ] = None,
    inputs: Annotated[
        Path | None, typer.Option("--inputs", help="Input arrays, an .npz; default: random ones.")
    ] = None,
    top: Annotated[
        int | None, typer.Option("--top", min=1, help="Show only so many, the slowest first.")
    ] = None,
    threads: options.Threads = None,
    target: options.Target = "native",
    opt_level: options.OptLevel = 3,
    as_json: options.Json = False,
) -> None:
    """Measure every step: time, GFLOP/s, bytes, share of the roofline, and the nodes behind it.

    The roofline is measured too: the least time for a step's operations at the peak of
    multiply-adds, or for its bytes from the nearest memory that holds them.
    """
    from ixion.cli.arrays import check_writable

    if trace is not None:
        check_writable(trace)
    screen = Screen(as_json=as_json)
    settings = options.Settings(target, opt_level, threads)
    report, events = profile_model(model, settings, runs=runs, inputs=inputs, screen=screen)
    if trace is not None:
        trace.write_text(json.dumps(events), encoding="utf-8")
    screen.show(asdict(report), lambda console: draw(console, report, top))
