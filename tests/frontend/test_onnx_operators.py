"""Each converter on small graphs, against the evaluator that comes with onnx."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import ixion
from ixion.analysis.evaluate import evaluate
from ixion.frontend.onnx.importer import import_model
from ixion.frontend.onnx.model import parse_model

RNG = np.random.default_rng(7)


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def i64(*values):
    return np.array(values, np.int64)


def build(op, opset, inputs, fixed, attrs, outputs=1):
    """A model of one node: `inputs` are fed, `fixed` are initializers, None is left out."""
    names, values, weights = [], [], []
    for index, (array, is_fixed) in enumerate(
        [*((a, 0) for a in inputs), *((a, 1) for a in fixed)]
    ):
        if array is None:
            names.append("")
            continue
        name = f"v{index}"
        names.append(name)
        if is_fixed:
            weights.append(numpy_helper.from_array(array, name))
        else:
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            values.append(helper.make_tensor_value_info(name, kind, array.shape))
    out = [f"out{index}" for index in range(outputs)]
    node = helper.make_node(op, names, out, name="node", **attrs)
    results = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in out]
    graph = helper.make_graph([node], "g", values, results, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def run(model, feeds):
    module = import_model(parse_model(model.SerializeToString()), "test")
    got = evaluate(module["main"], [feeds[name] for name in module.attrs["input_names"]], module)
    return got if isinstance(got, tuple) else (got,)


def check(op, inputs, fixed=(), attrs=None, opset=17, outputs=1, atol=1e-5):
    model = build(op, opset, inputs, fixed, attrs or {}, outputs)
    feeds = {f"v{i}": array for i, array in enumerate(inputs) if array is not None}
    want = ReferenceEvaluator(model).run(None, feeds)
    for got, expected in zip(run(model, feeds), want, strict=True):
        assert got.dtype == expected.dtype
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=atol)


UNARY = """Abs Neg Exp Sigmoid Tanh Erf Floor Ceil Round Sign Relu Softplus Softsign Elu Selu Celu
HardSigmoid HardSwish LeakyRelu ThresholdedRelu Identity Sin Cos Atan Sinh Asinh Mish""".split()


@pytest.mark.parametrize("op", UNARY)
def test_unary(op):
    check(op, [f32(2, 3, 4) * 3], opset=18)


@pytest.mark.parametrize("op", ["Sqrt", "Log", "Reciprocal"])
def test_unary_of_positive(op):
    check(op, [np.abs(f32(2, 3)) + 0.5])


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate):
    check("Gelu", [f32(3, 4)], attrs={"approximate": approximate}, opset=20)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"])
def test_binary_broadcasts(op):
    a, b = np.abs(f32(2, 1, 4)) + 0.1, np.abs(f32(3, 1)) + 0.1
    check(op, [a, b])


@pytest.mark.parametrize("op", ["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"])
def test_comparison(op):
    check(op, [np.round(f32(3, 4)), np.round(f32(4))])


@pytest.mark.parametrize("op", ["And", "Or", "Xor"])
def test_logic(op):
    check(op, [RNG.random((2, 3)) > 0.5, RNG.random((3,)) > 0.5])


def test_more_elementwise():
    check("Not", [RNG.random((2, 3)) > 0.5])
    check("Sum", [f32(2, 3), f32(3), f32(2, 1)])
    check("Mean", [f32(2, 3), f32(2, 3)])
    check("Where", [RNG.random((2, 3)) > 0.5, f32(2, 3), f32(3)])
    check("Pow", [f32(2, 3), i64(2, 3, 1)])
    check("Mod", [i64(-7, 7, 5), i64(3, -3, 2)])
    check("Mod", [f32(5), np.array([0.7], np.float32)], attrs={"fmod": 1})
    check("IsNaN", [np.array([1, np.nan, np.inf], np.float32)])
    check("IsInf", [np.array([1, -np.inf, np.inf], np.float32)])
    check("Cast", [f32(2, 3) * 5], attrs={"to": TensorProto.INT32})
    check("Cast", [f32(2, 3)], attrs={"to": TensorProto.BOOL})


def test_clip_by_inputs_and_attributes():
    x = f32(3, 4) * 3
    low, high = np.float32(-1.0), np.float32(0.5)
    check("Clip", [x], [np.array(low), np.array(high)])
    check("Clip", [x, np.array(low)], [np.array(high)])
    check("Clip", [x, None, np.array(high)])
    check("Clip", [x], attrs={"min": -1.0, "max": 0.5}, opset=7)
    check("Clip", [i64(-5, 0, 5)], [np.array(-2), np.array(3)])


@pytest.mark.parametrize("slope", [(1,), (4,), (3, 1, 1), (1, 1)])
def test_prelu_slopes(slope):
    check("PRelu", [f32(2, 3, 5, 4)], [f32(*slope)])


@pytest.mark.parametrize(
    ("shape", "weight", "attrs"),
    [
        ((1, 3, 8, 9), (4, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((2, 4, 9, 8), (6, 2, 3, 2), {"group": 2, "strides": [2, 1], "dilations": [1, 2]}),
        ((1, 4, 7, 7), (4, 1, 3, 3), {"group": 4, "pads": [0, 1, 2, 1]}),
        ((1, 2, 9), (3, 2, 3), {"strides": [2], "pads": [2, 0]}),
        ((1, 2, 4, 5, 6), (3, 2, 2, 3, 2), {"pads": [0, 1, 0, 1, 1, 1]}),
        ((1, 2, 7, 6), (3, 2, 3, 2), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
        ((1, 2, 7, 6), (3, 2, 4, 2), {"auto_pad": "SAME_LOWER"}),
        ((1, 2, 7, 6), (3, 2, 3, 2), {"auto_pad": "VALID"}),
    ],
)
def test_conv(shape, weight, attrs):
    check("Conv", [f32(*shape)], [f32(*weight), f32(weight[0])], attrs, atol=1e-4)
    check("Conv", [f32(*shape)], [f32(*weight)], attrs, atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "weight", "attrs"),
    [
        ((1, 3, 5, 6), (3, 4, 3, 3), {"strides": [2, 2], "pads": [1, 0, 1, 1]}),
        ((1, 3, 5, 6), (3, 4, 3, 2), {"output_padding": [1, 0], "strides": [2, 2]}),
        ((1, 4, 5), (4, 2, 3), {"strides": [3]}),
    ],
)
def test_conv_transpose(shape, weight, attrs):
    check("ConvTranspose", [f32(*shape)], [f32(*weight), f32(weight[1])], attrs, atol=1e-4)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(
    "attrs",
    [
        {"kernel_shape": [3, 3], "strides": [2, 2]},
        {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 1]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
        {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER", "strides": [2, 2]},
    ],
)
def test_pool(op, attrs):
    check(op, [f32(1, 2, 8, 9)], attrs=attrs)


def test_pool_of_padding():
    attrs = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}
    check("AveragePool", [f32(1, 2, 6, 7)], attrs=attrs)
    check("GlobalAveragePool", [f32(2, 3, 4, 5)])
    check("GlobalMaxPool", [f32(2, 3, 4, 5)])
    check("GlobalAveragePool", [f32(2, 3, 4)])


def test_max_pool_indices():
    attrs = {"kernel_shape": [2, 2], "strides": [2, 2]}
    check("MaxPool", [f32(2, 2, 6, 4)], attrs=attrs, outputs=2)


@pytest.mark.parametrize("size", [3, 4])
def test_local_response(size):
    """onnx's evaluator mixes up batch and channels here, so the formula is written out."""
    x = f32(2, 6, 3, 3)
    attrs = {"size": size, "alpha": 0.5, "beta": 0.75, "bias": 2.0}
    got = run(build("LRN", 17, [x], [], attrs), {"v0": x})[0]
    low, high = (size - 1) // 2, size // 2
    for c in range(6):
        total = (x[:, max(0, c - low) : c + high + 1] ** 2).sum(axis=1)
        want = x[:, c] / (2 + 0.5 / size * total) ** 0.75
        np.testing.assert_allclose(got[:, c], want, rtol=1e-5)


