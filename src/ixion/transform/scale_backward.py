"""Backward half of FoldScaleAxis: a multiply after a convolution goes into its weight.

First, forward, each value that has one user learns along which axes whatever computes it could be
scaled; then a multiply whose operand has such axes is replaced by the operand, transformed all the
way up to the convolutions or dense layers that take the scale in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ixion.base.errors import PassError
from ixion.ir import Call, Expr, Function, Op, TensorType, rewrite
from ixion.ir.trampoline import run
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

__all__ = [
    "RELAY_RULES",
    "BackwardRule",
    "Messages",
    "Transformer",
    "fold_scale_backward",
    "scale_weight",
]

Messages = list[ScaleMessage | None]
Step = Generator[Any, Any, Expr]


@dataclass(frozen=True)
class BackwardRule:
    """``prepare``: along what a call's result could be scaled, given that for its arguments.
    ``transform``: the call with its result scaled.
    """

    prepare: Callable[[Call, Messages], ScaleMessage | None]
    transform: Callable[[Transformer, Call, ScaleMessage, Expr], Step]


def fold_scale_backward(
    func: Function, rules: Mapping[str, BackwardRule] | None = None
) -> Function:
    """``func`` with scales moved into the weights before them; itself if there are none.

    ``rules`` by operator; without them Relay's.
    """
    known = RELAY_RULES if rules is None else rules
    messages = _messages(func, known)
    return Transformer(messages, known).fold(func) if messages else func


def _messages(root: Expr, rules: Mapping[str, BackwardRule]) -> dict[Expr, ScaleMessage]:
    nodes = post_order(root)
    uses: Counter[Expr] = Counter()
    for node in nodes:
        uses.update(children(node))
    found: dict[Expr, ScaleMessage] = {}
    for node in nodes:
        if type(node) is not Call or type(node.op) is not Op or uses[node] != 1:
            continue
        rule = rules.get(node.op.name)
        if rule is not None:
            message = rule.prepare(node, [found.get(arg) for arg in node.args])
            if message is not None:
                found[node] = message
    return found


class Transformer:
    """Rewrites a function by its messages; rules ask it for their operands, scaled or plain."""

    def __init__(
        self, messages: dict[Expr, ScaleMessage], rules: Mapping[str, BackwardRule]
    ) -> None:
        self.messages = messages
        self.rules = rules
        self.done: dict[Expr, Expr] = {}

    def fold(self, func: Function) -> Function:
        return rewrite(func, self._visit, self.done)  # type: ignore[return-value]

    def _visit(self, old: Expr, new: Expr) -> Expr:
        if type(old) is Call and type(old.op) is Op and old.op.name == "multiply":
            return self._multiply(old, new)
        return keep_type(old, new)

    def _multiply(self, old: Call, new: Expr) -> Expr:
        """The operand with the other one folded in, or the multiply as it is."""
        kinds = [tensor_type(arg) for arg in old.args]
        at = 0 if old.args[0] in self.messages else 1
        message = self.messages.get(old.args[at])
        if message is None:
            return keep_type(old, new)
        other = self.done[old.args[1 - at]]
        fits, scale = matched_to_axes(kinds[at], kinds[1 - at], message.axes, other)
        if not fits or scale is None or not scale_is_allowed(message, scale):
            return keep_type(old, new)
        return run(self.scaled(old.args[at], message, scale))

    def scaled(self, expr: Expr, message: ScaleMessage, scale: Expr) -> Step:
        """``expr``, which has a message, times ``scale`` along the message's axes."""
        assert isinstance(expr, Call)
        assert isinstance(expr.op, Op)
        found: Expr = yield self.rules[expr.op.name].transform(self, expr, message, scale)
        return keep_type(expr, found)

    def plain(self, expr: Expr) -> Expr:
        return self.done[expr]


def _with_args(old: Call, args: tuple[Expr, ...]) -> Call:
    return Call(old.op, args, old.attrs, old.type_args, old.span)


def _prepare_relu(relu: Call, args: Messages) -> ScaleMessage | None:
    return None if args[0] is None else args[0].through_relu()


