from __future__ import annotations

import numpy as np

from ixion.analysis import check_basic_block_normal_form, check_well_formed, evaluate
from ixion.ir import Function, IRModule, Let, Var, assert_structural_equal, const, var
from ixion.transform import (
    InferType,
    ToANormalForm,
    ToBasicBlockNormalForm,
    ToGraphNormalForm,
    a_normal_form,
)


def test_every_operand_is_bound(check):
    check(
        ToANormalForm(),
        "def @main(%x: float32) { add(exp(%x), multiply(%x, 2f)) }",
        """def @main(%x: float32) {
             let %a = exp(%x);
             let %b = 2f;
             let %c = multiply(%x, %b);
             let %d = add(%a, %c);
             %d
           }""",
    )


def test_what_branches_share_is_bound_before_them(check):
    check(
        ToANormalForm(),
        """def @main(%c: bool, %x: float32) {
             %0 = exp(%x);
             if (%c) { add(%0, %x) } else { log(%0) }
           }""",
        """def @main(%c: bool, %x: float32) {
             let %a = exp(%x);
             let %r = if (%c) { let %b = add(%a, %x); %b } else { let %d = log(%a); %d };
             %r
           }""",
    )


def test_what_one_branch_uses_stays_in_it(check):
    check(
        ToANormalForm(),
        "def @main(%c: bool, %x: float32) { if (%c) { exp(%x) } else { %x } }",
        """def @main(%c: bool, %x: float32) {
             let %r = if (%c) { let %a = exp(%x); %a } else { %x };
             %r
           }""",
    )


def test_lets_are_opened_and_keep_their_variables(check):
    check(
        ToANormalForm(),
        "def @main(%x: float32) { let %a = add(%x, %x); exp(multiply(%a, %a)) }",
        """def @main(%x: float32) {
             let %a = add(%x, %x);
             let %b = multiply(%a, %a);
             let %c = exp(%b);
             let %d = %c;
             %d
           }""",
    )


def test_a_let_inside_an_operand():
    x, a = var("x", shape=(2,)), Var("a")
    body = Let(a, x + x, a * a) + x
    mod = InferType()(IRModule.from_expr(Function([x], body)))
    result = ToANormalForm()(mod)
    check_well_formed(result)
    chain, values = result["main"].body, []
    while isinstance(chain, Let):
        values.append(chain.var.name_hint)
        chain = chain.body
    assert "a" in values


def test_recursive_closures(check):
    check(
        ToANormalForm(),
        """def @main(%x: float32) {
             let %f = fn (%n: float32) -> float32 {
               if (less(%n, 0f)) { %n } else { %f(subtract(%n, 1f)) }
             };
             %f(%x)
           }""",
        """def @main(%x: float32) {
             let %f = fn (%n: float32) -> float32 {
               let %a = 0f;
               let %b = less(%n, %a);
               let %r = if (%b) { %n } else {
                 let %c = 1f;
                 let %d = subtract(%n, %c);
                 let %e = %f(%d);
                 %e
               };
               %r
             };
             let %g = %f(%x);
             let %h = %g;
             %h
           }""",
    )


def test_primitive_functions_stay_whole(check):
    check(
        ToANormalForm(),
        """def @main(%x: float32) {
             %0 = fn (%y: float32, Primitive=1) -> float32 { exp(log(%y)) };
             %0(%x)
           }""",
        """def @main(%x: float32) {
             let %f = fn (%y: float32, Primitive=1) -> float32 { exp(log(%y)) };
             let %r = %f(%x);
             %r
           }""",
    )


def test_an_expression_alone():
    x = var("x", shape=(2,))
    result = a_normal_form((x + x) * x)
    assert isinstance(result, Let)
    assert isinstance(result.body, Let)


def test_basic_blocks_bind_only_what_scopes_share(check):
    found = check(
        ToBasicBlockNormalForm(),
        """def @main(%c: bool, %x: float32) {
             %0 = exp(log(%x));
             if (%c) { add(%0, %x) } else { multiply(%0, sqrt(%x)) }
           }""",
        """def @main(%c: bool, %x: float32) {
             let %a = exp(log(%x));
             if (%c) { add(%a, %x) } else { multiply(%a, sqrt(%x)) }
           }""",
    )
    assert check_basic_block_normal_form(found["main"])


def test_basic_blocks_already(module):
    mod = module("def @main(%c: bool, %x: float32) { if (%c) { exp(%x) } else { log(%x) } }")
    assert ToBasicBlockNormalForm()(mod) is mod


def test_graph_form_shares_values(check):
    check(
        ToGraphNormalForm(),
        """def @main(%x: float32) {
             let %a = exp(%x);
             let %b = add(%a, %a);
             multiply(%b, %a)
           }""",
        "def @main(%x: float32) { %0 = exp(%x); multiply(add(%0, %0), %0) }",
    )


def test_graph_form_opens_lets_inside_lets(check):
    check(
        ToGraphNormalForm(),
        """def @main(%x: float32) {
             let %a = (let %b = exp(%x); add(%b, %b));
             multiply(%a, %a)
           }""",
        """def @main(%x: float32) {
             %0 = exp(%x);
             %1 = add(%0, %0);
             multiply(%1, %1)
           }""",
    )


def test_graph_form_keeps_recursive_functions(module):
    mod = module(
        """def @main(%x: float32) {
             let %f = fn (%n: float32) -> float32 {
               if (less(%n, 0f)) { %n } else { %f(subtract(%n, 1f)) }
             };
             let %a = %f(%x);
             add(%a, %a)
           }"""
    )
    graph = ToGraphNormalForm()(mod)
    check_well_formed(graph)
    callee = graph["main"].body.args[0].op
    assert isinstance(callee, Let)
    assert callee.body is callee.var
    assert evaluate(graph, [np.float32(2.5)]) == -1.0


def test_round_trip_keeps_graph_and_value(module):
    mod = module(
        """def @main(%x: Tensor[(3), float32]) {
             %0 = exp(%x);
             %1 = add(%0, %x);
             (multiply(%1, %0), %1)
           }"""
    )
    back = ToGraphNormalForm()(InferType()(ToANormalForm()(mod)))
    assert_structural_equal(back, mod)
    value = const([1.0, 2.0, 3.0]).data
    for found, expected in zip(evaluate(back, [value]), evaluate(mod, [value]), strict=True):
        assert (found == expected).all()
