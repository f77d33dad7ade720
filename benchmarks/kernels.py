"""What the code generator makes of a matrix micro-kernel: share of peak, and time to compile.

Run with ``python benchmarks/kernels.py [target]``. Peak is measured with the same emitter: a loop
of independent fused multiply-adds on registers.
"""

from __future__ import annotations

import ctypes
import re
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

from ixion.base.target import Target
from ixion.codegen.emit import emit_kernel
from ixion.codegen.llvm import Library, asm_text, compile_text, load_objects
from ixion.te.expr import Broadcast, Const, Expr, Var, intrinsic
from ixion.te.stmt import Buffer, For, Kernel, Stmt, seq, unroll

DEPTH = 576
SIGNATURE = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


def fma(a: Expr, b: Expr, c: Expr) -> Expr:
    return intrinsic("fma", a, b, c)


def gemm(rows: int, vectors: int, lanes: int, depth: int = DEPTH) -> Kernel:
    """C = A B for a tile of rows x vectors, everything loaded per step of the inner loop."""
    a, b, c = (Buffer(name, "float32") for name in "ABC")
    acc = Buffer("acc", "float32", "register", rows * vectors, lanes)
    task, k, u, r, v = (Var(name) for name in ("task", "k", "u", "r", "v"))
    at = r * vectors + v

    def tile(body: Stmt) -> Stmt:
        return unroll(r, rows, unroll(v, vectors, body))

    scalar = Broadcast(a.load(r * depth + k + u), lanes)
    panel = b.load((k + u) * (vectors * lanes) + v * lanes, lanes)
    body = seq(
        tile(acc.store(at, Const(0.0, "float32", lanes))),
        For(
            k, 0, depth, unroll(u, 4, tile(acc.store(at, fma(scalar, panel, acc.load(at))))), step=4
        ),
        tile(c.store(at * lanes, acc.load(at))),
    )
    return Kernel("gemm", (a, b, c), task, 1, body, locals=(acc,))


def peak(lanes: int, chains: int, rounds: int = 4096) -> Kernel:
    """Independent multiply-adds on registers only."""
    y, acc = Buffer("y", "float32"), Buffer("acc", "float32", "register", chains, lanes)
    task, i, j = Var("task"), Var("i"), Var("j")
    start = y.load(j * lanes, lanes)
    step = acc.store(j, fma(acc.load(j), acc.load(j), acc.load(j)))
    body = seq(
        unroll(j, chains, acc.store(j, start)),
        For(i, 0, rounds, unroll(j, chains, step)),
        unroll(j, chains, y.store(j * lanes, acc.load(j))),
    )
    return Kernel("peak", (y,), task, 1, body, locals=(acc,))


def milliseconds(work: Callable[[], object], runs: int = 7) -> float:
    best = float("inf")
    for _ in range(runs):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best * 1e3


def seconds_per_task(library: Library, symbol: str, arrays: Sequence[np.ndarray]) -> float:
    function = SIGNATURE(library.address(symbol))
    slots = np.array([a.ctypes.data for a in arrays], np.int64)
    context = np.zeros(2, np.int64)
    best, tasks = float("inf"), 100
    for _ in range(300):
        begin = time.perf_counter()
        function(context.ctypes.data, slots.ctypes.data, 0, tasks)
        best = min(best, (time.perf_counter() - begin) / tasks)
    return best


def build(kernel: Kernel, target: Target) -> tuple[Library, str, float, float]:
    """(code, assembly, ms to emit, ms in LLVM)"""
    text = emit_kernel(kernel, target)
    emit = milliseconds(lambda: emit_kernel(kernel, target))
    llvm = milliseconds(lambda: compile_text(text, target))
    return load_objects([compile_text(text, target)]), asm_text(text, target), emit, llvm


def main() -> None:
    target = Target.parse(sys.argv[1] if len(sys.argv) > 1 else "native")
    lanes = target.lanes("float32")
    chains = target.vector_registers - 4
    library, _, _, _ = build(peak(lanes, chains), target)
    top = (
        2
        * lanes
        * chains
        * 4096
        / seconds_per_task(library, "peak", [np.zeros(chains * lanes, "f")])
    )
    print(f"{target.name}: peak {top / 1e9:.1f} GFLOP/s")
    wide = target.vector_registers >= 32
    for rows, vectors in ((14, 2), (28, 1), (9, 3), (7, 4), (6, 4)) if wide else ((6, 2), (4, 3)):
        library, asm, emit, llvm = build(gemm(rows, vectors, lanes), target)
        a, b = np.ones((rows, DEPTH), "f"), np.ones((DEPTH, vectors * lanes), "f")
        c = np.zeros((rows, vectors * lanes), "f")
        speed = 2 * c.size * DEPTH / seconds_per_task(library, "gemm", [a, b, c])
        spills = len(re.findall(r"%[xyz]mm\d+, -?\d*\(%rsp\)", asm))
        print(
            f"  tile {rows}x{vectors}: {speed / 1e9:6.1f} GFLOP/s = {speed / top:.1%} of peak,"
            f" emitted in {emit:.1f} ms, compiled in {llvm:.1f} ms, {spills} spills,"
            f" {asm.count('{1to')} broadcast operands"
        )


if __name__ == "__main__":
    main()
