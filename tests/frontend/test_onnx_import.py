"""Graphs: names, shapes, order, subgraphs, functions, folding, and errors."""

from __future__ import annotations

import random

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from ixion.analysis.evaluate import evaluate
from ixion.base.errors import InputError, IxionError, ModelFormatError, UnsupportedOpError
from ixion.frontend import inputs, load
from ixion.frontend.onnx.importer import import_model
from ixion.frontend.onnx.model import parse_model
from ixion.ir import Call, Constant, post_order_visit


def info(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def module(nodes, ins, outs, weights=(), shapes=None, **more):
    graph = helper.make_graph(
        nodes, "g", ins, outs, [numpy_helper.from_array(w, n) for n, w in dict(weights).items()]
    )
    more.setdefault("opset_imports", [helper.make_opsetid("", 17)])
    data = helper.make_model(graph, **more).SerializeToString()
    return import_model(parse_model(data), "m.onnx", shapes)


def calls(mod):
    found = []
    post_order_visit(
        mod["main"], lambda e: found.append(e.op.name) if isinstance(e, Call) else None
    )
    return found


def node(op, ins, outs, **attrs):
    return helper.make_node(op, ins, outs, **attrs)


def test_names_spans_and_types():
    mod = module(
        [node("Relu", ["x"], ["y"], name="act"), node("Add", ["x", "y"], ["z"])],
        [info("x", [2, 3])],
        [info("z", [2, 3]), info("y", [2, 3])],
    )
    assert mod.attrs["input_names"] == ("x",)
    assert mod.attrs["output_names"] == ("z", "y")
    main = mod["main"]
    assert main.params[0].name_hint == "x"
    add, relu = main.body.fields
    assert str(relu.span) == "m.onnx:act"
    assert str(add.span) == "m.onnx:z"
    assert str(relu.checked_type) == str(main.params[0].checked_type)


def test_weights_become_constants_and_unused_ones_are_never_read():
    weights = {"w": np.ones((3,), np.float32), "unused": np.ones((5,), np.float32)}
    mod = module(
        [node("Mul", ["x", "w"], ["y"])], [info("x", [2, 3]), info("w", [3])], [info("y", [2, 3])],
        weights,
    )  # fmt: skip
    assert [p.name_hint for p in mod["main"].params] == ["x"]
    assert isinstance(mod["main"].body.args[1], Constant)


def test_shape_arithmetic_leaves_no_calls():
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Unsqueeze", ["n", "axis"], ["n1"]),
        node("Concat", ["n1", "minus"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["y"]),
    ]
    weights = {
        "zero": np.array(0),
        "axis": np.array([0]),
        "minus": np.array([-1]),
    }
    mod = module(nodes, [info("x", [4, 3, 2])], [info("y", None)], weights)
    assert calls(mod) == ["reshape"]
    assert tuple(mod["main"].ret_type.shape) == (4, 6)


def test_symbolic_sizes_stay_and_can_be_bound():
    def build(shapes=None):
        nodes = [
            node("Shape", ["x"], ["s"]),
            node("Slice", ["s", "zero", "one"], ["n"]),
            node("Concat", ["n", "minus"], ["target"], axis=0),
            node("Reshape", ["x", "target"], ["y"]),
        ]
        weights = {"zero": np.array([0]), "one": np.array([1]), "minus": np.array([-1])}
        return module(nodes, [info("x", ["batch", 3, 2])], [info("y", None)], weights, shapes)

    mod = build()
    assert calls(mod)[-1] == "reshape"
    assert [str(dim) for dim in mod["main"].ret_type.shape] == ["batch", "6"]
    assert tuple(build({"x": (5, 3, 2)})["main"].ret_type.shape) == (5, 6)
    x = np.arange(30, dtype=np.float32).reshape(5, 3, 2)
    np.testing.assert_array_equal(evaluate(mod["main"], [x], mod), x.reshape(5, 6))


def test_one_symbol_in_two_inputs():
    def build(shapes):
        return module(
            [node("Add", ["a", "b"], ["c"])],
            [info("a", ["n", 2]), info("b", ["n", 2])],
            [info("c", None)],
            shapes=shapes,
        )

    assert tuple(build({"a": (7, 2)})["main"].params[1].type_annotation.shape) == (7, 2)
    with pytest.raises(InputError, match="would be"):
        build({"a": (7, 2), "b": (8, 2)})
    with pytest.raises(InputError, match="cannot have this shape"):
        build({"a": (7, 3)})
    with pytest.raises(InputError, match="cannot have this shape"):
        build({"a": (7,)})
    with pytest.raises(InputError, match="no input"):
        build({"q": (7, 2)})


def test_nodes_out_of_order():
    mod = module(
        [node("Neg", ["y"], ["z"]), node("Relu", ["x"], ["y"])], [info("x", [2])], [info("z", [2])]
    )
    assert calls(mod) == ["nn.relu", "negative"]


def test_a_long_chain():
    count = 20_000
    nodes = [node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(count)]
    mod = module(nodes, [info("v0", [2])], [info(f"v{count}", [2])])
    assert len(calls(mod)) == count


def test_nodes_that_no_output_needs_are_left_out():
    mod = module(
        [node("Relu", ["x"], ["y"]), node("NoSuchThing", ["x"], ["unused"])][:1],
        [info("x", [2])],
        [info("y", [2])],
    )
    assert calls(mod) == ["nn.relu"]


def test_all_unsupported_operators_at_once():
    nodes = [
        node("Foo", ["x"], ["a"], name="first"),
        node("Foo", ["a"], ["b"]),
        node("Bar", ["b"], ["c"], domain="my.ops"),
    ]
    with pytest.raises(UnsupportedOpError) as caught:
        module(nodes, [info("x", [2])], [info("c", [2])])
    assert [(name, count) for name, count, _ in caught.value.ops] == [
        ("Foo", 2),
        ("my.ops::Bar", 1),
    ]
    assert "first" in str(caught.value)


@pytest.mark.parametrize(
    ("nodes", "match"),
    [
        ([node("Add", ["x", "z"], ["y"]), node("Relu", ["y"], ["z"])], "cycle"),
        ([node("Add", ["x", "nowhere"], ["y"])], "nothing makes it"),
        ([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])], "twice"),
        ([node("Relu", ["x"], ["q"])], "nothing makes the output"),
        ([node("Add", ["x"], ["y"])], None),
        ([node("Concat", ["x"], ["y"])], "attribute"),
        ([node("Cast", ["x"], ["y"], to=77)], "data type"),
        ([node("Transpose", ["x"], ["y"], perm=[0, 0, 7])], None),
    ],
)
def test_broken_graphs(nodes, match):
    with pytest.raises(IxionError, match=match) as caught:
        module(nodes, [info("x", [2, 2])], [info("y", None)])
    assert "m.onnx" in str(caught.value)


