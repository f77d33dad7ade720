from __future__ import annotations

import math

import numpy as np
import pytest

import ixion
from ixion import op, te
from ixion.ir import Expr, Function, IRModule, const, var
from ixion.kernel.cheaper import cheaper
from ixion.te.expr import Binary, Const, Intrinsic, Var

X = np.concatenate(
    [np.linspace(-7, 7, 4001), [0.0, -0.0, 1e-30, -1e-30, 90, -90, 3e38, -3e38, np.inf, -np.inf]]
).astype(np.float32)


def number(value: float) -> Expr:
    return const(np.float32(value))


def compiled(body: Expr, x: Expr, target: str) -> np.ndarray:
    return ixion.compile(IRModule.from_expr(Function([x], body)), target=target)(X)


@pytest.mark.parametrize("target", ["native", "avx2", "generic"])
@pytest.mark.parametrize("name", ["erf", "tanh"])
@pytest.mark.parametrize("turned", [False, True])
def test_one_and_a_sigmoidal_function(name: str, turned: bool, target: str) -> None:
    x = var("x", shape=X.shape)
    y = op.call(name, x)
    body = op.call("add", number(1), y) if turned else op.call("add", y, number(1))
    want = np.array([1 + getattr(math, name)(float(v)) for v in X])
    np.testing.assert_allclose(compiled(body, x, target), want, rtol=0, atol=2.5e-7)


@pytest.mark.parametrize("target", ["native", "avx2", "generic"])
def test_gelu(target: str) -> None:
    x = var("x", shape=X.shape)
    gate = op.call("add", op.call("erf", op.call("divide", x, number(2**0.5))), number(1))
    found = compiled(op.call("multiply", op.call("multiply", x, number(0.5)), gate), x, target)
    real = X.astype(np.float64)[:-1]
    want = np.array([v / 2 * math.erfc(-v / math.sqrt(2)) for v in real])
    np.testing.assert_allclose(found[:-1], want, rtol=3e-7, atol=3e-7)
    assert np.isnan(found[-1])  # -inf * 0, as defined
    assert (found[:-1][real < -20] == 0).all()


def test_what_stays_as_it_is() -> None:
    x, wide = Var("x", "float32"), Var("x", "float64")
    for value in (
        Binary("add", Intrinsic("erf", (x,)), Const(2.0, "float32")),
        Binary("sub", Const(1.0, "float32"), Intrinsic("erf", (x,))),
        Binary("add", Intrinsic("erf", (wide,)), Const(1.0, "float64")),
        Binary("add", te.const(1, "int32"), te.const(1, "int32")),
        Intrinsic("pow", (x, x)),
    ):
        assert cheaper(value) is value
