"""Programs of any depth go through every pass."""

from __future__ import annotations

import numpy as np
import pytest

from ixion import op
from ixion.analysis import check_typed, check_well_formed, evaluate
from ixion.ir import Expr, Function, IRModule, Let, Var, const, var
from ixion.transform import (
    CanonicalizeOps,
    DeadCodeElimination,
    EliminateCommonSubexpr,
    FoldConstant,
    FoldScaleAxis,
    FuseOps,
    InferType,
    PassContext,
    SimplifyExpr,
    SimplifyInference,
    ToANormalForm,
    ToGraphNormalForm,
)

# Far beyond Python's recursion limit; the full depth takes longer.
DEPTHS = [3_000, pytest.param(100_000, marks=pytest.mark.slow)]
X = var("x", shape=(2,))


def step(index: int, value: Expr) -> Expr:
    """A call that no simplification removes."""
    if index % 3 == 0:
        return op.call("nn.relu", value)
    if index % 3 == 1:
        return op.call("add", value, X)
    return op.call("multiply", value, const(0.5))


@pytest.fixture(scope="module", params=DEPTHS)
def depth(request) -> int:
    return request.param


@pytest.fixture(scope="module")
def chain(depth) -> IRModule:
    value: Expr = X
    for index in range(depth):
        value = step(index, value)
    return InferType()(IRModule.from_expr(Function([X], value)))


@pytest.fixture(scope="module")
def lets(depth) -> IRModule:
    bindings, value = [], X
    for index in range(depth):
        bindings.append((Var(f"v{index}"), step(index, value)))
        # Every seventh binding is dead.
        value = value if index % 7 == 6 else bindings[-1][0]
    body: Expr = value
    for name, bound in reversed(bindings):
        body = Let(name, bound, body)
    return InferType()(IRModule.from_expr(Function([X], body)))


PASSES = [
    SimplifyInference(),
    FoldConstant(),
    FoldScaleAxis(),
    EliminateCommonSubexpr(),
    SimplifyExpr(),
    CanonicalizeOps(),
    DeadCodeElimination(inline_once=True),
    ToGraphNormalForm(),
    ToANormalForm(),
    FuseOps(),
]


@pytest.mark.parametrize("transform", PASSES, ids=lambda each: each.info.name)
@pytest.mark.parametrize("program", ["chain", "lets"])
def test_pass(transform, program, request):
    mod = request.getfixturevalue(program)
    with PassContext(opt_level=3):
        result = InferType()(transform(mod))
    check_typed(result)
    check_well_formed(result)


def test_fold_of_a_deep_chain(chain):
    with PassContext(opt_level=3):
        assert FoldConstant()(chain) is chain


def test_dead_lets(lets, depth):
    result = DeadCodeElimination()(lets)
    count, body = 0, result["main"].body
    while isinstance(body, Let):
        count, body = count + 1, body.body
    assert count == depth - depth // 7


def test_evaluation(chain, lets):
    data = np.ones(2, "float32")
    for mod in (chain, lets):
        assert np.isfinite(evaluate(mod, [data])).all()
