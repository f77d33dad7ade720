"""Types compare by structure, variables by identity."""

from __future__ import annotations

import numpy as np
import pytest

from ixion import ir
from ixion.base.dim import Any, SymVar
from ixion.ir import TensorType, TupleType, TypeKind, TypeVar


def test_tensor_types() -> None:
    assert TensorType((1, 2), "float32") == TensorType([1, np.int64(2)])
    assert TensorType((1, 2)) != TensorType((2, 1))
    assert TensorType((1,), "float") == TensorType((1,), np.float32)
    assert TensorType((1,), "int8") != TensorType((1,), "uint8")
    assert hash(TensorType((1, 2))) == hash(TensorType((1, 2)))
    assert TensorType((1,)) != "Tensor"
    assert TensorType((3, 4)).concrete_shape == (3, 4)
    assert TensorType((3, 4)).ndim == 2
    with pytest.raises(ValueError, match="not concrete"):
        TensorType((Any(), 4)).concrete_shape  # noqa: B018
    with pytest.raises(TypeError):
        TensorType(("a",))


def test_dims_in_types() -> None:
    n = SymVar("n")
    assert TensorType((Any(),)) == TensorType((Any(),))
    assert TensorType((n + 1 - 1,)) == TensorType((n,))
    assert ir.structural_equal(TensorType((n + 1 - 1,)), TensorType((n,)))
    assert TensorType((n,)) != TensorType((Any(),))
    assert hash(TensorType((n * 2,))) == hash(TensorType((n + n,)))
    again = ir.load_json(ir.save_json(TensorType((n // 2, Any(), 2**40))))
    assert again == TensorType((n // 2, Any(), 2**40))


def test_is_dynamic() -> None:
    static, dynamic = TensorType((1,)), TensorType((Any(),))
    assert not ir.is_dynamic(TupleType([static]))
    assert ir.is_dynamic(TupleType([static, TupleType([dynamic])]))
    assert ir.is_dynamic(ir.FuncType([static], dynamic))
    assert ir.is_dynamic(ir.RefType(TensorType((SymVar("n"),))))


def test_variables_are_equal_to_themselves_only() -> None:
    a, b = TypeVar("a"), TypeVar("a")
    assert a == a
    assert a != b
    assert ir.IncompleteType() != ir.IncompleteType()
    assert ir.ShapeVar("s").kind is TypeKind.ShapeVar
    assert len({a, b, a}) == 2
    header = ir.GlobalTypeVar("L")
    assert header(a) == header(a)
    assert header(a) != header(b)


def test_function_types_bind_their_parameters() -> None:
    a, b, s = TypeVar("a"), TypeVar("b"), ir.ShapeVar("s")
    assert ir.FuncType([a], a, [a]) == ir.FuncType([b], b, [b])
    assert hash(ir.FuncType([a], a, [a])) == hash(ir.FuncType([b], b, [b]))
    assert ir.FuncType([a], a, [a]) != ir.FuncType([s], s, [s])
    assert ir.FuncType([a], a, [a]) != ir.FuncType([a], a)
    assert ir.FuncType([a, b], a, [a, b]) != ir.FuncType([a, b], b, [a, b])


def test_type_relations_compare_by_name_and_arguments() -> None:
    broadcast, identity = ir.EnvFunc.get("Broadcast"), ir.EnvFunc.get("Identity")
    args = [TensorType((1,)), TensorType((2,))]
    made = ir.TypeRelation(broadcast, args, 1, None)
    assert made == ir.TypeRelation(ir.EnvFunc.get("Broadcast"), args, 1, None)
    assert made != ir.TypeRelation(identity, args, 1, None)
    assert made != ir.TypeRelation(broadcast, args, 2, None)
    assert ir.load_json(ir.save_json(made)) == made


def test_scopes_of_pointers() -> None:
    element = ir.PrimType("float")
    assert ir.PointerType(element, "") == ir.PointerType(element, "global")
    assert ir.PointerType(element, "shared") != ir.PointerType(element, "global")


def test_global_functions() -> None:
    ir.register_func("test.double", lambda x: 2 * x, override=True)
    assert ir.EnvFunc.get("test.double")(4) == 8
    assert ir.get_global_func("test.none", allow_missing=True) is None
    with pytest.raises(ValueError, match=r"test.double"):
        ir.get_global_func("test.doubel")
    with pytest.raises(ValueError, match="already"):
        ir.register_func("test.double", print)