@pytest.mark.parametrize(("auto", "before"), [("NOTSET", 1), ("SAME_LOWER", 1), ("SAME_UPPER", 0)])
def test_conv_transpose_to_a_stated_size(auto, before):
    x, weight = f32(1, 3, 4, 4), f32(3, 2, 3, 3)
    stated = {"output_shape": [8, 8]} if auto == "NOTSET" else {"auto_pad": auto}
    plain = run(build("ConvTranspose", 17, [x], [weight], {"strides": [2, 2]}), {"v0": x})[0]
    model = build("ConvTranspose", 17, [x], [weight], {"strides": [2, 2], **stated})
    got = run(model, {"v0": x})[0]
    # One cell of nine too many: it is cut off in front, or behind for SAME_UPPER.
    np.testing.assert_allclose(
        got, plain[:, :, before : before + 8, before : before + 8], rtol=1e-5
    )


def test_a_negative_pad_crops():
    x = f32(2, 3, 4)
    got = run(build("Pad", 17, [x], [i64(0, 0, -1, 0, 1, 0)], {}), {"v0": x})[0]
    np.testing.assert_array_equal(got[:, :3], x[:, :, 1:])
    assert got.shape == (2, 4, 3)


@pytest.mark.parametrize(
    ("a", "b", "c", "attrs"),
    [
        ((3, 4), (5, 4), (5,), {"transB": 1}),
        ((3, 4), (4, 5), (3, 5), {}),
        ((4, 3), (4, 5), (1, 5), {"transA": 1, "alpha": 0.5, "beta": 2.0}),
        ((3, 4), (5, 4), None, {"transB": 1}),
        ((3, 4), (4, 5), (3, 1), {}),
    ],
)
def test_gemm(a, b, c, attrs):
    fixed = [f32(*b)] + ([f32(*c)] if c else [])
    check("Gemm", [f32(*a)], fixed, attrs)
    check("Gemm", [f32(*a), f32(*b)], fixed[1:], attrs)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 4), (4, 5)),
        ((2, 3, 4), (4, 5)),
        ((2, 3, 4), (2, 4, 5)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((4,), (4, 5)),
        ((3, 4), (4,)),
        ((4,), (2, 4, 3)),
        ((4,), (4,)),
        ((1, 1, 3, 4), (2, 5, 4, 2)),
    ],
)
def test_matmul(a, b):
    check("MatMul", [f32(*a), f32(*b)])
    check("MatMul", [f32(*a)], [f32(*b)])


