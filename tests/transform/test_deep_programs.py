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

# Python allows 1,000 nested calls; the slow programs have the full depth.
X = var("x", shape=(2,))


def step(index: int, value: Expr) -> Expr:
    """A call that no simplification removes."""
    if index % 3 == 0:
        return op.call("nn.relu", value)
    if index % 3 == 1:
        return op.call("add", value, X)
    return op.call("multiply", value, const(0.5))


def chain(depth: int) -> IRModule:
    value: Expr = X
    for index in range(depth):
        value = step(index, value)
    return InferType()(IRModule.from_expr(Function([X], value)))


def lets(depth: int) -> IRModule:
    bindings, value = [], X
    for index in range(depth):
        bindings.append((Var(f"v{index}"), step(index, value)))
        # Every seventh binding is dead.
        value = value if index % 7 == 6 else bindings[-1][0]
    body: Expr = value
    for name, bound in reversed(bindings):
        body = Let(name, bound, body)
    return InferType()(IRModule.from_expr(Function([X], body)))


PROGRAMS = [
    *((make, 3_000) for make in (chain, lets)),
    *(pytest.param((make, 100_000), marks=pytest.mark.slow) for make in (chain, lets)),
]


@pytest.fixture(scope="module", params=PROGRAMS, ids=["chain", "lets", "long chain", "many lets"])
def program(request) -> IRModule:
    make, depth = request.param
    return make(depth)


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
def test_pass(transform, program):
    with PassContext(opt_level=3):
        result = InferType()(transform(program))
    check_typed(result)
    check_well_formed(result)


def test_evaluation(program):
    assert np.isfinite(evaluate(program, [np.ones(2, "float32")])).all()


def test_dead_bindings():
    result = DeadCodeElimination()(lets(3_000))
    count, body = 0, result["main"].body
    while isinstance(body, Let):
        count, body = count + 1, body.body
    assert count == 3_000 - 3_000 // 7
