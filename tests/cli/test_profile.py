"""`ixion profile`: every step is accounted for, in the table, the JSON and the trace."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ixion import driver
from ixion.base.target import Target
from ixion.cli import profile
from ixion.driver.roofline import Level, Roofline, peak_flops
from ixion.runtime.profile import Profile, StepTime
from ixion.runtime.program import Program, Step
from ixion.runtime.trace import chrome_trace

ROOF = Roofline(1, 100e9, (Level("L2", 1e6, 50e9), Level("memory", float("inf"), 10e9)))


def test_the_report_covers_every_step(cli, folder: Path) -> None:
    program = driver.compile(folder / "digits.onnx").program
    done = cli("profile", folder / "digits.onnx", "--runs", "2", "--threads", "1", "--json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    steps = [step["step"] for kernel in report["kernels"] for step in kernel["steps"]]
    assert steps == list(range(len(program.steps)))
    assert report["runs"] == 2
    assert report["threads"] == 1
    assert sum(kernel["share"] for kernel in report["kernels"]) == pytest.approx(1)
    ops = [op for kernel in report["kernels"] for op in kernel["ops"]]
    assert ops.count("nn.conv2d") == 2
    assert all(kernel["nodes"] for kernel in report["kernels"] if "nn.conv2d" in kernel["ops"])


def test_the_table_and_the_trace(cli, folder: Path) -> None:
    out = folder / "trace.json"
    model = folder / "digits.pnnx.param"
    done = cli("profile", model, "--runs", "3", "--trace", out, "--inputs", folder / "in.npz")
    assert done.code == 0, done.err
    assert "conv2d" in done.out
    assert "GFLOP/s" in done.out
    events = json.loads(out.read_text())["traceEvents"]
    runs = [e for e in events if e.get("cat") == "run"]
    assert [run["name"] for run in runs] == ["run 0", "run 1", "run 2"]
    calls = [e for e in events if e.get("cat") == "call"]
    assert len(calls) % 3 == 0
    assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in calls)
    assert any(e["args"]["nodes"] for e in calls)


def test_only_the_slowest(cli, folder: Path) -> None:
    whole = cli("profile", folder / "digits.onnx", "--runs", "1").out
    top = cli("profile", folder / "digits.onnx", "--runs", "1", "--top", "1").out
    assert len(top.splitlines()) < len(whole.splitlines())


def test_refusals(cli, folder: Path) -> None:
    cli("profile", folder / "digit.onnx").refuses("digits.onnx")
    cli("profile", folder / "digits.onnx", "--trace", folder / "none" / "t.json").refuses("none")
    assert cli("profile", folder / "digits.onnx", "--runs", "0").code == 2


def times(*spans: tuple[int, int]) -> Profile:
    steps = [
        StepTime(i, "call", f"k{i}", f"step {i}", 1, 1, end - start, start, end)
        for i, (start, end) in enumerate(spans)
    ]
    return Profile(tuple(steps), 1)


def program(count: int, **meta: object) -> Program:
    steps = [Step("call", f"k{i}") for i in range(count)]
    return Program(steps, [np.zeros(1000, np.float32)], 96_000, 0, [], [], "", [], meta=meta)


RECORD = {"steps": 1, "ops": ["nn.dense"], "nodes": ["a"], "flops": 10**8}


def test_rates_and_roofline() -> None:
    """100 MFLOP need 1 ms at 100 GFLOP/s; 50 kB need 1 us from L2 at 50 GB/s."""
    compute = {**RECORD, "moved": [0], "weights": [0]}
    memory = {**RECORD, "flops": 1, "steps": 2, "moved": [25_000, 20_000], "weights": [0, 5_000]}
    found = profile.make_report(
        [times((0, 2_000_000), (2_000_000, 2_001_000), (2_001_000, 2_005_000))] * 3,
        program(3, account=[compute, memory]),
        ROOF,
    )
    first, second = found.kernels
    assert first.gflops == pytest.approx(50)
    assert first.roofline == pytest.approx(0.5)
    assert second.ms == pytest.approx(0.005)
    assert second.bytes == 50_000
    assert second.roofline == pytest.approx(0.2)
    assert [step.ms for step in second.steps] == pytest.approx([0.001, 0.004])
    assert found.ms == pytest.approx(2.005)


def test_the_median_run_counts() -> None:
    slow = profile.make_report(
        [times((0, 10)), times((0, 30)), times((0, 1000))], program(1), ROOF
    )
    assert slow.ms == pytest.approx(30e-6)
    assert slow.kernels[0].gflops is None
    assert slow.kernels[0].roofline is None


def test_weights_of_a_large_model_come_from_memory() -> None:
    record = {**RECORD, "flops": 1, "moved": [0], "weights": [10_000]}
    small = program(1, account=[record])
    large = replace(small, arena_size=10**8)
    reports = [profile.make_report([times((0, 1000))], p, ROOF) for p in (small, large)]
    assert [r.kernels[0].roofline for r in reports] == pytest.approx([0.2, 1.0])


def test_a_step_that_did_not_run_is_not_in_the_trace() -> None:
    skipped = StepTime(1, "call", "k1", "skipped", 1, 0, 0, 0, 0)
    ran = times((500, 800)).steps[0]
    events = chrome_trace([Profile((ran, skipped), 1)], "net")["traceEvents"]
    assert [e["name"] for e in events if e["ph"] == "X"] == ["run 0", "step 0"]
    assert events[-1]["ts"] == 0
    assert events[-1]["dur"] == pytest.approx(0.3)


def test_the_peak_is_a_possible_number() -> None:
    target = Target.parse("native")
    assert 1e8 < peak_flops(target, 1, 0.01) < 1e12
