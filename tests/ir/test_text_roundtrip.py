"""Random programs: what is printed reads back as the same program."""

import random

import numpy as np
import pytest

import ixion.op
from ixion import ir
from ixion.base.dim import Any
from ixion.ir.parser import parse
from ixion.ir.printer import MetaTable

NAMES = ("x", "y", "x1", "a/b", "1", "", "in.put:0", "let")


class Maker:
    """Makes a random expression over the variables in scope; sharing is likely."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.made = []

    def kind(self, depth=2):
        pick = self.random.randrange(6 if depth else 2)
        if pick < 3:
            shape = [self.random.choice((1, 2, Any())) for _ in range(self.random.randrange(3))]
            return ir.TensorType(shape, self.random.choice(("float32", "int8", "bool")))
        if pick == 3:
            return ir.TupleType([self.kind(depth - 1) for _ in range(self.random.randrange(3))])
        if pick == 4:
            return ir.FuncType([self.kind(depth - 1)], self.kind(depth - 1))
        return ir.RefType(self.kind(depth - 1))

    def variable(self):
        annotation = self.kind() if self.random.random() < 0.5 else None
        return ir.Var(self.random.choice(NAMES), annotation)

    def leaf(self, scope):
        pick = self.random.randrange(4)
        if scope and pick:
            return self.random.choice(scope)
        if pick == 1:
            return ir.const(np.array([self.random.random(), 2.0]))
        value = self.random.choice((1, -3, 2.5, 1e-7, 3.14159274, True))
        return ir.const(value, "float64" if self.random.random() < 0.3 else None)

    def expr(self, depth, scope):
        if depth == 0:
            return self.leaf(scope)
        sharable = [e for level, owner, e in self.made if level <= depth and owner == len(scope)]
        if sharable and self.random.random() < 0.3:
            return self.random.choice(sharable)
        result = self.compound(depth - 1, scope)
        self.made.append((depth, len(scope), result))
        return result

    def compound(self, depth, scope):
        inner = [self.expr(depth, scope) for _ in range(self.random.randrange(1, 3))]
        pick = self.random.randrange(9)
        if pick <= 2:
            return ixion.op.call(self.random.choice(("add", "multiply")), inner[0], inner[-1])
        if pick == 3:
            return ixion.op.call("nn.softmax", inner[0], axis=self.random.choice((-1, 0, 1)))
        if pick == 4:
            return ir.TupleGetItem(ir.Tuple(inner), 0)
        if pick == 5:
            v = self.variable()
            return ir.Let(v, inner[0], self.scoped(depth, [*scope, v]))
        if pick == 6:
            return ir.If(inner[0], self.scoped(depth, scope), self.scoped(depth, scope))
        if pick == 7:
            v = self.variable()
            return ir.Call(ir.Function([v], self.scoped(depth, [*scope, v])), inner[:1])
        return ir.RefRead(ir.RefCreate(inner[0]))

    def scoped(self, depth, scope):
        """An expression that shares nothing with what is outside its scope."""
        outer, self.made = self.made, []
        result = self.expr(depth, scope)
        self.made = outer
        return result


def program(seed):
    maker = Maker(seed)
    params = [maker.variable() for _ in range(2)]
    body = maker.expr(5, params)
    return ir.IRModule({"main": ir.Function(params, body, attrs={"seed": seed})})


@pytest.mark.parametrize("seed", range(60))
def test_round_trip(seed):
    module = program(seed)
    text = ir.astext(module)
    back = parse(text)
    ir.assert_structural_equal(back, module)
    table = MetaTable()
    ir.assert_structural_equal(
        parse(ir.astext(module, constants=table), init_meta_table=table), module
    )
    plain = ir.astext(module, annotate=lambda expr: "")
    assert ir.astext(parse(plain), annotate=lambda expr: "") == plain