def test_old_operator_sets_are_refused():
    with pytest.raises(ModelFormatError, match="old operator set"):
        module(
            [node("Relu", ["x"], ["y"])], [info("x", [2])], [info("y", [2])],
            opset_imports=[helper.make_opsetid("", 6)],
        )  # fmt: skip


def branches():
    then = helper.make_graph([node("Neg", ["x"], ["a"])], "t", [], [info("a", [2])])
    other = helper.make_graph([node("Relu", ["x"], ["b"])], "e", [], [info("b", [2])])
    return {"then_branch": then, "else_branch": other}


def test_if_with_a_known_condition_takes_its_branch():
    for flag, expected in ((True, "negative"), (False, "nn.relu")):
        mod = module(
            [node("If", ["c"], ["y"], **branches())], [info("x", [2])], [info("y", [2])],
            {"c": np.array(flag)},
        )  # fmt: skip
        assert calls(mod) == [expected]


def test_if_at_run_time():
    mod = module(
        [node("If", ["c"], ["y"], **branches())],
        [info("x", [2]), info("c", [], TensorProto.BOOL)],
        [info("y", [2])],
    )
    x = np.array([-1, 2], np.float32)
    for flag, want in ((True, [1, -2]), (False, [0, 2])):
        got = evaluate(mod["main"], [x, np.array(flag)], mod)
        np.testing.assert_array_equal(got, want)


