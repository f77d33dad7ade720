"""Text in the form TVM 0.19 prints it, comments, spans and metadata JSON included."""

# ruff: noqa: E501 - the text is as TVM prints it

import base64
import json
import struct

import numpy as np

import ixion.op  # noqa: F401 - registers the operators
from ixion import ir
from ixion.ir.parser import parse


def array(values):
    """A tensor in TVM's binary format, base64."""
    head = struct.pack("<QQiiiBBH", 0xDD5E40F096B4A13F, 0, 1, 0, values.ndim, 2, 32, 1)
    shape = struct.pack(f"<{values.ndim}q", *values.shape)
    raw = head + shape + struct.pack("<q", values.nbytes) + values.tobytes()
    return base64.b64encode(raw).decode()


def constant(data):
    attrs = {"_checked_type_": "9", "data": data, "span": "0", "virtual_device_": "4"}
    return {"type_key": "relay.Constant", "attrs": attrs}


WEIGHTS = [np.arange(6, dtype="float32").reshape(2, 3), np.full((2,), 0.5, "float32")]
METADATA = json.dumps(
    {
        "root": 1,
        "nodes": [
            {"type_key": ""},
            {"type_key": "Map", "keys": ["relay.Constant"], "data": [2]},
            {"type_key": "Array", "data": [3, 8]},
            constant("0"),
            {
                "type_key": "VirtualDevice",
                "attrs": {
                    "device_type_int": "-1",
                    "memory_scope": "5",
                    "target": "0",
                    "virtual_device_id": "-1",
                },
            },
            {"type_key": "runtime.String"},
            {"type_key": "IntImm", "attrs": {"dtype": "int32", "span": "0", "value": "2"}},
            {"type_key": "Array", "data": [6]},
            constant("1"),
            {
                "type_key": "relay.TensorType",
                "attrs": {"dtype": "float32", "shape": "7", "span": "0"},
            },
        ],
        "b64ndarrays": [array(values) for values in WEIGHTS],
        "attrs": {"tvm_version": "0.19.0"},
    },
    indent=2,
)

TEXT = f"""#[version = "0.0.5"]
type tensor_t[] {{
  Leaf(Tensor[(?, 3), float32]),
  Node(tensor_t[], tensor_t[]),
}}

def @main(%data: Tensor[(1, 3), float32] /* ty=Tensor[(1, 3), float32] span=from_string:3:5 */, Primitive=1) -> (Tensor[(1, 2), float32], int64) {{
  %0 = nn.dense(%data, meta[relay.Constant][0] /* ty=Tensor[(2, 3), float32] */, units=2) /* ty=Tensor[(1, 2), float32] span=Dense:0:0 */;
  %1 = nn.bias_add(%0, meta[relay.Constant][1] /* ty=Tensor[(2), float32] */) /* ty=Tensor[(1, 2), float32] */;
  %2 = fn (%p0: Tensor[(1, 2), float32] /* ty=Tensor[(1, 2), float32] */, hash="4d2a", Primitive=1) -> Tensor[(1, 2), float32] {{
    clip(%p0, a_min=0f, a_max=6f) /* ty=Tensor[(1, 2), float32] */
  }} /* ty=fn (Tensor[(1, 2), float32]) -> Tensor[(1, 2), float32] */;
  let %x_1: Tensor[(1, 2), float32] /* ty=Tensor[(1, 2), float32] */ = %2(%1) /* ty=Tensor[(1, 2), float32] */;
  %3 = if (True /* ty=bool */) {{
    nn.softmax(%x_1, axis=1) /* ty=Tensor[(1, 2), float32] */
  }} else {{
    %x_1
  }};
  (%3, 10i64 /* ty=int64 */) /* ty=(Tensor[(1, 2), float32], int64) */
}}

#[metadata]
{METADATA}"""


def test_module_with_metadata():
    module = parse(TEXT)
    function = module["main"]
    assert function.attrs["Primitive"] == 1
    let = function.body
    dense = let.value.args[0].args[0]
    assert dense.op.name == "nn.dense"
    assert dense.attrs.units == 2
    np.testing.assert_array_equal(dense.args[1].data, WEIGHTS[0])
    np.testing.assert_array_equal(let.value.args[0].args[1].data, WEIGHTS[1])
    assert let.value.op.attrs["hash"] == "4d2a"
    assert let.value.op.body.attrs.a_max == 6.0
    choice, count = let.body.fields
    assert choice.true_branch.attrs.axis == 1
    assert count.data.dtype == "int64"
    header, leaf, node = module.get_type("tensor_t")
    assert leaf.inputs[0].shape[1] == 3
    assert node.inputs[0].func is header


def test_it_round_trips():
    module = parse(TEXT)
    assert ir.structural_equal(parse(ir.astext(module)), module)
