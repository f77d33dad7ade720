from __future__ import annotations

import numpy as np

from ixion import op
from ixion.ir import (
    Constant,
    Function,
    IRModule,
    Let,
    Tuple,
    TupleGetItem,
    Var,
    assert_structural_equal,
    const,
    var,
)
from ixion.transform import FoldConstant, InferType, fold_constant_expr


def test_arithmetic_on_constants(check):
    check(
        FoldConstant(),
        "def @main(%x: Tensor[(2), float32]) { add(%x, multiply(add(1f, 2f), 4f)) }",
        "def @main(%x: Tensor[(2), float32]) { add(%x, 12f) }",
    )


def test_let_bound_constants_are_put_in_place(check):
    check(
        FoldConstant(),
        """def @main(%x: float32) {
             let %a = add(1f, 2f);
             let %b = add(%x, %a);
             let %c = multiply(%a, %a);
             add(%b, %c)
           }""",
        "def @main(%x: float32) { let %b = add(%x, 3f); add(%b, 9f) }",
    )


def test_known_branch(check):
    check(
        FoldConstant(),
        "def @main(%x: float32) { if (less(1f, 2f)) { exp(%x) } else { log(%x) } }",
        "def @main(%x: float32) { exp(%x) }",
    )


def test_field_of_a_known_tuple(check):
    check(
        FoldConstant(),
        "def @main(%x: float32) { %0 = (%x, exp(%x)); %0.1 }",
        "def @main(%x: float32) { exp(%x) }",
    )


def test_shape_of_a_static_tensor():
    x = var("x", shape=(2, 3))
    mod = InferType()(IRModule.from_expr(Function([x], op.call("shape_of", x, dtype="int64"))))
    folded = FoldConstant()(mod)["main"].body
    assert isinstance(folded, Constant)
    assert folded.data.tolist() == [2, 3]
    assert folded.data.dtype == np.int64


def test_left_alone(check):
    text = 'def @main() { zeros(shape=[3], dtype="float32") }'
    check(FoldConstant(), text, text)
    text = """def @main(%x: float32) {
      %0 = fn (%y: float32, Primitive=1) -> float32 { add(%y, add(1f, 2f)) };
      %0(%x)
    }"""
    check(FoldConstant(), text, text)
    text = "def @main(%x: float32) { let %f = fn (%y: float32) { add(%y, %x) }; %f(add(%x, %x)) }"
    check(FoldConstant(), text, text)


def test_inside_closures(check):
    check(
        FoldConstant(),
        "def @main(%x: float32) { let %f = fn (%y: float32) { add(%y, add(1f, 1f)) }; %f(%x) }",
        "def @main(%x: float32) { let %f = fn (%y: float32) { add(%y, 2f) }; %f(%x) }",
    )


def test_results_that_are_tuples():
    data = np.arange(6, dtype="float32").reshape(2, 3)
    parts = op.call("split", const(data), indices_or_sections=3, axis=1)
    folded = fold_constant_expr(parts)
    assert isinstance(folded, Tuple)
    assert [field.data.tolist() for field in folded.fields] == [[[0], [3]], [[1], [4]], [[2], [5]]]
    last = fold_constant_expr(TupleGetItem(parts, 2))
    assert last.data.tolist() == [[2], [5]]


def test_arguments_that_are_tuples():
    joined = op.call("concatenate", Tuple([const([1.0]), const([2.0])]), axis=0)
    assert fold_constant_expr(joined).data.tolist() == [1.0, 2.0]


def test_a_weight_that_is_only_reshaped_is_not_copied():
    weight = np.ones((64, 64), "float32")
    folded = fold_constant_expr(op.call("reshape", const(weight), newshape=(4096,)))
    assert np.shares_memory(folded.data, weight)


def test_float32_arithmetic_is_rounded_once():
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=1000).astype("float32") for _ in range(2))
    for name in ("add", "subtract", "multiply", "divide"):
        folded = fold_constant_expr(op.call(name, const(a), const(b))).data
        wide = getattr(np, name)(a.astype("float64"), b.astype("float64"))
        assert folded.dtype == np.float32
        assert np.array_equal(folded, wide.astype("float32"))


def test_untyped_programs_and_shared_let_values():
    x, shared = var("x", shape=(1,)), const(1.0) + const(2.0)
    first, second = Var("a"), Var("b")
    program = Let(first, shared, Let(second, shared, (x + first) + second))
    assert_structural_equal(
        fold_constant_expr(program), (x + const(3.0)) + const(3.0), map_free_vars=True
    )
