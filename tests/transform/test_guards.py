"""guards_of: what relations and unification assume of symbolic sizes."""

from __future__ import annotations

from ixion.base.dim import Any, SymVar
from ixion.base.span import Span
from ixion.ir import Function, If, IRModule, TensorType, Var
from ixion.op.call import call
from ixion.transform import InferType, fixed_sizes, guards_of

n, m = SymVar("n"), SymVar("m")


def var(name: str, *shape: object, dtype: str = "float32") -> Var:
    return Var(name, TensorType(shape, dtype))


def found(params: list[Var], body: object, **function: object) -> list[str]:
    module = InferType()(IRModule.from_expr(Function(params, body, **function)))
    return [f"{g.kind}: {g.left}, {g.right}" for g in guards_of(module)]


def test_proved_relations_need_no_guard() -> None:
    x, y = var("x", n, 4), var("y", n, 4)
    half = call("reshape", x, newshape=(-1, 2))
    assert found([x, y], call("add", call("add", x, y), y)) == []
    assert found([x], call("reshape", half, newshape=(n, 4))) == []


def test_unproved_relations_are_guarded_once() -> None:
    x, y = var("x", n, 4), var("y", m, 4)
    both = call("multiply", call("add", x, y), call("subtract", x, y))
    assert found([x, y], both) == ["broadcast: n, m"]
    weight = var("w", 8, m)
    assert found([x, weight], call("nn.dense", x, weight)) == ["equal: 4, m"]
    # 4*n // 3 rows of 3, in the normal form of dims.
    assert found([x], call("reshape", x, newshape=(-1, 3))) == ["equal: 4*n, 3*n + 3*(n // 3)"]
    assert found([x], call("broadcast_to", x, shape=(7, 4))) == ["expand: n, 7"]
    assert found([x], call("strided_slice", x, begin=[2], end=[m])) == [
        "at most: m, n", "at most: 2, m"
    ]  # fmt: skip


def test_a_guard_knows_its_node() -> None:
    x, y = var("x", n, 4), var("y", m, 4)
    body = call("add", x, y).copy(span=Span("net:sum"))
    (guard,) = guards_of(InferType()(IRModule.from_expr(Function([x, y], body))))
    assert guard.op == "add"
    assert str(guard.span).startswith("net:sum")


def test_data_dependent_sizes_are_in_no_guard() -> None:
    x, y = var("x", n, 4), var("y", Any(), 4)
    assert found([x, y], call("add", x, y)) == []


def test_stated_types_are_guarded() -> None:
    x = var("x", n, 4)
    assert found([x], call("nn.relu", x), ret_type=TensorType((m, 4))) == ["equal: m, n"]


def test_branches_are_not_certain_and_fix_nothing() -> None:
    x, flag = var("x", n), var("c", dtype="bool")
    six = call("reshape", x, newshape=(6,))
    body = If(flag, six, call("zeros", shape=(6,), dtype="float32"))
    module = InferType()(IRModule.from_expr(Function([flag, x], body)))
    (guard,) = guards_of(module)
    assert (str(guard.left), guard.right, guard.certain) == ("n", 6, False)
    assert fixed_sizes([guard]) == {}
    (certain,) = guards_of(InferType()(IRModule.from_expr(Function([x], six))))
    assert fixed_sizes([certain]) == {"n": 6}


def test_only_a_symbol_alone_is_fixed() -> None:
    x = var("x", n, m)
    module = InferType()(IRModule.from_expr(Function([x], call("reshape", x, newshape=(6,)))))
    assert fixed_sizes(guards_of(module)) == {}
