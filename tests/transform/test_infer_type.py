from __future__ import annotations

import pytest

from ixion import op
from ixion.analysis import evaluate
from ixion.base.errors import TypeInferenceError
from ixion.ir import (
    Call,
    Clause,
    Constructor,
    Function,
    FuncType,
    GlobalTypeVar,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    PatternConstructor,
    PatternVar,
    PatternWildcard,
    RefCreate,
    RefRead,
    RefWrite,
    SymVar,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    TypeData,
    TypeVar,
    Var,
    const,
    parse,
    scalar_type,
    var,
)
from ixion.transform import InferType, expr_type, infer_expr

F32 = scalar_type("float32")
I32 = scalar_type("int32")


def identity() -> Function:
    a = TypeVar("a")
    x = Var("x", a)
    return Function([x], x, a, [a])


def box_module() -> tuple[IRModule, GlobalTypeVar, Constructor, Constructor]:
    mod = IRModule()
    box, content = GlobalTypeVar("box"), TypeVar("t")
    full, empty = Constructor("Full", [content], box), Constructor("Empty", [], box)
    mod[box] = TypeData(box, [content], [full, empty])
    return mod, box, full, empty


def test_dataflow_is_typed_in_place():
    x = var("x", shape=(10, 4))
    total = x + var("y", shape=(5, 10, 1))
    assert expr_type(total) == TensorType((5, 10, 4))
    assert total.checked_type == TensorType((5, 10, 4))
    assert [t.shape for t in total.type_args] == [(10, 4), (5, 10, 1)]


def test_a_weight_without_annotation_gets_its_type():
    x, weight = var("x", shape=(1, 3, 8, 8)), Var("w")
    conv = op.call("nn.conv2d", x, weight, channels=4, kernel_size=(3, 3))
    mod = InferType()(IRModule.from_expr(Function([x, weight], conv)))
    assert mod["main"].params[1].type_annotation == TensorType((4, 3, 3, 3))
    assert mod["main"].ret_type == TensorType((1, 4, 6, 6))
    assert weight.type_annotation is None


def test_inference_of_a_typed_module_changes_nothing():
    mod = InferType()(IRModule.from_expr(var("x", shape=(2,)) + const(1.0)))
    assert InferType()(mod) is mod


def test_only_what_is_new_is_visited():
    x = var("x", shape=(2, 2))
    inner = x + x
    expr_type(inner)
    kind = inner.checked_type
    outer = infer_expr(inner * x)
    assert outer.args[0] is inner
    assert inner.checked_type is kind


def test_recursive_global_without_result_type():
    f, n, data = GlobalVar("f"), var("n", I32), var("data", F32)
    body = If(op.call("equal", n, const(0)), data, f(n - const(1), op.call("log", data)))
    mod = IRModule({f: Function([n, data], body)})
    assert InferType()(mod)["f"].checked_type == FuncType([I32, F32], F32)


def test_mutual_recursion():
    f, g, n, m = GlobalVar("f"), GlobalVar("g"), var("n", I32), var("m", I32)
    even = If(op.call("equal", n, const(0)), const(True), g(n - const(1)))
    odd = If(op.call("equal", m, const(0)), const(False), f(m - const(1)))
    mod = InferType()(IRModule({f: Function([n], even), g: Function([m], odd)}))
    assert mod["f"].ret_type == mod["g"].ret_type == scalar_type("bool")


def test_a_global_called_before_it_is_defined():
    f, main, x, y = GlobalVar("f"), GlobalVar("main"), var("x", F32), var("y", F32)
    mod = IRModule({main: Function([x], f(x)), f: Function([y], Tuple([y, y]))})
    assert InferType()(mod)["main"].ret_type == TupleType([F32, F32])


def test_changing_a_global_retypes_its_callers():
    f, main, x = GlobalVar("f"), GlobalVar("main"), var("x", F32)
    y, z = var("y", F32), var("z", F32)
    body = TupleGetItem(Tuple([x, f(x)]), 0)
    mod = InferType()(IRModule({main: Function([x], body), f: Function([y], y)}))
    mod.update_func(f, Function([z], Tuple([z, z])))
    retyped = InferType()(mod)
    assert retyped["main"].body.tuple_value.fields[1].checked_type == TupleType([F32, F32])


def test_let_polymorphism():
    name = Var("id")
    uses = Tuple([name(const(1)), name(Tuple([]))])
    assert expr_type(Let(name, identity(), uses)) == TupleType([I32, TupleType([])])


def test_polymorphic_function_as_argument_and_result():
    b = TypeVar("b")
    f, y = Var("f", FuncType([b], b)), Var("y", b)
    apply = Function([f, y], f(y), b, [b])
    assert expr_type(apply(identity(), const(0))) == I32
    nested = Function([], identity(), FuncType([b], b), [b])
    assert expr_type(nested) == FuncType([], FuncType([b], b), [b])


def test_type_arguments_are_filled_in():
    f, main, x = GlobalVar("id"), GlobalVar("main"), var("x", F32)
    mod = InferType()(IRModule({f: identity(), main: Function([x], f(x))}))
    assert tuple(mod["main"].body.type_args) == (F32,)


