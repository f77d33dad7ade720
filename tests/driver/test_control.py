"""Loops and branches, compiled: values against numpy, faults, profiles, files; random programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ixion
import ixion.op
from ixion.base.errors import KernelError
from ixion.ir import IRModule, parse

ROOT = Path(__file__).parents[2]
VERSION = '#[version = "0.0.5"]\n'


def module(text: str) -> IRModule:
    return parse(VERSION + text)


def run_random(start: int, count: int, folder: Path, *more: str) -> None:
    environment = {**os.environ, "IXION_CACHE_DIR": str(folder), "PYTHONPATH": f"{ROOT / 'src'}"}
    command = [sys.executable, "-m", "tests.driver.random_loops", str(start), str(count), *more]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        timeout=2400,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-200:]}\n{done.stderr[-3000:]}"
    assert done.stdout.endswith("all equal\n")


def test_random_loops(tmp_path: Path) -> None:
    run_random(0, 15, tmp_path)


@pytest.mark.parametrize("seed", [1217, 1660])
def test_loops_that_were_wrong_once(tmp_path: Path, seed: int) -> None:
    """A part written early into a concatenation that is a state; a condition known in a branch."""
    run_random(seed, 1, tmp_path)


def test_random_loops_that_threads_share(tmp_path: Path) -> None:
    run_random(0, 8, tmp_path, "large")


@pytest.mark.slow
def test_many_random_loops(tmp_path: Path) -> None:
    run_random(10_000, 400, tmp_path)
    run_random(10_000, 60, tmp_path, "large")


def test_a_loop_of_many_rounds():
    """Also one that a number in memory counts, and without a round."""
    exe = ixion.compile(module(
        """def @main(%n: int32, %x: Tensor[(3), int64]) {
             let %loop = fn (%i: int32, %y: Tensor[(3), int64]) -> Tensor[(3), int64] {
               if (less(%i, %n)) { %loop(add(%i, 1), add(%y, cast(%i, dtype="int64"))) }
               else { %y }
             };
             %loop(0, %x)
           }"""
    ))  # fmt: skip
    x = np.array([1, 2, 3])
    for n in (-5, 0, 1, 300_000):
        total = max(n, 0) * (max(n, 0) - 1) // 2
        np.testing.assert_array_equal(exe(np.int32(n), x), x + total)


def nested(depth: int) -> str:
    """A program of so many loops inside each other, that adds 1 in the innermost."""
    body, text = "add(%y, 1i64)", ""
    for level in range(depth):
        text += f"""def @f{level}(%i: int64, %n: int64, %y: int64) -> int64 {{
          if (less(%i, %n)) {{ @f{level}(add(%i, 1i64), %n, {body}) }} else {{ %y }}
        }}\n"""
        body = f"@f{level}(0i64, %n, %y)"
    return text + f"def @main(%n: int64, %y: int64) {{ {body} }}"


@pytest.mark.parametrize("depth", [1, 4, 5, 7])
def test_loops_inside_loops(depth):
    exe = ixion.compile(module(nested(depth)))
    for n in (0, 1, 3):
        assert exe(np.int64(n), np.int64(5)) == 5 + n**depth


def test_deep_branches_take_no_python_stack():
    """300 branches inside each other, each with its own way out."""
    body = "%x"
    for level in range(300):
        body = f"if (less(%n, {level % 7})) {{ add(%x, {level % 5}f) }} else {{ {body} }}"
    exe = ixion.compile(module(f"def @main(%n: int32, %x: float32) {{ {body} }}"), opt_level=1)
    assert exe(np.int32(-1), np.float32(0.5)) == np.float32(299 % 5 + 0.5)
    assert exe(np.int32(3), np.float32(0.5)) == np.float32(299 % 5 + 0.5)
    assert exe(np.int32(6), np.float32(0.5)) == np.float32(0.5)


def test_a_fault_in_a_round_names_it():
    exe = ixion.compile(module(
        """def @main(%n: int64, %x: Tensor[(4), float32]) {
             let %loop = fn (%i: int64, %y: float32) -> float32 {
               if (less(%i, %n)) { %loop(add(%i, 1i64), add(%y, take(%x, %i, mode="fast"))) }
               else { %y }
             };
             %loop(0i64, 0f)
           }"""
    ))  # fmt: skip
    x = np.array([1, 2, 3, 4], np.float32)
    assert exe(np.int64(4), x) == 10
    with pytest.raises(KernelError, match="index out of range") as caught:
        exe(np.int64(6), x)
    assert "take" in str(caught.value) and "4" in str(caught.value)
    assert exe(np.int64(2), x) == 3


LOOP = """def @main(%n: int64, %x: Tensor[(200, 300), float32]) {
  let %loop = fn (%i: int64, %y: Tensor[(200, 300), float32]) -> Tensor[(200, 300), float32] {
    if (less(%i, %n)) { %loop(add(%i, 1i64), sin(reverse(%y, axis=0))) } else { %y }
  };
  %loop(0i64, tanh(%x))
}"""


def expected(n: int, x: np.ndarray) -> np.ndarray:
    y = np.tanh(x)
    for _ in range(n):
        y = np.sin(y[::-1])
    return y


def test_a_program_is_verified_pass_by_pass_and_the_same_for_any_number_of_threads():
    x = np.random.default_rng(0).standard_normal((200, 300)).astype(np.float32)
    made = [ixion.compile(module(LOOP), threads=n, verify=True) for n in (1, 2)]
    for n in (0, 1, 7):
        first, second = (exe(np.int64(n), x) for exe in made)
        np.testing.assert_array_equal(first, second)
        np.testing.assert_allclose(first, expected(n, x), atol=1e-6)


def test_a_program_in_the_cache_loops_too(tmp_path, monkeypatch):
    monkeypatch.setenv("IXION_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "loop.relay"
    file.write_text(VERSION + LOOP)
    x = np.random.default_rng(1).standard_normal((200, 300)).astype(np.float32)
    for _ in range(2):
        np.testing.assert_allclose(ixion.compile(file)(np.int64(3), x), expected(3, x), atol=1e-6)


def test_a_profile_counts_every_round():
    exe = ixion.compile(module(LOOP), threads=1)
    x = np.zeros((200, 300), np.float32)
    profile = exe.native.profile([np.int64(5), x])
    counts = [step.count for step in profile.steps if "sin" in step.label]
    assert counts == [5]


def test_what_no_round_changes_is_computed_before_the_loop():
    text = """def @main(%n: int64, %x: Tensor[(64, 64), float32], %w: Tensor[(64, 64), float32]) {
      let %loop = fn (%i: int64, %y: Tensor[(64, 64), float32]) -> Tensor[(64, 64), float32] {
        if (less(%i, %n)) { %loop(add(%i, 1i64), tanh(add(%y, nn.dense(%w, %w)))) } else { %y }
      };
      %loop(0i64, %x)
    }"""
    exe = ixion.compile(module(text), threads=1)
    kinds = [step.kind for step in exe.program.steps]
    dense = next(i for i, s in enumerate(exe.program.steps) if "dense" in s.label)
    assert dense < kinds.index("loop")
    rng = np.random.default_rng(2)
    x, w = (rng.standard_normal((64, 64)).astype(np.float32) * 0.3 for _ in range(2))
    y = x.astype(np.float64)
    for _ in range(4):
        y = np.tanh(y + w @ w.T.astype(np.float64))
    np.testing.assert_allclose(exe(np.int64(4), x, w), y, atol=1e-5)
    np.testing.assert_array_equal(exe(np.int64(0), x, w), x)


def test_a_loop_whose_state_grows_runs_on_frames():
    text = """def @main(%n: int64, %x: Tensor[(2), float32]) {
      let %loop = fn (%i: int64, %y: Tensor[(?), float32]) -> Tensor[(?), float32] {
        if (less(%i, %n)) { %loop(add(%i, 1i64), exp(concatenate((%y, %y)))) } else { %y }
      };
      %loop(0i64, %x)
    }"""
    for executor in ("compiled", "reference"):
        exe = ixion.compile(module(text), executor=executor)
        got = exe(np.int64(2), np.zeros(2, np.float32))
        np.testing.assert_allclose(got, np.full(8, np.exp(1), np.float32), rtol=1e-6)


def test_recursion_that_is_no_loop_runs_on_frames():
    exe = ixion.compile(module(
        """def @main(%n: int32) -> int32 {
             if (less(%n, 2)) { 1 } else { multiply(%n, @main(subtract(%n, 1))) }
           }"""
    ))  # fmt: skip
    assert exe.program is None
    assert int(exe(np.int32(10))) == 3628800


@pytest.mark.parametrize("threads", [1, 2])
def test_what_python_does_in_a_round_is_in_its_place(threads):
    """An operator with a reference only, between kernels that are shared, in a loop in a loop."""
    text = """def @main(%n: int64, %two: Tensor[(1), int32], %x: Tensor[(300, 400), float32]) {
      let %inner = fn (%j: int64, %i: int64, %y: Tensor[(300, 400), float32])
          -> Tensor[(300, 400), float32] {
        if (less(%j, %i)) {
          let %b = cast(expand_dims(%j, axis=0), dtype="int32");
          let %e = add(%b, 2);
          let %z = strided_set(%y, take(%y, %b, axis=0), %b, %e, %two);
          %inner(add(%j, 1i64), %i, reverse(tanh(%z), axis=0))
        } else { %y }
      };
      let %outer = fn (%i: int64, %y: Tensor[(300, 400), float32])
          -> Tensor[(300, 400), float32] {
        if (less(%i, %n)) { %outer(add(%i, 1i64), add(%inner(0i64, %i, %y), %x)) } else { %y }
      };
      %outer(0i64, %x)
    }"""
    x = np.random.default_rng(5).standard_normal((300, 400)).astype(np.float32)
    values = [np.int64(4), np.array([2], np.int32), x]
    exe = ixion.compile(module(text), threads=threads)
    assert any(step.kind == "host" for step in exe.program.steps)
    want = ixion.compile(module(text), executor="reference")(*values)
    for _ in range(5):
        np.testing.assert_allclose(exe(*values), want, atol=1e-5)
