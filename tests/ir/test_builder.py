"""ScopeBuilder."""

from __future__ import annotations

import pytest

from ixion import ir
from ixion.ir import If, Let, ScopeBuilder, const, var


def test_lets_nest_in_order() -> None:
    sb = ScopeBuilder()
    a = sb.let("a", const(1))
    b = sb.let(("b", ir.scalar_type("int32")), a)
    c = sb.let(var("c"), b)
    sb.ret(c)
    made = sb.get()
    assert [let.var for let in ir.let_chain(made)[0]] == [a, b, c]
    assert b.type_annotation == ir.scalar_type("int32")
    with pytest.raises(ValueError, match="as"):
        sb.let(("a", None, 3), a)


def test_branches() -> None:
    sb, cond = ScopeBuilder(), var("cond", "bool")
    with sb.if_scope(cond):
        inner = sb.let("t", const(1))
        sb.ret(inner)
    with sb.else_scope():
        sb.ret(const(2))
    made = sb.get()
    assert isinstance(made, If)
    assert isinstance(made.true_branch, Let)
    assert made.false_branch.data == 2


def test_misuse() -> None:
    sb = ScopeBuilder()
    with pytest.raises(RuntimeError, match="ret is not called"):
        sb.get()
    with pytest.raises(RuntimeError, match="must follow"), sb.else_scope():
        sb.ret(const(1))
    sb.ret(const(1))
    with pytest.raises(RuntimeError, match="already set"):
        sb.ret(const(2))
    with pytest.raises(RuntimeError, match="returned before"), sb.if_scope(var("c")):
        sb.ret(const(2))
    half = ScopeBuilder()
    with half.if_scope(var("c")):
        with pytest.raises(RuntimeError, match="outermost"):
            half.get()
        half.ret(const(2))
    with pytest.raises(RuntimeError, match="followed by an else"):
        half.get()


def test_an_error_inside_a_block_is_the_one_that_is_raised() -> None:
    sb = ScopeBuilder()
    with pytest.raises(KeyError), sb.if_scope(var("c")):
        raise KeyError("mine")
    sb.ret(const(1))
    assert sb.get().data == 1


def test_type_of() -> None:
    sb = ScopeBuilder()
    x = var("x", "int8")
    assert sb.type_of(x) == ir.scalar_type("int8")
    hole = sb.type_of(const(1))
    assert isinstance(hole, ir.IncompleteType)
    sb.ret(x)
    assert sb.get().var.type_annotation is hole
