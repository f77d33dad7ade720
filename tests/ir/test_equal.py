"""Structural equality, hash, and where two programs differ first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion import ir
from ixion.ir import (
    Call,
    Clause,
    Constructor,
    Function,
    GlobalTypeVar,
    GlobalVar,
    If,
    Let,
    Match,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    Tuple,
    TupleGetItem,
    const,
    register_op,
    structural_equal,
    structural_hash,
    var,
)

ADD, MUL = register_op("add"), register_op("multiply")


def consistent(a: object, b: object, map_free_vars: bool = False) -> bool:
    """Equality, asserting that it is symmetric and that the hash agrees with it."""
    equal = structural_equal(a, b, map_free_vars)
    assert structural_equal(b, a, map_free_vars) == equal
    same = structural_hash(a, map_free_vars) == structural_hash(b, map_free_vars)
    assert same == equal
    assert (ir.get_first_structural_mismatch(a, b, map_free_vars) is None) == equal
    return equal


def test_constants() -> None:
    assert consistent(const(1), const(1))
    assert not consistent(const(1), const(2))
    assert not consistent(const(1), const(1.0))
    assert not consistent(const([1, 2]), const([[1, 2]]))
    nan = const(np.array([np.nan], "float32"))
    assert consistent(nan, const(np.array([np.nan], "float32")))
    big = np.arange(1000.0)
    assert consistent(const(big), const(big.copy()))
    assert consistent(
        const(np.arange(6).reshape(2, 3).T), const(np.arange(6).reshape(2, 3).T.copy())
    )
    assert not consistent(const(np.array(0.0)), const(np.array(-0.0)))


def test_variables() -> None:
    x, y = var("x"), var("x")
    assert consistent(x, x)
    assert not consistent(x, y)
    assert consistent(x, y, map_free_vars=True)
    assert consistent(Let(x, const(1), x), Let(y, const(1), y))
    assert not consistent(Let(x, const(1), x), Let(x, const(1), y))
    assert not consistent(Tuple([x, x]), Tuple([x, y]), map_free_vars=True)
    typed, other = var("v", "int32"), var("v", "int64")
    assert not consistent(Let(typed, const(1), typed), Let(other, const(1), other))
    assert not consistent(Let(typed, const(1), typed), Let(x, const(1), x))


def test_a_bound_variable_is_no_other_free_one() -> None:
    x, y = var("x"), var("y")
    body = Tuple([x])
    assert not consistent(Function([x], body), Function([y], body))


def test_variables_of_one_identity() -> None:
    x, u = var("x", "int32"), var("u", "int32")
    x2, u2 = ir.Var(x.vid), ir.Var(u.vid)
    assert consistent(Function([x], Tuple([x, x2])), Function([u], Tuple([u, u2])))
    assert not consistent(Function([x], Tuple([x, x2])), Function([u], Tuple([u, var("z")])))


def test_variables_compare_their_device() -> None:
    x, y = var("x"), var("y")
    there = y.with_virtual_device("gpu")
    assert consistent(Function([x], x), Function([y], y))
    assert not consistent(Function([x], x), Function([there], there))


def test_sharing_matters() -> None:
    x = var("x")

    def once() -> Call:
        y = Call(ADD, [x, x])
        return Call(ADD, [y, y])

    twice = Call(ADD, [Call(ADD, [x, x]), Call(ADD, [x, x])])
    assert consistent(once(), once())
    assert not consistent(once(), twice)


def test_empty_tuples_are_one_value() -> None:
    unit = Tuple([])
    assert consistent(Tuple([unit, unit]), Tuple([Tuple([]), Tuple([])]))


def test_projections_are_no_graph_nodes() -> None:
    x = var("x")
    first = TupleGetItem(x, 0)
    assert consistent(Tuple([first, first]), Tuple([TupleGetItem(x, 0), TupleGetItem(x, 0)]))
    assert not consistent(first, TupleGetItem(x, 1))


def test_calls() -> None:
    f, g, x = var("f"), var("g"), var("x")
    int8 = ir.scalar_type("int8")
    call = Call(f, [const(1), x], None, [int8])
    assert consistent(call, Call(f, [const(1), x], None, [int8]))
    assert not consistent(call, Call(g, [const(1), x], None, [int8]))
    assert not consistent(call, Call(f, [x, const(1)], None, [int8]))
    assert not consistent(call, Call(f, [const(1)], None, [int8]))
    assert not consistent(call, Call(f, [const(1), x]))
    assert not consistent(call, Call(f, [const(1), x], None, [ir.scalar_type("int16")]))
    assert consistent(Call(ADD, [x, x], None, [int8]), Call(ADD, [x, x]))
    assert not consistent(Call(ADD, [x, x]), Call(MUL, [x, x]))
    assert not consistent(Call(ADD, [x, x]), Call(f, [x, x]))


def test_functions() -> None:
    a, b = ir.TypeVar("a"), ir.TypeVar("b")
    x, y = var("x", a), var("y", b)
    assert consistent(Function([x], x, a, [a]), Function([y], y, b, [b]))
    assert not consistent(Function([x], x, a, [a]), Function([y], y, None, [b]))
    plain = Function([x], x)
    assert not consistent(plain, plain.with_attr("Primitive", 1))
    assert not consistent(plain.with_attr("n", 1), plain.with_attr("n", 2))
    assert not consistent(plain.with_attr("n", -1), plain.with_attr("n", -2))
    assert not consistent(plain.with_attr("n", 1), plain.with_attr("n", True))
    assert not consistent(plain.with_attr("n", 1), plain.with_attr("n", 1.0))


def test_attributes_may_be_keyed_by_variables() -> None:
    def made(by_identity: bool) -> Function:
        x = var("x", shape=(10,))
        return Function([x], x).with_attr("dict", {(x.vid if by_identity else x): 1})

    assert consistent(made(True), made(True))
    assert consistent(made(False), made(False))
    assert not consistent(made(True), made(False))


def test_if_and_references() -> None:
    x = var("x")
    assert consistent(If(x, const(1), Tuple([])), If(x, const(1), Tuple([])))
    assert not consistent(If(x, const(1), const(2)), If(x, const(1), const(3)))
    assert consistent(ir.RefWrite(ir.RefCreate(x), x), ir.RefWrite(ir.RefCreate(x), x))
    assert not consistent(ir.RefRead(x), ir.RefCreate(x))


def _list_type() -> tuple[GlobalTypeVar, Constructor, Constructor]:
    header, a = GlobalTypeVar("List"), ir.TypeVar("a")
    cons, nil = Constructor("Cons", [a, header(a)], header), Constructor("Nil", [], header)
    return header, cons, nil


def test_matches() -> None:
    _, cons, nil = _list_type()

    def case(swap: bool = False) -> Clause:
        h, t = var("h"), var("t")
        pattern = PatternConstructor(cons, [PatternVar(h), PatternVar(t)])
        return Clause(pattern, cons(t, h) if swap else cons(h, t))

    data, empty = nil(), Clause(PatternConstructor(nil), const(1))
    match = Match(data, [empty, case()])
    assert consistent(match, Match(data, [empty, case()]))
    assert not consistent(match, Match(data, [empty, case(swap=True)]))
    assert not consistent(match, Match(data, [case(), empty]))
    assert not consistent(match, Match(data, [empty]))
    assert not consistent(match, Match(data, [empty, case()], complete=False))
    assert consistent(PatternWildcard(), PatternWildcard())
    a, b = var("a"), var("b")
    assert consistent(PatternTuple([PatternVar(a)]), PatternTuple([PatternVar(b)]))
    assert not consistent(cons, nil)


def test_type_definitions() -> None:
    def made(name: str = "List") -> ir.TypeData:
        header, a = GlobalTypeVar(name), ir.TypeVar("a")
        return ir.TypeData(header, [a], [Constructor("Cons", [a, header(a)], header)])

    assert consistent(made(), made())
    assert not consistent(made(), made("Other"))


def test_different_kinds() -> None:
    assert not consistent(var("x"), PatternVar(var("x")))
    assert not consistent(ir.TypeVar("x"), var("x"))
    assert not consistent(const(1), None)
    assert consistent((const(1), "a"), (const(1), "a"))


def test_spans_and_types_are_ignored() -> None:
    x = var("x")
    a, b = Call(ADD, [x, x], span=ir.Span("a", 1)), Call(ADD, [x, x])
    a._set_checked_type(ir.scalar_type("int8"))
    assert consistent(a, b)


def test_modules() -> None:
    def module(swap: bool = False, name: str = "callee") -> ir.IRModule:
        g, h = GlobalVar("main"), GlobalVar(name)
        x = var("x", "int32")
        bodies = {g: Function([x], Call(h, [x])), h: Function([x], x)}
        return ir.IRModule(dict(reversed(bodies.items())) if swap else bodies)

    assert consistent(module(), module())
    assert consistent(module(), module(swap=True))
    assert not consistent(module(), module(name="other"))
    assert not consistent(module(), module().with_attr("k", 1))
    assert not consistent(module(), ir.IRModule())


@pytest.mark.parametrize(
    ("a", "b", "left", "right"),
    [
        (Tuple([const(1)]), Tuple([const(2)]), "<root>.fields[0]", "<root>.fields[0]"),
        (
            Tuple([const(1), const(2)]),
            Tuple([const(1)]),
            "<root>.fields[1]",
            "<root>.fields[<missing element #1>]",
        ),
        (
            ir.DictAttrs({"a": 1, "b": 2}),
            ir.DictAttrs({"a": 1}),
            '<root>.entries["b"]',
            "<root>.entries[<missing entry>]",
        ),
        (ir.DictAttrs({"a": (1, 2)}), ir.DictAttrs({"a": (1, 3)}), '<root>.entries["a"][1]', None),
    ],
)
def test_paths(a: object, b: object, left: str, right: str | None) -> None:
    pair = ir.get_first_structural_mismatch(a, b)
    assert pair is not None
    assert str(pair.lhs_path) == left
    assert str(pair.rhs_path) == (right or left)
    mirrored = ir.get_first_structural_mismatch(b, a)
    assert mirrored is not None
    assert str(mirrored.rhs_path) == left


def test_the_message_names_both_places() -> None:
    x = var("x", "int32")
    a = Function([x], Call(ADD, [x, const(1)], span=ir.Span("model.onnx", 3, 3, 7, 9)))
    b = Function([x], Call(ADD, [x, const(2)]))
    ir.assert_structural_equal(a, a)
    with pytest.raises(ValueError, match="StructuralEqual check failed") as caught:
        ir.assert_structural_equal(a, b)
    text = str(caught.value)
    assert "caused by lhs at <root>.body.args[1]" in text
    assert "and rhs at <root>.body.args[1]" in text
    assert "model.onnx:3:7" in text


def test_module_paths_go_through_functions() -> None:
    x = var("x", "int32")
    a, b = (ir.IRModule.from_expr(Function([x], const(n))) for n in (1, 2))
    pair = ir.get_first_structural_mismatch(a, b)
    assert str(pair.lhs_path) == "<root>.functions[0].body"
    with pytest.raises(ValueError, match=r"array\(2"):
        ir.assert_structural_equal(a, b)


def test_object_paths() -> None:
    root = ir.ObjectPath.root()
    path = root.attr("body").array_index(0)
    assert path.parent == root.attr("body")
    assert root.is_prefix_of(path)
    assert not path.is_prefix_of(root)
    assert len(path) == 3
    assert hash(path) == hash(ir.ObjectPath.root().attr("body").array_index(0))
    assert str(ir.ObjectPath.root("mod").attr(None)) == "mod.<unknown attribute>"


def test_shared_types_are_compared_once() -> None:
    def doubled(depth: int) -> ir.Type:
        made: ir.Type = ir.scalar_type("int8")
        for _ in range(depth):
            made = ir.TupleType([made, made])
        return made

    assert consistent(doubled(200), doubled(200))


def test_hash_is_the_same_in_every_process() -> None:
    x = var("x", shape=(1, 2))
    function = Function([x], Call(ADD, [x, const(2.5)])).with_attr("name", "text")
    assert structural_hash(function) == 3645151034054251041


@st.composite
def programs(draw: st.DrawFn) -> st.SearchStrategy[Function]:
    """How to build a random function; building twice gives two equal ones that share nothing."""
    steps = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["add", "mul", "tuple", "item", "const", "if", "let"]),
                st.integers(0, 30),
                st.integers(0, 30),
            ),
            max_size=12,
        )
    )

    def build(change: int = -1) -> Function:
        x = var("x", "int32")
        made: list[ir.Expr] = [x]
        for i, (kind, a, b) in enumerate(steps):
            p, q = made[a % len(made)], made[b % len(made)]
            if kind in ("add", "mul"):
                op = (ADD, MUL)[(kind == "mul") ^ (i == change)]
                made.append(Call(op, [p, q]))
            elif kind == "tuple":
                made.append(Tuple([q, p, q] if i == change else [p, q]))
            elif kind == "item":
                made.append(TupleGetItem(p, b + (i == change)))
            elif kind == "const":
                made.append(const(a + 100 * (i == change)))
            elif kind == "if":
                made.append(If(p, q, Tuple([]) if i == change else p))
            else:
                v = var("v")
                made.append(Let(v, p, q if i == change else Tuple([v, q])))
        return Function([x], Tuple(made))

    return build  # type: ignore[return-value]


@given(programs(), st.integers(0, 11))
def test_equality_and_hash_of_random_programs(build, change: int) -> None:
    a, b = build(), build()
    assert consistent(a, b)
    ir.assert_structural_equal(a, ir.load_json(ir.save_json(a)))
    changed = build(change)
    assert consistent(a, changed) == (ir.get_first_structural_mismatch(a, changed) is None)
