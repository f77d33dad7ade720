"""What this machine can do at most: multiply-adds and bytes per second, measured in a moment.

A step's time is bounded by its operations at the peak and by its bytes at the speed of the memory
they come from (S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance
model", 2009). Both speeds come from kernels made as all others are, for the same target.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ixion.base.target import Target
from ixion.kernel.sizes import typical
from ixion.runtime.executable import Executable
from ixion.runtime.program import Program, Slot, Step, TensorSpec
from ixion.te.expr import Const, Expr, Var, intrinsic
from ixion.te.stmt import Buffer, For, Kernel, Stmt, seq
from ixion.te.text import kernel_key

Array = np.ndarray[tuple[int, ...], np.dtype[np.float32]]

_ITERATIONS = 1 << 14
_SECONDS = 0.1
_MOST = 256 << 20
_TASKS = 4


@dataclass(frozen=True)
class Level:
    """A memory that holds `capacity` bytes (infinite for the last) read at `speed` bytes/s."""

    name: str
    capacity: float
    speed: float


@dataclass(frozen=True)
class Roofline:
    """Peaks of `threads` threads: `flops` a second in float32, and memories, nearest first."""

    threads: int
    flops: float
    levels: tuple[Level, ...]

    def speed(self, nbytes: float) -> float:
        """Bytes a second from the nearest memory that holds so many."""
        return next(level.speed for level in self.levels if nbytes <= level.capacity)

    def bound(self, flops: float, moved: float, weights: float, resident: float) -> float:
        """Least seconds of a step.

        What it moves was just written or soon is read, so it lies where it fits; weights are read
        once a run, so they lie where all `resident` bytes of the model do.
        """
        memory = moved / self.speed(moved + weights) + weights / self.speed(resident)
        return max(flops / self.flops, memory)


def measure(target: Target, threads: int, seconds: float = _SECONDS) -> Roofline:
    """Roofline of this machine now; about `seconds` for the peak and for each memory."""
    return Roofline(
        threads, peak_flops(target, threads, seconds), _levels(target, threads, seconds)
    )


def peak_flops(target: Target, threads: int, seconds: float = _SECONDS) -> float:
    """Most float32 operations a second that independent multiply-adds in registers reach."""
    kernel, flops = _multiply_kernel(target, threads)
    spec = TensorSpec("x", (2 * target.lanes("float32"),), "float32")
    exe = _executable(kernel, target, threads, spec, flops)
    return flops / _least(exe, np.full(spec.shape, 0.5, np.float32), seconds)


def read_speed(target: Target, threads: int, nbytes: int, seconds: float = _SECONDS) -> float:
    """Bytes a second at which threads read an array of `nbytes` again and again."""
    tasks = _TASKS * threads
    lanes = target.lanes("float32")
    vectors = max(1, nbytes // (4 * lanes * tasks * 8)) * 8
    repeats = max(1, (1 << 20) // (vectors * lanes * 4))
    kernel = _read_kernel(lanes, tasks, vectors, repeats)
    spec = TensorSpec("x", (tasks * vectors * lanes,), "float32")
    exe = _executable(kernel, target, threads, spec, 1e9)
    array = np.ones(spec.shape, np.float32)
    return array.nbytes * repeats / _least(exe, array, seconds)


def _levels(target: Target, threads: int, seconds: float) -> tuple[Level, ...]:
    sizes: list[tuple[str, float]] = []
    if target.l2:
        sizes.append(("L2", target.l2 * threads))
    if target.l3:
        sizes.append(("L3", target.l3))
    largest = sizes[-1][1] if sizes else 1 << 25
    levels = [Level(n, s, read_speed(target, threads, int(s) // 2, seconds)) for n, s in sizes]
    memory = read_speed(target, threads, min(_MOST, int(4 * largest)), seconds)
    return (*levels, Level("memory", math.inf, memory))


def _multiply_kernel(target: Target, threads: int) -> tuple[Kernel, float]:
    lanes, tasks = target.lanes("float32"), _TASKS * threads
    chains = 3 * target.vector_registers // 4
    acc = Buffer("acc", "float32", "register", chains, lanes)
    source, out = Buffer("x", "float32"), Buffer("out", "float32")
    task, i = Var("task"), Var("i")
    x, y = source.load(0, lanes), source.load(lanes, lanes)
    body = seq(*(acc.store(c, intrinsic("fma", x, y, acc.load(c))) for c in range(chains)))
    loop = For(i, 0, _ITERATIONS, body)
    kernel = _kernel("peak", out, source, acc, task, tasks, [loop])
    return kernel, 2.0 * lanes * chains * _ITERATIONS * tasks


def _read_kernel(lanes: int, tasks: int, vectors: int, repeats: int) -> Kernel:
    acc = Buffer("acc", "float32", "register", 8, lanes)
    source, out = Buffer("x", "float32"), Buffer("out", "float32")
    task, again, i = Var("task"), Var("again"), Var("i")
    start = task * (vectors * lanes) + i * lanes
    loads = [source.load(start + c * lanes, lanes) for c in range(8)]
    body = seq(*(acc.store(c, acc.load(c) + load) for c, load in enumerate(loads)))
    loop = For(again, 0, repeats, For(i, 0, vectors, body, step=8))
    return _kernel("read", out, source, acc, task, tasks, [loop])


def _kernel(
    name: str,
    out: Buffer,
    source: Buffer,
    acc: Buffer,
    task: Var,
    tasks: int,
    work: Sequence[Stmt],
) -> Kernel:
    """The work on accumulators, and one vector a task stored so that it counts."""
    clear = [acc.store(c, Const(0, "float32", acc.lanes)) for c in range(acc.size)]
    total: Expr = acc.load(0)
    for c in range(1, acc.size):
        total = total + acc.load(c)
    body = seq(*clear, *work, out.store(task * acc.lanes, total))
    return Kernel(name, (out, source), task, tasks, body, locals=(acc,))


def _executable(
    kernel: Kernel, target: Target, threads: int, source: TensorSpec, cost: float
) -> Executable:
    from ixion.driver.build import install_native, objects_of

    install_native()
    symbol = f"ix_{kernel_key(kernel)[:32]}"
    tasks = typical(kernel.tasks)
    step = Step("call", symbol, (Slot("output"), Slot("input")), tasks, cost=cost)
    out = TensorSpec("out", (tasks * target.lanes("float32"),), "float32")
    objects = objects_of({symbol: kernel}, target)
    program = Program([step], [], 0, 0, [source], [out], target.key(), objects)
    return Executable(program, threads)


def _least(exe: Executable, array: Array, seconds: float) -> float:
    """Seconds of the fastest run within `seconds`."""
    best, end = math.inf, time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        exe.run_flat([array])
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            return best
