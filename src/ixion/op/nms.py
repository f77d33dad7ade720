"""Non-maximum suppression and what goes with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Expr, TupleWrapper, const
from ixion.ir.types import TensorType, TupleType, Type
from ixion.op.call import call
from ixion.op.compare import Exact
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.ordering import stable_order
from ixion.op.overlap import suppressed
from ixion.op.rounding import Array
from ixion.op.sample import Draw, Sample, array, choice, flag
from ixion.op.scheduled import numbered


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


def check_boxes(args: InferArgs) -> None:
    """Boxes (batch, n, 4) and scores (batch, classes, n) go together."""
    boxes, scores = args.tensor(0), args.tensor(1)
    rule = "boxes are (batch, boxes, 4), scores (batch, classes, boxes)"
    if len(boxes.shape) != 3 or len(scores.shape) != 3:
        args.fail(rule, found=scores)
    pairs = zip(boxes.shape, (scores.shape[0], scores.shape[2], 4), strict=True)
    if any(dims.same(a, b) is False for a, b in pairs):
        args.fail(rule, found=boxes)


def _check_columns(args: InferArgs, *columns: int) -> None:
    """Data is (batch, boxes, columns), and has these columns."""
    data = args.tensor(0)
    if len(data.shape) != 3:
        args.fail("data is (batch, boxes, columns)", found=data)
    count = data.shape[2]
    for column in columns:
        if column < 0 or (isinstance(count, int) and column >= count):
            args.fail("there is no such column", expected=f"0 to {count} - 1", found=column)


def _infer_all_class(args: InferArgs) -> Type:
    check_boxes(args)
    scores = args.tensor(1)
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


def scalar(x: Array, default: float = -1.0) -> Any:
    """The number in an array of one element, ``default`` for none."""
    return x.ravel()[0] if x.size else default


def limits_fit(attrs: Any, types: tuple[Type, ...], out: Type) -> bool:
    """Boxes and scores are floats, and what limits them are numbers that compare exactly."""
    kinds = [t.dtype for t in types if isinstance(t, TensorType)]
    floats = all(dtypes.is_float(kind) for kind in kinds[:2])
    limits = dtypes.is_integer(kinds[2]) and kinds[3:] == ["float32", "float32"]
    return floats and limits and numbered(attrs, types, out)


def _counts_scheduled(attrs: Any, types: tuple[Type, ...], out: Type) -> bool:
    kinds = [t.dtype for t in types if isinstance(t, TensorType)]
    floats = dtypes.is_float(kinds[0]) and kinds[1] == "float32"
    return floats and numbered(attrs, types, out)


def _nms_scheduled(attrs: Any, types: tuple[Type, ...], out: Type) -> bool:
    kinds = [t.dtype for t in types if isinstance(t, TensorType)]
    numbers = all(dtypes.is_integer(kind) for kind in kinds[1:4])
    limits = all(dims.prod(t.shape) != 0 for t in types[3:5] if isinstance(t, TensorType))
    floats = dtypes.is_float(kinds[0]) and kinds[4] == "float32"
    return floats and numbers and limits and numbered(attrs, types, out)


def best_first(scores: Array) -> Array:
    """Positions by falling score; equal scores keep their order, NaN comes first."""
    return np.asarray(stable_order(scores, 0, False))


def _class_boxes(boxes: Array, scores: Array, most: int, threshold: Any, least: Any) -> list[int]:
    """Boxes of one class that survive, best first."""
    kept: list[int] = []
    if not threshold > 0:
        return kept
    for i in best_first(scores):
        if 0 < most <= len(kept):
            break
        rivals = scores[i] > 0 and suppressed("relay", boxes[i], boxes[kept], threshold).any()
        if scores[i] > least and scores[i] > -1 and not rivals:
            kept.append(int(i))
    return kept


def _all_class_reference(
    attrs: AllClassNonMaximumSuppressionAttrs, inputs: tuple[Array, ...], out_type: Any
) -> Any:
    boxes, scores = inputs[:2]
    most, threshold, least = int(scalar(inputs[2])), scalar(inputs[3]), scalar(inputs[4])
    batch, classes, count = scores.shape
    found: list[list[tuple[int, int, float]]] = [
        [
            (c, i, float(scores[b, c, i]))
            for c in range(classes)
            for i in _class_boxes(boxes[b], scores[b, c], most, threshold, least)
        ]
        for b in range(batch)
    ]
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
    FScheduled=limits_fit,
    num_outputs=lambda attrs: 2 if attrs.output_format == "onnx" else 3,
    doc="Boxes that survive per batch and class, best first; rows after the count are 0.",
)  # fmt: skip


def _infer_counts(args: InferArgs) -> Type:
    data = args.tensor(0)
    _check_columns(args, args.attrs.score_index, max(args.attrs.id_index, 0))
    counts = TensorType((data.shape[0],), "int32")
    return TupleType((counts, data, TensorType(data.shape[:2], "int32")))


def _counts_reference(attrs: GetValidCountsAttrs, inputs: tuple[Array, ...], out_type: Any) -> Any:
    data, threshold = inputs[0], scalar(inputs[1])
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
    FScheduled=_counts_scheduled,
    num_outputs=3,
    doc="Rows above a score moved to the front, their number and where they were; the rest is -1.",
)


def _infer_nms(args: InferArgs) -> Type:
    data, attrs = args.tensor(0), args.attrs
    _check_columns(
        args, attrs.score_index, max(attrs.id_index, 0), attrs.coord_start, attrs.coord_start + 3
    )
    wanted = (data.shape[:1], data.shape[:2])
    for i, shape in enumerate(wanted, 1):
        given = args.tensor(i).shape
        fits = len(given) == len(shape)
        if not fits or any(dims.same(a, b) is False for a, b in zip(given, shape, strict=True)):
            args.fail(f"argument {i} does not go with the data", expected=shape, found=given)
    if not args.attrs.return_indices:
        return data
    batch, count = data.shape[:2]
    return TupleType((TensorType((batch, count), "int32"), TensorType((batch, 1), "int32")))


def _nms_one(
    attrs: NonMaximumSuppressionAttrs, rows: Array, most: int, threshold: Any
) -> Array:
    """Which row comes at each place, best first; -1 where there is none or it is suppressed.

    As in Relay, a row whose score is not positive stays, suppresses nothing and does not count,
    and one of a negative class suppresses nothing.
    """
    if not threshold > 0:
        return np.arange(len(rows))
    order = best_first(rows[:, attrs.score_index])
    places = order.copy()
    if attrs.top_k > 0:
        places[attrs.top_k :] = -1
    kept: list[int] = []
    for place, row in enumerate(order[: attrs.top_k] if attrs.top_k > 0 else order):
        if len(kept) == most:
            places[place:] = -1
            break
        if rows[row, attrs.score_index] > 0:
            if _rivals(attrs, rows, int(row), kept, threshold):
                places[place] = -1
            else:
                kept.append(int(row))
    return places


def _rivals(
    attrs: NonMaximumSuppressionAttrs, rows: Array, row: int, kept: list[int], threshold: Any
) -> bool:
    """Whether one of the kept rows suppresses ``row``."""
    better = rows[kept]
    coords = slice(attrs.coord_start, attrs.coord_start + 4)
    hit = suppressed("relay", rows[row, coords], better[:, coords], threshold)
    if attrs.id_index >= 0:
        labels = better[:, attrs.id_index]
        hit &= labels >= 0
        if not attrs.force_suppress:
            hit &= labels == rows[row, attrs.id_index]
    return bool(hit.any())


def _nms_reference(
    attrs: NonMaximumSuppressionAttrs, inputs: tuple[Array, ...], out_type: Any
) -> Any:
    data, counts, indices = inputs[:3]
    most, threshold = int(scalar(inputs[3])), scalar(inputs[4])
    rows = np.full_like(data, -1)
    places = np.full(data.shape[:2], -1, np.int32)
    found = np.zeros((len(data), 1), np.int32)
    for b, n in enumerate(counts.ravel()):
        row_at = _nms_one(attrs, data[b, : max(0, int(n))], most, threshold)
        at = np.flatnonzero(row_at >= 0)
        to = np.arange(len(at)) if attrs.invalid_to_bottom or attrs.return_indices else at
        rows[b, to] = data[b, row_at[at]]
        places[b, to] = indices[b, row_at[at]]
        found[b] = len(at)
    return (places, found) if attrs.return_indices else rows


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
    FScheduled=_nms_scheduled,
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
