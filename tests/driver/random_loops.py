"""Random programs of nested loops and branches, compiled and compared with the reference.

    python -m tests.driver.random_loops SEED COUNT [large]

runs in a process of its own, because wrong machine code may end it.  Prints the seed of the first
program that differs.  `large` tensors are shared between threads, however little there is to do.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import ixion
from ixion import op
from ixion.analysis import evaluate
from ixion.driver.executable import flattened
from ixion.ir import (
    Call,
    Expr,
    Function,
    If,
    IRModule,
    Let,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    const,
)
from ixion.kernel import injective, softmax
from ixion.runtime import table
from ixion.transform import InferType, why_left_alone

LARGE = sys.argv[3:] == ["large"]
SIZE = 170 if LARGE else 5
KINDS = {
    "int": TensorType((), "int32"),
    "long": TensorType((), "int64"),
    "flag": TensorType((), "bool"),
    "number": TensorType((), "float32"),
    "row": TensorType((SIZE,), "float32"),
    "table": TensorType((SIZE + 1, SIZE), "float32"),
    "picture": TensorType((1, 16, 4, 2 * SIZE), "float32"),
}
WEIGHTS = np.random.default_rng(7)
SQUARE = const(WEIGHTS.standard_normal((SIZE, SIZE)).astype(np.float32) / SIZE)
FILTER = const(WEIGHTS.standard_normal((16, 16, 3, 3)).astype(np.float32) * 0.1)
Scope = list[tuple[str, Expr]]


class Generator:
    """Writes expressions of a kind over the values in a scope."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.count = 0
        self.size = 0

    def program(self) -> IRModule:
        kinds = ["int", "row", *self.rng.choices(list(KINDS), k=3)]
        params = [self.var(kind) for kind in kinds]
        scope = list(zip(kinds, params, strict=True))
        results = [self.expr(self.rng.choice(list(KINDS)), scope, 3) for _ in range(2)]
        return InferType()(IRModule.from_expr(Function(params, Tuple(results))))

    def var(self, kind: str) -> Var:
        self.count += 1
        return Var(f"{kind}{self.count}", KINDS[kind])

    def known(self, kind: str, scope: Scope) -> Expr:
        found = [expr for each, expr in scope if each == kind]
        return self.rng.choice(found) if found else self.constant(kind)

    def constant(self, kind: str) -> Expr:
        shape, dtype = KINDS[kind].concrete_shape, KINDS[kind].dtype
        value = np.random.default_rng(self.rng.randrange(100)).standard_normal(shape)
        return const((value * 3).astype(dtype) if dtype != "bool" else np.asarray(value > 0))

    def expr(self, kind: str, scope: Scope, depth: int) -> Expr:
        """A value of a kind, which others may use too."""
        self.size += 1
        draw = self.rng.random()
        if depth == 0 or self.size > 80 or draw < 0.15:
            return self.known(kind, scope)
        if draw < 0.35:
            made: Expr = self.loop(kind, scope, depth - 1)
        elif draw < 0.5:
            sides = [self.expr(kind, list(scope), depth - 1) for _ in range(2)]
            made = If(self.expr("flag", scope, 1), *sides)
        elif draw < 0.55:
            value = self.expr(kind, scope, depth - 1)
            name = self.var(kind)
            # Not shared: its variable would leave its scope.
            return Let(name, value, self.expr(kind, [*scope, (kind, name)], depth - 1))
        else:
            made = getattr(self, f"{kind}_op")(scope, depth)
        scope.append((kind, made))
        return made

    def loop(self, kind: str, scope: Scope, depth: int) -> Expr:
        """A function that calls itself, and its first call."""
        kinds = [kind, *self.rng.choices(list(KINDS), k=self.rng.randint(0, 3))]
        counter = self.var(self.rng.choice(["int", "long"]))
        ckind = "int" if counter.type_annotation == KINDS["int"] else "long"
        states = [self.var(each) for each in kinds]
        inner = [*scope, *zip(kinds, states, strict=True), (ckind, counter)]
        name = Var(f"loop{self.count}")
        body = self.rounds(name, counter, ckind, kinds, states, inner, depth)
        result = TupleType([KINDS[each] for each in kinds])
        func = Function([counter, *states], body, result)
        start = [self.expr(each, scope, depth) for each in kinds]
        zero = const(np.asarray(self.rng.choice([0, 0, 1, -1]), KINDS[ckind].dtype))
        return TupleGetItem(Let(name, func, Call(name, [zero, *start])), 0)

    def rounds(
        self, name: Var, counter: Var, ckind: str, kinds: Sequence[str], states: Sequence[Var],
        scope: Scope, depth: int,
    ) -> Expr:  # fmt: skip
        one = const(np.asarray(self.rng.choice([1, 1, 2]), KINDS[ckind].dtype))
        most = op.call("floor_mod", self.known(ckind, scope[: -len(kinds) - 1]), const(
            np.asarray(5, KINDS[ckind].dtype)))  # fmt: skip
        test: Expr = op.call("less", counter, most)
        if self.rng.random() < 0.3:
            test = op.call("logical_and", test, self.expr("flag", scope, 1))
        inner = list(scope)
        new = [self.state(each, kinds, states, inner, depth) for each in kinds]
        go: Expr = Call(name, [op.call("add", counter, one), *new])
        if self.rng.random() < 0.3:
            early = Tuple([self.expr(each, inner, 1) for each in kinds])
            go = If(self.expr("flag", inner, 1), *self.shuffled(go, early))
        ending = Tuple([self.known(each, scope) for each in kinds])
        if self.rng.random() < 0.2:
            return If(op.call("logical_not", test), ending, go)
        return If(test, go, ending)

    def shuffled(self, *items: Expr) -> list[Expr]:
        return self.rng.sample(items, len(items))

    def state(
        self, kind: str, kinds: Sequence[str], states: Sequence[Var], scope: Scope, depth: int
    ) -> Expr:
        if self.rng.random() < 0.25:  # states change places
            return self.rng.choice([s for k, s in zip(kinds, states, strict=True) if k == kind])
        return self.expr(kind, scope, depth)

    # Operators, which keep values small.

    def int_op(self, scope: Scope, depth: int) -> Expr:
        name = self.rng.choice(["add", "subtract", "multiply"])
        a, b = (self.expr("int", scope, depth - 1) for _ in range(2))
        return op.call("floor_mod", op.call(name, a, b), const(np.int32(11)))

    def long_op(self, scope: Scope, depth: int) -> Expr:
        return op.call("cast", self.expr("int", scope, depth - 1), dtype="int64")

    def flag_op(self, scope: Scope, depth: int) -> Expr:
        if self.rng.random() < 0.3:
            total = op.call("sum", op.call("tanh", self.expr("row", scope, depth - 1)))
            return op.call("less", total, const(np.float32(self.rng.uniform(-2, 2))))
        pair = [self.expr("int", scope, depth - 1), const(np.int32(self.rng.randint(-3, 8)))]
        return op.call(self.rng.choice(["less", "equal", "greater_equal"]), *pair)

    def number_op(self, scope: Scope, depth: int) -> Expr:
        if self.rng.random() < 0.5:
            return op.call("mean", self.expr("row", scope, depth - 1))
        number = op.call("cast", self.expr("int", scope, depth - 1), dtype="float32")
        return op.call("tanh", op.call("add", number, self.expr("number", scope, depth - 1)))

    def row_op(self, scope: Scope, depth: int) -> Expr:
        draw = self.rng.randrange(5)
        x = self.expr("row", scope, depth - 1)
        if draw == 0:
            return op.call("sin", op.call("add", x, self.expr("row", scope, depth - 1)))
        if draw == 1:
            return op.call("multiply", op.call("tanh", x), self.expr("number", scope, depth - 1))
        if draw == 2:
            return op.call("nn.softmax", x, axis=0)
        if draw == 3:
            index = op.call("floor_mod", self.expr("int", scope, depth - 1), const(np.int32(6)))
            return op.call("take", self.expr("table", scope, depth - 1), index, axis=0)
        return op.call("reverse", x, axis=0)

    def table_op(self, scope: Scope, depth: int) -> Expr:
        draw = self.rng.randrange(4)
        x = self.expr("table", scope, depth - 1)
        if draw == 0:
            return op.call("nn.dense", op.call("tanh", x), SQUARE)
        if draw == 1:
            return op.call("sin", op.call("subtract", x, self.expr("row", scope, depth - 1)))
        if draw == 2:
            half = [op.call("strided_slice", x, begin=[0], end=[2], strides=[1]), self.rows(scope)]
            return op.call("concatenate", Tuple(self.shuffled(*half)), axis=0)
        return op.call("nn.softmax", x, axis=1)

    def rows(self, scope: Scope) -> Expr:
        made = op.call("tanh", self.known("table", scope))
        return op.call("strided_slice", made, begin=[1], end=[SIZE], strides=[1])

    def picture_op(self, scope: Scope, depth: int) -> Expr:
        x = self.expr("picture", scope, depth - 1)
        if self.rng.random() < 0.5:
            attrs: dict[str, Any] = {"channels": 16, "kernel_size": (3, 3), "padding": (1,) * 4}
            return op.call("tanh", op.call("nn.conv2d", x, FILTER, **attrs))
        return op.call("sigmoid", op.call("add", x, self.expr("picture", scope, depth - 1)))


