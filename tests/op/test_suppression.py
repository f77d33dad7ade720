"""Non-maximum suppression on adversarial boxes: onnxruntime, torchvision's loop, Relay's rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ixion.op  # noqa: F401 - fills the registry
from ixion.base import dtype as dtypes
from ixion.base.errors import TypeInferenceError
from ixion.ir.op import Op
from ixion.ir.types import TensorType
from ixion.op.define import InferArgs

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

Array = np.ndarray[Any, Any]
NAN, INF = np.nan, np.inf


def run(name: str, *arrays: Array, **attrs: Any) -> list[Array]:
    op = Op.get(name)
    made = op.attrs_type(**attrs)
    types = tuple(TensorType(a.shape, dtypes.from_numpy(a.dtype)) for a in arrays)
    values = tuple(a if a.dtype.kind in "iub" else None for a in arrays)
    kind = op.get_attr("FInfer")(InferArgs(name, types, made, values)).type
    out = op.get_attr("FReference")(made, arrays, kind)
    return list(out) if isinstance(out, tuple) else [out]


def onnx_nms(center: bool, limited: bool, boxes: Array, scores: Array, *limits: Array) -> Array:
    given = [boxes, scores, *limits[: 3 if limited else 2]]
    names = [f"x{i}" for i in range(len(given))]
    node = onnx.helper.make_node("NonMaxSuppression", names, ["y"], center_point_box=int(center))
    types = [
        onnx.helper.make_tensor_value_info(
            n, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape
        )
        for n, x in zip(names, given, strict=True)
    ]
    graph = onnx.helper.make_graph([node], "g", types, [onnx.ValueInfoProto(name="y")])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.ir_version = 9
    session = ort.InferenceSession(model.SerializeToString(), None, ["CPUExecutionProvider"])
    return np.asarray(session.run(None, dict(zip(names, given, strict=True)))[0])


def drawn_boxes(rng: Any, way: int, shape: tuple[int, ...]) -> Array:
    """Corners on a coarse grid or a fine one, all equal, or with NaN and infinities among them."""
    if way == 0:
        return np.tile(np.array([0, 0, 1, 1], np.float32), (*shape, 1))
    boxes = rng.integers(0, 5 if way < 3 else 11, (*shape, 4)).astype(np.float32)
    if way == 2:
        for value, share in ((NAN, 0.1), (INF, 0.05), (-INF, 0.05)):
            boxes.ravel()[rng.random(boxes.size) < share] = value
    return boxes / np.float32(10 if way == 3 else 1)


def drawn_scores(rng: Any, way: int, shape: tuple[int, ...]) -> Array:
    """Few different values, so that there are ties and scores at the threshold; infinities too."""
    scores = (rng.integers(0, 6, shape) / 5).astype(np.float32)
    if way == 1:
        scores.ravel()[rng.random(scores.size) < 0.3] = -INF
        scores.ravel()[rng.random(scores.size) < 0.2] = INF
    return scores


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("limited", [False, True])
def test_select_boxes_is_onnxruntimes(center: bool, limited: bool) -> None:
    rng = np.random.default_rng(int(center) + 2 * int(limited))
    thresholds = np.array([0, 0.1, 0.2, 0.3, 0.5, 0.7, 1 / 3, 1], np.float32)
    for number in range(200):
        batch, classes, count = int(rng.integers(1, 3)), int(rng.integers(1, 4)), number % 9
        boxes = drawn_boxes(rng, number % 4, (batch, count))
        scores = drawn_scores(rng, number % 3, (batch, classes, count))
        limits = (
            np.array([rng.choice([0, 1, 2, 100, -1])], np.int64),
            thresholds[number % 8 : number % 8 + 1],
            np.array([rng.choice([0, 0.2, 0.4, -9])], np.float32),
        )
        want = onnx_nms(center, limited, boxes, scores, *limits)
        got = run(
            "vision.select_boxes", boxes, scores, *limits, center_point_box=center, limited=limited
        )
        np.testing.assert_array_equal(got[0], want)
        assert got[0].shape == want.shape


def test_an_overlap_at_the_threshold_suppresses_nothing_in_onnx() -> None:
    # 7 of 10 columns are common to both boxes, in float32 exactly float32(0.7).
    boxes = np.array([[[0, 0, 1, 10], [0, 0, 1, 7]]], np.float32)
    scores = np.array([[[0.9, 0.8]]], np.float32)
    limits = (np.array([9], np.int64), np.array([0.7], np.float32), np.array([0.8], np.float32))
    assert run("vision.select_boxes", boxes, scores, *limits)[0].tolist() == [[0, 0, 0]]
    low = (*limits[:2], np.array([0.1], np.float32))
    assert run("vision.select_boxes", boxes, scores, *low)[0].tolist() == [[0, 0, 0], [0, 0, 1]]
    assert onnx_nms(False, True, boxes, scores, *low).tolist() == [[0, 0, 0], [0, 0, 1]]


def torchvision_nms(boxes: Array, scores: Array, threshold: float) -> list[int]:
    """The loop of torchvision's CPU kernel, in float32 with a threshold in double."""
    order = sorted(range(len(scores)), key=lambda i: (not np.isnan(scores[i]), -scores[i], i))
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    gone = [False] * len(boxes)
    kept = []
    for n, i in enumerate(order):
        if gone[i]:
            continue
        kept.append(i)
        for j in order[n + 1 :]:
            low = np.maximum(boxes[i, :2], boxes[j, :2])
            high = np.minimum(boxes[i, 2:], boxes[j, 2:])
            wide, tall = np.maximum(np.float32(0), high - low)
            inner = wide * tall
            over = inner / (areas[i] + areas[j] - inner)
            gone[j] = gone[j] or float(over) > threshold
    return kept


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 0.7, 1.0, -1.0])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_keep_boxes_is_torchvisions(threshold: float) -> None:
    rng = np.random.default_rng(7)
    for number in range(60):
        boxes = drawn_boxes(rng, number % 4, (number % 8,))
        scores = drawn_scores(rng, number % 3, (number % 8,))
        if number % 5 == 0:
            scores[::2] = NAN
        got = run("vision.keep_boxes", boxes, scores, iou_threshold=threshold)[0]
        assert got.tolist() == torchvision_nms(boxes, scores, threshold)


