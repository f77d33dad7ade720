#!/usr/bin/env python3
"""Models with open sizes: one compilation beside a compilation for each size.

For every size of a network: the largest error against onnxruntime (as a share of the largest
output), milliseconds of the open program, of the program compiled for that size, and of
onnxruntime, medians of turns in one process; then how many plans and compilations there were, and
resident memory over runs of random sizes.

    python open_sizes.py [NETWORK ...] [--threads 1] [--rounds 30] [--runs 10000]
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), *([str(ROOT / "src")] if (ROOT / "src" / "ixion").is_dir() else [])]

from harness.networks import materialise  # noqa: E402

import ixion  # noqa: E402
from ixion.driver import build  # noqa: E402

Array = np.ndarray[Any, np.dtype[Any]]
Sizes = dict[str, int]
LENGTHS = (1, 2, 3, 5, 8, 13, 16, 21, 32, 37, 48, 64, 77, 96, 128, 150, 192, 256, 384, 512)
# Axes of the first input that become symbols (none: the file has its own), and the sizes tried.
NETWORKS: dict[str, tuple[dict[int, str], list[Sizes]]] = {
    "minilm_l6_dynamic": (
        {}, [{"batch": b, "sequence": s} for b in (1, 2, 4) for s in LENGTHS]
    ),
    "resnet50": ({0: "batch"}, [{"batch": b} for b in (1, 2, 4, 8)]),
    "unet": (
        {2: "height", 3: "width"},
        [
            {"height": h, "width": w}
            for h, w in ((64, 64), (128, 96), (128, 128), (192, 256), (256, 256))
        ],
    ),
}  # fmt: skip


def opened(models: Path, name: str, work: Path) -> Path:
    """The network with its open sizes as symbols, as a file."""
    import onnx

    axes, _ = NETWORKS[name]
    path = work / f"{name}.open.onnx"
    if path.exists():
        return path
    model = onnx.load(materialise(models, name, work).model)
    for axis, symbol in axes.items():
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = symbol
    if axes:
        del model.graph.value_info[:]
        for result in model.graph.output:
            for dim in result.type.tensor_type.shape.dim:
                dim.Clear()
    onnx.save(model, path)
    return path


def feeds(exe: Any, sizes: Mapping[str, int]) -> dict[str, Array]:
    """Inputs of these sizes: numbers around 0, tokens, ones for masks."""
    rng = np.random.default_rng(0)
    made: dict[str, Array] = {}
    for spec in exe.inputs:
        shape = tuple(d if isinstance(d, int) else sizes[str(d)] for d in spec.shape)
        if spec.dtype == "float32":
            made[spec.name] = rng.standard_normal(shape).astype(np.float32)
        elif "mask" in spec.name:
            made[spec.name] = np.ones(shape, spec.dtype)
        else:
            made[spec.name] = rng.integers(0, 2 if "type" in spec.name else 30000, shape)
    return made


def peer(path: Path, threads: int) -> Any:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def turns(runs: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Median milliseconds of each, in turn; few rounds where they are long."""
    start = time.perf_counter()
    for run in runs:
        run()
    rounds = max(5, min(rounds, int(8 / (time.perf_counter() - start + 1e-9))))
    spent: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for times, run in zip(spent, runs, strict=True):
            begin = time.perf_counter()
            run()
            times.append(time.perf_counter() - begin)
    return [median(times) * 1e3 for times in spent]


def resident() -> float:
    """Megabytes of this process in memory."""
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


class Count:
    """How often the compiler made machine code."""

    def __init__(self) -> None:
        self.kernels = 0
        made = build._compiled

        def counted(kernels: dict[str, Any], target: Any) -> Any:
            self.kernels += len(kernels)
            return made(kernels, target)

        build._compiled = counted


def compare(name: str, path: Path, args: argparse.Namespace) -> Iterator[str]:
    count, begin = Count(), time.perf_counter()
    exe: Any = ixion.compile(path, threads=args.threads)
    yield f"{name}: compiled in {time.perf_counter() - begin:.2f} s, {count.kernels} new kernels"
    session = peer(path, args.threads)
    _, sizes = NETWORKS[name]
    own, theirs, errors = [], [], []
    for one in sizes:
        values = feeds(exe, one)
        wanted = session.run(None, values)
        got = list(exe.run(values).values())
        errors.append(max(_error(g, w) for g, w in zip(got, wanted, strict=True)))
        shapes = {n: v.shape for n, v in values.items()}
        closed = ixion.compile(path, threads=args.threads, inputs=shapes)
        runs = (partial(exe.run, values), partial(closed.run, values))
        ours, fixed, other = turns((*runs, partial(session.run, None, values)), args.rounds)
        own.append(ours / fixed)
        theirs.append(ours / other)
        label = " ".join(f"{k} {v}" for k, v in one.items())
        yield (
            f"  {label:28s} error {errors[-1]:.1e}  open {ours:8.2f} ms  closed {fixed:8.2f}"
            f"  ratio {own[-1]:.3f}  onnxruntime {other:8.2f}  ratio {theirs[-1]:.3f}"
        )
        del closed, runs
    yield (
        f"  worst error {max(errors):.1e}; open / closed: worst {max(own):.3f}, mean"
        f" {geometric_mean(own):.3f}; open / onnxruntime: mean {geometric_mean(theirs):.3f}"
    )
    del session
    yield from soak(name, exe, args)


def _error(got: Array, want: Array) -> float:
    assert got.shape == want.shape
    return float(np.abs(got - want).max() / np.abs(want).max())


def soak(name: str, exe: Any, args: argparse.Namespace) -> Iterator[str]:
    """Resident memory and new machine code over runs of random sizes, the largest left out."""
    count = Count()
    _, sizes = NETWORKS[name]
    some = sorted(sizes, key=lambda s: int(np.prod(list(s.values()))))
    some = some[: max(3, len(some) // 3)] if args.runs > 1000 else some
    values = [feeds(exe, one) for one in some]
    rng, marks = random.Random(0), []
    for one in values:
        exe.run(one)
    for number in range(args.runs):
        if number % max(1, args.runs // 10) == 0:
            marks.append(resident())
        exe.run(rng.choice(values))
    marks.append(resident())
    shown = " ".join(f"{m:.0f}" for m in marks)
    yield (
        f"  {args.runs} runs of {len(values)} sizes: resident MB {shown}; {count.kernels} new"
        f" kernels, {exe.plans} plans"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared" / "models")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "ixion-open")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--runs", type=int, default=10000)
    args = parser.parse_args()
    for name in args.networks:
        for line in compare(name, opened(args.models, name, args.work), args):
            print(line, flush=True)


if __name__ == "__main__":
    main()
