"""Index arithmetic over sizes: what simplification gives is equal, and what is proved holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion.te.evaluate import _KernelEvaluator
from ixion.te.expr import Expr, Var, maximum, minimum, size, wrap
from ixion.te.simplify import linear, simplify
from ixion.te.stmt import Kernel, seq
from ixion.te.symbolic import never_negative

B, S = size("B"), size("S")
b, s, h = Var("b"), Var("s"), Var("h")
RANGES = {b: (0, B - 1), s: (0, S - 1), h: (0, 11)}


def value(expr: Expr, **given: int) -> int:
    names = {"B": B, "S": S, "b": b, "s": s, "h": h}
    kernel = Kernel("k", (), Var("task"), 1, seq())
    env = {names[n]: np.asarray(v) for n, v in given.items()}
    return int(_KernelEvaluator(kernel, {}).expr(expr, env))


@st.composite
def points(draw: st.DrawFn) -> dict[str, int]:
    sizes = {"B": draw(st.integers(1, 5)), "S": draw(st.integers(1, 40))}
    return {
        **sizes, "b": draw(st.integers(0, sizes["B"] - 1)),
        "s": draw(st.integers(0, sizes["S"] - 1)), "h": draw(st.integers(0, 11)),
    }  # fmt: skip


flat = ((b * S + s) * 12 + h) * 32
LEAVES = [b, s, h, B, S, wrap(3), wrap(-2)]


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> Expr:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(LEAVES))
    a, c = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    kind = draw(st.sampled_from(("add", "sub", "mul", "min", "max", "div", "mod", "divS")))
    if kind == "add":
        return a + c
    if kind == "sub":
        return a - c
    if kind == "mul":
        return a * c
    if kind in ("min", "max"):
        return (minimum if kind == "min" else maximum)(a, c)
    divisor = S if kind == "divS" else draw(st.sampled_from((wrap(2), wrap(7), S * 12, B)))
    return a % divisor if kind == "mod" else a // divisor


@given(expressions(), points())
def test_simplified_expressions_have_the_same_value(expr: Expr, point: dict[str, int]) -> None:
    assert value(simplify(expr, RANGES), **point) == value(expr, **point)


@given(expressions(), st.lists(points(), min_size=8, max_size=8))
def test_what_is_proved_holds(expr: Expr, where: list[dict[str, int]]) -> None:
    if never_negative(linear(expr, RANGES), RANGES):
        assert all(value(expr, **point) >= 0 for point in where)


@pytest.mark.parametrize(
    ("expr", "short"),
    [
        (flat // (S * 384), "b"),
        ((flat // 384) % S, "s"),
        ((flat // 32) % 12, "h"),
        ((b * S + s) // S, "b"),
        (minimum(b * S + s, B * S - 1), "((b * S) + s)"),
        (maximum(s, 0), "s"),
    ],
)
def test_reshapes_of_open_sizes_cancel(expr: Expr, short: str) -> None:
    assert str(simplify(expr, RANGES)) == short


def test_bounds_that_hold_for_every_size() -> None:
    def proved(expr: Expr) -> bool:
        return never_negative(linear(expr, RANGES), RANGES)

    assert proved(S - 1 - s)
    assert proved(B * S - 1 - (b * S + s))
    assert proved(S + 1 - (S + 1) // 2)
    assert proved(maximum(S - 2, 0))
    assert not proved(S - 1)  # there may be nothing
    assert not proved(S - 2)
    assert not proved(s - 1)
