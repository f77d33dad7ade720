from __future__ import annotations

import pytest

from ixion.ir import (
    Function,
    IRModule,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    Var,
    assert_structural_equal,
    const,
    var,
)
from ixion.transform import DeadCodeElimination, InferType


def test_unused_bindings_go(check):
    check(
        DeadCodeElimination(),
        """def @main(%x: float32) {
             let %a = exp(%x);
             let %b = add(%a, %x);
             let %c = log(%b);
             %a
           }""",
        "def @main(%x: float32) { let %a = exp(%x); %a }",
    )


def test_a_function_that_only_calls_itself_goes(check):
    check(
        DeadCodeElimination(),
        """def @main(%x: float32) {
             let %f = fn (%n: float32) -> float32 {
               if (less(%n, 0f)) { %n } else { %f(subtract(%n, 1f)) }
             };
             %x
           }""",
        "def @main(%x: float32) { %x }",
    )


def test_inline_once(check):
    check(
        DeadCodeElimination(inline_once=True),
        """def @main(%x: float32) {
             let %a = exp(%x);
             let %b = add(%a, %x);
             let %c = log(%x);
             multiply(%b, add(%c, %c))
           }""",
        """def @main(%x: float32) {
             let %c = log(%x);
             multiply(add(exp(%x), %x), add(%c, %c))
           }""",
    )


def test_a_use_in_a_function_is_not_inlined(check):
    text = """def @main(%x: float32) {
      let %a = exp(%x);
      fn (%y: float32) -> float32 { add(%a, %y) }
    }"""
    check(DeadCodeElimination(inline_once=True), text, text)


def test_nothing_to_do_gives_the_module_back(module):
    mod = module("def @main(%x: float32) { exp(%x) }")
    assert DeadCodeElimination()(mod) is mod


def test_each_function_of_a_module(check):
    check(
        DeadCodeElimination(),
        """def @f(%x: float32) -> float32 { let %a = exp(%x); %x }
           def @main(%x: float32) { let %unused = @f(%x); @f(%x) }""",
        """def @f(%x: float32) -> float32 { %x }
           def @main(%x: float32) { @f(%x) }""",
    )


def writing_module() -> IRModule:
    x, cell, written, dead = var("x", "float32"), Var("cell"), Var("written"), Var("dead")
    body = Let(cell, RefCreate(x), Let(written, RefWrite(cell, x + x), RefRead(cell)))
    body = Let(dead, RefRead(RefCreate(x)), body)
    return InferType()(IRModule.from_expr(Function([x], body)))


def test_effects_stay():
    mod = writing_module()
    assert_structural_equal(DeadCodeElimination()(mod), mod)
    assert_structural_equal(DeadCodeElimination(inline_once=True)(mod), mod)


def test_impurity_can_be_ignored():
    result = DeadCodeElimination(ignore_impurity=True)(writing_module())
    assert "written" not in result.astext()
    assert "dead" not in result.astext()


@pytest.mark.parametrize("inline_once", [False, True])
def test_shared_expressions_around_lets(inline_once):
    x, a, b = var("x", shape=(2,)), Var("a"), Var("b")
    inner = Let(a, x + x, a * a)
    body = Let(b, const(1.0), Tuple([inner, inner]))
    mod = InferType()(IRModule.from_expr(Function([x], body)))
    result = DeadCodeElimination(inline_once=inline_once)(mod)
    assert result["main"].body.fields[0] is result["main"].body.fields[1]


def test_a_let_inside_a_shared_expression_stays():
    x, a = var("x", "float32"), Var("a")
    shared = Let(a, x + const(1.0), a + a)
    mod = InferType()(IRModule.from_expr(Function([x], shared * shared)))
    assert DeadCodeElimination()(mod) is mod