def test_normalization():
    x = f32(2, 3, 4, 5)
    stats = [f32(3), f32(3), f32(3), np.abs(f32(3)) + 0.5]
    check("BatchNormalization", [x], stats, {"epsilon": 1e-3})
    check("InstanceNormalization", [x], [f32(3), f32(3)], atol=1e-4)
    check("LayerNormalization", [x], [f32(5), f32(5)], atol=1e-4)
    check("LayerNormalization", [x], [f32(4, 5), f32(4, 5)], {"axis": 2}, atol=1e-4)
    check("LayerNormalization", [x], [f32(5)], atol=1e-4)
    check("LpNormalization", [x], attrs={"axis": 1})


@pytest.mark.parametrize("opset", [9, 13])
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
def test_softmax_of_both_kinds(op, opset):
    x = f32(2, 3, 4)
    got = run(build(op, opset, [x], [], {"axis": 1}), {"v0": x})[0]
    flat = x.reshape(2, 12) if opset == 9 else x
    want = ReferenceEvaluator(build(op, 13, [flat], [], {"axis": 1})).run(None, {"v0": flat})[0]
    np.testing.assert_allclose(got, want.reshape(x.shape), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", ["ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2", "ReduceProd"])
def test_reduce(op):
    x = f32(2, 3, 4)
    if op == "ReduceSum":
        check(op, [x], [i64(1, -1)], {"keepdims": 0})
        check(op, [x])
    else:
        check(op, [x], attrs={"axes": [1, -1], "keepdims": 0})
        check(op, [x], attrs={"axes": [0]})
    check(op, [x], [i64(1)], {"keepdims": 0}, opset=18)


def test_more_reductions():
    x = f32(2, 3, 4)
    check("ReduceLogSumExp", [x], attrs={"axes": [1]})
    check("ReduceL1", [x], attrs={"axes": [1]})
    check("ArgMax", [x], attrs={"axis": 1, "keepdims": 0})
    check("ArgMin", [x], attrs={"axis": -1})


def test_shapes_and_movement():
    x = f32(2, 3, 4)
    check("Reshape", [x], [i64(0, -1)])
    check("Reshape", [x], [i64(4, 1, 6)])
    check("Flatten", [x], attrs={"axis": 2})
    check("Flatten", [x], attrs={"axis": -1})
    check("Transpose", [x], attrs={"perm": [2, 0, 1]})
    check("Transpose", [x])
    check("Concat", [x, f32(2, 1, 4)], attrs={"axis": 1})
    check("Squeeze", [f32(1, 3, 1)], [i64(0)])
    check("Squeeze", [f32(1, 3, 1)])
    check("Unsqueeze", [x], [i64(0, -1)])
    check("Unsqueeze", [x], attrs={"axes": [1]}, opset=11)
    check("Expand", [f32(3, 1)], [i64(2, 1, 4)])
    check("Tile", [x], [i64(1, 2, 1)])
    check("Shape", [x])
    check("Shape", [x], attrs={"start": 1})
    check("Size", [x])
    check("ConstantOfShape", [], [i64(2, 3)])
    check(
        "Range",
        [],
        [np.array(1.0, np.float32), np.array(5.0, np.float32), np.array(1.5, np.float32)],
    )


def test_split():
    x = f32(2, 7)
    check("Split", [x], [i64(3, 4)], {"axis": 1}, outputs=2)
    check("Split", [f32(2, 6)], attrs={"axis": -1}, outputs=3)
    check("Split", [x], attrs={"axis": 1, "num_outputs": 3}, outputs=3, opset=18)


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ([1], [3], [1], [1]),
        ([0, -2], [2**62, 2**62], [0, 2], [1, 1]),
        ([-1], [-(2**62)], [2], [-1]),
        ([5], [1], [2], [-2]),
        ([1], [1], [1], [1]),
        ([0], [5], [2], [2]),
        ([-100, 0], [100, -1], [0, 1], [1, 1]),
    ],
)
def test_slice(starts, ends, axes, steps):
    check("Slice", [f32(3, 4, 6)], [i64(*starts), i64(*ends), i64(*axes), i64(*steps)])


