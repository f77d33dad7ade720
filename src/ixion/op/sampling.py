"""Where resized elements come from along one axis, and with which weights.

The coordinate modes are ratios of integers, so positions are computed in integer arithmetic: the
same formulas serve numpy and tensor expressions, and never fall on the wrong side of a pixel.
Only a region of interest or a scale that is not the ratio of the sizes needs floating point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ixion import te
from ixion.op.rounding import Array

MODES = (
    "half_pixel",
    "align_corners",
    "asymmetric",
    "pytorch_half_pixel",
    "tf_half_pixel_for_nn",
    "half_pixel_symmetric",
    "tf_crop_and_resize",
)
ROUNDINGS = ("", "round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
METHODS = ("nearest_neighbor", "linear", "cubic")


@dataclass(frozen=True)
class Sampling:
    """How one axis is resized.

    ``roi``: start and end of the region for tf_crop_and_resize; ``scale``: output over input size
    where the caller's scale counts instead of the sizes' ratio.
    """

    method: str
    mode: str
    rounding: str = ""
    alpha: float = -0.5
    exclude: bool = False
    roi: tuple[float, float] | None = None
    scale: float | None = None

    @property
    def taps(self) -> int:
        """Number of elements that a result is made of along the axis."""
        return {"nearest_neighbor": 1, "linear": 2, "cubic": 4}[self.method]

    @property
    def rational(self) -> bool:
        return self.scale is None and self.mode not in (
            "tf_crop_and_resize",
            "half_pixel_symmetric",
        )

    @property
    def rule(self) -> str:
        """Rounding for nearest_neighbor; without one, align_corners rounds and the rest floor."""
        return self.rounding or ("round" if self.mode == "align_corners" else "floor")

    def ratio(self, out: Any, size: Any, target: Any) -> tuple[Any, Any]:
        """Input coordinate of output ``out`` as numerator and denominator."""
        if self.mode == "align_corners":
            return out * (size - 1), _at_least_one(target - 1)
        if self.mode == "asymmetric":
            return out * size, target
        if self.mode == "tf_half_pixel_for_nn":
            return (out * 2 + 1) * size, target * 2
        top = (out * 2 + 1) * size - target
        if self.mode == "pytorch_half_pixel":
            top = _where_one(target, out * 0, top)
        return top, target * 2

    def nearest(self, top: Any, bottom: Any) -> Any:
        """Top / bottom rounded to an index."""
        if self.rule == "floor":
            return top // bottom
        if self.rule == "ceil":
            return -((0 - top) // bottom)
        if self.rule == "round_prefer_floor":
            return -((bottom - top * 2) // (bottom * 2))
        return (top * 2 + bottom) // (bottom * 2)

    def coordinate(self, out: Any, size: Any, target: Any) -> Any:
        """Input coordinate of output ``out``, in float32; sizes are floats or float64 expressions.

        Peers compute it so, and which pixel is nearest often hangs on the rounding: 3 / 0.6 is 5
        in float32 and below 5 otherwise. What depends on sizes alone is rounded once.
        """
        if self.mode == "tf_crop_and_resize":
            start, end = self.roi or (0.0, 1.0)
            step = _single((size - 1.0) * (end - start) / _above_zero(target - 1.0))
            moved = out * step + _single((size - 1.0) * start)
            middle = out * 0.0 + _single((size - 1.0) * (0.5 * (start + end)))
            return _where_one(target, middle, moved)
        if self.mode == "align_corners":
            step = _single((size - 1.0) / _above_zero(target - 1.0))
            return _where_one(target, out * 0.0, out * step)
        scale = target / size if self.scale is None else self.scale
        if self.mode == "asymmetric":
            return out / _single(scale)
        if self.mode == "tf_half_pixel_for_nn":
            return (out + 0.5) / _single(scale)
        inside = (out + 0.5) / _single(scale) - 0.5
        if self.mode == "pytorch_half_pixel":
            return _where_one(target, out * 0.0, inside)
        if self.mode == "half_pixel_symmetric":
            # ONNX: the part of the image that a rounded size leaves out is cut at both ends.
            return inside + _single((size - target / scale) * 0.5)
        return inside


def _where_one(target: Any, alone: Any, more: Any) -> Any:
    """``alone`` where there is one output cell, else ``more``."""
    if not isinstance(target, te.Expr):
        return alone if float(target) <= 1.0 else more
    if not isinstance(more, te.Expr):
        more = te.const(more, "int64")
    return te.select(te.compare("le", target, te.const(1, target.dtype)), alone, more)


def _above_zero(value: Any) -> Any:
    """A divisor that matters only where it is above 0."""
    return value if isinstance(value, te.Expr) else max(value, 1.0)


def _at_least_one(value: Any) -> Any:
    if isinstance(value, te.Expr):
        return te.maximum(value, 1)
    return max(value, 1)


def cubic_weights(t: Any, alpha: float) -> list[Any]:
    """Weights of the four neighbours at distance ``t`` past the second (Keys, 1981)."""
    t2 = t * t
    t3 = t2 * t
    return [
        (t3 - t2 * 2.0 + t) * alpha,
        t3 * (alpha + 2.0) - t2 * (alpha + 3.0) + 1.0,
        t3 * -(alpha + 2.0) + t2 * (2.0 * alpha + 3.0) - t * alpha,
        t2 * alpha - t3 * alpha,
    ]


def sample_numpy(s: Sampling, size: int, target: int) -> tuple[Array, Array, Array]:
    """Indices (taps, target), weights (taps, target), and which outputs lie outside the region."""
    out = np.arange(target, dtype=np.int64)
    outside = np.zeros(target, bool)
    if s.rational:
        top, bottom = s.ratio(out, size, target)
        first, near = top // bottom, s.nearest(top, bottom)
        t = (top % bottom) / bottom
    else:
        x = s.coordinate(out.astype(np.float32), float(size), float(target))
        first, t = np.floor(x).astype(np.int64), (x - np.floor(x)).astype(np.float64)
        near = _round_numpy(s.rule, x)
        if s.mode == "tf_crop_and_resize":
            outside = (x < 0) | (x > size - 1)
    if s.method == "nearest_neighbor":
        index, weight = near[None], np.ones((1, target))
    elif s.method == "linear":
        index, weight = np.stack([first, first + 1]), np.stack([1 - t, t])
    else:
        index = np.stack([first + k for k in (-1, 0, 1, 2)])
        weight = np.stack(cubic_weights(t, s.alpha))
        if s.exclude:
            weight = np.where((index < 0) | (index >= size), 0.0, weight)
            weight = weight / weight.sum(axis=0)
    return np.clip(index, 0, size - 1), weight, outside


def _round_numpy(rule: str, x: Array) -> Array:
    if rule == "floor":
        out = np.floor(x)
    elif rule == "ceil":
        out = np.ceil(x)
    elif rule == "round_prefer_floor":
        out = np.ceil(x - 0.5)
    else:
        out = np.floor(x + 0.5)
    return np.asarray(out).astype(np.int64)


def resize_numpy(x: Array, axes: Sequence[int], targets: Sequence[int], plans: Sequence[Sampling],
                 extrapolation: float = 0.0) -> Array:  # fmt: skip
    """``x`` resized along each of ``axes`` in turn, in its own dtype's arithmetic."""
    outside: Array | None = None
    for a, target, plan in zip(axes, targets, plans, strict=True):
        index, weight, beyond = sample_numpy(plan, x.shape[a], target)
        line = [1] * x.ndim
        line[a] = target
        if plan.method == "nearest_neighbor":
            x = x.take(index[0], axis=a)
        else:
            parts = (
                x.take(i, axis=a) * w.reshape(line) for i, w in zip(index, weight, strict=True)
            )
            x = sum(parts)
        here = beyond.reshape(line)
        outside = here if outside is None else outside | here
    if outside is not None and outside.any():
        x = np.where(outside, np.asarray(extrapolation, x.dtype), x)
    return x


