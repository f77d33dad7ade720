"""Class-based visitors."""

from __future__ import annotations

import contextvars
import sys
import threading

import pytest

from ixion import ir
from ixion.ir import (
    Call,
    Clause,
    ExprFunctor,
    ExprMutator,
    ExprVisitor,
    Function,
    If,
    Let,
    Match,
    PatternVar,
    Tuple,
    TupleGetItem,
    const,
    register_op,
    var,
)

ADD = register_op("add")


def _every_kind() -> list[ir.Expr]:
    x, y = var("x"), var("y")
    return [
        const(1.0),
        x,
        ir.GlobalVar("f"),
        ADD,
        Tuple([x]),
        TupleGetItem(Tuple([x]), 0),
        Call(ADD, [x, y]),
        Let(x, const(2.0), Call(ADD, [x, x])),
        If(x, x, y),
        Function([x, y], Call(ADD, [x, y])),
        ir.RefCreate(const(1.0)),
        ir.RefRead(ir.RefCreate(const(1.0))),
        ir.RefWrite(ir.RefCreate(const(1.0)), const(2.0)),
        ir.Constructor("C", [], ir.GlobalTypeVar("T")),
        Match(x, [Clause(PatternVar(y), y)], complete=False),
    ]


@pytest.mark.parametrize("expr", _every_kind(), ids=lambda e: type(e).__name__)
def test_every_kind(expr: ir.Expr) -> None:
    with pytest.raises(NotImplementedError, match="does not define visit_"):
        ExprFunctor().visit(expr)
    ExprVisitor().visit(expr)
    assert ExprMutator().visit(expr) is expr


def test_results_are_remembered() -> None:
    e: ir.Expr = const(1)
    for _ in range(100):
        e = Call(ADD, [e, e])
    calls = []

    class Count(ExprVisitor):
        def visit_call(self, call):
            calls.append(call)
            super().visit_call(call)

    Count().visit(e)
    assert len(calls) == 100


def test_mutator_keeps_flags_and_spans() -> None:
    x, y, span = var("x"), var("y"), ir.Span("s", 1)

    class Swap(ExprMutator):
        def visit_var(self, v):
            return y if v is x else v

    match = Swap().visit(Match(x, [Clause(PatternVar(y), y)], complete=False))
    assert match.complete is False
    assert match.data is y
    call = Swap().visit(Call(ADD, [x, x], span=span))
    assert call.span is span
    function = Swap().visit(Function([x], x).with_attr("k", 1))
    assert function.params == (y,)
    assert function.attrs["k"] == 1


def _deep(n: int, lets: bool) -> ir.Expr:
    x = var("x")
    e: ir.Expr = x
    for _ in range(n):
        e = Let(var("v"), x, e) if lets else Call(ADD, [e, x])
    return e


@pytest.mark.parametrize("lets", [False, True])
def test_any_depth_in_the_order_of_recursion(lets: bool) -> None:
    variable = contextvars.ContextVar("test", default=0)
    variable.set(7)
    depths = []

    class Depth(ExprMutator):
        level = 0

        def _enter(self, visit, expr):
            assert variable.get() == 7
            self.level += 1
            depths.append(self.level)
            made = visit(expr)
            self.level -= 1
            return made

        def visit_call(self, call):
            return self._enter(super().visit_call, call)

        def visit_let(self, let):
            return self._enter(super().visit_let, let)

    before, limit = threading.active_count(), sys.getrecursionlimit()
    e = _deep(20_000, lets)
    assert Depth().visit(e) is e
    # Outermost first: the methods themselves decide when they go down.
    assert depths == list(range(1, 20_001))
    assert threading.active_count() == before
    assert sys.getrecursionlimit() == limit


def test_errors_come_through_from_the_depth() -> None:
    class Fails(ExprVisitor):
        def visit_var(self, v):
            raise KeyError(v.name_hint)

    visitor = Fails()
    with pytest.raises(KeyError, match="x"):
        visitor.visit(_deep(5_000, lets=False))
    assert visitor._depth == 0


def test_type_functors() -> None:
    a = ir.TypeVar("a")
    t = ir.FuncType([ir.TupleType([a, ir.TensorType((2,))])], ir.RefType(a))

    class Names(ir.TypeVisitor):
        def __init__(self) -> None:
            self.found = []

        def visit_type_var(self, typ):
            self.found.append(typ.name_hint)

    names = Names()
    names.visit(t)
    assert names.found == ["a", "a"]
    assert ir.TypeMutator().visit(t) is t

    class Fill(ir.TypeMutator):
        def visit_type_var(self, typ):
            return ir.TensorType((3,))

    filled = Fill().visit(t)
    assert filled == ir.FuncType(
        [ir.TupleType([ir.TensorType((3,)), ir.TensorType((2,))])], ir.RefType(ir.TensorType((3,)))
    )
    with pytest.raises(NotImplementedError):
        ir.TypeFunctor().visit(t)
