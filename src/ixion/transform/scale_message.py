"""What FoldScaleAxis sends through a graph: along which axes a value may be scaled.

A value ``y`` with axes ``a`` and scale ``s`` stands for ``y * s``, the vector (or small tensor)
``s`` laid along the axes ``a`` of ``y``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ixion.analysis.constants import is_non_negative, moved_constant
from ixion.base.dim import Dim
from ixion.ir import Call, Expr, TensorType
from ixion.op import layout as layouts
from ixion.op.call import call
from ixion.transform.channel_axes import expand_to_axes
from ixion.transform.context import PassContext

__all__ = [
    "ConvAxes",
    "ScaleMessage",
    "conv_axes",
    "intersect",
    "scale_is_allowed",
    "scaled_weight",
    "tensor_type",
]


@dataclass(frozen=True)
class ScaleMessage:
    """Axes along which scaling can be taken in.

    ``positive``: only by a constant without negative elements (it passes through a relu).
    ``divides``: some operand would be divided by the scale, so it must not have zeros.
    """

    axes: tuple[int, ...]
    positive: bool = False
    divides: bool = False

    def through_relu(self) -> ScaleMessage:
        return replace(self, positive=True)

    def dividing(self) -> ScaleMessage:
        return replace(self, divides=True)


def intersect(left: ScaleMessage | None, right: ScaleMessage | None) -> ScaleMessage | None:
    """What both users of a value accept."""
    if left is None or right is None:
        return None
    axes = tuple(axis for axis in left.axes if axis in right.axes)
    if not axes:
        return None
    return ScaleMessage(axes, left.positive or right.positive, left.divides or right.divides)


def scale_is_allowed(message: ScaleMessage, scale: Expr) -> bool:
    """Whether a scale meets the conditions of a message.

    Relay folds scales that are computed at run time too, which costs a weight its being constant;
    with option ``ixion.FoldScaleAxis.constants_only`` only known scales are folded.
    """
    only_constants = PassContext.current().get_config("ixion.FoldScaleAxis.constants_only", False)
    if only_constants and moved_constant(scale) is None:
        return False
    if message.positive and not is_non_negative(scale):
        return False
    if message.divides:
        data = moved_constant(scale)
        return data is None or bool(np.all(data != 0))
    return True


def tensor_type(expr: Expr) -> TensorType:
    kind = expr.checked_type
    assert isinstance(kind, TensorType)
    return kind


@dataclass(frozen=True)
class ConvAxes:
    """Where a convolution has its channels.

    ``data`` and ``out``: channel axes of the input and output (outer, then the block if there is
    one). ``weight_in`` and ``weight_out``: the same for the weight; a depthwise weight is scaled
    along ``weight_out`` for both.
    """

    data: tuple[int, ...]
    out: tuple[int, ...]
    weight_in: tuple[int, ...]
    weight_out: tuple[int, ...]
    depthwise: bool


_CANONICAL = {"nn.conv2d": "OIHW", "nn.conv3d": "OIDHW"}


def conv_axes(conv: Call) -> ConvAxes | None:
    """Channel axes of a convolution; None if Relay would not fold a scale into it.

    It must be full or depthwise with one filter a channel, in plain layouts or with both channel
    axes of the weight and the data blocked.
    """
    attrs: Any = conv.attrs
    data = layouts.parse(attrs.data_layout)
    out = layouts.parse(attrs.out_layout or attrs.data_layout)
    weight = layouts.parse(attrs.kernel_layout)
    depthwise = _is_depthwise(conv)
    if attrs.groups != 1 and not depthwise:
        return None
    blocked = [len(weight.positions("O")) > 1, len(weight.positions("I")) > 1]
    blocked += [len(data.positions("C")) > 1, len(out.positions("C")) > 1]
    if any(blocked) and not all(blocked):
        return None
    return ConvAxes(
        data.positions("C"),
        out.positions("C"),
        weight.positions("I"),
        weight.positions("O"),
        depthwise,
    )


def _is_depthwise(conv: Call) -> bool:
    attrs: Any = conv.attrs
    canonical = _CANONICAL[conv.op.name]  # type: ignore[attr-defined]  # an Op
    shape = layouts.to_plain(tensor_type(conv.args[1]).shape, attrs.kernel_layout, canonical)
    return bool(shape[0] == attrs.groups and shape[1] == 1)


def scaled_weight(
    weight: Expr, shape: Sequence[Dim], scale: Expr, axes: Sequence[int]
) -> Expr | None:
    """``weight`` times ``scale`` along ``axes``; None if unknown sizes prevent it."""
    expanded = expand_to_axes(scale, shape, axes)
    return None if expanded is None else call("multiply", weight, expanded)