@dataclass(frozen=True)
class TeSamples:
    """One axis of a tensor-level resize: clamped indices, weights (None means 1), outside test."""

    index: list[te.Expr]
    weight: list[te.Expr | None]
    outside: te.Expr | None


def sample_te(s: Sampling, out: te.Expr, size: Any, target: Any, dtype: str) -> TeSamples:
    """As ``sample_numpy`` for output position ``out``; weights in ``dtype``."""
    outside = None
    if s.rational:
        top, bottom = s.ratio(out, size, target)
        top = te.const(top, "int64") if isinstance(top, int) else top
        first, near = top // bottom, s.nearest(top, bottom)
        t = te.cast(top % bottom, dtype) / _float(bottom, dtype)
    else:
        x = s.coordinate(te.cast(out, "float32"), _double(size), _double(target))
        first = te.cast(te.intrinsic("floor", x), "int64")
        t, near = te.cast(x - te.intrinsic("floor", x), dtype), _round_te(s.rule, x)
        if s.mode == "tf_crop_and_resize":
            outside = te.logical_or(x < 0.0, x > _single(_double(size) - 1.0))
    return _weigh(s, first, near, t, size, outside)


def _weigh(s: Sampling, first: te.Expr, near: te.Expr, t: te.Expr, size: Any,
           outside: te.Expr | None) -> TeSamples:  # fmt: skip
    if s.method == "nearest_neighbor":
        return TeSamples([_clamped(near, size)], [None], outside)
    if s.method == "linear":
        return TeSamples([_clamped(first, size), _clamped(first + 1, size)], [1.0 - t, t], outside)
    raw = [first + k for k in (-1, 0, 1, 2)]
    weights = cubic_weights(t, s.alpha)
    if s.exclude:
        for k, i in enumerate(raw):
            inside = te.logical_and(te.compare("ge", i, 0), te.compare("lt", i, size))
            weights[k] = te.select(inside, weights[k], te.const(0.0, t.dtype))
        total = weights[0] + weights[1] + weights[2] + weights[3]
        weights = [w / total for w in weights]
    return TeSamples([_clamped(i, size) for i in raw], list(weights), outside)


