"""How much boxes overlap: the rules of Relay, ONNX and torchvision, in the boxes' own precision.

Suppression is a decision, so a reference in float64 would decide otherwise than every runtime does
where an overlap lies at the threshold.  Each rule is therefore a fixed order of IEEE operations in
float32 (float64 for float64 boxes), the one that onnxruntime, torchvision and TVM have; kernels
repeat it bit for bit.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ixion.op.rounding import Array

# relay: corners in any order, an empty union is no overlap, suppressed from the threshold on.
# corner, center: ONNX's two box formats; a box without area overlaps nothing; above the threshold.
# given: torchvision; corners (x1, y1, x2, y2) as they are; above the threshold.
Rule = Literal["relay", "corner", "center", "given"]


def working(dtype: Any) -> Any:
    """The dtype in which boxes of ``dtype`` are compared."""
    return np.float64 if np.dtype(dtype) == np.float64 else np.float32


def edges(rule: Rule, boxes: Array) -> tuple[Array, Array, Array, Array]:
    """Low and high edge of rows of boxes (n, 4) along the first axis, then along the second."""
    a, b, c, d = (boxes[:, i].astype(working(boxes.dtype)) for i in range(4))
    if rule == "given":
        return a, c, b, d
    if rule == "center":
        half_c, half_d = c / 2, d / 2
        return a - half_c, a + half_c, b - half_d, b + half_d
    return np.minimum(a, c), np.maximum(a, c), np.minimum(b, d), np.maximum(b, d)


def suppressed(rule: Rule, box: Array, others: Array, threshold: Any) -> Array:
    """Which of the boxes ``others`` (n, 4) one better box (4,) suppresses."""
    low, high, left, right = edges(rule, box[None])
    lows, highs, lefts, rights = edges(rule, others)
    wide = np.minimum(high, highs) - np.maximum(low, lows)
    tall = np.minimum(right, rights) - np.maximum(left, lefts)
    areas = (high - low) * (right - left), (highs - lows) * (rights - lefts)
    if rule in ("relay", "given"):
        wide, tall = np.maximum(wide, 0), np.maximum(tall, 0)
    inner = wide * tall
    union = areas[0] + areas[1] - inner
    ratio = inner / union
    if rule == "given":
        return np.asarray(ratio > threshold)
    if rule == "relay":
        return np.asarray(np.where(union <= 0, ratio.dtype.type(0), ratio) >= threshold)
    real = (wide > 0) & (tall > 0) & (inner > 0) & (areas[0] > 0) & (areas[1] > 0) & (union > 0)
    return np.asarray(real & (ratio > threshold))