def test_pad():
    x = f32(2, 3, 4)
    check("Pad", [x], [i64(0, 1, 2, 0, 0, 1), np.array(1.5, np.float32)])
    check("Pad", [x], [i64(0, 1, 2, 0, 1, 1)], {"mode": "reflect"})
    check("Pad", [x], [i64(0, 1, 2, 0, 1, 1)], {"mode": "edge"})
    check("Pad", [x], [i64(0, 1, 2, 0, 1, 1)], {"mode": "wrap"}, opset=19)


def test_indexing():
    x = f32(3, 4, 5)
    check("Gather", [x], [i64(0, -1, 2)], {"axis": 1})
    check("Gather", [x], [np.array(-1)], {"axis": 0})
    check("Gather", [x, i64(1, -1)], attrs={"axis": 2})
    check("GatherElements", [x], [RNG.integers(-4, 4, (3, 4, 5))], {"axis": 1})
    check("GatherND", [x], [np.array([[0, -1], [2, 1]])])
    check("ScatterElements", [x], [RNG.integers(0, 4, (3, 1, 5)), f32(3, 1, 5)], {"axis": 1})
    check("ScatterND", [x], [np.array([[0, 1], [2, -1]]), f32(2, 5)])
    check("OneHot", [i64(0, 2, -1)], [np.array(3), f32(2)])


def test_lstm_and_gru():
    """Bidirectional LSTM and both forms of GRU, with initial states."""
    steps, batch, size, hidden = 3, 2, 4, 5
    x = f32(steps, batch, size)
    weights = [f32(1, 4 * hidden, size), f32(1, 4 * hidden, hidden), f32(1, 8 * hidden)]
    states = [f32(1, batch, hidden), f32(1, batch, hidden)]
    attrs = {"hidden_size": hidden}
    check("LSTM", [x, *weights, None, *states], attrs=attrs, outputs=3)
    check("LSTM", [x], weights, attrs, outputs=2)
    for before in (0, 1):
        fixed = [f32(1, 3 * hidden, size), f32(1, 3 * hidden, hidden), f32(1, 6 * hidden)]
        check("GRU", [x], fixed, {**attrs, "linear_before_reset": before}, outputs=2)
    check("RNN", [x], [f32(1, hidden, size), f32(1, hidden, hidden)], attrs, outputs=2)


@pytest.mark.parametrize(("op", "gates", "extra"), [
    ("LSTM", 4, {}), ("GRU", 3, {"linear_before_reset": 1}), ("GRU", 3, {}), ("RNN", 1, {})
])  # fmt: skip
def test_recurrent_layers_compiled(op, gates, extra):
    """Both directions with initial states: one call each, and compiled as evaluated."""
    steps, batch, size, hidden = 3, 2, 4, 5
    x, states = f32(steps, batch, size), [f32(2, batch, hidden) for _ in range(1 + (op == "LSTM"))]
    shapes = [(2, gates * hidden, size), (2, gates * hidden, hidden), (2, 2 * gates * hidden)]
    weights = [f32(*shape) / 2 for shape in shapes]
    attrs = {"hidden_size": hidden, "direction": "bidirectional", **extra}
    model = build(op, 17, [x], [*weights, None, *states], attrs, outputs=1 + len(states))
    module = import_model(parse_model(model.SerializeToString()), "test")
    assert "_sequence" in str(module["main"])
    ways = []
    for way, direction in enumerate(("forward", "reverse")):
        own = [w[way : way + 1] for w in weights], [s[way : way + 1] for s in states]
        one = {**attrs, "direction": direction}
        part = build(op, 17, [x], [*own[0], None, *own[1]], one, outputs=1 + len(states))
        ways.append(numpy_directions(op, part, x, direction == "reverse"))
    got = ixion.compile(module)(x)
    for axis, value in enumerate(got):
        want = np.concatenate([way[axis] for way in ways], 0 if axis else 1)
        np.testing.assert_allclose(value, want, rtol=1e-5, atol=1e-5)


