"""Boxes chosen by non-maximum suppression, as many rows as there are: ONNX's and torchvision's.

Relay's own operators of this kind, whose results have a fixed size, are in ``ixion.op.nms``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion.base import dim as dims
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op.bounds import Shapes
from ixion.op.call import call
from ixion.op.compare import Exact
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.nms import best_first, check_boxes, limits_fit, scalar
from ixion.op.overlap import Rule, suppressed
from ixion.op.rounding import Array
from ixion.op.sample import Draw, Sample, array, choice, flag
from ixion.op.scheduled import numbered


@register_attrs("ixion.attrs.SelectBoxesAttrs")
class SelectBoxesAttrs(Attrs):
    center_point_box: bool = attr(False, "boxes are (x centre, y centre, width, height)")
    limited: bool = attr(True, "only scores above the threshold count")


@register_attrs("ixion.attrs.KeepBoxesAttrs")
class KeepBoxesAttrs(Attrs):
    iou_threshold: float = attr(0.5, "boxes that overlap a better one by more are dropped")


def greedy(rule: Rule, boxes: Array, order: Array, most: int, threshold: Any) -> list[int]:
    """The boxes of ``order`` that no earlier kept one suppresses, at most ``most``."""
    kept: list[int] = []
    for i in order:
        if len(kept) >= most:
            break
        if not suppressed(rule, boxes[i], boxes[kept], threshold).any():
            kept.append(int(i))
    return kept


def _infer_select(args: InferArgs) -> Type:
    check_boxes(args)
    return TensorType((dims.Any(), 3), "int64")


def _select_bound(args: InferArgs) -> Shapes:
    """A row for each box of each class, or what a known limit leaves."""
    batch, classes, count = args.tensor(1).shape
    most = args.ints(2)
    each = count if not most else dims.minimum(count, max(most[0], 0))
    return ((dims.prod((batch, classes, each)), 3),)


def _select_reference(attrs: SelectBoxesAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    boxes, scores = inputs[:2]
    most, threshold, least = int(scalar(inputs[2], 0)), scalar(inputs[3], 0), scalar(inputs[4], 0)
    rule: Rule = "center" if attrs.center_point_box else "corner"
    rows: list[tuple[int, int, int]] = []
    for b, c in np.ndindex(*scores.shape[:2]):
        order = best_first(scores[b, c])
        if attrs.limited:
            order = order[scores[b, c, order] > least]
        rows.extend((b, c, i) for i in greedy(rule, boxes[b], order, most, threshold))
    return np.array(rows, np.int64).reshape(-1, 3)


def _boxes(draw: Draw, *lead: int) -> Array:
    """Boxes with corners on a grid, in any order, some of them without area."""
    return array(draw, (*lead, 4), "int32", 0, 5).astype(np.float32)


def _select_samples(draw: Draw) -> Sample:
    batch, classes, count = draw.integer(1, 2), draw.integer(1, 2), draw.integer(1, 6)
    scores = np.round(array(draw, (batch, classes, count), "float32", 0, 1), 1)
    limits = (
        np.array(draw.integer(0, 3), np.int64),
        np.array(0.3, np.float32),
        np.array(0.2, np.float32),
    )
    attrs = {"center_point_box": flag(draw), "limited": flag(draw)}
    return Sample((_boxes(draw, batch, count), scores, *limits), attrs)


define(
    "vision.select_boxes",
    attrs=SelectBoxesAttrs,
    inputs=(
        "boxes", "scores", "max_output_boxes_per_class", "iou_threshold", "score_threshold",
    ),
    pattern=OpPattern.OPAQUE,
    level=10,
    infer=_infer_select,
    reference=_select_reference,
    compare=Exact(),
    samples=_select_samples,
    FScheduled=limits_fit,
    FResultBound=_select_bound,
    doc="Rows (batch, class, box) of the boxes that survive, best first within a class.",
)  # fmt: skip


def _infer_keep(args: InferArgs) -> Type:
    boxes, scores = args.tensor(0), args.tensor(1)
    if len(boxes.shape) != 2 or len(scores.shape) != 1:
        args.fail("boxes are (boxes, 4), scores (boxes)", found=boxes)
    if dims.same(boxes.shape[0], scores.shape[0]) is False:
        args.fail("one score per box", expected=boxes.shape[0], found=scores)
    if dims.same(boxes.shape[1], 4) is False:
        args.fail("a box has four numbers", found=boxes)
    return TensorType((dims.Any(),), "int64")


def _keep_reference(attrs: KeepBoxesAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    boxes, scores = inputs
    # The threshold stays a double: an overlap of float32(0.7) is below it.
    threshold = np.float64(attrs.iou_threshold)
    kept = greedy("given", boxes, best_first(scores), len(boxes), threshold)
    return np.array(kept, np.int64)


def _keep_samples(draw: Draw) -> Sample:
    count = draw.integer(1, 8)
    scores = np.round(array(draw, (count,), "float32", 0, 1), 1)
    return Sample((_boxes(draw, count), scores), {"iou_threshold": choice(draw, (0.0, 0.3, 0.7))})


define(
    "vision.keep_boxes",
    attrs=KeepBoxesAttrs,
    inputs=("boxes", "scores"),
    pattern=OpPattern.OPAQUE,
    level=10,
    infer=_infer_keep,
    reference=_keep_reference,
    compare=Exact(),
    samples=_keep_samples,
    FScheduled=numbered,
    FResultBound=lambda args: ((args.tensor(0).shape[0],),),
    doc="Positions of the boxes that survive, best first, as torchvision.ops.nms gives them.",
)


def select_boxes(
    boxes: Expr,
    scores: Expr,
    max_output_boxes_per_class: Expr,
    iou_threshold: Expr,
    score_threshold: Expr,
    center_point_box: bool = False,
    limited: bool = True,
) -> Call:
    return call(
        "vision.select_boxes", boxes, scores, max_output_boxes_per_class, iou_threshold,
        score_threshold, center_point_box=center_point_box, limited=limited,
    )  # fmt: skip


def keep_boxes(boxes: Expr, scores: Expr, iou_threshold: float = 0.5) -> Call:
    return call("vision.keep_boxes", boxes, scores, iou_threshold=iou_threshold)
