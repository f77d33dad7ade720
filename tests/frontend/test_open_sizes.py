"""Models with open sizes: imported once, right at every size. The oracle comes with onnx."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from ixion.analysis.evaluate import evaluate
from ixion.base import dim as dims
from ixion.base.errors import InputError
from ixion.driver.binding import bind_inputs
from ixion.frontend.onnx.importer import import_model
from ixion.frontend.onnx.model import parse_model
from ixion.ir import Call, Function, IRModule, Op, TensorType, TupleType, parse
from ixion.ir.equal import assert_structural_equal
from ixion.ir.visitor import post_order
from ixion.transform import SettleSizes, guards_of
from ixion.transform.infer_type import InferType

RNG = np.random.default_rng(11)
FLOAT, INT = np.float32, np.int64
ONE = np.ones(1, FLOAT)


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, INT)


def model(nodes: list[Any], inputs: dict[str, Any], fixed: dict[str, Any], opset: int = 17) -> Any:
    """``inputs``: shapes (of numbers and names) by name, an int dtype where the name ends in _i."""
    values = [
        helper.make_tensor_value_info(
            name, TensorProto.INT64 if name.endswith("_i") else TensorProto.FLOAT, shape
        )
        for name, shape in inputs.items()
    ]
    weights = [numpy_helper.from_array(array, name) for name, array in fixed.items()]
    made = {name for node in nodes for name in node.output}
    used = {name for node in nodes for name in node.input}
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None)
        for node in nodes for name in node.output if name in made - used
    ]  # fmt: skip
    graph = helper.make_graph(nodes, "g", values, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def node(kind: str, inputs: str, output: str, **attrs: Any) -> Any:
    names = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(kind, names, output.split(), name=f"{kind}_{output}", **attrs)


def imported(onnx_model: Any) -> IRModule:
    return import_model(parse_model(onnx_model.SerializeToString()), "test.onnx")


def leaves(kind: Any) -> list[TensorType]:
    return list(kind.fields) if isinstance(kind, TupleType) else [kind]


def fed(inputs: dict[str, Any], sizes: dict[str, int]) -> dict[str, Any]:
    found = {}
    for name, shape in inputs.items():
        real = tuple(sizes.get(d, d) for d in shape)
        if name.endswith("_i"):
            found[name] = RNG.integers(0, 3, real)
        else:
            found[name] = RNG.standard_normal(real).astype(FLOAT)
    return found


def check(
    nodes: list[Any], inputs: dict[str, Any], fixed: dict[str, Any], *sizes: dict[str, int],
    opset: int = 17,
) -> IRModule:  # fmt: skip
    """One import, no unknown size in it, the oracle's values and shapes at each of ``sizes``."""
    made = model(nodes, inputs, fixed, opset)
    module = imported(made)
    function = module["main"]
    assert isinstance(function, Function)
    for expr in post_order(function.body):
        if not isinstance(expr, Op):
            for kind in leaves(expr.checked_type):
                assert not any(isinstance(d, dims.Any) for d in kind.shape), str(expr)
    guards = guards_of(module)
    oracle = ReferenceEvaluator(made)
    for one in sizes:
        feeds = fed(inputs, one)
        wants = oracle.run(None, feeds)
        assert all(guard.holds(one) for guard in guards), [str(g) for g in guards]
        gots = evaluate(module, feeds)
        gots = gots if isinstance(gots, tuple) else (gots,)
        for got, want, kind in zip(gots, wants, leaves(function.body.checked_type), strict=True):
            assert got.dtype == want.dtype
            assert tuple(dims.evaluate(d, one) for d in kind.shape) == got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    return module


def calls(module: IRModule) -> list[str]:
    found = post_order(module["main"].body)
    return [c.op.name for c in found if isinstance(c, Call) and isinstance(c.op, Op)]


SHAPE = [node("Shape", "x", "shape")]
N2 = ({"n": 2}, {"n": 5})
NM = ({"n": 2, "m": 3}, {"n": 4, "m": 1}, {"n": 1, "m": 6})


