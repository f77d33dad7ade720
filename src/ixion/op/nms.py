"""Non-maximum suppression and what goes with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Expr, TupleWrapper, const
from ixion.ir.types import TensorType, TupleType, Type
from ixion.op.call import call
from ixion.op.compare import Exact
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.rounding import Array, wide
from ixion.op.sample import Draw, Sample, array, choice, flag


@register_attrs("relay.attrs.GetValidCountsAttrs")
class GetValidCountsAttrs(Attrs):
    score_threshold: float | None = attr(None, "as Relay stores it beside the argument")
    id_index: int = attr(0, "column of the class, -1 for none")
    score_index: int = attr(1, "column of the score")


@register_attrs("relay.attrs.NonMaximumSuppressionAttrs")
class NonMaximumSuppressionAttrs(Attrs):
    force_suppress: bool = attr(False, "classes suppress each other")
    top_k: int = attr(-1, "boxes considered, -1 for all")
    coord_start: int = attr(2, "first column of the coordinates")
    score_index: int = attr(1, "column of the score")
    id_index: int = attr(0, "column of the class, -1 for none")
    return_indices: bool = attr(True, "give indices instead of rows")
    invalid_to_bottom: bool = attr(False, "move kept rows to the front")


@register_attrs("relay.attrs.AllClassNonMaximumSuppressionAttrs")
class AllClassNonMaximumSuppressionAttrs(Attrs):
    output_format: str = attr("onnx", "form of the result", choices=("onnx", "tensorflow"))


def overlap(box: Array, others: Array) -> Array:
    """Intersection over union of one box with rows of boxes; corners in any order."""
    low = np.minimum(box[:2], box[2:])
    high = np.maximum(box[:2], box[2:])
    lows = np.minimum(others[:, :2], others[:, 2:])
    highs = np.maximum(others[:, :2], others[:, 2:])
    inner = np.prod(np.clip(np.minimum(high, highs) - np.maximum(low, lows), 0, None), axis=1)
    union = np.prod(high - low) + np.prod(highs - lows, axis=1) - inner
    return np.asarray(np.where(union > 0, inner / np.where(union > 0, union, 1), 0.0))


def _suppress(boxes: Array, labels: Array | None, threshold: float, most: int) -> Array:
    """Which of the boxes, best first, survive; ``most`` below 0 means no limit."""
    keep = np.ones(len(boxes), bool)
    kept = 0
    for i in range(len(boxes)):
        if not keep[i]:
            continue
        if 0 <= most <= kept:
            keep[i:] = False
            break
        kept += 1
        rivals = overlap(boxes[i], boxes[i + 1 :]) > threshold
        if labels is not None:
            rivals &= labels[i + 1 :] == labels[i]
        keep[i + 1 :] &= ~rivals
    return keep


def _infer_all_class(args: InferArgs) -> Type:
    boxes, scores = args.tensor(0), args.tensor(1)
    if len(boxes.shape) != 3 or len(scores.shape) != 3:
        args.fail("boxes are (batch, boxes, 4), scores (batch, classes, boxes)", found=scores)
    batch, classes, count = scores.shape
    rows = classes * count
    if args.attrs.output_format == "onnx":
        return TupleType((TensorType((batch * rows, 3), "int64"), TensorType((1,), "int64")))
    parts = (
        TensorType((batch, rows, 2), "int64"),
        TensorType((batch, rows), "float32"),
        TensorType((batch,), "int64"),
    )
    return TupleType(parts)


def _scalar(x: Array) -> float:
    return float(x.ravel()[0]) if x.size else -1.0


def _all_class_reference(
    attrs: AllClassNonMaximumSuppressionAttrs, inputs: tuple[Array, ...], out_type: Any
) -> Any:
    boxes, scores = wide(inputs[0]), wide(inputs[1])
    most, threshold, least = int(_scalar(inputs[2])), _scalar(inputs[3]), _scalar(inputs[4])
    batch, classes, count = scores.shape
    found: list[list[tuple[int, int, float]]] = []
    for b in range(batch):
        own: list[tuple[int, int, float]] = []
        for c in range(classes):
            order = np.argsort(-scores[b, c], kind="stable")
            order = order[scores[b, c, order] > least]
            alive = order[_suppress(boxes[b, order], None, threshold, most)]
            own.extend((c, int(i), float(scores[b, c, i])) for i in alive)
        found.append(own)
    if attrs.output_format == "onnx":
        rows = np.zeros((batch * classes * count, 3), np.int64)
        flat = [(b, c, i) for b, own in enumerate(found) for c, i, _ in own]
        rows[: len(flat)] = np.array(flat, np.int64).reshape(-1, 3)
        return rows, np.array([len(flat)], np.int64)
    pairs = np.zeros((batch, classes * count, 2), np.int64)
    values = np.zeros((batch, classes * count), np.float32)
    for b, own in enumerate(found):
        for k, (c, i, score) in enumerate(own):
            pairs[b, k], values[b, k] = (c, i), score
    return pairs, values, np.array([len(own) for own in found], np.int64)


def _all_class_samples(draw: Draw) -> Sample:
    batch, classes, count = draw.integer(1, 2), draw.integer(1, 2), draw.integer(1, 6)
    corner = array(draw, (batch, count, 2), "float32", 0, 4)
    boxes = np.concatenate(
        [corner, corner + array(draw, (batch, count, 2), "float32", 0, 3)], axis=2
    )
    scores = array(draw, (batch, classes, count), "float32", 0, 1)
    limits = (
        np.array(draw.integer(-1, 3), np.int32),
        np.array(0.3, np.float32),
        np.array(0.2, np.float32),
    )
    attrs = {"output_format": choice(draw, ("onnx", "tensorflow"))}
    return Sample((boxes, scores, *limits), attrs)


define(
    "vision.all_class_non_max_suppression",
    attrs=AllClassNonMaximumSuppressionAttrs,
    inputs=(
        "boxes", "scores", "max_output_boxes_per_class", "iou_threshold", "score_threshold",
    ),
    pattern=OpPattern.OPAQUE,
    level=5,
    infer=_infer_all_class,
    reference=_all_class_reference,
    compare=Exact(),
    samples=_all_class_samples,
    num_outputs=lambda attrs: 2 if attrs.output_format == "onnx" else 3,
    doc="Boxes that survive per batch and class, best first; rows after the count are 0.",
)  # fmt: skip


def _infer_counts(args: InferArgs) -> Type:
    data = args.tensor(0)
    if len(data.shape) != 3:
        args.fail("data is (batch, boxes, columns)", found=data)
    counts = TensorType((data.shape[0],), "int32")
    return TupleType((counts, data, TensorType(data.shape[:2], "int32")))


def _counts_reference(attrs: GetValidCountsAttrs, inputs: tuple[Array, ...], out_type: Any) -> Any:
    data, threshold = inputs[0], _scalar(inputs[1])
    valid = data[..., attrs.score_index] > threshold
    if attrs.id_index >= 0:
        valid &= data[..., attrs.id_index] >= 0
    rows = np.full_like(data, -1)
    indices = np.full(data.shape[:2], -1, np.int32)
    for b, alive in enumerate(valid):
        own = np.flatnonzero(alive)
        rows[b, : len(own)], indices[b, : len(own)] = data[b, own], own
    return valid.sum(axis=1).astype(np.int32), rows, indices


def _detections(draw: Draw) -> Array:
    batch, count = draw.integer(1, 2), draw.integer(1, 6)
    corner = array(draw, (batch, count, 2), "float32", 0, 4)
    size = array(draw, (batch, count, 2), "float32", 0.5, 3)
    labels = array(draw, (batch, count, 1), "int32", -1, 1).astype(np.float32)
    scores = array(draw, (batch, count, 1), "float32", 0, 1)
    return np.concatenate([labels, scores, corner, corner + size], axis=2)


define(
    "vision.get_valid_counts",
    attrs=GetValidCountsAttrs,
    inputs=("data", "score_threshold"),
    pattern=OpPattern.OPAQUE,
    level=5,
    infer=_infer_counts,
    reference=_counts_reference,
    compare=Exact(),
    samples=lambda draw: Sample((_detections(draw), np.array(0.3, np.float32))),
    num_outputs=3,
    doc="Rows above a score moved to the front, their number and where they were; the rest is -1.",
)


def _infer_nms(args: InferArgs) -> Type:
    data = args.tensor(0)
    if len(data.shape) != 3:
        args.fail("data is (batch, boxes, columns)", found=data)
    if not args.attrs.return_indices:
        return data
    batch, count = data.shape[:2]
    return TupleType((TensorType((batch, count), "int32"), TensorType((batch, 1), "int32")))


def _nms_one(
    attrs: NonMaximumSuppressionAttrs, rows: Array, most: int, threshold: float
) -> tuple[Array, Array]:
    """Order of the rows that are considered, best first, and which of them survive."""
    order = np.argsort(-rows[:, attrs.score_index], kind="stable")
    order = order[: attrs.top_k] if attrs.top_k > 0 else order
    best = rows[order]
    labels = best[:, attrs.id_index] if attrs.id_index >= 0 else None
    live = best[:, attrs.score_index] > 0
    if labels is not None:
        live &= labels >= 0
    keep = np.zeros(len(order), bool)
    boxes = wide(best[live, attrs.coord_start : attrs.coord_start + 4])
    own = None if labels is None or attrs.force_suppress else labels[live]
    keep[live] = _suppress(boxes, own, threshold, most)
    return order, keep


def _nms_reference(
    attrs: NonMaximumSuppressionAttrs, inputs: tuple[Array, ...], out_type: Any
) -> Any:
    data, counts, indices = inputs[:3]
    most, threshold = int(_scalar(inputs[3])), _scalar(inputs[4])
    rows = np.full_like(data, -1)
    places = np.full(data.shape[:2], -1, np.int32)
    for b, n in enumerate(counts.ravel()):
        order, keep = _nms_one(attrs, data[b, : int(n)], most, threshold)
        at = np.flatnonzero(keep)
        to = np.arange(len(at)) if attrs.invalid_to_bottom or attrs.return_indices else at
        rows[b, to] = data[b, order[at]]
        places[b, to] = indices[b, order[at]]
    if not attrs.return_indices:
        return rows
    return places, (places >= 0).sum(axis=1, keepdims=True).astype(np.int32)


def _nms_samples(draw: Draw) -> Sample:
    data = _detections(draw)
    batch, count = data.shape[:2]
    indices = np.tile(np.arange(count, dtype=np.int32), (batch, 1))
    counts = array(draw, (batch,), "int32", 0, count)
    limits = (np.array(draw.integer(-1, 3), np.int32), np.array(0.4, np.float32))
    attrs = {
        "force_suppress": flag(draw),
        "top_k": choice(draw, (-1, 2)),
        "return_indices": flag(draw),
        "invalid_to_bottom": flag(draw),
    }
    return Sample((data, counts, indices, *limits), attrs)


define(
    "vision.non_max_suppression",
    attrs=NonMaximumSuppressionAttrs,
    inputs=("data", "valid_count", "indices", "max_output_size", "iou_threshold"),
    pattern=OpPattern.OPAQUE,
    level=5,
    infer=_infer_nms,
    reference=_nms_reference,
    compare=Exact(),
    samples=_nms_samples,
    num_outputs=lambda attrs: 2 if attrs.return_indices else 1,
    doc="Boxes that overlap no better box of their class; the others become -1.",
)


def _limit(value: Any, dtype: str) -> Expr:
    return value if isinstance(value, Expr) else const(value, dtype)


def get_valid_counts(
    data: Expr, score_threshold: Any, id_index: int = 0, score_index: int = 1
) -> TupleWrapper:
    made = call(
        "vision.get_valid_counts", data, _limit(score_threshold, "float32"), id_index=id_index,
        score_index=score_index,
    )  # fmt: skip
    return TupleWrapper(made, 3)


def non_max_suppression(
    data: Expr,
    valid_count: Expr,
    indices: Expr,
    max_output_size: Any = -1,
    iou_threshold: Any = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> Any:
    made = call(
        "vision.non_max_suppression", data, valid_count, indices,
        _limit(max_output_size, "int32"), _limit(iou_threshold, "float32"),
        force_suppress=force_suppress, top_k=top_k, coord_start=coord_start,
        score_index=score_index, id_index=id_index, return_indices=return_indices,
        invalid_to_bottom=invalid_to_bottom,
    )  # fmt: skip
    return TupleWrapper(made, 2) if return_indices else made


def all_class_non_max_suppression(
    boxes: Expr,
    scores: Expr,
    max_output_boxes_per_class: Any = -1,
    iou_threshold: Any = -1.0,
    score_threshold: Any = -1.0,
    output_format: str = "onnx",
) -> TupleWrapper:
    made = call(
        "vision.all_class_non_max_suppression", boxes, scores,
        _limit(max_output_boxes_per_class, "int32"), _limit(iou_threshold, "float32"),
        _limit(score_threshold, "float32"), output_format=output_format,
    )  # fmt: skip
    return TupleWrapper(made, 2 if output_format == "onnx" else 3)
