from __future__ import annotations

from ixion.ir import Call
from ixion.transform import EliminateCommonSubexpr


def test_equal_calls_merge(check):
    check(
        EliminateCommonSubexpr(),
        """def @main(%x: Tensor[(2, 3), float32]) {
             %0 = sum(exp(%x), axis=[1]);
             %1 = sum(exp(%x), axis=[1]);
             %2 = sum(exp(%x), axis=[0]);
             (%0, %1, %2)
           }""",
        """def @main(%x: Tensor[(2, 3), float32]) {
             %0 = exp(%x);
             %1 = sum(%0, axis=[1]);
             (%1, %1, sum(%0, axis=[0]))
           }""",
    )


def test_scalar_constants_and_tuples_are_compared(check):
    check(
        EliminateCommonSubexpr(),
        """def @main(%x: Tensor[(2), float32]) {
             %0 = concatenate((%x, add(%x, 1f)));
             %1 = concatenate((%x, add(%x, 1f)));
             add(%0, %1)
           }""",
        """def @main(%x: Tensor[(2), float32]) {
             %0 = concatenate((%x, add(%x, 1f)));
             add(%0, %0)
           }""",
    )


def test_fields_of_one_tuple_merge(check):
    check(
        EliminateCommonSubexpr(),
        """def @main(%x: Tensor[(4), float32]) {
             %0 = split(%x, indices_or_sections=2);
             add(add(%0.0, %0.1), %0.0)
           }""",
        """def @main(%x: Tensor[(4), float32]) {
             %0 = split(%x, indices_or_sections=2);
             %1 = %0.0;
             add(add(%1, %0.1), %1)
           }""",
    )


def test_different_stay(check):
    text = """def @main(%x: Tensor[(2), float32]) {
      (add(%x, 1f), add(%x, 2f), zeros(shape=[2], dtype="float32"),
       zeros(shape=[2], dtype="float32"), clip(%x, a_min=0f, a_max=1f),
       clip(%x, a_min=0f, a_max=2f))
    }"""
    check(EliminateCommonSubexpr(), text, text)


def test_skip(check):
    def skip(expr):
        return isinstance(expr, Call) and expr.op.name == "add"

    check(
        EliminateCommonSubexpr(fskip=skip),
        "def @main(%x: float32) { (add(exp(%x), %x), add(exp(%x), %x)) }",
        "def @main(%x: float32) { %0 = exp(%x); (add(%0, %x), add(%0, %x)) }",
    )
