"""What a round of a loop costs beside its work, here and in onnxruntime.

Run with ``python benchmarks/loops.py [ROUNDS]``. Each model is an ONNX Loop of one small body; both
engines run the same file on one thread. ``work`` is the time of the loop's kernels alone: the same
machine code called once with so many tasks, which it does in a loop of its own.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

import ixion
from ixion.runtime.executable import Executable
from ixion.runtime.program import Program

ROUNDS = 100_000
TRIES = 7
FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
SIZE = 16


def info(name: str, shape: list[int], kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def node(kind: str, inputs: str, outputs: str) -> Any:
    return helper.make_node(kind, inputs.split(), outputs.split())


#: x becomes x * a + b.
ROUND = [node("Mul", "x_in a", "t"), node("Add", "t b", "x_out")]


def model(nodes: list[Any], cond: str, *results: Any) -> Any:
    """A Loop over 16 floats whose body does ``nodes``; ``cond``: the condition at first."""
    given = [info("i", [], INT), info("c", [], BOOL), info("x_in", [SIZE])]
    made = [info("c_out", [], BOOL), info("x_out", [SIZE]), *results]
    top = numpy_helper.from_array(np.float32(1e30), "top")
    zero = numpy_helper.from_array(np.int64(0), "zero")
    body = helper.make_graph(nodes, "body", given, made, [top, zero])
    names = ["y", *(f"{r.name}s" for r in results)]
    loop = helper.make_node("Loop", ["m", cond, "x"], names, body=body)
    inputs = [info("m", [], INT), *(info(name, [SIZE]) for name in "xab")]
    outputs = [info("y", [SIZE]), *(info(name, None) for name in names[1:])]
    yes = numpy_helper.from_array(np.array(True), "yes")
    graph = helper.make_graph([loop], "loop", inputs, outputs, [yes])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


MODELS: dict[str, Any] = {
    "a number of rounds": model([*ROUND, node("Identity", "c", "c_out")], ""),
    "while x[0] < 1e30": model(
        [*ROUND, node("Gather", "x_out zero", "x0"), node("Less", "x0 top", "c_out")], "yes"
    ),
    "with the number": model(
        [node("Cast", "i", "f"), node("Mul", "x_in a", "t"), node("Add", "t f", "x_out"),
         node("Identity", "c", "c_out")], "",
    ),
}  # fmt: skip
MODELS["with the number"].graph.node[0].attribute[0].g.node[0].attribute.append(
    helper.make_attribute("to", FLOAT)
)


def best(run: Callable[[], object]) -> float:
    """Least seconds of several runs."""
    spent = []
    for _ in range(TRIES):
        begin = time.perf_counter()
        run()
        spent.append(time.perf_counter() - begin)
    return min(spent)


def work_of(program: Program, rounds: int) -> Program:
    """The program with each call inside its loop done ``rounds`` times in a row, and no loop."""
    last = max(i for i, s in enumerate(program.steps) if s.kind in ("next", "jump"))
    first = program.steps[last].target
    steps = []
    for number, step in enumerate(program.steps):
        if step.kind == "call":
            steps.append(replace(step, tasks=rounds) if first <= number <= last else step)
    return replace(program, steps=steps)


def measured(made: Any, rounds: int) -> tuple[float, float, float, float]:
    """Nanoseconds a round: ours, the kernels' work in it, onnxruntime's; and the largest error."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(made.SerializeToString(), options)
    rng = np.random.default_rng(0)
    feed = {name: rng.random(SIZE, np.float32) for name in "xab"}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "loop.onnx"
        save(made, file)
        exe = ixion.compile(file, threads=1)
    assert exe.program is not None
    alone = Executable(work_of(exe.program, rounds), threads=1)
    none, all_ = ({**feed, "m": np.array(m)} for m in (0, rounds))
    ordered = [all_[spec.name] for spec in exe.inputs]
    base = best(lambda: exe.run(none))
    ours = best(lambda: exe.run(all_)) - base
    work = best(lambda: alone.run_flat(ordered)) - base
    theirs = best(lambda: session.run(None, all_))
    error = float(np.abs(exe.run(all_)["y"] - session.run(None, all_)[0]).max())
    return ours / rounds * 1e9, work / rounds * 1e9, theirs / rounds * 1e9, error


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    print(f"{rounds} rounds; nanoseconds a round")
    print(f"{'':20}{'ixion':>8}{'work':>8}{'beyond':>8}{'onnxruntime':>14}{'error':>10}")
    for name, made in MODELS.items():
        ours, work, theirs, error = measured(made, rounds)
        print(f"{name:20}{ours:8.1f}{work:8.1f}{ours - work:8.1f}{theirs:14.0f}{error:10.1e}")


if __name__ == "__main__":
    main()
