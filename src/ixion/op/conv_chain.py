"""Convolutions that one kernel may do together: pointwise and depthwise ones of an image."""

from __future__ import annotations

from ixion.base.dim import SymExpr
from ixion.ir import Call, Constant
from ixion.op.typed import attrs_of, dims_of, dtype_of, op_name, shape_of, tensor_type

FEWEST = 8  # input channels of a pointwise convolution: with fewer they are not in blocks


def chain_kind(call: Call) -> str:
    """``pointwise``, ``depthwise``, or empty for what a chain does not take."""
    if op_name(call) != "nn.conv2d" or not _plain(call):
        return ""
    if is_depthwise(call):
        return "depthwise"
    return "pointwise" if _is_pointwise(call) else ""


def gate_of(product: Call) -> int | None:
    """Which operand of a product has one factor per image and channel for the other, if one has."""
    shapes = [dims_of(x) for x in product.args]
    out = dims_of(product)
    for i, shape in enumerate(shapes):
        if len(out) == 4 and shapes[1 - i] == out and shape == (*out[:2], 1, 1) != out:
            return i
    return None


def is_depthwise(call: Call) -> bool:
    """Whether a convolution has one filter per channel."""
    channels = dims_of(call.args[0])[1]
    alike = attrs_of(call).groups == channels == dims_of(call)[1]
    return alike and isinstance(channels, int) and channels > 1


def _is_pointwise(call: Call) -> bool:
    """A product of channels at each pixel: window, stride and groups of 1, no padding."""
    attrs, data, out = attrs_of(call), dims_of(call.args[0]), dims_of(call)
    single = tuple(shape_of(call.args[1])[2:]) == (1, 1) and set(attrs.strides) == {1}
    many = isinstance(data[1], int) and data[1] >= FEWEST
    return attrs.groups == 1 and single and out[2:] == data[2:] and many


def _plain(call: Call) -> bool:
    """Not empty, float, in the exporters' layouts, channels known, with constant weights alone."""
    if isinstance(call.args[0], Constant) or not isinstance(call.args[1], Constant):
        return False
    attrs, values = attrs_of(call), (*call.args, call)
    layouts = (attrs.data_layout, attrs.out_layout or "NCHW", attrs.kernel_layout)
    shapes = [tensor_type(x).shape for x in values]
    channels = [n for shape in shapes for n in shape[1:2]]
    return (
        layouts == ("NCHW", "NCHW", "OIHW")
        and all(dtype_of(x) == "float32" for x in values)
        and all(isinstance(n, int) for n in channels)
        and all(isinstance(n, SymExpr) or _is_some(n) for shape in shapes for n in shape)
    )


def _is_some(n: object) -> bool:
    return isinstance(n, int) and n > 0