def test_heads_by_shape_gather_concat_and_reshape() -> None:
    nodes = [
        *SHAPE,
        node("Gather", "shape zero", "batch", axis=0),
        node("Gather", "shape one", "length", axis=0),
        node("Unsqueeze", "batch axis", "b"),
        node("Unsqueeze", "length axis", "s"),
        node("Concat", "b s four two", "wanted", axis=0),
        node("Reshape", "x wanted", "heads"),
        node("Transpose", "heads", "y", perm=[0, 2, 1, 3]),
    ]
    fixed = {
        "zero": np.array(0), "one": np.array(1), "axis": ints(0), "four": ints(4), "two": ints(2)
    }  # fmt: skip
    module = check(nodes, {"x": ("n", "m", 8)}, fixed, *NM)
    assert calls(module) == ["reshape", "transpose"]  # the arithmetic on shapes is gone


def test_reshape_with_an_inferred_size_and_a_copied_one() -> None:
    nodes = [
        *SHAPE,
        node("Slice", "shape from to", "lead"),
        node("Concat", "lead rest", "wanted", axis=0),
        node("Reshape", "x wanted", "y"),
    ]
    fixed = {"from": ints(0), "to": ints(1), "rest": ints(-1)}
    check(nodes, {"x": ("n", 3, "m")}, fixed, *NM)
    check([node("Reshape", "x wanted", "y")], {"x": ("n", 4, "m")}, {"wanted": ints(0, -1)}, *NM)


@pytest.mark.parametrize(
    ("start", "end", "step"),
    [
        (1, 1 << 40, 1), (0, -1, 1), (-1, 1 << 40, 1), (-3, 1 << 40, 1), (0, 1, 1), (0, 3, 1),
        (0, 1 << 40, 2), (-1, -(1 << 40), -1), (1, -1, 2), (-2, -1, 1),
    ],
)  # fmt: skip
def test_slices_of_an_open_axis(start: int, end: int, step: int) -> None:
    fixed = {"start": ints(start), "end": ints(end), "axis": ints(1), "step": ints(step)}
    sizes = [{"n": n} for n in (4, 5, 9)] + ([{"n": 2}] if (start, end) != (1, -1) else [])
    check([node("Slice", "x start end axis step", "y")], {"x": (2, "n", 3)}, fixed, *sizes)


def test_a_table_cut_to_the_length_of_the_input() -> None:
    nodes = [
        *SHAPE,
        node("Gather", "shape one", "length", axis=0),
        node("Unsqueeze", "length zero", "to"),
        node("Slice", "ids zero to axis", "positions"),
        node("Gather", "table positions", "rows"),
        node("Add", "x rows", "y"),
    ]
    fixed = {
        "one": np.array(1), "zero": ints(0), "axis": ints(1), "ids": np.arange(8)[None],
        "table": RNG.standard_normal((8, 4)).astype(FLOAT),
    }  # fmt: skip
    module = check(nodes, {"x": ("n", "m", 4)}, fixed, *NM)
    assert [str(guard) for guard in guards_of(module)] == [
        "m <= 8 (strided_slice: a slice must lie within its axis)"
    ]


def test_elements_of_an_open_axis() -> None:
    for index in (np.array(0), np.array(-1), ints(1), ints(-1, 0, 1), np.array([[0], [-2]])):
        nodes = [node("Gather", "x index", "y", axis=1)]
        check(nodes, {"x": (2, "n", 3)}, {"index": index}, {"n": 2}, {"n": 6})


def test_expanding_to_a_computed_shape() -> None:
    nodes = [*SHAPE, node("Expand", "row shape", "y")]
    check(nodes, {"x": ("n", "m", 4)}, {"row": RNG.random((1, 4)).astype(FLOAT)}, *NM)
    # What torch writes for expand(-1, n, -1): a size of -1 keeps what is there.
    nodes = [
        *SHAPE,
        node("ConstantOfShape", "rank", "ones", value=numpy_helper.from_array(ints(1))),
        node("Gather", "shape one", "length", axis=0),
        node("Unsqueeze", "length zero", "m"),
        node("Concat", "minus m minus", "wanted", axis=0),
        node("Mul", "ones minus", "marks"),
        node("Equal", "wanted marks", "kept"),
        node("Where", "kept ones wanted", "sizes"),
        node("Expand", "row sizes", "y"),
    ]
    fixed = {
        "one": np.array(1), "zero": ints(0), "rank": ints(3), "minus": ints(-1),
        "row": RNG.random((1, 1, 4)).astype(FLOAT),
    }  # fmt: skip
    check(nodes, {"x": ("n", "m", 4)}, fixed, *NM)


