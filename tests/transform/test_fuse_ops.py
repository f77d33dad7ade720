from __future__ import annotations

import numpy as np

from ixion.ir import Function, IRModule, const, var
from ixion.transform import DefuseOps, FuseOps, InferType, PassContext, Sequential


def test_elementwise_chain(check):
    check(
        FuseOps(),
        "def @main(%x: Tensor[(4), float32]) { exp(add(%x, 1f)) }",
        """def @main(%x: Tensor[(4), float32]) {
             %0 = fn (%p0: Tensor[(4), float32], Primitive=1) -> Tensor[(4), float32] {
               exp(add(%p0, 1f)) };
             %0(%x)
           }""",
    )


def test_level_zero_makes_a_function_of_each_call(check):
    check(
        FuseOps(fuse_opt_level=0),
        "def @main(%x: Tensor[(4), float32]) { exp(log(%x)) }",
        """def @main(%x: Tensor[(4), float32]) {
             %0 = fn (%p01: Tensor[(4), float32], Primitive=1) -> Tensor[(4), float32] {
               log(%p01) };
             %1 = %0(%x);
             %2 = fn (%p0: Tensor[(4), float32], Primitive=1) -> Tensor[(4), float32] {
               exp(%p0) };
             %2(%1)
           }""",
    )


def test_an_anchor_takes_what_follows_elementwise(check):
    check(
        FuseOps(),
        """def @main(%x: Tensor[(1, 3, 5, 5), float32], %w: Tensor[(4, 3, 3, 3), float32],
                     %b: Tensor[(4, 1, 1), float32]) {
             %0 = nn.conv2d(%x, %w, channels=4, kernel_size=[3, 3]);
             exp(nn.relu(add(%0, %b)))
           }""",
        """def @main(%x: Tensor[(1, 3, 5, 5), float32], %w: Tensor[(4, 3, 3, 3), float32],
                     %b: Tensor[(4, 1, 1), float32]) {
             %0 = fn (%p0: Tensor[(1, 3, 5, 5), float32], %p1: Tensor[(4, 3, 3, 3), float32],
                      %p2: Tensor[(4, 1, 1), float32], Primitive=1)
                      -> Tensor[(1, 4, 3, 3), float32] {
               %1 = nn.conv2d(%p0, %p1, channels=4, kernel_size=[3, 3]);
               exp(nn.relu(add(%1, %p2)))
             };
             %0(%x, %w, %b)
           }""",
    )


def test_a_diamond_joins_its_post_dominator(check):
    check(
        FuseOps(),
        """def @main(%x: Tensor[(4), float32]) {
             %0 = exp(%x);
             add(log(%0), sqrt(%0))
           }""",
        """def @main(%x: Tensor[(4), float32]) {
             %0 = fn (%p0: Tensor[(4), float32], Primitive=1) -> Tensor[(4), float32] {
               %1 = exp(%p0);
               add(log(%1), sqrt(%1))
             };
             %0(%x)
           }""",
    )


def test_reductions_end_a_group(check):
    check(
        FuseOps(),
        "def @main(%x: Tensor[(4, 4), float32]) { exp(sum(log(%x), axis=[1])) }",
        """def @main(%x: Tensor[(4, 4), float32]) {
             %0 = fn (%p01: Tensor[(4, 4), float32], Primitive=1) -> Tensor[(4), float32] {
               sum(log(%p01), axis=[1]) };
             %1 = %0(%x);
             %2 = fn (%p0: Tensor[(4), float32], Primitive=1) -> Tensor[(4), float32] {
               exp(%p0) };
             %2(%1)
           }""",
    )


def test_reshape_only_functions_say_so(check):
    check(
        FuseOps(),
        "def @main(%x: Tensor[(4, 4), float32]) { reshape(%x, newshape=[16]) }",
        """def @main(%x: Tensor[(4, 4), float32]) {
             %0 = fn (%p0: Tensor[(4, 4), float32], Primitive=1, relay.reshape_only=1)
                      -> Tensor[(16), float32] { reshape(%p0, newshape=[16]) };
             %0(%x)
           }""",
    )