def inputs(func: Function, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    made = []
    for param in func.params:
        kind = param.checked_type
        if kind.dtype == "bool":
            made.append(np.asarray(rng.random() < 0.5))
        elif kind.dtype.startswith("int"):
            made.append(np.asarray(rng.integers(-2, 9), kind.dtype))
        else:
            made.append(rng.standard_normal(kind.concrete_shape).astype(np.float32))
    return made


def differs(got: Any, want: Any) -> bool:
    if got.dtype != want.dtype or got.shape != want.shape:
        return True
    if got.dtype.kind != "f":
        return not np.array_equal(got, want)
    return not np.allclose(got, want, rtol=2e-3, atol=2e-3)


def check(seed: int) -> bool:
    mod = Generator(seed).program()
    reason = why_left_alone(mod)
    assert reason is None, f"seed {seed}: {reason}"
    func = mod["main"]
    for threads in (1, 2):
        exe = ixion.compile(mod, threads=threads)
        for number in range(4):
            values = inputs(func, 10 * seed + number)
            want = flattened(evaluate(func, values, mod))
            # Workers that were just busy are there from the first step on.
            for _ in range(20 if LARGE else 1):
                got = exe.run_flat(values)
                if any(differs(g, w) for g, w in zip(got, want, strict=True)):
                    print(f"seed {seed} differs with {threads} threads, inputs {number}")
                    return False
    return True


def main() -> int:
    start, count = int(sys.argv[1]), int(sys.argv[2])
    if LARGE:
        table.SHARE = table.WAKE = 1e-9
        injective.GRAIN = softmax.GRAIN = 64
    for seed in range(start, start + count):
        print("seed", seed, flush=True)
        if not check(seed):
            return 1
    print("all equal")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
