"""LSTM, GRU, RNN: ONNX's gate orders and state shapes on the layers of `build.recurrent`."""

from __future__ import annotations

from collections.abc import Sequence

from ixion.frontend.build import recurrent
from ixion.frontend.build.movement import concatenate, expand_dims, select, split_at, transpose
from ixion.frontend.build.recurrent import Activation, Layer, Step
from ixion.frontend.onnx.convert import Site, converts
from ixion.frontend.term import Term, static

_ACTIVATIONS: dict[str, Activation] = {
    "sigmoid": recurrent.sigmoid, "tanh": recurrent.tanh, "relu": recurrent.relu
}  # fmt: skip


@converts("LSTM")
def lstm(site: Site) -> Sequence[Term]:
    return _run(site, recurrent.lstm_step, (0, 2, 3, 1), ["Sigmoid", "Tanh", "Tanh"], 2)


@converts("GRU")
def gru(site: Site) -> Sequence[Term]:
    after = site.attr("linear_before_reset", 0)
    step = recurrent.gru_step if after else recurrent.gru_step_before
    return _run(site, step, (1, 0, 2), ["Sigmoid", "Tanh"], 1)


@converts("RNN")
def rnn(site: Site) -> Sequence[Term]:
    return _run(site, recurrent.simple_step, (0,), ["Tanh"], 1)


def _run(
    site: Site, step: Step, gates: tuple[int, ...], defaults: list[str], states: int
) -> Sequence[Term]:
    """All directions; outputs are (steps, directions, batch, size) and the last states.

    `gates` reorders ONNX's gates to those of `step`.
    """
    if site.optional(4) is not None:
        site.unsupported("with sequence lengths")
    if site.has("clip") or site.attr("input_forget", 0):
        site.unsupported("with clip or input_forget")
    x = site.input(0)
    if site.attr("layout", 0):
        x = transpose(site.emit, x, (1, 0, 2))
    direction = site.attr("direction", "forward")
    ways = [direction == "reverse"] if direction != "bidirectional" else [False, True]
    outputs, last = [], []
    for way, reverse in enumerate(ways):
        layer = _layer(site, way, gates, _functions(site, defaults, way))
        begin = [_initial(site, x, way, 5 + index) for index in range(states)]
        out, end = recurrent.run(site.emit, step, layer, x, begin, reverse)
        outputs.append(expand_dims(site.emit, out, [1]))
        last.append([expand_dims(site.emit, state, [0]) for state in end])
    y = concatenate(site.emit, outputs, 1)
    finals = [concatenate(site.emit, list(parts), 0) for parts in zip(*last, strict=True)]
    if site.attr("layout", 0):
        y = transpose(site.emit, y, (2, 0, 1, 3))
        finals = [transpose(site.emit, final, (1, 0, 2)) for final in finals]
    return [y, *finals]


def _functions(site: Site, defaults: list[str], way: int) -> tuple[Activation, ...]:
    names = [
        name.decode() if isinstance(name, bytes) else name
        for name in site.attr("activations", defaults * 2)
    ]
    chosen = names[way * len(defaults) : (way + 1) * len(defaults)]
    if any(name.lower() not in _ACTIVATIONS for name in chosen):
        site.unsupported(f"with activations {', '.join(chosen)}")
    return tuple(_ACTIVATIONS[name.lower()] for name in chosen)


def _layer(
    site: Site, way: int, gates: tuple[int, ...], activations: tuple[Activation, ...]
) -> Layer:
    inputs = _reordered(site, select(site.emit, site.input(1), 0, way), gates)
    states = _reordered(site, select(site.emit, site.input(2), 0, way), gates)
    input_bias = state_bias = None
    if site.optional(3) is not None:
        both = select(site.emit, site.input(3), 0, way)
        half = static(both.shape[0]) // 2
        first, second = split_at(site.emit, both, 0, [half, half])
        input_bias, state_bias = (_reordered(site, one, gates) for one in (first, second))
    peephole = None
    if site.optional(7) is not None:
        i, o, f = split_at(
            site.emit, select(site.emit, site.input(7), 0, way), 0, [site.attr("hidden_size")] * 3
        )
        peephole = (i, f, o)
    return Layer(inputs, states, input_bias, state_bias, activations, None, peephole)


def _reordered(site: Site, weight: Term, gates: tuple[int, ...]) -> Term:
    if gates == tuple(range(len(gates))):
        return weight
    if weight.known and weight.array is not None:
        parts = weight.array.reshape(len(gates), -1, *weight.array.shape[1:])
        return Term.constant(parts[list(gates)].reshape(weight.array.shape))
    size = static(weight.shape[0]) // len(gates)
    pieces = split_at(site.emit, weight, 0, [size] * len(gates))
    return concatenate(site.emit, [pieces[gate] for gate in gates], 0)


def _initial(site: Site, x: Term, way: int, index: int) -> Term:
    given = site.optional(index)
    if given is None:
        shape = (x.shape[1], site.attr("hidden_size"))
        return site.emit.full(0.0, shape, x.dtype)
    if site.attr("layout", 0):
        given = transpose(site.emit, given, (1, 0, 2))
    return select(site.emit, given, 0, way)