def test_concatenation_takes_its_consumer_and_its_inputs(check):
    check(
        FuseOps(),
        """def @main(%x: Tensor[(4), float32]) {
             %0 = concatenate((exp(%x), log(%x)));
             add(%0, 1f)
           }""",
        """def @main(%x: Tensor[(4), float32]) {
             %0 = fn (%p0: Tensor[(4), float32], Primitive=1) -> Tensor[(8), float32] {
               %1 = concatenate((exp(%p0), log(%p0)));
               add(%1, 1f)
             };
             %0(%x)
           }""",
    )


def test_fields_of_a_tuple_result_are_not_fused_into_it(check):
    check(
        FuseOps(),
        "def @main(%x: Tensor[(4), float32]) { (exp(%x), log(%x)) }",
        """def @main(%x: Tensor[(4), float32]) {
             %0 = fn (%p0: Tensor[(4), float32], Primitive=1) -> Tensor[(4), float32] {
               exp(%p0) };
             %1 = fn (%p01: Tensor[(4), float32], Primitive=1) -> Tensor[(4), float32] {
               log(%p01) };
             (%0(%x), %1(%x))
           }""",
    )


def test_constants_become_parameters_unless_linked():
    x, weight = var("x", shape=(2,)), const(np.ones(2, "float32"))
    mod = InferType()(IRModule.from_expr(Function([x], x + weight)))
    call = FuseOps()(mod)["main"].body
    assert call.args == (x, weight)
    assert len(call.op.params) == 2
    with PassContext(config={"relay.FuseOps.link_params": True}):
        call = FuseOps(2)(mod)["main"].body
    assert call.args == (x,)
    assert call.op.body.args[1] is weight


def test_max_depth(check):
    check(
        FuseOps(),
        "def @main(%x: Tensor[(4), float32]) { exp(exp(exp(%x))) }",
        """def @main(%x: Tensor[(4), float32]) {
             %0 = fn (%p01: Tensor[(4), float32], Primitive=1) -> Tensor[(4), float32] {
               exp(exp(%p01)) };
             %1 = %0(%x);
             %2 = fn (%p0: Tensor[(4), float32], Primitive=1) -> Tensor[(4), float32] {
               exp(%p0) };
             %2(%1)
           }""",
        config={"relay.FuseOps.max_depth": 2},
    )


def test_scopes_and_closures(check):
    check(
        FuseOps(),
        """def @main(%x: Tensor[(4), float32], %c: bool) {
             let %f = fn (%y: Tensor[(4), float32]) { exp(log(%y)) };
             if (%c) { %f(%x) } else { add(%x, %x) }
           }""",
        """def @main(%x: Tensor[(4), float32], %c: bool) {
             let %f = fn (%y: Tensor[(4), float32]) -> Tensor[(4), float32] {
               %0 = fn (%p0: Tensor[(4), float32], Primitive=1) -> Tensor[(4), float32] {
                 exp(log(%p0)) };
               %0(%y)
             };
             if (%c) { %f(%x) } else {
               %1 = fn (%p01: Tensor[(4), float32], Primitive=1) -> Tensor[(4), float32] {
                 add(%p01, %p01) };
               %1(%x)
             }
           }""",
    )


def test_fusing_twice_changes_nothing(module):
    mod = FuseOps(2)(module("def @main(%x: Tensor[(4), float32]) { exp(log(%x)) }"))
    assert FuseOps(2)(mod) is mod


def test_defuse_is_the_inverse(check):
    text = """def @main(%x: Tensor[(1, 3, 5, 5), float32], %w: Tensor[(4, 3, 3, 3), float32]) {
      %0 = nn.relu(nn.conv2d(%x, %w, channels=4, kernel_size=[3, 3]));
      concatenate((%0, exp(%0)), axis=1)
    }"""
    check(Sequential([FuseOps(), DefuseOps()]), text, text)