def test_the_threshold_of_keep_boxes_is_a_double() -> None:
    boxes = np.array([[0, 0, 10, 1], [0, 0, 7, 1]], np.float32)
    scores = np.array([0.9, 0.8], np.float32)
    # float32(7 / 10) is a little below 0.7.
    assert run("vision.keep_boxes", boxes, scores, iou_threshold=0.7)[0].tolist() == [0, 1]
    assert run("vision.keep_boxes", boxes, scores, iou_threshold=0.69999)[0].tolist() == [0]


def relay_rows(*rows: list[float]) -> Array:
    return np.array([rows], np.float32)


def limits(most: int, threshold: float) -> tuple[Array, Array]:
    return np.array(most, np.int32), np.array(threshold, np.float32)


def test_relay_suppresses_from_the_threshold_on() -> None:
    data = relay_rows([0, 0.9, 0, 0, 2, 1], [0, 0.8, 0, 0, 1, 1])  # an overlap of 1 / 2
    valid, indices = np.array([2], np.int32), np.array([[5, 7]], np.int32)
    for threshold, kept in ((0.5, [5]), (0.51, [5, 7])):
        places, count = run(
            "vision.non_max_suppression", data, valid, indices, *limits(-1, threshold)
        )
        assert places[0, : int(count[0, 0])].tolist() == kept
        assert places[0, int(count[0, 0]) :].tolist() == [-1] * (2 - len(kept))