def numpy_directions(op, model, x, reverse):
    """What onnx's evaluator, which knows one direction only, makes of either."""
    for attribute in model.graph.node[0].attribute:
        if attribute.name == "direction":
            attribute.s = b"forward"
    out, *last = ReferenceEvaluator(model).run(None, {"v0": x[::-1] if reverse else x})
    return [out[::-1] if reverse else out, *last]


def test_quantization():
    x = f32(2, 3, 4) * 40
    scale, zero = np.array(0.7, np.float32), np.array(-3, np.int8)
    check("QuantizeLinear", [x], [scale, zero])
    check("QuantizeLinear", [x], [np.abs(f32(3)) + 0.1, np.array([1, 2, 3], np.uint8)], {"axis": 1})
    check("DequantizeLinear", [np.array([[-128, 0, 127]], np.int8)], [scale, zero], opset=19)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize(
    "transform", ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
)
def test_resize(mode, transform):
    x = f32(1, 2, 5, 6)
    attrs = {"mode": mode, "coordinate_transformation_mode": transform}
    scales = np.array([1, 1, 2, 1.5], np.float32)
    check("Resize", [x], [np.zeros(0, np.float32), scales], attrs, atol=1e-4)
    sizes = i64(1, 2, 3, 11)
    check("Resize", [x, None, None], [sizes], attrs, atol=1e-4)


def bilinear(plane, y, x):
    """The definition, one sample: 0 far outside, else between the clamped four cells."""
    height, width = plane.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    low_y, low_x = int(y), int(x)
    high_y, high_x = min(low_y + 1, height - 1), min(low_x + 1, width - 1)
    a, b = y - low_y, x - low_x
    top = plane[low_y, low_x] * (1 - b) + plane[low_y, high_x] * b
    return top * (1 - a) + (plane[high_y, low_x] * (1 - b) + plane[high_y, high_x] * b) * a


@pytest.mark.parametrize("half", [True, False])
def test_roi_align(half):
    x, batch = f32(2, 3, 8, 9), i64(0, 1, 1)
    boxes = np.array([[0, 0, 3, 3], [1, 2, 20, 7.5], [-9, -3, 4, 4]], np.float32)
    attrs = {
        "output_height": 3, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 0.5,
        "coordinate_transformation_mode": "half_pixel" if half else "output_half_pixel",
    }  # fmt: skip
    feeds = {"v0": x, "v1": boxes, "v2": batch}
    got = run(build("RoiAlign", 16, [x, boxes, batch], [], attrs), feeds)[0]
    shift, least = (0.5, -np.inf) if half else (0.0, 1.0)
    for r, (x1, y1, x2, y2) in enumerate(boxes * 0.5 - shift):
        high, wide = max(y2 - y1, least) / 3, max(x2 - x1, least) / 2
        for row, column in np.ndindex(3, 2):
            ys = [y1 + high * (row + f) for f in (0.25, 0.75)]
            xs = [x1 + wide * (column + f) for f in (0.25, 0.75)]
            want = np.mean([bilinear(x[batch[r], 1], a, b) for a in ys for b in xs])
            assert abs(got[r, 1, row, column] - want) < 1e-5


def test_unique():
    x = np.array([2, 1, 1, 3, 4, 3])
    for in_order in (0, 1):
        check("Unique", [x], attrs={"sorted": in_order}, outputs=4)


def test_transposed_weights_are_copied_once():
    from ixion.frontend.build.movement import transpose
    from ixion.frontend.emitter import Emitter
    from ixion.frontend.term import Term

    loads = []

    def load():
        loads.append(1)
        return np.arange(6.0).reshape(2, 3)

    emit, weight = Emitter(), Term.lazy(load, (2, 3), "float64")
    turned = transpose(emit, weight, (1, 0))
    assert transpose(emit, turned, (1, 0)) is weight
    assert not loads
    np.testing.assert_array_equal(turned.array, load().T)
    large = np.random.default_rng(0).standard_normal((300, 513))
    got = transpose(emit, Term.constant(large), (1, 0)).array
    np.testing.assert_array_equal(got, large.T)
    assert got.flags.c_contiguous
