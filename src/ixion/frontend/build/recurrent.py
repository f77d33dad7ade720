"""LSTM, GRU and simple recurrent layers.

The input's products for all steps are one matrix product; each step adds the state's.  Plain layers
are one call for all their steps, others (peepholes, projections, other functions) are written out
step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ixion.frontend.build.matrix import dense
from ixion.frontend.build.movement import concatenate, expand_dims, select, split_at
from ixion.frontend.emitter import Emitter
from ixion.frontend.term import Term, at_most, static

#: Every step is written out.
_MOST_STEPS = 1 << 14

Activation = Callable[[Emitter, Term], Term]


def sigmoid(emit: Emitter, x: Term) -> Term:
    return emit.call("sigmoid", x)


def tanh(emit: Emitter, x: Term) -> Term:
    return emit.call("tanh", x)


def relu(emit: Emitter, x: Term) -> Term:
    return emit.call("nn.relu", x)


@dataclass(frozen=True, slots=True)
class Layer:
    """Weights of one direction of one layer.

    `inputs` (gates * hidden, input size), `states` (gates * hidden, state size), biases of
    gates * hidden or None; `project` (projected size, hidden) for LSTM with projections.
    """

    inputs: Term
    states: Term
    input_bias: Term | None
    state_bias: Term | None
    activations: tuple[Activation, ...]
    project: Term | None = None
    peephole: tuple[Term, ...] | None = None


Step = Callable[[Emitter, Layer, Term, list[Term]], list[Term]]


def run(
    emit: Emitter, step: Step, layer: Layer, x: Term, states: Sequence[Term], reverse: bool
) -> tuple[Term, list[Term]]:
    """All steps of one direction over x (steps, batch, input size).

    Gives the first state of every step, (steps, batch, size), in the order of x, and the last
    states, (batch, size) each.
    """
    whole = _WHOLE.get(step)
    if whole is not None and x.shape[0] != 0 and _is_plain(layer, whole, x):
        return whole.run(emit, layer, x, states, reverse)
    steps = range(at_most(_MOST_STEPS, static(x.shape[0]), "steps of a recurrent layer"))
    gates = dense(emit, x, layer.inputs, layer.input_bias)
    now = list(states)
    outputs: dict[int, Term] = {}
    for at in reversed(steps) if reverse else steps:
        now = step(emit, layer, select(emit, gates, 0, at), now)
        outputs[at] = expand_dims(emit, now[0], [0])
    return concatenate(emit, [outputs[at] for at in steps], 0), now


def lstm_step(emit: Emitter, layer: Layer, gates: Term, states: list[Term]) -> list[Term]:
    """Gates in the order input, forget, cell, output; states h and c."""
    hidden, cell = states
    sigma, squash, out_squash = layer.activations
    total = emit.call("add", gates, dense(emit, hidden, layer.states, layer.state_bias))
    i, f, g, o = split_at(emit, total, 1, [static(total.shape[1]) // 4] * 4)
    if layer.peephole is not None:
        i = emit.call("add", i, emit.call("multiply", cell, layer.peephole[0]))
        f = emit.call("add", f, emit.call("multiply", cell, layer.peephole[1]))
    kept = emit.call("multiply", sigma(emit, f), cell)
    cell = emit.call("add", kept, emit.call("multiply", sigma(emit, i), squash(emit, g)))
    if layer.peephole is not None:
        o = emit.call("add", o, emit.call("multiply", cell, layer.peephole[2]))
    hidden = emit.call("multiply", sigma(emit, o), out_squash(emit, cell))
    if layer.project is not None:
        hidden = dense(emit, hidden, layer.project)
    return [hidden, cell]


def gru_step(emit: Emitter, layer: Layer, gates: Term, states: list[Term]) -> list[Term]:
    """Gates in the order reset, update, new; the reset gate is applied after the product."""
    (hidden,) = states
    sigma, squash = layer.activations
    size = static(hidden.shape[1])
    recurrent = dense(emit, hidden, layer.states, layer.state_bias)
    reset_x, update_x, new_x = split_at(emit, gates, 1, [size] * 3)
    reset_h, update_h, new_h = split_at(emit, recurrent, 1, [size] * 3)
    reset = sigma(emit, emit.call("add", reset_x, reset_h))
    update = sigma(emit, emit.call("add", update_x, update_h))
    new = squash(emit, emit.call("add", new_x, emit.call("multiply", reset, new_h)))
    return [_blend(emit, update, hidden, new)]


def gru_step_before(emit: Emitter, layer: Layer, gates: Term, states: list[Term]) -> list[Term]:
    """As `gru_step`, but the reset gate is applied to the state before the product."""
    (hidden,) = states
    sigma, squash = layer.activations
    size = static(hidden.shape[1])
    reset_x, update_x, new_x = split_at(emit, gates, 1, [size] * 3)
    reset_w, update_w, new_w = split_at(emit, layer.states, 0, [size] * 3)
    biases: Sequence[Term | None] = [None] * 3
    if layer.state_bias is not None:
        biases = split_at(emit, layer.state_bias, 0, [size] * 3)
    reset = sigma(emit, emit.call("add", reset_x, dense(emit, hidden, reset_w, biases[0])))
    update = sigma(emit, emit.call("add", update_x, dense(emit, hidden, update_w, biases[1])))
    inner = dense(emit, emit.call("multiply", reset, hidden), new_w, biases[2])
    new = squash(emit, emit.call("add", new_x, inner))
    return [_blend(emit, update, hidden, new)]


def _blend(emit: Emitter, update: Term, old: Term, new: Term) -> Term:
    """(1 - update) * new + update * old."""
    difference = emit.call("subtract", old, new)
    return emit.call("add", new, emit.call("multiply", update, difference))


def simple_step(emit: Emitter, layer: Layer, gates: Term, states: list[Term]) -> list[Term]:
    """One gate: the activation of input and state products."""
    (hidden,) = states
    recurrent = dense(emit, hidden, layer.states, layer.state_bias)
    return [layer.activations[0](emit, emit.call("add", gates, recurrent))]


# Layers in one call.


@dataclass(frozen=True, slots=True)
class _Whole:
    """A layer that is one call where its activations are among ``activations``."""

    run: Callable[[Emitter, Layer, Term, Sequence[Term], bool], tuple[Term, list[Term]]]
    activations: tuple[tuple[Activation, ...], ...]


def _is_plain(layer: Layer, whole: _Whole, x: Term) -> bool:
    extras = layer.project is not None or layer.peephole is not None
    return not extras and x.dtype == "float32" and layer.activations in whole.activations


def _last(emit: Emitter, out: Term, reverse: bool) -> Term:
    return select(emit, out, 0, 0 if reverse else -1)


def _both(emit: Emitter, layer: Layer) -> Term | None:
    """The biases of inputs and states as one."""
    if layer.input_bias is None or layer.state_bias is None:
        return layer.input_bias or layer.state_bias
    return emit.call("add", layer.input_bias, layer.state_bias)


def _lstm(
    emit: Emitter, layer: Layer, x: Term, states: Sequence[Term], reverse: bool
) -> tuple[Term, list[Term]]:
    gates = dense(emit, x, layer.inputs, _both(emit, layer))
    made = emit.call("nn.lstm_sequence", gates, layer.states, *states, reverse=reverse)
    out, cell = emit.items(made)
    return out, [_last(emit, out, reverse), cell]


def _gru(after: bool) -> Any:
    def run(
        emit: Emitter, layer: Layer, x: Term, states: Sequence[Term], reverse: bool
    ) -> tuple[Term, list[Term]]:
        """The state's bias of the new gate stays with its product, the others join the input's."""
        size = static(layer.states.shape[1])
        inner = emit.full(0.0, (size,), x.dtype)
        bias = layer.input_bias
        if layer.state_bias is not None:
            reset, update, inner = split_at(emit, layer.state_bias, 0, [size] * 3)
            zero = emit.full(0.0, (size,), x.dtype)
            outer = concatenate(emit, [reset, update, zero], 0)
            bias = outer if bias is None else emit.call("add", bias, outer)
        gates = dense(emit, x, layer.inputs, bias)
        out = emit.call(
            "nn.gru_sequence", gates, layer.states, inner, *states, reverse=reverse,
            reset_after=after,
        )  # fmt: skip
        return out, [_last(emit, out, reverse)]

    return run


def _simple(
    emit: Emitter, layer: Layer, x: Term, states: Sequence[Term], reverse: bool
) -> tuple[Term, list[Term]]:
    gates = dense(emit, x, layer.inputs, _both(emit, layer))
    name = "relu" if layer.activations[0] is relu else "tanh"
    out = emit.call(
        "nn.rnn_sequence", gates, layer.states, *states, reverse=reverse, activation=name
    )
    return out, [_last(emit, out, reverse)]


_WHOLE: dict[Step, _Whole] = {
    lstm_step: _Whole(_lstm, ((sigmoid, tanh, tanh),)),
    gru_step: _Whole(_gru(True), ((sigmoid, tanh),)),
    gru_step_before: _Whole(_gru(False), ((sigmoid, tanh),)),
    simple_step: _Whole(_simple, ((tanh,), (relu,))),
}
