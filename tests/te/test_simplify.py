import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.te.evaluate import run_kernel
from ixion.te.expr import Binary, Const, Expr, Var, wrap
from ixion.te.simplify import bounds, simplify
from ixion.te.stmt import Buffer, Kernel

A, B, C = Var("a"), Var("b"), Var("c")
RANGES = {A: (0, 6), B: (0, 15), C: (-3, 4)}


def random_index(rng: random.Random, depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([A, B, C, wrap(rng.randint(-5, 20))])
    op = rng.choice(["add", "add", "sub", "mul", "floordiv", "floormod", "min", "max"])
    left = random_index(rng, depth - 1)
    if op in ("mul", "floordiv", "floormod"):
        return Binary(op, left, wrap(rng.choice([1, 2, 3, 4, 7, 16])))
    return Binary(op, left, random_index(rng, depth - 1))


def value(expr: Expr, point: dict[Var, int]) -> int:
    if isinstance(expr, Const):
        return int(expr.value)
    if isinstance(expr, Var):
        return point[expr]
    assert isinstance(expr, Binary)
    a, b = value(expr.a, point), value(expr.b, point)
    return {
        "add": a + b, "sub": a - b, "mul": a * b, "min": min(a, b), "max": max(a, b),
        "floordiv": a // b if expr.op == "floordiv" else 0,
        "floormod": a % b if expr.op == "floormod" else 0,
    }[expr.op]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**9))
def test_simplified_index_has_the_same_value(seed: int) -> None:
    rng = random.Random(seed)
    expr = random_index(rng, 4)
    short = simplify(expr, RANGES)
    lo, hi = bounds(expr, RANGES)
    for _ in range(8):
        point = {v: rng.randint(*RANGES[v]) for v in (A, B, C)}
        want = value(expr, point)
        assert value(short, point) == want
        assert lo is None or lo <= want
        assert hi is None or want <= hi


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        ((A * 16 + B) // 16, "a"),
        ((A * 16 + B) % 16, "b"),
        ((A // 7) * 7 + A % 7, "a"),
        ((A * 32 + B + 5) // 32, "a"),
        (((A * 4 + B // 4) * 4) + B % 4, "((a * 16) + b)"),
    ],
)
def test_layout_arithmetic_cancels(expr: Expr, text: str) -> None:
    assert repr(simplify(expr, RANGES)) == text


def test_kernel_evaluator_refuses_reads_outside_a_buffer() -> None:
    x, y = Buffer("x", "float32"), Buffer("y", "float32")
    task = Var("task")
    kernel = Kernel("k", (y, x), task, 4, y.store(task, x.load(task + 1)))
    arrays = [np.zeros(4, np.float32), np.arange(4, dtype=np.float32)]
    with pytest.raises(IndexError):
        run_kernel(kernel, arrays)
    run_kernel(kernel, arrays, tasks=range(3))
    assert arrays[0].tolist() == [1, 2, 3, 0]
