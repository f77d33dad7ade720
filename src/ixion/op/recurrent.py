"""Recurrent layers after their input's products: one call for all steps of one direction.

Each takes ``gates`` (steps, batch, gates * units), the products of the inputs with their weights
and every bias that is added outside of the recurrence, and ``weight`` (gates * units, units) for
the hidden state.  They give the hidden states of all steps, in the order of ``gates``.

A step needs the one before, so no tensor expression says what an element is; the schedules of
``kernel.schedule_recurrent`` do float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, TupleType, Type
from ixion.op.call import call
from ixion.op.compare import Accumulation
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.rounding import Array, narrow, wide
from ixion.op.sample import FLOATS, Draw, Sample, array, choice, flag
from ixion.op.special import sigmoid


@register_attrs("ixion.attrs.LSTMSequenceAttrs")
class LSTMSequenceAttrs(Attrs):
    reverse: bool = attr(False, "from the last step to the first")


@register_attrs("ixion.attrs.GRUSequenceAttrs")
class GRUSequenceAttrs(Attrs):
    reverse: bool = attr(False, "from the last step to the first")
    reset_after: bool = attr(True, "apply the reset gate to the product, not to the state")


@register_attrs("ixion.attrs.RNNSequenceAttrs")
class RNNSequenceAttrs(Attrs):
    reverse: bool = attr(False, "from the last step to the first")
    activation: str = attr("tanh", "tanh or relu")


def _check(args: InferArgs, gates: int, state: int) -> TensorType:
    """The type of all hidden states; ``state`` is the argument that holds the first one."""
    data, weight, begin = args.tensor(0), args.tensor(1), args.tensor(state)
    if len(data.shape) != 3 or len(weight.shape) != 2:
        args.fail("gates have rank 3 and the weight 2", found=f"{data.shape} and {weight.shape}")
    units = weight.shape[1]
    wide_ = dims.multiply(units, gates)
    args.agree_all(
        (wide_, wide_), (weight.shape[0], data.shape[2]),
        f"gates and weight have {gates} times the units", expected=wide_,
        found=f"{data.shape[2]} and {weight.shape[0]}",
    )  # fmt: skip
    for number in range(state, len(args.types)):
        _check_shape(args, number, (data.shape[1], units))
    if any(args.tensor(i).dtype != data.dtype for i in range(len(args.types))):
        args.fail("all arguments have one dtype", expected=data.dtype, found=begin.dtype)
    return TensorType((*data.shape[:2], units), data.dtype)


def _check_shape(args: InferArgs, number: int, want: Sequence[Dim]) -> None:
    shape = args.tensor(number).shape
    rule = f"argument {number} has another shape"
    args.agree_all(want, shape, rule, expected=tuple(want), found=shape)


def _infer_lstm(args: InferArgs) -> Type:
    out = _check(args, 4, 2)
    return TupleType([out, TensorType(out.shape[1:], out.dtype)])


def _infer_gru(args: InferArgs) -> Type:
    out = _check(args, 3, 3)
    _check_shape(args, 2, out.shape[-1:])
    return out


def _infer_rnn(args: InferArgs) -> Type:
    if args.attrs.activation not in ("tanh", "relu"):
        args.fail("the activation is tanh or relu", found=args.attrs.activation)
    return _check(args, 1, 2)


def _order(attrs: Any, steps: int) -> Sequence[int]:
    return range(steps)[::-1] if attrs.reverse else range(steps)


def _lstm_reference(attrs: LSTMSequenceAttrs, inputs: tuple[Array, ...], out_type: Any) -> Any:
    gates, weight, hidden, cell = map(wide, inputs)
    out = np.zeros((*gates.shape[:2], weight.shape[1]))
    for at in _order(attrs, len(gates)):
        i, f, g, o = np.split(gates[at] + hidden @ weight.T, 4, axis=1)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        out[at] = hidden = sigmoid(o) * np.tanh(cell)
    dtype = _dtype(out_type)
    return narrow(out, dtype), narrow(cell, dtype)


def _gru_reference(attrs: GRUSequenceAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    gates, weight, bias, hidden = map(wide, inputs)
    out = np.zeros((*gates.shape[:2], weight.shape[1]))
    reset_w, update_w, new_w = np.split(weight, 3)
    for at in _order(attrs, len(gates)):
        reset_x, update_x, new_x = np.split(gates[at], 3, axis=1)
        reset = sigmoid(reset_x + hidden @ reset_w.T)
        update = sigmoid(update_x + hidden @ update_w.T)
        if attrs.reset_after:
            inner = reset * (hidden @ new_w.T + bias)
        else:
            inner = (reset * hidden) @ new_w.T + bias
        new = np.tanh(new_x + inner)
        out[at] = hidden = new + update * (hidden - new)
    return narrow(out, out_type.dtype)


def _rnn_reference(attrs: RNNSequenceAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    gates, weight, hidden = map(wide, inputs)
    out = np.zeros((*gates.shape[:2], weight.shape[1]))
    for at in _order(attrs, len(gates)):
        total = gates[at] + hidden @ weight.T
        hidden = np.tanh(total) if attrs.activation == "tanh" else np.maximum(total, 0)
        out[at] = hidden
    return narrow(out, out_type.dtype)


def _results(out_type: Any) -> tuple[Any, ...]:
    return tuple(out_type.fields) if isinstance(out_type, TupleType) else (out_type,)


def _dtype(out_type: Any) -> str:
    return str(_results(out_type)[0].dtype)


def _macs(attrs: Any, types: Sequence[Any], out_type: Any) -> Dim:
    """Products of the states; those of the inputs are outside."""
    steps, batch, _ = types[0].shape
    return dims.prod((steps, batch, *types[1].shape))


def _scheduled(attrs: Any, types: Sequence[Any], out_type: Any) -> bool:
    """float32, and at least one step of something."""
    return _dtype(out_type) == "float32" and all(d != 0 for d in types[0].shape)


def _error_scale(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Any:
    """Sums of magnitudes, through which an error of every step may come."""
    gates, weight = (np.abs(wide(x)) for x in inputs[:2])
    size = (np.abs(gates).max(initial=1) + weight.sum(1).max(initial=1)) * (1 + len(gates))
    scales = tuple(np.full(tuple(kind.shape), size) for kind in _results(out_type))
    return scales if isinstance(out_type, TupleType) else scales[0]


def _operands(draw: Draw, gates: int, states: int, bias: bool) -> list[Array]:
    dtype = choice(draw, FLOATS)
    steps, batch, units = draw.integer(1, 3), draw.integer(1, 3), draw.integer(1, 4)
    shapes: list[tuple[int, ...]] = [(steps, batch, gates * units), (gates * units, units)]
    shapes += [(units,)] if bias else []
    shapes += [(batch, units)] * states
    return [array(draw, shape, dtype, -1, 1) for shape in shapes]


def _lstm_samples(draw: Draw) -> Sample:
    return Sample(tuple(_operands(draw, 4, 2, False)), {"reverse": flag(draw)})


def _gru_samples(draw: Draw) -> Sample:
    attrs = {"reverse": flag(draw), "reset_after": flag(draw)}
    return Sample(tuple(_operands(draw, 3, 1, True)), attrs)


def _rnn_samples(draw: Draw) -> Sample:
    attrs = {"reverse": flag(draw), "activation": choice(draw, ("tanh", "relu"))}
    return Sample(tuple(_operands(draw, 1, 1, False)), attrs)


_SHARED: dict[str, Any] = {
    "pattern": OpPattern.OPAQUE, "level": 10, "compare": Accumulation(scale=_error_scale),
    "macs": _macs, "FScheduled": _scheduled,
}  # fmt: skip
_FIRST = (("gates", "3D Tensor"), ("weight", "2D Tensor"))
_HIDDEN = ("hidden", "2D Tensor")

define(
    "nn.lstm_sequence",
    attrs=LSTMSequenceAttrs,
    inputs=(*_FIRST, _HIDDEN, ("cell", "2D Tensor")),
    infer=_infer_lstm,
    reference=_lstm_reference,
    samples=_lstm_samples,
    num_outputs=2,
    doc="LSTM steps, gates in the order input, forget, cell, output; gives hidden states, cell.",
    **_SHARED,
)
define(
    "nn.gru_sequence",
    attrs=GRUSequenceAttrs,
    inputs=(*_FIRST, ("bias", "1D Tensor"), _HIDDEN),
    infer=_infer_gru,
    reference=_gru_reference,
    samples=_gru_samples,
    doc="GRU steps, gates in the order reset, update, new; bias joins the new gate's product.",
    **_SHARED,
)
define(
    "nn.rnn_sequence",
    attrs=RNNSequenceAttrs,
    inputs=(*_FIRST, _HIDDEN),
    infer=_infer_rnn,
    reference=_rnn_reference,
    samples=_rnn_samples,
    doc="Steps of a simple recurrent layer.",
    **_SHARED,
)


def lstm_sequence(
    gates: Expr, weight: Expr, hidden: Expr, cell: Expr, reverse: bool = False
) -> Call:
    return call("nn.lstm_sequence", gates, weight, hidden, cell, reverse=reverse)


def gru_sequence(
    gates: Expr, weight: Expr, bias: Expr, hidden: Expr, reverse: bool = False,
    reset_after: bool = True,
) -> Call:  # fmt: skip
    made = {"reverse": reverse, "reset_after": reset_after}
    return call("nn.gru_sequence", gates, weight, bias, hidden, **made)


def rnn_sequence(
    gates: Expr, weight: Expr, hidden: Expr, reverse: bool = False, activation: str = "tanh"
) -> Call:
    made = {"reverse": reverse, "activation": activation}
    return call("nn.rnn_sequence", gates, weight, hidden, **made)
