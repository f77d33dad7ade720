"""Expressions and their helpers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ixion import ir
from ixion.base.dim import SymVar


def test_var() -> None:
    made = ir.var("x", shape=(2, SymVar("n")), dtype="int8")
    assert made.name_hint == "x"
    assert made.type_annotation == ir.TensorType((2, SymVar("n")), "int8")
    assert ir.var("b", "bool").type_annotation == ir.scalar_type("bool")
    assert ir.var("y").type_annotation is None
    with pytest.raises(ValueError, match="only specify either"):
        ir.var("x", ir.scalar_type("int8"), shape=())
    twin = ir.Var(made.vid)
    assert twin.vid is made.vid


@pytest.mark.parametrize(
    ("value", "dtype", "name"),
    [
        (1, None, "int32"),
        (1.5, None, "float32"),
        (True, None, "bool"),
        ([1, 2], None, "int32"),
        (np.float64(2), None, "float32"),
        (np.float16(2), None, "float16"),
        (np.int64(2), None, "int64"),
        (np.zeros(2, "uint8"), None, "uint8"),
        (1, "float16", "float16"),
        (1.5, "bfloat16", "bfloat16"),
    ],
)
def test_const(value: object, dtype: str | None, name: str) -> None:
    assert ir.const(value, dtype).data.dtype.name == name


def test_constants_are_read_only_and_not_copied() -> None:
    data = np.arange(6, dtype="float32")
    made = ir.const(data)
    assert np.shares_memory(made.data, data)
    assert data.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        made.data[0] = 1
    assert ir.Constant(np.arange(3, dtype=">i4")).data.dtype.isnative
    assert ir.Constant(np.ones(2, ml_dtypes.bfloat16)).data.dtype == ml_dtypes.bfloat16
    with pytest.raises(ValueError, match=r"constant|array"):
        ir.const("text")
    with pytest.raises(ValueError, match="constant"):
        ir.Constant(np.array([None]))


def test_arithmetic_needs_expressions() -> None:
    x, y = ir.var("x"), ir.var("y")
    made = x + y
    assert made.op.name == "add"
    assert made.args == (x, y)
    names = [(x - y), (x * y), (x / y), (x < y), (x > y), (x <= y), (x >= y), -x]
    expected = "subtract multiply divide less greater less_equal greater_equal negative".split()
    assert [call.op.name for call in names] == expected
    with pytest.raises(TypeError, match="`const` first"):
        x + 1
    with pytest.raises(TypeError, match="`const` first"):
        2 * x
    with pytest.raises(TypeError, match="not supported"):
        x - "y"
    assert (x == y) is False


def test_astype() -> None:
    made = ir.var("x").astype("int8")
    assert made.op.name == "cast"
    assert made.attrs.dtype == "int8"
    with pytest.raises(TypeError):
        ir.Tuple([]).astype("int8")
    with pytest.raises(TypeError):
        ir.TupleWrapper(ir.var("x"), 2).astype("int8")


def test_calls() -> None:
    f, x = ir.var("f"), ir.var("x")
    assert f(x).args == (x,)
    assert ir.GlobalVar("g")(x, x).args == (x, x)
    with pytest.raises(TypeError):
        ir.Call(f, None)


def test_tuples() -> None:
    x, y = ir.var("x"), ir.var("y")
    made = ir.Tuple([x, y])
    assert len(made) == 2
    assert list(made) == [x, y]
    assert made[-1] is y
    assert bool(ir.Tuple([]))


def test_tuple_wrappers() -> None:
    pair = ir.TupleWrapper(ir.var("t"), 2)
    first, second = pair
    assert (first.index, second.index) == (0, 1)
    assert pair[-1].index == 1
    assert len(pair) == 2
    with pytest.raises(IndexError):
        pair[2]
    assert pair.astuple() is pair.tuple_value
    # Where an expression is wanted the tuple itself is taken.
    assert ir.Function([], pair).body is pair.tuple_value
    assert ir.Call(ir.var("f"), [pair]).args == (pair.tuple_value,)


def test_functions() -> None:
    x = ir.var("x")
    made = ir.Function([x], x, attrs={"Primitive": 1})
    assert made.attrs["Primitive"] == 1
    assert made.with_attr("Primitive", 1).attrs["Primitive"] == 1
    more = made.with_attr({"Compiler": "x", "Inline": 2})
    assert more.get_attr("Compiler") == "x"
    assert more.without_attr("Compiler").without_attr("Inline").attrs.keys() == ["Primitive"]
    assert made.without_attr("absent") is made
    assert ir.Function([x], x).attrs is None
    assert made.without_attr("Primitive").attrs is None
    assert made.get_attr("absent", 7) == 7
    with pytest.raises(TypeError):
        ir.Function([x], x, attrs=3)


def test_adt() -> None:
    header, a = ir.GlobalTypeVar("List"), ir.TypeVar("a")
    cons = ir.Constructor("Cons", [a, header(a)], header)
    assert cons.tag == -1
    x, y = ir.var("x"), ir.var("y")
    assert cons(x, y).op is cons
    pattern = ir.PatternConstructor(cons, [ir.PatternVar(x), ir.PatternTuple([ir.PatternVar(y)])])
    assert ir.pattern_vars(pattern) == [x, y]
    assert ir.bound_vars(pattern) == [x, y]
    assert ir.Match(x, []).complete is True
    assert ir.TypeData(header, [a], [cons]).constructors == (cons,)


def test_temporary_expressions() -> None:
    class Late(ir.TempExpr):
        def realize(self) -> ir.Expr:
            return ir.const(1)

    late = Late()
    assert ir.structural_equal(late, late)
    assert not ir.structural_equal(late, Late())
    assert late.realize().data == 1
    with pytest.raises(TypeError):
        ir.TempExpr().realize()