def test_an_unknown_function_gets_its_type_from_its_use():
    x, f = var("x", I32), Var("f")
    found = infer_expr(Function([x, f], Call(f, [x]), I32))
    assert found.checked_type == FuncType([I32, FuncType([I32], I32)], I32)


def test_references():
    x, y = var("x", "float32"), var("y", "float32")
    cell = RefCreate(x)
    assert str(expr_type(cell)) == "ref(float32)"
    assert expr_type(RefRead(cell)) == F32
    assert expr_type(RefWrite(cell, y)) == TupleType([])


def test_match_binds_the_constructors_fields():
    mod, _, full, _ = box_module()
    x, v = Var("x"), Var("v", TensorType((2, 2)))
    match = Match(
        full(x),
        [
            Clause(PatternConstructor(full, [PatternVar(v)]), v),
            Clause(PatternWildcard(), x),
        ],
    )
    mod["main"] = Function([x], match)
    kind = TensorType((2, 2))
    assert InferType()(mod)["main"].checked_type == FuncType([kind], kind)


def test_a_match_that_must_be_total_is_not():
    mod, _, full, _ = box_module()
    x = var("x", "float32")
    clauses = [Clause(PatternConstructor(full, [PatternWildcard()]), x)]
    mod["main"] = Function([x], Match(full(x), clauses))
    with pytest.raises(TypeInferenceError, match="Empty"):
        InferType()(mod)
    mod["main"] = Function([x], Match(full(x), clauses, complete=False))
    assert InferType()(mod)["main"].ret_type == F32


def test_symbolic_shapes_and_values_of_shape_tensors():
    n = SymVar("n")
    x = Var("x", TensorType((n, 4), "float32"))
    total = op.call("multiply", op.call("shape_of", x, dtype="int64"), const([1, 1], "int64"))
    same = op.call("dyn.reshape", x, total, newshape=())
    assert expr_type(same) == TensorType((n, 4))


def test_the_value_of_a_shape_tensor_typed_earlier():
    x = Var("x", TensorType((SymVar("n"), 4), "float32"))
    shape = op.call("shape_of", x, dtype="int64")
    expr_type(shape)
    reshaped = op.call("dyn.reshape", x, shape, newshape=())
    assert expr_type(reshaped) == x.type_annotation


def test_mismatch_names_both_types_and_the_place():
    x, y = var("x", shape=(3, 4)), var("y", shape=(5, 4))
    with pytest.raises(TypeInferenceError) as error:
        expr_type(x + y)
    text = str(error.value)
    assert "add" in text
    assert "(3, 4)" in text
    assert "(5, 4)" in text


def test_mismatch_says_what_differs():
    wrong = Let(var("t", shape=(3,)), var("x", shape=(5,)), const(1))
    with pytest.raises(TypeInferenceError, match="sizes differ along axis 0"):
        expr_type(wrong)
    wrong = Let(var("t", shape=(3,)), var("x", shape=(3,), dtype="int8"), const(1))
    with pytest.raises(TypeInferenceError, match="cast"):
        expr_type(wrong)


def test_mismatch_inside_a_function_type():
    x, y = var("x", shape=(2, 1)), var("x", shape=(1, 1))
    taken = Var("f", FuncType([x.type_annotation], I32))
    wrong = Call(Function([taken], const(1)), [Function([y], const(1))])
    with pytest.raises(TypeInferenceError) as error:
        expr_type(wrong)
    assert error.value.message == (
        "The Relay type checker is unable to show the following types match:\n"
        "  Tensor[(2, 1), float32]\n  Tensor[(1, 1), float32]\n"
        "In particular:\n  dimension 0 conflicts: 2 does not match 1."
    )


@pytest.mark.parametrize("count", [0, 2])
def test_wrong_number_of_arguments(count):
    x = var("x", "float32")
    with pytest.raises(TypeInferenceError, match="arguments"):
        expr_type(Call(Function([x], x), [const(1.0)] * count))


def test_calling_what_is_no_function():
    with pytest.raises(TypeInferenceError, match="function types can be called"):
        expr_type(Call(const(1.0), [const(1.0)]))


def test_a_condition_must_be_bool():
    with pytest.raises(TypeInferenceError):
        expr_type(If(const(1), const(1), const(2)))


def test_branches_must_agree():
    with pytest.raises(TypeInferenceError, match="match"):
        expr_type(If(const(True), const(1), const(2.0)))


def test_a_variable_nothing_constrains():
    x = Var("x")
    with pytest.raises(TypeInferenceError, match="unable to infer"):
        InferType()(IRModule.from_expr(Function([x], x)))


def test_an_empty_list_is_a_list_of_anything():
    text = """#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil }
def @main() { let %x = Nil; (Cons(%x, Nil), 1) }
"""
    mod = InferType()(parse(text))
    found = mod["main"].ret_type
    assert str(found) == "(List[List[_]], int32)"
    assert evaluate(mod)[0].fields[0].constructor.name_hint == "Nil"


def test_a_type_cannot_contain_itself():
    f = Var("f")
    with pytest.raises(TypeInferenceError, match="contain itself"):
        expr_type(Function([f], Call(f, [f])))


def test_tuple_field_out_of_range():
    with pytest.raises(TypeInferenceError, match="field 2"):
        expr_type(TupleGetItem(Tuple([const(1), const(2)]), 2))
