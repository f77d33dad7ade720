"""The step table: which steps share, which keep their barrier."""

import numpy as np
import pytest
from tiny_programs import arena, imm, program

from ixion.base.abi import CLOCK_WEIGHT, Opcode, StepWord
from ixion.runtime.program import Step
from ixion.runtime.table import build_table

BIG, SMALL = 1e6, 100.0


def column(steps, word, threads=2):
    table = build_table(program(steps, arena=64), lambda symbol: 7, threads)
    return table.words[:-1, word // 8].tolist()


def call(cost, tasks=8, barrier=True):
    return Step("call", "empty", (), tasks, barrier=barrier, cost=cost)


@pytest.mark.parametrize(
    ("step", "threads", "limit"),
    [
        (call(BIG), 1, 1),
        (call(BIG), 8, 8),
        (call(BIG, tasks=3), 8, 3),
        (call(SMALL), 8, 1),
        (call(25_000.0), 64, 8),
        (call(41_000.0, tasks=100), 64, 20),
        (call(0.0), 8, 8),
        (call(0.0, tasks=1), 8, 1),
        (call(BIG, tasks=0), 8, 1),
    ],
)
def test_threads_of_a_step(step, threads, limit):
    assert column([step], StepWord.LIMIT, threads)[0] == (threads if limit > 1 else 1)
    assert column([step, call(BIG)], StepWord.LIMIT, threads)[0] == limit


def test_too_little_work_wakes_nobody():
    assert column([call(5000.0)] * 3, StepWord.LIMIT) == [1, 1, 1]
    assert column([call(5000.0)] * 4, StepWord.LIMIT) == [2, 2, 2, 2]
    assert column([call(5000.0), call(0.0)], StepWord.LIMIT) == [2, 2]


def test_an_unwaited_step_takes_everyone():
    """Its limit would let a worker run ahead and claim tasks of one that is still busy."""
    assert column([call(5000.0), call(BIG)], StepWord.LIMIT, 8)[0] == 2
    assert column([call(5000.0, barrier=False), call(BIG)], StepWord.LIMIT, 8)[0] == 8


@pytest.mark.parametrize(
    ("steps", "barriers"),
    [
        ([call(BIG), call(BIG)], [1, 0]),
        ([call(BIG, barrier=False), call(BIG), call(BIG)], [0, 1, 0]),
        ([call(SMALL), call(SMALL), call(BIG)], [0, 1, 0]),
        ([call(SMALL), call(SMALL, barrier=False), call(BIG)], [0, 1, 0]),
        ([call(SMALL, barrier=False), call(SMALL, barrier=False), call(BIG)], [0, 0, 0]),
        ([call(BIG, barrier=False), call(SMALL), call(SMALL), call(BIG)], [0, 1, 1, 0]),
        ([call(BIG), call(SMALL), call(SMALL)], [1, 0, 0]),
        ([call(SMALL), Step("branch", slots=(arena(),), target=2), call(BIG)], [1, 0, 0]),
        (
            [call(SMALL), call(SMALL), Step("next", target=1), call(BIG)],
            [1, 1, 0, 0],
        ),
    ],
)
def test_barriers(steps, barriers):
    assert column(steps, StepWord.BARRIER) == barriers


def test_equal_windows_are_stored_once():
    steps = [
        Step("call", "set", (arena(), imm(1))),
        Step("call", "set", (arena(), imm(2))),
        Step("call", "set", (arena(), imm(1))),
    ]
    table = build_table(program(steps, arena=64), lambda symbol: 7, 1)
    assert table.windows == (0, 2, 0)
    assert len(table.slots) == 4
    assert not table.shared


def test_words():
    steps = [call(500.0), call(0.0), Step("jump", target=0)]
    words = build_table(program(steps), lambda symbol: 1234, 1).words
    assert words.dtype == np.int64
    assert words.shape == (4, 8)
    opcodes = [Opcode.CALL, Opcode.CALL, Opcode.JUMP, Opcode.END]
    assert words[:, 0].tolist() == opcodes
    assert words[0, StepWord.KERNEL // 8] == 1234
    assert words[0, StepWord.WEIGHT // 8] == 500
    assert 0 < words[1, StepWord.WEIGHT // 8] < CLOCK_WEIGHT
