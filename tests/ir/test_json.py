"""Graph JSON: round trips, TVM's layout, and hostile input."""

from __future__ import annotations

import contextlib
import json

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion import ir
from ixion.base.dtype import NAMES, to_numpy
from ixion.base.errors import ModelFormatError
from ixion.base.span import SequentialSpan, Span
from ixion.ir import load_json, save_json
from ixion.ir.json_array import decode_array, encode_array


def round_trip(node):
    return load_json(save_json(node))


def test_sharing_is_kept() -> None:
    x = ir.var("x", shape=(2,))
    shared = ir.Tuple([x, x])
    again = round_trip(ir.Tuple([shared, shared, ir.Tuple([x, x])]))
    assert again[0] is again[1]
    assert again[0] is not again[2]
    assert again[2][0] is again[0][0]


def test_every_kind() -> None:
    header, a = ir.GlobalTypeVar("List"), ir.TypeVar("a")
    cons = ir.Constructor("Cons", [a, header(a)], header)
    x, c = ir.var("x"), ir.const(1)
    match = ir.Match(x, [ir.Clause(ir.PatternConstructor(cons, [ir.PatternVar(x)]), c)], False)
    nodes = [
        match,
        ir.If(x, ir.RefRead(ir.RefCreate(c)), ir.RefWrite(x, c)),
        ir.Let(x, ir.TupleGetItem(x, 3), ir.GlobalVar("g")(x)),
        ir.TypeData(header, [a], [cons]),
        ir.FuncType([a], a, [a]),
        ir.Clause(ir.PatternTuple([ir.PatternWildcard()]), c),
        ir.TupleAffineType([ir.TensorAffineType(c, c, "int8", 1)]),
        ir.Call(ir.register_op("add"), [x, c]),
        ir.ShapeVar("s"),
    ]
    for node in nodes:
        again = round_trip(node)
        assert type(again) is type(node)
        ir.assert_structural_equal(again, node, map_free_vars=True)
    assert round_trip(match).complete is False
    assert round_trip(ir.register_op("add")) is ir.register_op("add")


def test_what_equality_ignores_is_kept() -> None:
    span = SequentialSpan([Span("a.onnx", 1, 2, 3, 4), Span(None)])
    x = ir.Var("name", None, span)
    x._set_checked_type(ir.TensorType((2,), "int8"))
    again = round_trip(x)
    assert again.name_hint == "name"
    assert again.span == span
    assert again.checked_type == x.checked_type
    assert round_trip(Span("s", 1, 2, 3, 4)) == Span("s", 1, 2, 3, 4)


def test_plain_values() -> None:
    value = {"a": [1, -(2**40), True, False, None, 1.5, float("inf"), "text", {"b": ()}]}
    again = round_trip(value)
    assert again == ir.Map(value)
    assert type(again["a"][2]) is bool
    assert np.isnan(round_trip((float("nan"),))[0])
    assert np.array_equal(round_trip((np.arange(3),))[0], np.arange(3))
    x = ir.var("x")
    assert round_trip(ir.Map({x: 1})).values().__iter__().__next__() == 1
    with pytest.raises(TypeError, match="cannot be saved"):
        save_json((object(),))


def test_modules() -> None:
    header, a = ir.GlobalTypeVar("Box"), ir.TypeVar("a")
    box = ir.Constructor("Box", [a], header)
    x = ir.var("x", "int32")
    main, other = ir.GlobalVar("main"), ir.GlobalVar("other")
    module = ir.IRModule(
        {main: ir.Function([x], other(box(x))), other: ir.Function([x], x)},
        {header: ir.TypeData(header, [a], [box])},
        {"input_names": ("x",)},
    )
    again = round_trip(module)
    ir.assert_structural_equal(again, module)
    assert again["main"].body.op is again.get_global_var("other")
    assert again.get_constructor(box.tag).name_hint == "Box"
    assert again.attrs["input_names"] == ("x",)


def test_the_layout_is_tvms() -> None:
    graph = json.loads(save_json(ir.TupleGetItem(ir.const(1), 3)))
    assert set(graph) == {"root", "nodes", "b64ndarrays", "attrs"}
    assert graph["nodes"][0] == {"type_key": ""}
    root = graph["nodes"][graph["root"]]
    assert root["type_key"] == "relay.TupleGetItem"
    assert root["attrs"]["index"] == "3"
    constant = graph["nodes"][int(root["attrs"]["tuple_value"])]
    assert constant["attrs"]["data"] == "0"


def test_a_program_in_tvms_own_json() -> None:
    nodes = [
        {"type_key": ""},
        {
            "type_key": "relay.Var",
            "attrs": {
                "_checked_type_": "0",
                "span": "0",
                "type_annotation": "3",
                "vid": "2",
                "virtual_device_": "0",
            },
        },
        {"type_key": "relay.Id", "attrs": {"name_hint": "x"}},
        {"type_key": "relay.TensorType", "attrs": {"dtype": "float32", "shape": "4", "span": "0"}},
        {"type_key": "Array", "data": [5]},
        {"type_key": "IntImm", "attrs": {"dtype": "int32", "span": "0", "value": "7"}},
    ]
    again = load_json(json.dumps({"root": 1, "nodes": nodes, "b64ndarrays": []}))
    assert again.type_annotation == ir.TensorType((7,))


