"""Node kinds that a user's package registers take part in everything."""

from __future__ import annotations

import copy

import pytest

from ixion import ir
from ixion.base.errors import ModelFormatError
from ixion.base.span import Span
from ixion.ir import ExprMutator, ExprVisitor, field, register_node


@register_node("test.Scale", graph=True)
class Scale(ir.Expr):
    """A scaled expression, as some other package may define it."""

    __slots__ = ("note",)

    body: ir.Expr = field()
    factor: float = field(default=1.0)
    rest: tuple[ir.Expr, ...] = field(default=())
    kept: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False)


@register_node("test.Binder", graph=True)
class Binder(ir.Expr):
    """A binder of two variables."""

    variables: tuple[ir.Var, ...] = field(binds=True)
    body: ir.Expr = field()


@register_node("test.Fancy", graph=True)
class FancyCall(ir.Call):
    """A subclass of an existing kind."""

    __slots__ = ()


def test_declaration_gives_a_constructor() -> None:
    x = ir.var("x")
    made = Scale(x, 2, [x])
    assert (made.factor, made.rest, made.kept) == (2.0, (x,), "")
    assert type(made.factor) is float
    with pytest.raises(AttributeError):
        made.factor = 3


def test_equality_hash_and_markers() -> None:
    x = ir.var("x")
    a, b = Scale(x, 2.0, kept="a"), Scale(x, 2.0 + 1e-12, kept="b")
    assert ir.structural_equal(a, b)
    assert ir.structural_hash(a) == ir.structural_hash(b)
    assert not ir.structural_equal(a, Scale(x, 3.0))
    assert ir.structural_hash(a) != ir.structural_hash(Scale(x, 3.0))
    twice, apart = ir.Tuple([a, a]), ir.Tuple([a, b])
    assert not ir.structural_equal(twice, apart)


def test_binding() -> None:
    x, y, u, v = (ir.var(name) for name in "xyuv")
    a = Binder([x, y], ir.Tuple([x, y]))
    b = Binder([u, v], ir.Tuple([u, v]))
    assert ir.structural_equal(a, b)
    assert ir.structural_hash(a) == ir.structural_hash(b)
    assert not ir.structural_equal(a, Binder([u, v], ir.Tuple([v, u])))
    pair = ir.get_first_structural_mismatch(a, Binder([u, v], ir.Tuple([v, u])))
    assert str(pair.lhs_path) == "<root>.body.fields[0]"


def test_json_and_copies() -> None:
    x = ir.var("x")
    made = Scale(x, 0.5, [x, x], "note")
    for again in (ir.load_json(ir.save_json(made)), copy.deepcopy(made)):
        assert type(again) is Scale
        assert again.kept == "note"
        assert again.rest[0] is again.body
        ir.assert_structural_equal(again, made, map_free_vars=True)
    with pytest.raises(ModelFormatError, match=r"unknown kind 'test.Scald'.*\n.*\n.*'test.Scale'"):
        ir.load_json(ir.save_json(made).replace("test.Scale", "test.Scald"))


def test_walks_and_rewrites() -> None:
    x, y = ir.var("x"), ir.var("y")
    made = Scale(ir.Tuple([x]), 2.0, [x])
    assert ir.free_vars(made) == [x]
    assert ir.post_order(made)[-1] is made
    new = ir.bind(made, {x: y})
    assert type(new) is Scale
    assert (new.body.fields, new.rest, new.factor) == ((y,), (y,), 2.0)
    assert ir.rewrite(made, lambda old, new: new) is made

    seen: list[ir.Expr] = []

    class Collect(ExprVisitor):
        def visit_var(self, var):
            seen.append(var)

    Collect().visit(made)
    assert seen == [x]
    assert ExprMutator().visit(made) is made


def test_subclasses_of_known_kinds() -> None:
    x, y = ir.var("x"), ir.var("y")
    made = FancyCall(x, [y])
    assert made.type_key == "test.Fancy"
    assert not ir.structural_equal(made, ir.Call(x, [y]))
    assert type(ir.bind(made, {y: x})) is FancyCall
    names = []

    class Calls(ExprVisitor):
        def visit_call(self, call):
            names.append(call.type_key)
            super().visit_call(call)

    Calls().visit(made)
    assert names == ["test.Fancy"]


def test_printing_does_not_fail() -> None:
    assert "Scale" in repr(Scale(ir.var("x"), 2.0))
