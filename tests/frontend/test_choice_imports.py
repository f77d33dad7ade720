"""Operators with as many results as the data has, as both formats write them."""

from __future__ import annotations

import zipfile
from typing import Any

import numpy as np
import pytest
from onnx import ValueInfoProto, helper, numpy_helper

from ixion.analysis.evaluate import evaluate
from ixion.base.errors import TypeInferenceError
from ixion.frontend import load
from ixion.frontend.onnx.importer import import_model
from ixion.frontend.onnx.model import parse_model

ort = pytest.importorskip("onnxruntime")

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(11)


def f32(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def onnx_model(
    op: str, opset: int, fed: list[Array], fixed: list[Array | None], attrs: Any, outputs: int
) -> bytes:
    names, values, weights = [], [], []
    for index, array in enumerate([*fed, *fixed]):
        names.append("" if array is None else f"v{index}")
        if index < len(fed) and array is not None:
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            values.append(helper.make_tensor_value_info(names[-1], kind, array.shape))
        elif array is not None:
            weights.append(numpy_helper.from_array(array, names[-1]))
    outs = [f"out{i}" for i in range(outputs)]
    node = helper.make_node(op, names, outs, name="node", **attrs)
    results = [ValueInfoProto(name=o) for o in outs]
    graph = helper.make_graph([node], "g", values, results, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return bytes(model.SerializeToString())


def check_onnx(
    op: str, *fed: Array, fixed: list[Array | None] | None = None, opset: int = 18,
    outputs: int = 1, **attrs: Any,
) -> None:  # fmt: skip
    """The imported model against onnxruntime."""
    data = onnx_model(op, opset, list(fed), fixed or [], attrs, outputs)
    session = ort.InferenceSession(data, None, ["CPUExecutionProvider"])
    want = session.run(None, {f"v{i}": a for i, a in enumerate(fed)})
    module = import_model(parse_model(data), "test")
    got = evaluate(module["main"], list(fed), module)
    for g, w in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("opset", [9, 10, 11, 18])
def test_top_k(opset: int) -> None:
    x = np.round(f32(3, 7))
    if opset == 9:
        check_onnx("TopK", x, opset=opset, outputs=2, k=4, axis=1)
        return
    for k in (0, 1, 4, 7):
        number = np.array([k], np.int64)
        for axis in ({"axis": 0} if k < 4 else {}, {"axis": -1}):
            more = {"largest": 0, "sorted": 1} if opset > 10 else {}
            check_onnx("TopK", x, fixed=[number], opset=opset, outputs=2, **axis, **more)
            check_onnx("TopK", x, number, opset=opset, outputs=2, **axis)


def test_a_k_beyond_the_axis_is_refused_at_import() -> None:
    data = onnx_model("TopK", 11, [f32(3, 7)], [np.array([8], np.int64)], {}, 2)
    with pytest.raises(TypeInferenceError, match="larger than the axis"):
        import_model(parse_model(data), "test")


def test_nonzero_and_compress() -> None:
    x = np.round(f32(3, 4))
    check_onnx("NonZero", x)
    check_onnx("NonZero", np.zeros((2, 0), bool))
    for axis in ({}, {"axis": 0}, {"axis": -1}):
        mask = np.array([True, False, True])
        check_onnx("Compress", x, mask, **axis)
        check_onnx("Compress", x, fixed=[mask], **axis)


@pytest.mark.parametrize("rising", [0, 1])
@pytest.mark.parametrize("axis", [{}, {"axis": 0}, {"axis": -1}])
def test_unique(rising: int, axis: dict[str, int]) -> None:
    x = RNG.integers(0, 2, (5, 2)).astype(np.float32)
    check_onnx("Unique", x, outputs=4, sorted=rising, **axis)
    check_onnx("Unique", x, outputs=1, sorted=rising, **axis)


@pytest.mark.parametrize("center", [0, 1])
def test_non_max_suppression(center: int) -> None:
    boxes = RNG.integers(0, 5, (2, 7, 4)).astype(np.float32)
    scores = np.round(RNG.random((2, 3, 7)), 1).astype(np.float32)
    most, overlap = np.array([2], np.int64), np.array([0.3], np.float32)
    least = np.array([0.4], np.float32)
    for limits in ([most, overlap, least], [most, overlap], [most], [], [most, None, least]):
        check_onnx("NonMaxSuppression", boxes, scores, fixed=limits, center_point_box=center)
    check_onnx("NonMaxSuppression", boxes, scores, most, overlap, least, center_point_box=center)


# PNNX.


def pnnx(folder: Any, line: str, *args: Array, results: int = 1) -> Any:
    """The results ``y0``, ``y1`` and so on of one line on inputs 0, 1, ..."""
    letters = {"f": "f32", "i": "i64", "b": "bool"}
    lines = [
        f"pnnx.Input in{i} 0 1 {i} #{i}=({','.join(map(str, a.shape))}){letters[a.dtype.kind]}"
        for i, a in enumerate(args)
    ]
    ends = [f"y{i}" for i in range(results)]
    lines += [line, *(f"pnnx.Output out{i} 1 0 {y}" for i, y in enumerate(ends))]
    operands = {word for text in lines for word in text.split()[4:] if "=" not in word}
    path = folder / "net.pnnx.param"
    path.write_text("\n".join(["7767517", f"{len(lines)} {len(operands)}", *lines]) + "\n")
    with zipfile.ZipFile(folder / "net.pnnx.bin", "w"):
        pass
    module = load(path)
    return evaluate(module["main"], list(args), module)


def same(got: Any, *want: Any) -> None:
    for g, w in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
        assert (g.dtype, g.shape) == (np.asarray(w).dtype, np.shape(w))
        np.testing.assert_array_equal(g, w)


def test_sort_argsort_topk(tmp_path: Any) -> None:
    torch = pytest.importorskip("torch")
    x = np.round(f32(3, 5))
    values, places = torch.sort(torch.from_numpy(x), dim=0, descending=True, stable=True)
    line = "torch.sort s 1 2 0 y0 y1 dim=0 descending=True $input=0"
    same(pnnx(tmp_path, line, x, results=2), values.numpy(), places.numpy())
    line = "torch.argsort s 1 1 0 y0 dim=0 descending=True $input=0"
    same(pnnx(tmp_path, line, x), places.numpy())
    line = "torch.topk s 1 2 0 y0 y1 dim=-1 k=2 largest=False sorted=True $input=0"
    top = np.argsort(x, axis=1, kind="stable")[:, :2]
    same(pnnx(tmp_path, line, x, results=2), np.take_along_axis(x, top, 1), top)
    line = "torch.topk s 1 2 0 y0 y1 dim=-1 k=0 $input=0"
    same(pnnx(tmp_path, line, x, results=2), x[:, :0], top[:, :0])


def test_nonzero_and_masks(tmp_path: Any) -> None:
    x, mask = np.round(f32(3, 4)), RNG.random((3, 4)) < 0.5
    same(pnnx(tmp_path, "torch.nonzero n 1 1 0 y0 $input=0", x), np.argwhere(x))
    line = "torch.masked_select m 2 1 0 1 y0 $input=0 $mask=1"
    same(pnnx(tmp_path, line, x, mask), x[mask])
    row = np.array([True, False, True, True])
    same(pnnx(tmp_path, line, x, row), x[np.broadcast_to(row, x.shape)])
    line = "Tensor.index i 2 1 0 1 y0 expr=[@0] $input=0"
    same(pnnx(tmp_path, line, x, mask), x[mask])
    same(pnnx(tmp_path, line, x, row[:3]), x[row[:3]])
    line = "Tensor.index i 2 1 0 1 y0 expr=[None,@0] $input=0"
    same(pnnx(tmp_path, line, x, row), x[:, row])


def test_unique_of_torch(tmp_path: Any) -> None:
    torch = pytest.importorskip("torch")
    x = np.array([[2, 1, 2], [np.nan, np.nan, 1]], np.float32)
    values, inverse, counts = torch.unique(
        torch.from_numpy(x), return_inverse=True, return_counts=True
    )
    line = "torch.unique u 1 3 0 y0 y1 y2 return_inverse=True return_counts=True $input=0"
    same(pnnx(tmp_path, line, x, results=3), values.numpy(), inverse.numpy(), counts.numpy())
    line = "torch.unique u 1 1 0 y0 $input=0"
    same(pnnx(tmp_path, line, x), values.numpy())
    rows = RNG.integers(0, 2, (6, 2))
    values, counts = torch.unique(torch.from_numpy(rows), dim=0, return_counts=True)
    line = "torch.unique u 1 2 0 y0 y1 dim=0 return_counts=True $input=0"
    same(pnnx(tmp_path, line, rows, results=2), values.numpy(), counts.numpy())


def test_nms_of_torchvision(tmp_path: Any) -> None:
    boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 5], [20, 0, 30, 10], [0, 0, 10, 9]], np.float32)
    scores = np.array([0.5, 0.9, 0.1, 0.4], np.float32)
    # Overlaps with box 1: 50/100 and 50/90; box 3 with box 0: 90/100.
    line = "torchvision.ops.nms n 2 1 0 1 y0 iou_threshold=0.5"
    same(pnnx(tmp_path, line, boxes, scores), np.array([1, 0, 2], np.int64))
    line = "torchvision.ops.nms n 2 1 0 1 y0 iou_threshold=0.49 $boxes=0 $scores=1"
    same(pnnx(tmp_path, line, boxes, scores), np.array([1, 2], np.int64))
