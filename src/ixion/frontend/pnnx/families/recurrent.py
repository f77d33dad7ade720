"""nn.LSTM, nn.GRU, nn.RNN: layers and directions on the steps of `build.recurrent`."""

from __future__ import annotations

from typing import Any

from ixion.frontend.build import recurrent
from ixion.frontend.build.movement import concatenate, expand_dims, select, squeeze, transpose
from ixion.frontend.build.recurrent import Activation, Layer, Step
from ixion.frontend.pnnx.convert import Site, converts
from ixion.frontend.term import Term, static


@converts("nn.LSTM")
def lstm(site: Site) -> Any:
    return _run(site, recurrent.lstm_step, (recurrent.sigmoid, recurrent.tanh, recurrent.tanh), 2)


@converts("nn.GRU")
def gru(site: Site) -> Any:
    return _run(site, recurrent.gru_step, (recurrent.sigmoid, recurrent.tanh), 1)


@converts("nn.RNN")
def rnn(site: Site) -> Any:
    relu = site.arg("nonlinearity", "tanh") == "relu"
    return _run(site, recurrent.simple_step, (recurrent.relu if relu else recurrent.tanh,), 1)


def _run(site: Site, step: Step, activations: tuple[Activation, ...], states: int) -> Any:
    """Outputs: all states of the last layer, then the last states of every layer and direction."""
    x, *given = [site.term(item) for item in site.positional] or [site.x]
    unbatched = x.rank == 2
    first = site.flag("batch_first") and not unbatched
    if unbatched:
        x = expand_dims(site.emit, x, [1])
        given = [expand_dims(site.emit, state, [1]) for state in given]
    x = transpose(site.emit, x, (1, 0, 2)) if first else x
    ways = 2 if site.flag("bidirectional") else 1
    finals: list[list[Term]] = []
    for number in range(int(site.arg("num_layers", 1))):
        outputs = []
        for way in range(ways):
            layer = _layer(site, x, number, way, activations)
            begin = _begin(site, x, given, number * ways + way, layer, states)
            out, last = recurrent.run(site.emit, step, layer, x, begin, way == 1)
            outputs.append(out)
            finals.append([expand_dims(site.emit, state, [0]) for state in last])
        x = concatenate(site.emit, outputs, 2)
    y = transpose(site.emit, x, (1, 0, 2)) if first else x
    ends = [concatenate(site.emit, list(parts), 0) for parts in zip(*finals, strict=True)]
    made = [y, *ends]
    if unbatched:
        made = [squeeze(site.emit, one, [1]) for one in made]
    return made[0] if len(site.op.outputs) == 1 else made[: len(site.op.outputs)]


def _layer(
    site: Site, x: Term, number: int, way: int, activations: tuple[Activation, ...]
) -> Layer:
    tail = f"l{number}{'_reverse' if way else ''}"
    return Layer(
        site.weight(f"weight_ih_{tail}", x.dtype),
        site.weight(f"weight_hh_{tail}", x.dtype),
        site.optional_weight(f"bias_ih_{tail}", x.dtype),
        site.optional_weight(f"bias_hh_{tail}", x.dtype),
        activations,
        site.optional_weight(f"weight_hr_{tail}", x.dtype),
    )


def _begin(
    site: Site, x: Term, given: list[Term], place: int, layer: Layer, states: int
) -> list[Term]:
    if given:
        return [select(site.emit, state, 0, place) for state in given[:states]]
    batch, size = x.shape[1], static(layer.states.shape[1])
    hidden = site.emit.full(0.0, (batch, size), x.dtype)
    if states == 1:
        return [hidden]
    # With a projection the cell keeps the hidden size, of which there are four gates.
    cells = static(layer.inputs.shape[0]) // 4
    return [hidden, site.emit.full(0.0, (batch, cells), x.dtype)]