def _clamped(index: te.Expr, size: Any) -> te.Expr:
    return te.minimum(te.maximum(index, 0), size - 1)


def _float(value: Any, dtype: str) -> te.Expr:
    return te.cast(value, dtype) if isinstance(value, te.Expr) else te.const(float(value), dtype)


def _double(value: Any) -> Any:
    return te.cast(value, "float64") if isinstance(value, te.Expr) else float(value)


def _single(value: Any) -> Any:
    return te.cast(value, "float32") if isinstance(value, te.Expr) else value


def _round_te(rule: str, x: te.Expr) -> te.Expr:
    if rule == "floor":
        out = te.intrinsic("floor", x)
    elif rule == "ceil":
        out = te.intrinsic("ceil", x)
    elif rule == "round_prefer_floor":
        out = te.intrinsic("ceil", x - 0.5)
    else:
        out = te.intrinsic("floor", x + 0.5)
    return te.cast(out, "int64")


def weighted_read(
    read: Any, lead: Sequence[te.Expr], samples: Sequence[TeSamples], dtype: str
) -> te.Expr:
    """The weighted sum over all taps of all axes, in ``dtype``; nearest reads pass unchanged."""
    terms: list[tuple[list[te.Expr], te.Expr | None]] = [(list(lead), None)]
    for s in samples:
        grown = []
        for index, weight in terms:
            for i, w in zip(s.index, s.weight, strict=True):
                both = w if weight is None else weight if w is None else weight * w
                grown.append(([*index, i], both))
        terms = grown
    total: te.Expr | None = None
    for index, weight in terms:
        value = read(*index)
        if weight is not None:
            value = te.cast(value, dtype) * weight
        total = value if total is None else total + value
    assert total is not None
    return total
