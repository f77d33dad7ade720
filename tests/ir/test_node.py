"""The node protocol: construction, immutability, reflection, copies."""

from __future__ import annotations

import copy
import gc
import pickle  # noqa: TID251 - nodes can be sent between processes; no file is ever unpickled
import weakref

import numpy as np
import pytest

from ixion import ir
from ixion.base.errors import RegistryError
from ixion.base.span import Span
from ixion.ir.node import Node, plain_repr


def test_constructors_take_fields_by_position_and_name() -> None:
    x, span = ir.var("x"), Span("a", 1, 1, 2, 3)
    call = ir.Call(x, [x], type_args=None, span=span)
    assert call.op is x
    assert call.args == (x,)
    assert call.attrs is None
    assert call.type_args == ()
    assert call.span is span
    let = ir.Let(variable=x, value=call, body=x)
    assert let.var is x
    with pytest.raises(TypeError):
        ir.Call(x)
    with pytest.raises(TypeError):
        ir.Call(x, x)
    with pytest.raises(TypeError):
        ir.TupleType("no")


def test_nodes_are_immutable_weakly_referenced_and_hashed_by_identity() -> None:
    x = ir.var("x")
    call = ir.Call(x, [x])
    with pytest.raises(AttributeError, match="immutable"):
        call.args = ()
    with pytest.raises(AttributeError):
        del call.args
    with pytest.raises(AttributeError):
        call.unheard_of  # noqa: B018
    assert call != ir.Call(x, [x])
    assert len({call, ir.Call(x, [x])}) == 2
    assert call.same_as(call)
    reference = weakref.ref(call)
    del call
    gc.collect()
    assert reference() is None


def test_reflection() -> None:
    x = ir.var("x")
    item = ir.TupleGetItem(x, np.int64(1))
    assert item.type_key == "relay.TupleGetItem"
    assert ir.NODE_TYPES["relay.TupleGetItem"] is ir.TupleGetItem
    assert type(item.index) is int
    seen: list[str] = []
    item.visit_attrs(lambda name, value: seen.append(name))
    assert seen == ["tuple_value", "index", "span"]
    assert {"tuple_value", "index"} <= set(dir(item))
    assert item.as_(ir.TupleGetItem) is item
    assert item.as_(ir.Call) is None
    assert ir.Call.type_index != ir.Let.type_index


def test_copy_keeps_the_object_where_nothing_changes() -> None:
    x, y, span = ir.var("x"), ir.var("y"), Span("a")
    call = ir.Call(x, [x, y], None, None, span)
    assert call.copy(op=x, args=[x, y]) is call
    changed = call.with_fields(args=[y, y])
    assert changed is not call
    assert changed.op is x
    assert changed.span is span
    with pytest.raises(AttributeError):
        call.copy(arguments=[])


def test_fields_helpers_of_relay() -> None:
    x, y = ir.var("x"), ir.var("y")
    call = ir.Call(x, [y])
    assert ir.CallWithFields(call) is call
    assert ir.CallWithFields(call, args=[x]).args == (x,)
    function = ir.Function([x], x)
    assert ir.FunctionWithFields(function, [x], x) is function
    assert ir.FunctionWithFields(function, ty_params=[ir.TypeVar("t")]).type_params
    assert ir.LetWithFields(ir.Let(x, y, x), body=y).body is y
    moved = ir.VarWithFields(x, virtual_device="gpu")
    assert moved.virtual_device == "gpu"
    assert moved.vid is x.vid
    assert ir.TupleGetItemWithFields(ir.TupleGetItem(x, 0), index=1).index == 1
    assert moved.copy(type_annotation=ir.scalar_type("int32")).virtual_device == "gpu"


def test_checked_type_is_written_once() -> None:
    x = ir.var("x")
    with pytest.raises(ValueError, match="checked_type"):
        x.checked_type  # noqa: B018
    assert x.checked_type_or_none is None
    x._set_checked_type(ir.TensorType((2,), "int8"))
    x._set_checked_type(ir.TensorType((2,), "int8"))
    assert x.checked_type == ir.TensorType((2,), "int8")
    with pytest.raises(ValueError, match="cannot become"):
        x._set_checked_type(ir.TensorType((3,), "int8"))


def test_make_node() -> None:
    made = ir.make_node("relay.Tuple", fields=[ir.var("x")])
    assert isinstance(made, ir.Tuple)
    assert isinstance(ir.make_node("relay.Var", name_hint="v"), ir.Var)
    with pytest.raises(AttributeError, match="its fields are: fields, span"):
        ir.make_node("relay.Tuple", field=[])
    with pytest.raises(TypeError, match="needs a field"):
        ir.make_node("relay.Let")
    with pytest.raises(RegistryError, match=r"did you mean 'relay.Tuple'"):
        ir.make_node("relay.Tupel")


def test_a_key_belongs_to_one_class() -> None:
    with pytest.raises(RegistryError, match="registered already"):

        @ir.register_node("relay.Call")
        class Other(Node):
            pass


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda n: pickle.loads(pickle.dumps(n))])
def test_deep_copies_keep_sharing_types_and_data(duplicate) -> None:
    x = ir.var("x", shape=(2,))
    shared = ir.Tuple([x, ir.const(np.arange(4.0))])
    x._set_checked_type(x.type_annotation)
    both = ir.Tuple([shared, shared], Span("s", 1))
    made = duplicate(both)
    assert made is not both
    assert made.fields[0] is made.fields[1]
    assert made.span == both.span
    assert made[0][0].checked_type == x.checked_type
    assert made[0][1].data is not shared[1].data
    ir.assert_structural_equal(made, both, map_free_vars=True)
    assert copy.copy(both) is both


def test_short_texts_never_recurse() -> None:
    e = ir.var("x")
    for _ in range(5000):
        e = ir.Tuple([e])
    assert plain_repr(e) == "Tuple(fields=[<relay.Tuple>])"
    assert e.legacy_repr() == plain_repr(e)
    assert plain_repr(ir.Tuple([ir.var("v")])) == "Tuple(fields=[<relay.Var v>])"


def test_destroying_a_deep_program_is_safe() -> None:
    e = ir.var("x")
    for _ in range(200_000):
        e = ir.Tuple([e])
    del e
    gc.collect()
