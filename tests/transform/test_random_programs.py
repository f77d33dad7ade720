"""Random programs keep their value under every pass."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion import op
from ixion.analysis import check_typed, check_well_formed, evaluate
from ixion.ir import Expr, Function, If, IRModule, Let, Tuple, TupleGetItem, Var, const, var
from ixion.transform import (
    CanonicalizeOps,
    DeadCodeElimination,
    DefuseOps,
    EliminateCommonSubexpr,
    FoldConstant,
    FoldExplicitPadding,
    FoldScaleAxis,
    FuseOps,
    InferType,
    PassContext,
    Sequential,
    SimplifyExpr,
    SimplifyInference,
    ToANormalForm,
    ToBasicBlockNormalForm,
    ToGraphNormalForm,
)
from ixion.transform.verify import difference, random_inputs

SHAPE = (1, 2, 3, 3)
UNARY = ("nn.relu", "tanh", "sigmoid", "negative", "abs", "copy")
BINARY = ("add", "subtract", "multiply", "maximum")


class Builder:
    """Draws a program whose values all have one shape."""

    def __init__(self, draw) -> None:
        self.draw = draw
        self.x = var("x", shape=SHAPE)
        self.flag = var("flag", "bool")
        self.values: list[Expr] = [self.x, const(self.data(*SHAPE))]
        self.bindings: list[tuple[Var, Expr]] = []
        self.names = 0

    def data(self, *shape: int) -> np.ndarray:
        seed = self.draw(st.integers(0, 5))
        return np.random.default_rng(seed).normal(size=shape).astype("float32")

    def pick(self) -> Expr:
        return self.draw(st.sampled_from(self.values[-6:]))

    def scalar(self) -> Expr:
        kind = self.draw(st.sampled_from(["scalar", "channel"]))
        if kind == "scalar":
            return const(float(self.draw(st.sampled_from([0.0, 1.0, 2.0, -0.5]))))
        return const(self.data(2, 1, 1))

    def unary(self) -> Expr:
        return op.call(self.draw(st.sampled_from(UNARY)), self.pick())

    def binary(self) -> Expr:
        return op.call(self.draw(st.sampled_from(BINARY)), self.pick(), self.pick())

    def with_constant(self) -> Expr:
        args = [self.pick(), self.scalar()]
        if self.draw(st.booleans()):
            args.reverse()
        return op.call(self.draw(st.sampled_from(BINARY)), *args)

    def conv(self) -> Expr:
        groups = self.draw(st.sampled_from([1, 2]))
        weight = const(self.data(2, 2 // groups, 3, 3))
        attrs = {"channels": 2, "kernel_size": (3, 3), "groups": groups}
        if self.draw(st.booleans()):
            widths = ((0, 0), (0, 0), (1, 1), (1, 1))
            padded = op.call("nn.pad", self.pick(), const(0.0), pad_width=widths)
            return op.call("nn.conv2d", padded, weight, **attrs)
        return op.call("nn.conv2d", self.pick(), weight, padding=(1, 1, 1, 1), **attrs)

    def norm(self) -> Expr:
        params = [const(self.data(2)) for _ in range(3)]
        params.append(const(np.abs(self.data(2)) + np.float32(0.5)))
        return TupleGetItem(op.call("nn.batch_norm", self.pick(), *params), 0)

    def bias(self) -> Expr:
        return op.call("nn.bias_add", self.pick(), const(self.data(2)), axis=1)

    def moved(self) -> Expr:
        data = self.pick()
        if self.draw(st.booleans()):
            flat = op.call("reshape", data, newshape=(2, 9))
            return op.call("reshape", flat, newshape=SHAPE)
        turned = op.call("transpose", data, axes=(0, 2, 3, 1))
        return op.call("transpose", turned, axes=(0, 3, 1, 2))

    def pair(self) -> Expr:
        parts = Tuple([self.pick(), self.pick()])
        if self.draw(st.booleans()):
            return TupleGetItem(parts, self.draw(st.integers(0, 1)))
        joined = op.call("concatenate", parts, axis=1)
        halves = op.call("split", joined, indices_or_sections=2, axis=1)
        return TupleGetItem(halves, self.draw(st.integers(0, 1)))

    def choice(self) -> Expr:
        known = self.draw(st.booleans())
        return If(const(True) if known else self.flag, self.pick(), self.pick())

    def function(self) -> Expr:
        self.names += 1
        y = var(f"y{self.names}", shape=SHAPE)
        callee = Function([y], op.call("add", op.call("tanh", y), self.pick()))
        if self.draw(st.booleans()):
            return callee(self.pick())
        name = Var(f"f{self.names}")
        self.bindings.append((name, callee))
        return op.call("add", name(self.pick()), name(self.pick()))

    def program(self) -> IRModule:
        kinds = [
            *(self.unary, self.binary, self.with_constant, self.with_constant, self.conv),
            *(self.norm, self.bias, self.moved, self.pair, self.choice, self.function),
        ]
        for _ in range(self.draw(st.integers(1, 10))):
            value = self.draw(st.sampled_from(kinds))()
            if self.draw(st.booleans()):
                self.names += 1
                name = Var(f"v{self.names}")
                self.bindings.append((name, value))
                value = name
            self.values.append(value)
        body: Expr = Tuple([self.pick(), self.values[-1]])
        for name, value in reversed(self.bindings):
            body = Let(name, value, body)
        return IRModule.from_expr(Function([self.x, self.flag], body))


@st.composite
def programs(draw) -> IRModule:
    return Builder(draw).program()


PIPELINE = Sequential(
    [
        *(SimplifyInference(), FoldConstant(), FoldExplicitPadding(), FoldScaleAxis()),
        *(CanonicalizeOps(), FoldConstant(), SimplifyExpr(), EliminateCommonSubexpr()),
        *(DeadCodeElimination(), FuseOps()),
    ],
    name="pipeline",
)
PASSES = [
    *(SimplifyInference(), FoldConstant(), FoldScaleAxis(), FoldExplicitPadding()),
    *(EliminateCommonSubexpr(), DeadCodeElimination(), DeadCodeElimination(inline_once=True)),
    *(SimplifyExpr(), CanonicalizeOps(), FuseOps(), ToANormalForm(), ToBasicBlockNormalForm()),
    *(ToGraphNormalForm(), Sequential([FuseOps(), DefuseOps()], name="refused"), PIPELINE),
]


@pytest.mark.parametrize("transform", PASSES, ids=lambda each: each.info.name)
@given(mod=programs())
def test_value_is_kept(transform, mod):
    mod = InferType()(mod)
    check_well_formed(mod)
    inputs = random_inputs(mod["main"])
    expected = evaluate(mod, inputs)
    with PassContext(opt_level=3):
        result = InferType()(transform(mod))
    check_well_formed(result)
    check_typed(result)
    assert difference(evaluate(result, inputs), expected) <= 1
