from __future__ import annotations

import weakref

import numpy as np
import pytest

from ixion import op
from ixion.analysis import Closure, ConstructorValue, RefValue, evaluate
from ixion.base.errors import InputError, UnsupportedOpError
from ixion.ir import (
    Call,
    Clause,
    Constructor,
    Function,
    GlobalTypeVar,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    RefCreate,
    RefRead,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    TypeData,
    TypeVar,
    Var,
    const,
    parse,
    register_op,
    scalar_type,
    var,
)
from ixion.transform import InferType, infer_expr

ONE, TWO = np.float32(1), np.float32(2)


def module(text: str) -> IRModule:
    return InferType()(parse('#[version = "0.0.5"]\n' + text))


def test_function_of_arrays():
    mod = module("def @main(%x: Tensor[(2), float32], %y: float32) { (add(%x, %y), %x) }")
    total, same = evaluate(mod, [np.array([1, 2], "float32"), TWO])
    assert total.tolist() == [3, 4]
    assert same.tolist() == [1, 2]
    by_name = evaluate(mod, {"y": ONE, "x": np.zeros(2, "float32")})
    assert by_name[0].tolist() == [1, 1]


def test_only_the_branch_taken_runs():
    mod = module("def @main(%c: bool, %x: int32) { if (%c) { %x } else { divide(%x, 0) } }")
    seen = []
    evaluate(mod, [np.True_, np.int32(3)], on_value=lambda expr, value: seen.append(expr))
    assert not any(isinstance(expr, Call) for expr in seen)


def test_shared_expressions_run_once():
    x = var("x", shape=(1,))
    shared = op.call("exp", x)
    body = infer_expr(Function([x], shared + shared))
    seen = []
    evaluate(body, [np.ones(1, "float32")], on_value=lambda expr, value: seen.append(expr))
    assert sum(expr is shared for expr in seen) == 1


def test_recursion_of_any_depth():
    mod = module(
        """def @main(%n: int32, %total: int32) -> int32 {
             if (equal(%n, 0)) { %total } else { @main(subtract(%n, 1), add(%total, %n)) }
           }"""
    )
    assert evaluate(mod, [np.int32(5000), np.int32(0)]) == 5000 * 5001 // 2


def test_closures_keep_their_variables():
    mod = module(
        """def @main(%x: float32) {
             let %add = fn (%a: float32) { fn (%b: float32) { add(%a, %b) } };
             let %one = %add(1f);
             let %two = %add(2f);
             multiply(%one(%x), %two(%x))
           }"""
    )
    assert evaluate(mod, [TWO]) == 12


def test_recursive_closure():
    mod = module(
        """def @main(%x: float32) {
             let %down = fn (%n: float32) -> float32 {
               if (less(%n, 0f)) { %n } else { %down(subtract(%n, 1f)) }
             };
             %down(%x)
           }"""
    )
    assert evaluate(mod, [np.float32(2.5)]) == -0.5


def test_a_function_is_a_value():
    x = var("x", "float32")
    func = infer_expr(Function([x], Function([], x)))
    assert isinstance(evaluate(func, [ONE]), Closure)
    assert evaluate(infer_expr(Call(func, [const(3.0)])())) == 3


def test_references():
    x, cell, done = var("x", "float32"), Var("cell"), Var("done")
    body = Let(cell, RefCreate(x), Let(done, RefWrite(cell, x + x), RefRead(cell)))
    assert evaluate(infer_expr(Function([x], body)), [TWO]) == 4
    value = evaluate(infer_expr(RefCreate(const(1.0))))
    assert isinstance(value, RefValue)


def test_data_types():
    mod, box, content = IRModule(), GlobalTypeVar("box"), TypeVar("t")
    full, empty = Constructor("Full", [content], box), Constructor("Empty", [], box)
    mod[box] = TypeData(box, [content], [full, empty])
    f32 = scalar_type("float32")
    x, v, w = var("x", box(f32)), Var("v"), Var("w")
    clauses = [
        Clause(PatternConstructor(full, [PatternVar(v)]), v + v),
        Clause(PatternWildcard(), const(0.0)),
    ]
    mod["main"] = Function([x], Match(x, clauses))
    pair = Tuple([const(1.0), const(2.0)])
    swap = Clause(PatternTuple([PatternVar(w), PatternWildcard()]), w)
    mod["pair"] = Function([], Match(pair, [swap]))
    mod = InferType()(mod)
    assert evaluate(mod, [ConstructorValue(full, (TWO,))]) == 4
    assert evaluate(mod, [ConstructorValue(empty, ())]) == 0
    assert evaluate(mod["pair"], [], mod) == 1


def test_a_partial_match_without_a_clause():
    mod, box = IRModule(), GlobalTypeVar("box")
    full, empty = Constructor("Full", [], box), Constructor("Empty", [], box)
    mod[box] = TypeData(box, [], [full, empty])
    x = var("x", box())
    match = Match(x, [Clause(PatternConstructor(full, []), const(1.0))], complete=False)
    mod["main"] = Function([x], match)
    with pytest.raises(InputError, match="no clause"):
        evaluate(InferType()(mod), [ConstructorValue(empty, ())])


def test_tuple_arguments_and_results():
    pair = TupleType([TensorType((2,)), TensorType((2,))])
    x = Var("x", pair)
    body = Tuple([op.call("concatenate", x, axis=0), TupleGetItem(x, 1)])
    joined, second = evaluate(
        infer_expr(Function([x], body)), [(np.zeros(2, "float32"), np.ones(2, "float32"))]
    )
    assert joined.tolist() == [0, 0, 1, 1]
    assert second.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "number of arguments"),
        ([np.zeros(3, "float32")], "wrong shape"),
        ([np.zeros(2, "float64")], "wrong dtype"),
        ({"y": np.zeros(2, "float32")}, "no value for parameter x"),
    ],
)
def test_wrong_arguments(args, message):
    mod = module("def @main(%x: Tensor[(2), float32]) { %x }")
    with pytest.raises(InputError, match=message):
        evaluate(mod, args)


def test_free_variable_and_missing_module():
    with pytest.raises(InputError, match="%x has no value"):
        evaluate(infer_expr(var("x", "float32")))
    with pytest.raises(InputError, match="needs a module"):
        evaluate(Call(GlobalVar("f"), []))


def test_an_operator_without_reference_is_named():
    register_op("test.no_reference").set_attr("FInfer", lambda args: args.types[0])
    with pytest.raises(UnsupportedOpError, match=r"test\.no_reference"):
        evaluate(infer_expr(op.call("test.no_reference", const(1.0))))


def test_condition_from_data():
    x = var("x", "int32")
    body = If(op.call("less", x, const(0)), op.call("negative", x), x)
    func = infer_expr(Function([x], body))
    assert [int(evaluate(func, [np.int32(v)])) for v in (-3, 4)] == [3, 4]


def test_values_are_forgotten_after_their_last_use():
    value, alive, most = var("x", shape=(2,)), [], 0
    x = value
    for _ in range(40):
        value = op.call("exp", op.call("negative", op.call("abs", value)))

    def count(expr, array):
        nonlocal most
        alive.append(weakref.ref(array))
        most = max(most, sum(ref() is not None for ref in alive))

    evaluate(infer_expr(Function([x], value + x)), [np.ones(2, "float32")], on_value=count)
    assert most <= 4
