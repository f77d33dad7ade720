"""Structure of an ONNX file: nodes, attributes, values, subgraphs, functions; and hostile bytes."""

import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ixion.base.errors import ModelFormatError
from ixion.frontend.onnx.model import Reference, parse_model, read_model


def small_model():
    branch = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "branch",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    node = helper.make_node(
        "Thing",
        ["x", "", "w"],
        ["z"],
        name="thing",
        domain="test",
        f=1.5,
        i=-3,
        s="word",
        floats=[1.0, 2.0],
        ints=[1, -2, 3],
        strings=["a", "b"],
        t=numpy_helper.from_array(np.arange(3, dtype=np.int64)),
        g=branch,
    )
    graph = helper.make_graph(
        [node],
        "main",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, None])],
        [helper.make_tensor_value_info("z", TensorProto.INT64, [])],
        [numpy_helper.from_array(np.ones((2, 2), np.float32), "w")],
        value_info=[helper.make_tensor_value_info("q", TensorProto.FLOAT, [1])],
    )
    body = helper.make_node("LeakyRelu", ["a"], ["b"])
    body.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=1))
    function = helper.make_function(
        "test", "Leaky", ["a"], ["b"], [body], [helper.make_opsetid("", 17)], ["slope"]
    )
    return helper.make_model(
        graph,
        functions=[function],
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("test", 1)],
        producer_name="me",
    )


def test_everything_is_read():
    model = parse_model(small_model().SerializeToString())
    assert model.opset() == 17
    assert model.producer == "me"
    node = model.graph.nodes[0]
    assert (node.op_type, node.domain, node.name) == ("Thing", "test", "thing")
    assert (node.inputs, node.outputs) == (("x", "", "w"), ("z",))
    attributes = node.attributes
    assert attributes["f"] == 1.5
    assert attributes["i"] == -3
    assert attributes["s"] == b"word"
    assert attributes["floats"] == [1.0, 2.0]
    assert attributes["ints"] == [1, -2, 3]
    assert attributes["strings"] == [b"a", b"b"]
    assert attributes["t"].numpy().tolist() == [0, 1, 2]
    assert attributes["g"].nodes[0].op_type == "Identity"
    assert model.graph.inputs[0].shape == ("N", 3, None)
    assert model.graph.outputs[0].shape == ()
    assert model.graph.values["q"].elem_type == TensorProto.FLOAT
    assert model.graph.initializers["w"].numpy().tolist() == [[1, 1], [1, 1]]
    function = model.functions["test", "Leaky", ""]
    assert function.nodes[0].attributes["alpha"] == Reference("slope")
    assert function.attributes == ("slope",)


def test_a_file_larger_than_the_window(tmp_path):
    weights = np.random.default_rng(0).standard_normal((600, 600)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name=f"node{i}") for i in range(50)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 600])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 600])],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(weights + 1, "v")],
    )
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph), path)
    model = read_model(path)
    assert [node.name for node in model.graph.nodes] == [f"node{i}" for i in range(50)]
    np.testing.assert_array_equal(model.graph.initializers["w"].numpy(), weights)
    np.testing.assert_array_equal(model.graph.initializers["v"].numpy(), weights + 1)


def test_a_file_cut_short_anywhere():
    data = small_model().SerializeToString()
    for length in range(len(data)):
        try:
            parse_model(data[:length])
        except ModelFormatError:
            continue


def read_all(graph):
    for tensor in graph.initializers.values():
        if hasattr(tensor, "numpy"):
            tensor.numpy()
    for node in graph.nodes:
        for value in node.attributes.values():
            if hasattr(value, "numpy"):
                value.numpy()


def test_mutated_bytes_raise_one_kind_of_error():
    data = small_model().SerializeToString()
    rng = random.Random(7)
    for _ in range(3000):
        mutant = bytearray(data)
        for _ in range(rng.choice([1, 1, 2, 5, 20])):
            kind = rng.randrange(4)
            at = rng.randrange(len(mutant))
            if kind == 0:
                mutant[at] = rng.randrange(256)
            elif kind == 1:
                del mutant[at : at + rng.randrange(1, 9)]
            elif kind == 2:
                mutant[at:at] = rng.randbytes(rng.randrange(1, 9))
            else:
                mutant[at : at + 4] = b"\xff\xff\xff\xff"
            if not mutant:
                mutant = bytearray(b"\x00")
        try:
            read_all(parse_model(bytes(mutant)).graph)
        except ModelFormatError:
            continue


def test_random_bytes():
    rng = random.Random(3)
    for _ in range(500):
        with pytest.raises(ModelFormatError):
            parse_model(b"\x00" + rng.randbytes(rng.randrange(200)))


def nested_groups(depth):
    data = b""
    for _ in range(depth):
        attribute = b"\x0a\x01g" + b"\x32" + varint(len(data)) + data
        node = b"\x22\x01N" + b"\x2a" + varint(len(attribute)) + attribute
        data = b"\x0a" + varint(len(node)) + node
    return b"\x3a" + varint(len(data)) + data


def varint(value):
    out = bytearray()
    while True:
        value, byte = value >> 7, value & 0x7F
        out.append(byte | (0x80 if value else 0))
        if not value:
            return bytes(out)


def test_graphs_nested_without_end():
    assert parse_model(nested_groups(10)).graph.nodes
    with pytest.raises(ModelFormatError, match="too deep"):
        parse_model(nested_groups(3000))


@pytest.mark.parametrize("name", ["missing.onnx", "."])
def test_what_is_no_file(tmp_path, name):
    with pytest.raises(ModelFormatError):
        read_model(tmp_path / name)


def test_empty_file(tmp_path):
    path = tmp_path / "empty.onnx"
    path.write_bytes(b"")
    with pytest.raises(ModelFormatError, match="no graph"):
        read_model(path)


def test_a_length_beyond_the_file(tmp_path):
    path = tmp_path / "long.onnx"
    path.write_bytes(b"\x3a" + varint(1 << 62) + b"\x00" * 100)
    with pytest.raises(ModelFormatError):
        read_model(path)