def _scale_relu(to: Transformer, relu: Call, message: ScaleMessage, scale: Expr) -> Step:
    data = yield to.scaled(relu.args[0], message, scale)
    return _with_args(relu, (data,))


def _prepare_add(add: Call, args: Messages) -> ScaleMessage | None:
    left, right = (tensor_type(arg) for arg in add.args)
    if args[0] is not None and _fits(left, right, args[0]):
        return args[0]
    if args[1] is not None and _fits(right, left, args[1]):
        return args[1]
    if args[0] is None or args[1] is None or args[0].axes != args[1].axes:
        return None
    return intersect(args[0], args[1]) if left.shape == right.shape else None


def _fits(data: TensorType, other: TensorType, message: ScaleMessage) -> bool:
    if len(message.axes) > 1 and not all(isinstance(dim, int) for dim in data.shape):
        return False
    return matched_to_axes(data, other, message.axes)[0]


def _scale_add(to: Transformer, add: Call, message: ScaleMessage, scale: Expr) -> Step:
    """``(x + b) * s`` becomes ``x * s + b * s``, with either product taken in where it can be."""
    operands = []
    shape = tensor_type(add).shape
    for arg in add.args:
        own = to.messages.get(arg)
        if own is not None and own.axes == message.axes and tensor_type(arg).shape == shape:
            operands.append((yield to.scaled(arg, message, scale)))
            continue
        expanded = expand_to_axes(scale, shape, message.axes)
        assert expanded is not None
        operands.append(call("multiply", to.plain(arg), expanded))
    return _with_args(add, tuple(operands))


def _prepare_bias_add(bias_add: Call, args: Messages) -> ScaleMessage | None:
    attrs: Any = bias_add.attrs
    message = args[0]
    return message if message is not None and message.axes == (attrs.axis,) else None


def _scale_bias_add(to: Transformer, add: Call, message: ScaleMessage, scale: Expr) -> Step:
    data = yield to.scaled(add.args[0], message, scale)
    bias = call("multiply", to.plain(add.args[1]), scale)
    return _with_args(add, (data, bias))


def _prepare_conv(conv: Call, args: Messages) -> ScaleMessage | None:
    axes = conv_axes(conv)
    return None if axes is None else ScaleMessage(axes.out)


def _scale_conv(to: Transformer, conv: Call, message: ScaleMessage, scale: Expr) -> Step:
    axes = conv_axes(conv)
    assert axes is not None
    yield from ()
    return scale_weight(to, conv, scale, axes.weight_out)


def scale_weight(to: Transformer, call: Call, scale: Expr, axes: Sequence[int]) -> Expr:
    """``call`` with its second argument, a weight, times ``scale`` along ``axes``."""
    weight = to.plain(call.args[1])
    scaled = scaled_weight(weight, tensor_type(call.args[1]).shape, scale, axes)
    if scaled is None:
        raise PassError("FoldScaleAxis: a blocked weight must have a static shape")
    return _with_args(call, (to.plain(call.args[0]), scaled))


def _prepare_dense(dense: Call, args: Messages) -> ScaleMessage | None:
    # Relay says axis 1, which is the last one of the rank 2 that its dense had.
    return ScaleMessage((len(tensor_type(dense).shape) - 1,))


def _scale_dense(to: Transformer, dense: Call, message: ScaleMessage, scale: Expr) -> Step:
    yield from ()
    return scale_weight(to, dense, scale, (0,))


RELAY_RULES: dict[str, BackwardRule] = {
    "nn.relu": BackwardRule(_prepare_relu, _scale_relu),
    "nn.leaky_relu": BackwardRule(_prepare_relu, _scale_relu),
    "add": BackwardRule(_prepare_add, _scale_add),
    "subtract": BackwardRule(_prepare_add, _scale_add),
    "nn.bias_add": BackwardRule(_prepare_bias_add, _scale_bias_add),
    "nn.conv2d": BackwardRule(_prepare_conv, _scale_conv),
    "nn.conv3d": BackwardRule(_prepare_conv, _scale_conv),
    "nn.dense": BackwardRule(_prepare_dense, _scale_dense),
}