@pytest.mark.parametrize("name", sorted(NAMES - {"handle"}))
def test_arrays_of_every_dtype(name: str) -> None:
    array = np.array([[0, 1, 2], [3, 1, 0]]).astype(to_numpy(name)).T
    again = decode_array(encode_array(array))
    assert again.dtype == array.dtype
    assert again.tobytes() == array.tobytes()
    assert decode_array(encode_array(array[:0])).shape == array[:0].shape
    assert not again.flags.writeable


def test_bfloat16_constants() -> None:
    made = ir.const(np.array([1.5, 2.5], ml_dtypes.bfloat16))
    ir.assert_structural_equal(round_trip(made), made)


def _graph(*nodes: object, root: object = 1, arrays: object = ()) -> str:
    records = [{"type_key": ""}, *nodes]
    return json.dumps({"root": root, "nodes": records, "b64ndarrays": arrays})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "7",
        "{}",
        '{"root": 1}',
        '{"root": "1", "nodes": []}',
        '{"root": 5, "nodes": []}',
        '{"root": -1, "nodes": [{"type_key": ""}]}',
        "[" * 100_000,
        _graph(None),
        _graph({"type_key": 3}),
        _graph({"type_key": "relay.Nothing"}),
        _graph({"type_key": "relay.Tuple"}),
        _graph({"type_key": "relay.Tuple", "attrs": 3}),
        _graph({"type_key": "relay.Tuple", "attrs": {"fields": 1}}),
        _graph({"type_key": "relay.Tuple", "attrs": {"fields": "99"}}),
        _graph({"type_key": "relay.Tuple", "attrs": {"fields": "-1"}}),
        _graph({"type_key": "relay.Tuple", "attrs": {"fields": "1"}}),
        _graph(
            {"type_key": "relay.Tuple", "attrs": {"fields": "2", "other": "0"}},
            {"type_key": "Array"},
        ),
        _graph({"type_key": "relay.TupleGetItem", "attrs": {"tuple_value": "0", "index": "x"}}),
        _graph({"type_key": "relay.Op", "repr_str": "add"}),
        _graph({"type_key": "Op", "repr_str": "no such op"}),
        _graph({"type_key": "Op", "repr_str": 3}),
        _graph({"type_key": "relay.Tuple", "repr_str": "x"}),
        _graph({"type_key": "Array", "data": ["1"]}),
        _graph({"type_key": "Array", "data": [1]}),
        _graph({"type_key": "Map", "data": [0]}),
        _graph({"type_key": "Map", "keys": [1], "data": [0]}),
        _graph({"type_key": "Map", "keys": ["a", "b"], "data": [0]}),
        _graph({"type_key": "IntImm", "attrs": {}}),
        _graph({"type_key": "IntImm", "attrs": {"value": "one"}}),
        _graph({"type_key": "relay.Constant", "attrs": {"data": "0"}}),
        _graph({"type_key": "relay.Constant", "attrs": {"data": "0"}}, arrays=["!!"]),
        _graph({"type_key": "relay.Constant", "attrs": {"data": "0"}}, arrays=["AAAA"]),
        _graph({"type_key": "relay.Constant", "attrs": {"data": "0"}}, arrays=7),
        _graph({"type_key": "ixion.SymExpr", "repr_str": "__import__('os')"}),
        _graph({"type_key": "TypeVar", "attrs": {"name_hint": "a", "kind": "77"}}),
        _graph(
            {"type_key": "relay.TensorType", "attrs": {"shape": "2", "dtype": "flaot"}},
            {"type_key": "Array"},
        ),
    ],
)
def test_malformed_input_is_one_clear_error(text: str) -> None:
    with pytest.raises(ModelFormatError):
        load_json(text)


def test_cycles_are_found() -> None:
    pair = [
        {"type_key": "relay.Tuple", "attrs": {"fields": "2", "span": "0"}},
        {"type_key": "Array", "data": [3]},
        {"type_key": "relay.TupleGetItem", "attrs": {"tuple_value": "1", "index": "0"}},
    ]
    with pytest.raises(ModelFormatError, match="cyclic"):
        load_json(_graph(*pair))


def test_arrays_with_wrong_sizes() -> None:
    good = encode_array(np.zeros((2, 3), "float32"))
    for bad in (good[:-8], good + "AAAA", good[:40] + "AAAA" + good[44:], None, 3):
        with pytest.raises(ModelFormatError):
            decode_array(bad)


@given(st.data())
def test_damaged_files_never_do_worse_than_an_error(data: st.DataObject) -> None:
    x = ir.var("x", shape=(2,))
    text = save_json(ir.Function([x], ir.Tuple([x, ir.const(1.5)])).with_attr("k", {"a": [1]}))
    at = data.draw(st.integers(0, len(text) - 1))
    length = data.draw(st.integers(0, 6))
    junk = data.draw(st.text('0123456789-{}[]",abc', max_size=4))
    with contextlib.suppress(ModelFormatError):
        load_json(text[:at] + junk + text[at + length :])