def test_relay_leaves_rows_whose_score_is_not_positive() -> None:
    data = relay_rows([0, 0, 0, 0, 1, 1], [0, 0.5, 0, 0, 1, 1], [0, 0.4, 0, 0, 1, 1])
    valid, indices = np.array([3], np.int32), np.array([[0, 1, 2]], np.int32)
    rows = run(
        "vision.non_max_suppression", data, valid, indices, *limits(-1, 0.5), return_indices=False
    )[0]
    assert rows[0, :, 1].tolist() == [0.5, -1, 0]
    # Once as many as wanted are kept, all others go; 0 wants none.
    for most, left in ((1, [0.5, -1, -1]), (0, [-1, -1, -1])):
        rows = run(
            "vision.non_max_suppression", data, valid, indices, *limits(most, 0.5),
            return_indices=False,
        )[0]  # fmt: skip
        assert rows[0, :, 1].tolist() == [np.float32(v) for v in left]


def test_relay_without_a_positive_threshold_chooses_nothing() -> None:
    data = relay_rows([0, 0.4, 0, 0, 1, 1], [0, 0.9, 0, 0, 1, 1])
    valid, indices = np.array([1], np.int32), np.array([[4, 5]], np.int32)
    rows = run(
        "vision.non_max_suppression", data, valid, indices, *limits(-1, 0), return_indices=False
    )[0]
    assert rows[0].tolist() == [data[0, 0].tolist(), [-1] * 6]
    scores = np.array([[[0.9, 0.8]]], np.float32)
    least = np.array(0.1, np.float32)
    count = run(
        "vision.all_class_non_max_suppression", data[:, :, 2:], scores, *limits(-1, 0), least
    )[1]
    assert count.tolist() == [0]


def test_relay_boxes_of_a_negative_class_suppress_nothing() -> None:
    data = relay_rows([-1, 0.9, 0, 0, 1, 1], [-1, 0.8, 0, 0, 1, 1], [1, 0.7, 0, 0, 1, 1])
    valid, indices = np.array([3], np.int32), np.array([[0, 1, 2]], np.int32)
    for force in (False, True):
        count = run(
            "vision.non_max_suppression", data, valid, indices, *limits(-1, 0.5),
            force_suppress=force,
        )[1]  # fmt: skip
        assert count.tolist() == [[3]]


def test_valid_counts_beyond_the_boxes_are_all_of_them() -> None:
    data = relay_rows([0, 0.9, 0, 0, 1, 1], [1, 0.8, 0, 0, 1, 1])
    indices = np.array([[0, 1]], np.int32)
    for valid, found in ((9, 2), (-3, 0)):
        count = run(
            "vision.non_max_suppression", data, np.array([valid], np.int32), indices,
            *limits(-1, 0.5),
        )[1]  # fmt: skip
        assert count.tolist() == [[found]]


def test_missing_columns_are_refused() -> None:
    data = np.zeros((1, 2, 5), np.float32)
    valid, indices = np.array([2], np.int32), np.array([[0, 1]], np.int32)
    with pytest.raises(TypeInferenceError, match="no such column"):
        run("vision.non_max_suppression", data, valid, indices, *limits(-1, 0.5))
    with pytest.raises(TypeInferenceError, match="no such column"):
        run("vision.get_valid_counts", data, np.array(0.5, np.float32), score_index=5)
    with pytest.raises(TypeInferenceError, match="go with the data"):
        run(
            "vision.non_max_suppression", np.zeros((2, 2, 6), np.float32), valid, indices,
            *limits(-1, 0.5),
        )  # fmt: skip
    with pytest.raises(TypeInferenceError, match="boxes are"):
        run(
            "vision.select_boxes", np.zeros((1, 3, 4), np.float32), np.zeros((1, 1, 2), np.float32),
            np.array(1, np.int64), *limits(1, 0.5)[1:], np.array(0, np.float32),
        )  # fmt: skip
