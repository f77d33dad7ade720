"""Loops of steps too small to share, among steps that are shared: each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tiny_programs import arena, imm, program

from ixion.base.abi import Opcode, StepWord
from ixion.runtime.program import Step
from ixion.runtime.table import build_table

HERE = Path(__file__).parent
BEGIN = f"""
import os, signal, sys, threading, time
sys.path.insert(0, {str(HERE)!r})
import numpy as np
import tiny_programs as tiny
from tiny_programs import arena, imm
from ixion.base.errors import KernelError
from ixion.runtime.executable import Executable
from ixion.runtime.program import Step, TensorSpec
tiny.install()
COUNT = 300
SIZE = 4096

# A shared step, rounds of a small loop that read what it wrote, a shared step that reads theirs;
# all that in a loop of its own.
def steps(rounds, outer, small):
    far = arena(SIZE)
    made = tiny.reset(COUNT, SIZE)
    first = len(made)
    made += [
        Step("loop", slots=(imm(outer),), target=first + 9, counter=0),
        Step("call", "cross", (far, arena(), imm(COUNT)), COUNT, cost=1e6),
        Step("call", "mix", (arena(), imm(1)), COUNT, cost=1e6),
        Step("solo", target=first + 7),
        Step("loop", slots=(imm(rounds),), target=first + 7, counter=1),
        *small,
        Step("next", target=first + 5, counter=1),
        Step("together"),
        Step("call", "cross", (arena(), far, imm(COUNT)), COUNT, cost=1e6),
    ]
    return made + [Step("next", target=first + 1, counter=0)]

def made(rounds, outer, small):
    specs = [TensorSpec(n, (COUNT,), "int64") for n in "ab"]
    places = [arena(), arena(SIZE)]
    return tiny.program(steps(rounds, outer, small), [], specs, 2 * SIZE, output_places=places)

# out[0] = out[0] * 10 + round
DIGIT = [Step("call", "digit", (arena(), imm(1)), 1, cost=5.0)]

def expected(rounds, outer):
    mask = (1 << 64) - 1
    a, b = [0] * COUNT, [0] * COUNT
    for _ in range(outer):
        a = [((b[COUNT - 1 - i] + a[i]) * 5) & mask for i in range(COUNT)]
        a = [(a[i] * 3 + 1 + i) & mask for i in range(COUNT)]
        for turn in range(rounds):
            a[0] = (a[0] * 10 + turn) & mask
        b = [((a[COUNT - 1 - i] + b[i]) * 5) & mask for i in range(COUNT)]
    return [np.array(v, np.uint64).astype(np.int64) for v in (a, b)]
"""


def run(code: str) -> None:
    command = [sys.executable, "-c", BEGIN + code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_what_the_caller_does_alone_is_seen_by_all():
    run("""
for rounds, outer in ((0, 3), (1, 1), (7, 5), (2000, 2), (3, 400)):
    right = expected(rounds, outer)
    for threads in (1, 2, 3, 8):
        executable = Executable(made(rounds, outer, DIGIT), threads)
        for turn in range(30):
            for got, want in zip(executable.run_flat([]), right):
                assert np.array_equal(got, want), (rounds, outer, threads, turn)
""")


def test_a_long_solo_looks_in_on_python():
    """Every 50 ms a run comes back to let signal handlers run, also in the middle of a solo."""
    run("""
slow = Step("call", "slow", (imm(200_000),), 1, cost=3e5)
executable = Executable(made(900, 2, [*DIGIT[:0], slow]), 2)
seen = []
signal.signal(signal.SIGALRM, lambda *_: seen.append(time.perf_counter()))
signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
begin = time.perf_counter()
got = executable.run_flat([])
spent = time.perf_counter() - begin
signal.setitimer(signal.ITIMER_REAL, 0)
assert spent > 0.15, spent
assert seen and seen[0] - begin < 0.1 + 0.15, (begin, seen)
want = Executable(made(0, 2, [slow]), 1).run_flat([])
assert all(np.array_equal(g, w) for g, w in zip(got, want))
""")


def test_a_solo_ends_when_the_run_is_stopped_or_a_kernel_fails():
    run("""
slow = Step("call", "slow", (imm(200_000),), 1, cost=3e5)
executable = Executable(made(1 << 40, 1, [slow]), 2)
threading.Timer(0.3, executable.stop).start()
try:
    executable.run_flat([])
except KernelError as error:
    assert "stopped" in str(error)
else:
    raise SystemExit("went on")
failing = Step("call", "failing", (imm(1), imm(0)), 1, cost=5.0, label="bad")
executable = Executable(made(3, 1, [failing]), 2)
for turn in range(50):
    try:
        executable.run_flat([])
    except KernelError as error:
        assert "bad" in str(error) and "index out of range" in str(error), error
    else:
        raise SystemExit("went on")
good = Executable(made(7, 5, DIGIT), 2)
for got, want in zip(good.run_flat([]), expected(7, 5)):
    assert np.array_equal(got, want)
""")


SMALL, BIG = (Step("call", "empty", (), 8, cost=cost) for cost in (10.0, 1e6))


def opcodes(*inside: Step) -> list[int]:
    """The opcodes of a loop in a solo that is in another one, for two threads."""
    count = len(inside)
    steps = [
        BIG,
        Step("solo", target=7 + count),
        Step("loop", slots=(imm(2),), target=7 + count, counter=0),
        SMALL,
        Step("solo", target=5 + count),
        *inside,
        Step("together"),
        Step("next", target=3, counter=0),
        Step("together"),
        BIG,
    ]
    table = build_table(program(steps, arena=64), lambda symbol: 7, 2)
    kinds = table.words[:-1, 0].tolist()
    for number, kind in enumerate(kinds):
        if steps[number].kind in ("solo", "together") and kind == Opcode.JUMP:
            assert table.words[number, StepWord.TARGET // 8] == number + 1
    return [kinds[number] for number in (1, 4, 5 + count, 7 + count)]


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ((SMALL, SMALL), ("SOLO", "JUMP", "JUMP", "TOGETHER")),
        ((SMALL, BIG), ("JUMP", "JUMP", "JUMP", "JUMP")),
        ((SMALL, Step("host", host=0, slots=(arena(),))), ("JUMP", "JUMP", "JUMP", "JUMP")),
    ],
)
def test_the_outermost_loop_of_small_steps_is_done_alone(inside, expected):
    assert opcodes(*inside) == [Opcode[name] for name in expected]


def test_an_inner_loop_is_done_alone_where_the_outer_one_is_shared():
    steps = [
        Step("solo", target=7),
        Step("loop", slots=(imm(2),), target=7, counter=0),
        BIG,
        Step("solo", target=5),
        SMALL,
        Step("together"),
        Step("next", target=2, counter=0),
        Step("together"),
    ]
    words = build_table(program(steps, arena=64), lambda symbol: 7, 2).words
    names = [Opcode(int(code)).name for code in words[:-1, 0]]
    assert names == ["JUMP", "LOOP", "CALL", "SOLO", "CALL", "TOGETHER", "NEXT", "JUMP"]
    assert words[2, StepWord.BARRIER // 8] == 1  # what it wrote is there before the solo begins