def test_tensors_made_of_sizes() -> None:
    nodes = [
        *SHAPE,
        node("ConstantOfShape", "shape", "filled", value=numpy_helper.from_array(ONE)),
        node("Add", "filled x", "a"),
        node("Gather", "shape one", "length", axis=0),
        node("Range", "zero length step", "counted"),
        node("Range", "length zero back", "down"),
        node("Mul", "counted down", "b"),
        node("Size", "x", "size"),
        node("Cast", "size", "many", to=TensorProto.FLOAT),
        node("ReduceSum", "x", "total", keepdims=0),
        node("Div", "total many", "c"),
    ]
    fixed = {"one": np.array(1), "zero": np.array(0), "step": np.array(1), "back": np.array(-1)}
    module = check(nodes, {"x": ("n", "m")}, fixed, *NM)
    assert {"iota", "sizes"} <= set(calls(module))
    assert not {"shape_of", "arange", "ndarray_size"} & set(calls(module))


def test_a_causal_mask_by_comparing_counts() -> None:
    nodes = [
        *SHAPE,
        node("Gather", "shape one", "length", axis=0),
        node("Range", "zero length one", "across"),
        node("Unsqueeze", "across axis", "down"),
        node("LessOrEqual", "across down", "seen"),
        node("Where", "seen x low", "y"),
    ]
    fixed = {
        "one": np.array(1), "zero": np.array(0), "axis": ints(1), "low": np.array(-9, FLOAT)
    }  # fmt: skip
    check(nodes, {"x": ("m", "m")}, fixed, {"m": 1}, {"m": 4})


def test_tile_pad_and_top_k_by_computed_numbers() -> None:
    nodes = [
        *SHAPE,
        node("Gather", "shape first", "n", axis=0),
        node("Concat", "one n", "reps", axis=0),
        node("Tile", "row reps", "tiled"),
        node("Sub", "ten n", "missing"),
        node("Concat", "zero zero missing zero", "widths", axis=0),
        node("Pad", "x widths", "padded"),
        node("Sub", "n one", "k"),
        node("TopK", "x k", "best places", axis=0),
    ]
    fixed = {
        "first": ints(0), "one": ints(1), "zero": ints(0), "ten": ints(10),
        "row": RNG.random((2, 3)).astype(FLOAT),
    }  # fmt: skip
    check(nodes, {"x": ("n", 3)}, fixed, {"n": 2}, {"n": 7})


