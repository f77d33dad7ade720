from __future__ import annotations

import numpy as np
import pytest

from ixion.kernel.winograd_math import Axis, axis, linear_map, map_cost
from ixion.te.evaluate import run_kernel
from ixion.te.expr import Expr, Var
from ixion.te.stmt import Buffer, Kernel, Let, Stmt, seq

SIZES = [(m, taps, 1) for m in (2, 3, 4, 6) for taps in (2, 3, 4)]
SIZES += [(4, 5, 1), (4, 7, 1), (1, 1, 1), (2, 3, 2), (3, 3, 2), (4, 3, 2), (3, 5, 2), (2, 2, 2)]


def dense(matrix: tuple[tuple[object, ...], ...]) -> np.ndarray:
    return np.array([[float(v) for v in row] for row in matrix])  # type: ignore[arg-type]


@pytest.mark.parametrize(("m", "taps", "step"), SIZES)
def test_an_axis_is_a_correlation(m: int, taps: int, step: int) -> None:
    made = axis(m, taps, step)
    rng = np.random.default_rng(m * taps)
    x, w = rng.standard_normal(made.side), rng.standard_normal(taps)
    got = dense(made.a) @ ((dense(made.g) @ w) * (dense(made.b) @ x))
    want = [x[i * step : i * step + taps] @ w for i in range(m)]
    np.testing.assert_allclose(got, want, atol=1e-12)


def mapped(made: Axis, which: str, x: np.ndarray) -> np.ndarray:
    """``matrix @ x`` as the expression code computes it."""
    matrix = made.b if which == "b" else made.a
    source, out, task = Buffer("x", "float32"), Buffer("y", "float32"), Var("task")
    lets: list[tuple[Var, Expr]] = []

    def name(value: Expr) -> Expr:
        lets.append((Var(f"v{len(lets)}", "float32"), value))
        return lets[-1][0]

    results = linear_map(matrix, [name(source.load(i)) for i in range(len(x))], name)
    body: Stmt = seq(*(out.store(i, value) for i, value in enumerate(results)))
    for var, value in reversed(lets):
        body = Let(var, value, body)
    y = np.zeros(len(matrix), np.float32)
    run_kernel(Kernel("k", (out, source), task, 1, body), [y, x.astype(np.float32)])
    return y


@pytest.mark.parametrize(("m", "taps", "step"), SIZES)
@pytest.mark.parametrize("which", ["a", "b"])
def test_expression_code_is_the_matrix(m: int, taps: int, step: int, which: str) -> None:
    made = axis(m, taps, step)
    matrix = dense(made.b if which == "b" else made.a)
    x = np.random.default_rng(3).standard_normal(matrix.shape[1])
    np.testing.assert_allclose(mapped(made, which, x), matrix @ x, rtol=1e-4, atol=1e-4)


def test_sharing_saves_operations() -> None:
    assert map_cost("b", axis(4, 3, 1)) <= 13
    assert map_cost("a", axis(4, 3, 1)) <= 10
    assert map_cost("b", axis(6, 3, 1)) <= 26
