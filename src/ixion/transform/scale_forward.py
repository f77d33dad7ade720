"""Forward half of FoldScaleAxis: a multiply before a convolution goes into its weight.

First, from the results back, each value learns whether all its users can take a scale in; then,
forward, a multiply that is allowed to sends its scale on beside the value, relu and add pass it
through, and the convolution or dense layer multiplies its weight by it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ixion.base.errors import PassError
from ixion.ir import (
    Call,
    Expr,
    Function,
    Op,
    TempExpr,
    TensorType,
    rewrite,
)
from ixion.ir.node import field, register_node
from ixion.ir.visitor import children, post_order
from ixion.op.call import call
from ixion.transform.channel_axes import expand_to_axes, matched_to_axes
from ixion.transform.scale_message import (
    ScaleMessage,
    conv_axes,
    intersect,
    scale_is_allowed,
    scaled_weight,
    tensor_type,
)
from ixion.transform.type_writer import keep_type

__all__ = ["fold_scale_forward"]

Messages = tuple[ScaleMessage | None, ...]


@register_node("ixion.ScaledExpr")
class ScaledExpr(TempExpr):
    """``value`` times ``scale`` along ``axes``, on its way to whoever takes the scale in."""

    value: Expr = field()
    scale: Expr = field()
    axes: tuple[int, ...] = field()


@dataclass(frozen=True)
class _Rule:
    """``prepare``: what a call's arguments may be scaled along, given that for its result.
    ``apply``: the call on arguments of which some are scaled; None if it takes nothing in.
    """

    prepare: Callable[[Call, ScaleMessage | None], Messages]
    apply: Callable[[Call, tuple[Expr, ...], ScaleMessage | None], Expr | None]


def fold_scale_forward(func: Function) -> Function:
    """``func`` with scales moved into the weights after them; itself if there are none."""
    messages = _messages(func)
    if not any(messages.values()):
        return func

    def visit(old: Expr, new: Expr) -> Expr:
        if type(new) is not Call:
            return new
        rule = _RULES.get(new.op.name) if type(new.op) is Op else None
        if rule is not None:
            assert isinstance(old, Call)
            found = rule.apply(old, new.args, messages.get(old))
            if found is not None:
                return keep_type(old, found)
        if any(type(arg) is ScaledExpr for arg in new.args):
            raise PassError("FoldScaleAxis: a scale was sent to a call that cannot take it in")
        return new

    return rewrite(func, visit)  # type: ignore[return-value]  # a function stays one


def _messages(root: Expr) -> dict[Expr, ScaleMessage | None]:
    """What each value may be scaled along: the agreement of all its users."""
    found: dict[Expr, ScaleMessage | None] = {root: None}

    def tell(value: Expr, message: ScaleMessage | None) -> None:
        found[value] = intersect(found[value], message) if value in found else message

    for expr in reversed(post_order(root)):
        if isinstance(expr, Call):
            rule = _RULES.get(expr.op.name) if type(expr.op) is Op else None
            none: Messages = (None,) * len(expr.args)
            messages = none if rule is None else rule.prepare(expr, found.get(expr))
            for arg, message in zip(expr.args, messages, strict=True):
                tell(arg, message)
        else:
            for part in children(expr):
                tell(part, None)
    return found


def _prepare_relu(relu: Call, out: ScaleMessage | None) -> Messages:
    return (None if out is None else out.through_relu(),)


def _apply_relu(relu: Call, args: tuple[Expr, ...], out: ScaleMessage | None) -> Expr | None:
    (data,) = args
    if not isinstance(data, ScaledExpr):
        return None
    value = Call(relu.op, (data.value,), relu.attrs, relu.type_args, relu.span)
    return ScaledExpr(keep_type(relu, value), data.scale, data.axes)


def _prepare_add(add: Call, out: ScaleMessage | None) -> Messages:
    if out is None:
        return (None, None)
    left, right = (tensor_type(arg) for arg in add.args)
    if _fits(left, right, out):
        return (out.dividing(), None)
    if _fits(right, left, out):
        return (None, out.dividing())
    return (None, None)


def _fits(data: TensorType, other: TensorType, message: ScaleMessage) -> bool:
    if len(message.axes) > 1 and not all(isinstance(dim, int) for dim in data.shape):
        return False
    return matched_to_axes(data, other, message.axes)[0]


def _apply_add(add: Call, args: tuple[Expr, ...], out: ScaleMessage | None) -> Expr | None:
    """``x * s + b`` becomes ``(x + b / s) * s``."""
    at = next((i for i, arg in enumerate(args) if isinstance(arg, ScaledExpr)), None)
    if at is None:
        return None
    data, other = args[at], args[1 - at]
    assert isinstance(data, ScaledExpr)
    scale = expand_to_axes(data.scale, tensor_type(add.args[at]).shape, data.axes)
    assert scale is not None
    operands = [data.value, data.value]
    operands[1 - at] = call("divide", other, scale)
    value = Call(add.op, operands, add.attrs, add.type_args, add.span)
    return ScaledExpr(value, data.scale, data.axes)


def _prepare_multiply(multiply: Call, out: ScaleMessage | None) -> Messages:
    return (None, None)


def _apply_multiply(
    multiply: Call, args: tuple[Expr, ...], out: ScaleMessage | None
) -> Expr | None:
    if out is None:
        return None
    kinds = [tensor_type(arg) for arg in multiply.args]
    for at in (0, 1):
        fits, scale = matched_to_axes(kinds[at], kinds[1 - at], out.axes, args[1 - at])
        if fits and scale is not None and scale_is_allowed(out, scale):
            return ScaledExpr(args[at], scale, out.axes)
    return None


def _prepare_conv(conv: Call, out: ScaleMessage | None) -> Messages:
    axes = conv_axes(conv)
    return (None if axes is None else ScaleMessage(axes.data), None)


def _apply_conv(conv: Call, args: tuple[Expr, ...], out: ScaleMessage | None) -> Expr | None:
    data, weight = args
    if not isinstance(data, ScaledExpr):
        return None
    axes = conv_axes(conv)
    assert axes is not None
    along = axes.weight_out if axes.depthwise else axes.weight_in
    scaled = scaled_weight(weight, tensor_type(conv.args[1]).shape, data.scale, along)
    assert scaled is not None
    return Call(conv.op, (data.value, scaled), conv.attrs, conv.type_args, conv.span)


def _prepare_dense(dense: Call, out: ScaleMessage | None) -> Messages:
    return (ScaleMessage((len(tensor_type(dense.args[0]).shape) - 1,)), None)


def _apply_dense(dense: Call, args: tuple[Expr, ...], out: ScaleMessage | None) -> Expr | None:
    data, weight = args
    if not isinstance(data, ScaledExpr):
        return None
    scaled = call("multiply", weight, data.scale)
    return Call(dense.op, (data.value, scaled), dense.attrs, dense.type_args, dense.span)


_RULES: dict[str, _Rule] = {
    "nn.relu": _Rule(_prepare_relu, _apply_relu),
    "nn.leaky_relu": _Rule(_prepare_relu, _apply_relu),
    "add": _Rule(_prepare_add, _apply_add),
    "subtract": _Rule(_prepare_add, _apply_add),
    "multiply": _Rule(_prepare_multiply, _apply_multiply),
    "nn.conv2d": _Rule(_prepare_conv, _apply_conv),
    "nn.conv3d": _Rule(_prepare_conv, _apply_conv),
    "nn.dense": _Rule(_prepare_dense, _apply_dense),
}