def test_parts_of_an_open_axis() -> None:
    check([node("Split", "x", "a b", axis=1)], {"x": (2, "n", 3)}, {}, {"n": 4}, {"n": 6})
    nodes = [
        *SHAPE,
        node("Slice", "shape one two", "n"),
        node("Div", "n two", "half"),
        node("Sub", "n half", "rest"),
        node("Concat", "half rest", "sizes", axis=0),
        node("Split", "x sizes", "a b", axis=1),
    ]
    check(nodes, {"x": (2, "n", 3)}, {"one": ints(1), "two": ints(2)}, {"n": 4}, {"n": 7})


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resize_by_scales_and_by_sizes(mode: str) -> None:
    common = {"mode": mode, "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    sizes = ({"h": 3, "w": 4}, {"h": 5, "w": 2})
    fixed = {"scales": np.array([1, 1, 2, 2], FLOAT)}
    nodes = [node("Resize", "x - scales", "y", **common)]
    made = check(nodes, {"x": (1, 2, "h", "w")}, fixed, *sizes)
    assert calls(made) == ["image.resize2d"]
    nodes = [
        node("Shape", "other", "shape"),
        node("Slice", "shape two four", "image"),
        node("Concat", "lead image", "sizes", axis=0),
        node("Resize", "x - - sizes", "y", **common),
    ]
    inputs = {"x": (1, 2, "h", "w"), "other": (1, 3, "a", "b")}
    fixed = {"two": ints(2), "four": ints(4), "lead": ints(1, 2)}
    check(nodes, inputs, fixed, {"h": 3, "w": 4, "a": 6, "b": 8}, {"h": 2, "w": 2, "a": 4, "b": 6})


def test_sizes_scaled_in_floating_point() -> None:
    nodes = [
        *SHAPE,
        node("Slice", "shape two four", "image"),
        node("Cast", "image", "real", to=TensorProto.FLOAT),
        node("Mul", "real scale", "scaled"),
        node("Floor", "scaled", "whole"),
        node("Cast", "whole", "wanted", to=TensorProto.INT64),
        node("Concat", "lead wanted", "sizes", axis=0),
        node("Resize", "x - - sizes", "y", mode="linear"),
    ]
    fixed = {
        "two": ints(2), "four": ints(4), "lead": ints(1, 2), "scale": np.array([1.5, 0.5], FLOAT)
    }  # fmt: skip
    module = check(nodes, {"x": (1, 2, "h", "w")}, fixed, {"h": 3, "w": 4}, {"h": 4, "w": 7})
    assert str(module["main"].body.checked_type.shape[2]) == "h + (h // 2)"
    assert calls(module) == ["image.resize2d"]


def test_windows_over_an_open_image() -> None:
    nodes = [
        node("Conv", "x w", "a", strides=[2, 2], pads=[1, 1, 1, 1]),
        node("MaxPool", "x", "b", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
        node("AveragePool", "x", "c", kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", "x", "d"),
        node("ConvTranspose", "x v", "e", strides=[2, 2]),
        node("Flatten", "x", "f"),
    ]
    fixed = {
        "w": RNG.standard_normal((4, 2, 3, 3)).astype(FLOAT),
        "v": RNG.standard_normal((2, 3, 2, 2)).astype(FLOAT),
    }
    check(nodes, {"x": ("n", 2, "h", "w_")}, fixed,
          {"n": 1, "h": 6, "w_": 8}, {"n": 3, "h": 7, "w_": 5})  # fmt: skip


@pytest.mark.parametrize("auto", ["SAME_UPPER", "SAME_LOWER"])
def test_automatic_padding_of_an_open_image(auto: str) -> None:
    nodes = [
        node("Conv", "x w", "a", strides=[2, 2], auto_pad=auto),
        # The oracle pools wrongly with SAME_LOWER.
        node("MaxPool", "x", "b", kernel_shape=[3, 2], strides=[2, 3], auto_pad="SAME_UPPER"),
        node("Conv", "x w", "c", auto_pad=auto),
    ]
    fixed = {"w": RNG.standard_normal((4, 2, 3, 3)).astype(FLOAT)}
    check(nodes, {"x": (1, 2, "h", "w_")}, fixed, {"h": 6, "w_": 8}, {"h": 7, "w_": 5})


def test_batches_that_broadcast_only_at_run_time() -> None:
    nodes = [node("MatMul", "x y", "a"), node("Add", "x z", "b")]
    inputs = {"x": ("n", 3, 4), "y": ("m", 4, 2), "z": ("m", 1, 4)}
    check(nodes, inputs, {}, {"n": 2, "m": 2}, {"n": 1, "m": 3}, {"n": 3, "m": 1})


def test_what_an_import_assumes_is_a_guard() -> None:
    nodes = [node("Squeeze", "x", "a"), node("Split", "x sizes", "b c", axis=0)]
    made = model(nodes, {"x": ("n", 1, "m")}, {"sizes": ints(2, 3)})
    module = imported(made)
    # The sizes of the parts say what n is; m must not be 1, or the squeeze would drop it too.
    assert [tuple(map(str, p.checked_type.shape)) for p in module["main"].params] == [
        ("5", "1", "m")
    ]
    (guard,) = guards_of(module)
    assert (guard.kind, str(guard.left), guard.right, guard.op) == ("differ", "m", 1, "squeeze")
    assert "Squeeze_a" in str(guard.span)
    assert guards_of(parse(module.astext()))[0] == guard
    assert bind_inputs(module, {"x": (5, 1, 4)})["main"].body.checked_type
    with pytest.raises(InputError, match="m = 1"):
        bind_inputs(module, {"x": (5, 1, 1)})


def test_indices_into_open_axes() -> None:
    nodes = [
        node("GatherND", "x at_i", "a"),
        node("GatherElements", "x like_i", "b", axis=1),
        node("OneHot", "like_i depth values", "c"),
        node("CumSum", "x axis", "d"),
        node("ReduceMean", "x", "e", axes=[1], keepdims=0),
        node("ArgMax", "x", "f", axis=1),
    ]
    fixed = {"depth": np.array(4), "values": np.array([0, 1], FLOAT), "axis": np.array(1)}
    inputs = {"x": ("n", "m", 3), "at_i": ("k", 2), "like_i": ("n", "k", 3)}
    check(nodes, inputs, fixed, {"n": 3, "m": 3, "k": 2}, {"n": 4, "m": 5, "k": 1})


def test_products_of_open_matrices() -> None:
    nodes = [
        node("MatMul", "x y", "a"),
        node("Transpose", "y", "turned", perm=[0, 1, 3, 2]),
        node("MatMul", "a turned", "b"),
        node("Softmax", "b", "c", axis=-1),
        node("Einsum", "x y", "d", equation="bhij,bhjk->bik"),
    ]
    check(nodes, {"x": ("n", 2, "m", 4), "y": ("n", 2, 4, "m")}, {}, *NM)


def test_a_recurrent_layer_over_open_steps_and_batch() -> None:
    weights = {
        "w": RNG.standard_normal((1, 16, 3)).astype(FLOAT),
        "r": RNG.standard_normal((1, 16, 4)).astype(FLOAT),
    }
    nodes = [node("LSTM", "x w r", "y h c", hidden_size=4)]
    check(nodes, {"x": ("t", "n", 3)}, weights, {"t": 2, "n": 1}, {"t": 5, "n": 3})


def test_names_of_the_file_are_kept_and_programs_read_back() -> None:
    module = imported(model([node("Relu", "x", "y")], {"x": ("batch", "seq len")}, {}))
    assert [str(d) for d in module["main"].params[0].checked_type.shape] == ["batch", "seq_len"]
    nodes = [*SHAPE, node("Expand", "row shape", "y")]
    made = imported(model(nodes, {"x": ("n", "m", 4)}, {"row": np.ones((1, 4), FLOAT)}))
    again = parse(made.astext())
    assert_structural_equal(InferType()(again), made)
    assert "broadcast_to(" in made.astext(show_meta_data=False)
    assert "shape=[n, m, 4]" in made.astext(show_meta_data=False)


def test_names_that_are_no_names() -> None:
    shape = ("batch-size", "?", "if", "", "past", "past + 1", "2nd", "-1")
    made = imported(model([node("Relu", "x", "y")], {"x": shape}, {}))
    kind = made["main"].params[0].checked_type
    names = ["batch_size", "x_1", "if_", "x_3", "past", "past + 1", "_2nd", "x_7"]
    assert [str(d) for d in kind.shape] == names
    x = np.ones((2, 3, 1, 2, 4, 5, 1, 2), FLOAT)
    assert evaluate(made, [x]).shape == x.shape
    assert bind_inputs(made, {"x": x.shape})["main"].body.checked_type.shape == x.shape
    with pytest.raises(InputError):
        bind_inputs(made, {"x": (2, 3, 1, 2, 4, 6, 1, 2)})


def test_a_size_built_into_the_model_is_no_open_size() -> None:
    nodes = [node("Reshape", "x wanted", "y")]
    module = imported(model(nodes, {"x": ("batch", 6)}, {"wanted": ints(1, 2, 3)}))
    assert tuple(module["main"].params[0].checked_type.shape) == (1, 6)
    assert guards_of(module) == []


def test_what_cannot_be_proved_is_checked_when_sizes_are_known() -> None:
    nodes = [node("Concat", "x y", "a", axis=1), node("Add", "x y", "b")]
    module = imported(model(nodes, {"x": ("n", 3), "y": ("m", 3)}, {}))
    guards = guards_of(module)
    assert [(g.kind, str(g.left), str(g.right)) for g in guards] == [
        ("equal", "n", "m"), ("broadcast", "n", "m")
    ]  # fmt: skip
    for guard in guards:
        guard.check({"n": 4, "m": 4})
    with pytest.raises(InputError, match="m = 5, n = 4") as caught:
        guards[0].check({"n": 4, "m": 5})
    assert "Concat_a" in str(caught.value)


def test_settled_programs_have_nothing_to_settle() -> None:
    nodes = [*SHAPE, node("Expand", "row shape", "y")]
    made = imported(model(nodes, {"x": ("n", "m", 4)}, {"row": np.ones((1, 4), FLOAT)}))
    assert_structural_equal(SettleSizes()(InferType()(made)), made)