def test_model_functions_are_inlined():
    body = node("LeakyRelu", ["a"], ["b"])
    body.attribute.add(name="alpha", ref_attr_name="slope", type=1)
    function = helper.make_function(
        "my", "Leaky", ["a"], ["b"], [body], [helper.make_opsetid("", 17)], ["slope"]
    )
    mod = module(
        [node("Leaky", ["x"], ["y"], domain="my", slope=0.5)],
        [info("x", [2])],
        [info("y", [2])],
        functions=[function],
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my", 1)],
    )
    got = evaluate(mod["main"], [np.array([-2, 2], np.float32)], mod)
    np.testing.assert_allclose(got, [-1, 2])


def test_functions_that_call_themselves():
    function = helper.make_function(
        "my", "F", ["a"], ["b"], [node("F", ["a"], ["b"], domain="my")],
        [helper.make_opsetid("my", 1)],
    )  # fmt: skip
    with pytest.raises(ModelFormatError, match="without end"):
        module(
            [node("F", ["x"], ["y"], domain="my")], [info("x", [2])], [info("y", [2])],
            functions=[function],
            opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my", 1)],
        )  # fmt: skip


def test_an_output_that_is_an_input_or_a_weight():
    weights = {"w": np.ones((3,), np.float32)}
    mod = module([], [info("x", [2])], [info("x", [2]), info("w", [3])], weights)
    x = np.array([1, 2], np.float32)
    got = evaluate(mod["main"], [x], mod)
    np.testing.assert_array_equal(got[0], x)
    np.testing.assert_array_equal(got[1], weights["w"])


def test_files(tmp_path):
    import onnx

    graph = helper.make_graph(
        [node("Relu", ["x"], ["y"])], "g", [info("x", ["n", 2])], [info("y", ["n", 2])]
    )
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph), path)
    assert [str(dim) for dim in inputs(path)["x"].shape] == ["n", "2"]
    assert tuple(load(path, {"x": (3, 2)})["main"].ret_type.shape) == (3, 2)
    for name in ("missing.onnx", "m.unknown", "m.bin"):
        with pytest.raises(ModelFormatError):
            load(tmp_path / name)


def test_mutated_models_raise_only_our_errors():
    weights = {
        "w": np.ones((4, 3, 3, 3), np.float32),
        "b": np.ones((4,), np.float32),
        "shape": np.array([1, -1]),
        "scales": np.array([1, 1, 2, 2], np.float32),
    }
    nodes = [
        node("Conv", ["x", "w", "b"], ["a"], pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
        node("MaxPool", ["a"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Resize", ["c", "", "scales"], ["d"], mode="nearest"),
        node("Concat", ["d", "a"], ["e"], axis=1),
        node("Reshape", ["e", "shape"], ["f"]),
        node("Softmax", ["f"], ["y"], axis=1),
    ]
    graph = helper.make_graph(
        nodes, "g", [info("x", [1, 3, 8, 8])], [info("y", None)],
        [numpy_helper.from_array(w, n) for n, w in weights.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    data = model.SerializeToString()
    rng = random.Random(11)
    for _ in range(400):
        mutant = bytearray(data)
        for _ in range(rng.choice([1, 1, 3])):
            mutant[rng.randrange(len(mutant))] = rng.randrange(256)
        try:
            import_model(parse_model(bytes(mutant)), "m.onnx")
        except IxionError:
            continue
