"""Walks, rewrites, and questions about variables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion import ir
from ixion.ir import (
    Call,
    Clause,
    Constructor,
    Function,
    GlobalTypeVar,
    If,
    Let,
    Match,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    Tuple,
    TupleGetItem,
    const,
    register_op,
    var,
)

ADD, MUL = register_op("add"), register_op("multiply")


def keep(old: ir.Expr, new: ir.Expr) -> ir.Expr:
    return new


def test_post_order_is_relays() -> None:
    x, y = var("x"), var("y")
    call = Call(ADD, [x, y])
    let = Let(x, y, call)
    function = Function([y], let)
    assert ir.post_order(function) == [y, x, ADD, call, let, function]


def test_shared_nodes_are_met_once() -> None:
    e: ir.Expr = var("x")
    for _ in range(200):
        e = Call(ADD, [e, e])
    assert len(ir.post_order(e)) == 202


def test_children() -> None:
    x, c = var("x"), const(1)
    header = GlobalTypeVar("Box")
    box = Constructor("Box", [ir.TypeVar("a")], header)
    match = Match(x, [Clause(PatternConstructor(box, [PatternVar(var("y"))]), c)])
    assert ir.children(match) == (x, c)
    assert ir.children(If(x, c, x)) == (x, c, x)
    assert ir.children(ir.RefWrite(x, c)) == (x, c)
    assert ir.children(TupleGetItem(x, 0)) == (x,)
    for leaf in (x, c, ADD, box, ir.GlobalVar("g")):
        assert ir.children(leaf) == ()


def test_rewrite_returns_the_object_itself_where_nothing_changes() -> None:
    x, h = var("x"), var("h")
    header = GlobalTypeVar("Box")
    box = Constructor("Box", [ir.TypeVar("a")], header)
    body = Match(x, [Clause(PatternTuple([PatternVar(h)]), Let(var("y"), x, box(h)))])
    function = Function([x], If(x, body, ir.RefRead(ir.RefCreate(Tuple([TupleGetItem(x, 1)])))))
    assert ir.rewrite(function, keep) is function


def test_rewrite_replaces_below_and_keeps_the_rest() -> None:
    x, span = var("x"), ir.Span("s", 1)
    inner = Call(MUL, [x, x], None, None, span)
    same = Tuple([x])
    outer = Call(MUL, [inner, same], None, None, span)
    new = ir.rewrite(outer, lambda old, new: ADD if old is MUL else new)
    assert new.op is ADD
    assert new.args[0].op is ADD
    assert new.args[1] is same
    assert new.span is span
    assert outer.op is MUL


def test_rewrite_gets_old_and_new() -> None:
    x, y = var("x"), var("y")
    call = Call(ADD, [x, x])
    seen = {}

    def fn(old, new):
        seen[old] = new
        return y if new is x else new

    ir.rewrite(call, fn)
    assert seen[call] is not call
    assert seen[call].args == (y, y)


def test_binders_follow_variables_and_refuse_values() -> None:
    x, y, h = var("x"), var("y"), var("h")
    function = Function([x], Let(h, x, Tuple([h, x])))
    renamed = ir.rewrite(function, lambda old, new: y if new is x else new)
    assert renamed.params == (y,)
    assert renamed.body.value is y
    valued = ir.rewrite(function, lambda old, new: const(1) if new is h else new)
    assert valued.body.var is h
    match = Match(x, [Clause(PatternTuple([PatternVar(h)]), h)])
    moved = ir.rewrite(match, lambda old, new: y if new is h else new)
    assert ir.pattern_vars(moved.clauses[0].lhs) == [y]
    assert moved.clauses[0].rhs is y


def test_memo_fixes_results() -> None:
    x, y = var("x"), var("y")
    made = ir.rewrite(Tuple([x, x]), keep, memo={x: y})
    assert made.fields == (y, y)


def test_let_chain() -> None:
    x, y = var("x"), var("y")
    chain = Let(x, const(1), Let(y, const(2), Tuple([x, y])))
    lets, body = ir.let_chain(chain)
    assert [let.var for let in lets] == [x, y]
    assert isinstance(body, Tuple)


def test_free_bound_and_all_variables() -> None:
    x, y, z, h, p = (var(name) for name in "xyzhp")
    match = Match(z, [Clause(PatternTuple([PatternVar(h), PatternVar(p)]), h)])
    body = Function([x], Let(y, Call(ADD, [z, x]), Tuple([y, match])))
    assert ir.free_vars(body) == [z]
    assert ir.free_vars(Tuple([z, x, z])) == [z, x]
    assert set(ir.bound_vars(body)) == {x, y, h, p}
    assert set(ir.all_vars(body)) == {x, y, z, h, p}


def test_type_variables() -> None:
    a, b, c = ir.TypeVar("a"), ir.TypeVar("b"), ir.TypeVar("c")
    x = var("x", a)
    body = Call(ir.GlobalVar("g"), [x], None, [ir.TupleType([b])])
    assert ir.free_type_vars(body) == [a, b]
    function = Function([x], body, ir.FuncType([c], b, [c]), [a])
    assert ir.free_type_vars(function) == [b]
    assert ir.bound_type_vars(function) == [c, a]
    assert set(map(id, ir.all_type_vars(function))) == {id(a), id(b), id(c)}
    assert ir.free_type_vars(ir.FuncType([a, b], a, [a])) == [b]


def test_bind() -> None:
    x, y, z = var("x"), var("y"), var("z")
    assert ir.bind(Tuple([x, y]), {x: z}).fields == (z, y)
    function = Function([x, y], Tuple([x, y]))
    bound = ir.bind(function, {x: const(1)})
    assert bound.params == (y,)
    # What comes in free becomes a parameter.
    assert ir.bind(function, {x: z}).params == (y, z)
    assert ir.bind(function, {z: x}) is function
    with pytest.raises(ValueError, match="binds it"):
        ir.bind(Let(x, const(1), x), {x: y})
    assert ir.substitute(Tuple([x]), {}).fields == (x,)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 50), st.integers(0, 50)), max_size=40))
def test_rewrite_there_and_back(steps: list[tuple[int, int, int]]) -> None:
    made: list[ir.Expr] = [var("x"), const(2)]
    for kind, a, b in steps:
        p, q = made[a % len(made)], made[b % len(made)]
        op = (ADD, MUL)[kind % 2]
        made.append(Tuple([p, q]) if kind == 2 else Call(op, [p, q]))
    root = Tuple(made[-3:])
    swap = {ADD: MUL, MUL: ADD}
    swapped = ir.rewrite(root, lambda old, new: swap.get(new, new))
    back = ir.rewrite(swapped, lambda old, new: swap.get(new, new))
    ir.assert_structural_equal(back, root)
    assert len(ir.post_order(back)) <= len(ir.post_order(root)) + 1
