"""Recurrent layers: nests in numpy, and compiled programs on every kind of target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.kernel.conftest import check_schedule, formed

import ixion
from ixion import op
from ixion.base.target import Target
from ixion.ir import Constant, Function, IRModule, TupleGetItem, const, var
from ixion.kernel.group import Group
from ixion.kernel.recurrent import step_tile
from ixion.kernel.schedule import schedule_for
from ixion.kernel.schedule_recurrent import GRU, LSTM, RNN

RNG = np.random.default_rng(5)
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("lstm", {}), ("lstm", {"reverse": True}), ("gru", {}), ("gru", {"reverse": True}),
    ("gru", {"reset_after": False}), ("rnn", {}), ("rnn", {"activation": "relu", "reverse": True}),
]  # fmt: skip
# Steps, batch, units: one step, one unit, short last vectors, several tiles and chunks of rows.
SIZES = [(1, 1, 1), (3, 1, 16), (2, 1, 37), (1, 3, 5), (2, 7, 64), (3, 13, 33), (2, 150, 20)]


def layer(kind: str, sizes: tuple[int, int, int], known: bool, **attrs: Any):
    """A function of one layer and what to feed it; the weight is a constant where ``known``."""
    steps, batch, units = sizes
    gates, states = {"lstm": (4, 2), "gru": (3, 1), "rnn": (1, 1)}[kind]
    shapes = [(steps, batch, gates * units), (gates * units, units)]
    shapes += [(units,)] * (kind == "gru") + [(batch, units)] * states
    arrays = [RNG.uniform(-1, 1, s).astype(np.float32) for s in shapes]
    arrays[1] /= np.float32(np.sqrt(units))
    params = [var(f"x{i}", shape=a.shape) for i, a in enumerate(arrays)]
    args = [const(arrays[1]) if known and i == 1 else p for i, p in enumerate(params)]
    if known:
        del params[1], arrays[1]
    return params, op.call(f"nn.{kind}_sequence", *args, **attrs), arrays


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(("kind", "attrs"), KINDS)
@pytest.mark.parametrize("name", ["native", "avx2", "generic"])
def test_compiled_layers(name, kind, attrs, sizes) -> None:
    for known in (True, False):
        params, body, arrays = layer(kind, sizes, known, **attrs)
        module = IRModule.from_expr(Function(params, body))
        want = ixion.compile(module, executor="reference")(*arrays)
        one, two = (ixion.compile(module, target=name, threads=n)(*arrays) for n in (1, 2))
        for a, b, c in zip(*map(results, (one, two, want)), strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, c, rtol=0, atol=4e-6)


def results(found: Any) -> list[np.ndarray]:
    return list(found) if isinstance(found, (list, tuple)) else [found]


@pytest.mark.parametrize("sizes", [(2, 1, 20), (3, 5, 33)])
@pytest.mark.parametrize(("kind", "attrs"), KINDS[2:])
@pytest.mark.parametrize("known", [True, False])
def test_nests_in_numpy(target, kind, attrs, sizes, known) -> None:
    params, body, arrays = layer(kind, sizes, known, **attrs)
    check_schedule(params, body, arrays, target, expect={"gru": GRU, "rnn": RNN}[kind],
                   blocked=False)


def test_all_steps_are_calls_of_one_kernel() -> None:
    params, body, _ = layer("lstm", (9, 2, 8), True)
    call = formed(params, body)
    group = Group(call.op, [isinstance(a, Constant) for a in call.args])
    schedule = schedule_for(group, Target.parse("avx2"))
    assert isinstance(schedule, LSTM)
    lowered = schedule.lower("k", [], schedule.result())
    assert len(lowered.kernels) == 9
    assert len({id(kernel) for kernel, _ in lowered.kernels}) == 1


def test_what_is_not_float32_runs_by_the_reference() -> None:
    params, body, arrays = layer("lstm", (2, 1, 3), False)
    params = [var(p.name_hint, shape=p.type_annotation.shape, dtype="float64") for p in params]
    body = op.call("nn.lstm_sequence", *params)
    module = IRModule.from_expr(Function(params, body))
    wide = [a.astype(np.float64) for a in arrays]
    want = ixion.compile(module, executor="reference")(*wide)
    for a, b in zip(ixion.compile(module)(*wide), want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_layers_after_one_another_and_joined_directions() -> None:
    """States of one layer feed the next; the directions are parts of one tensor."""
    x = var("x", shape=(4, 3, 8))
    weights = [const(RNG.uniform(-1, 1, (8, 2)).astype(np.float32) / 2) for _ in range(3)]
    zero = const(np.zeros((3, 2), np.float32))
    there = op.call("nn.lstm_sequence", x, weights[0], zero, zero)
    back = op.call("nn.lstm_sequence", x, weights[1], zero, zero, reverse=True)
    both = op.concatenate((TupleGetItem(there, 0), TupleGetItem(back, 0)), 2)
    grown = op.concatenate((both, both), 2)
    last = op.call("nn.lstm_sequence", grown, weights[2], TupleGetItem(there, 1), zero)
    body = op.add(TupleGetItem(last, 0), TupleGetItem(back, 0))
    module = IRModule.from_expr(Function([x], body))
    array = RNG.uniform(-1, 1, (4, 3, 8)).astype(np.float32)
    want = ixion.compile(module, executor="reference")(array)
    for threads in (1, 2):
        got = ixion.compile(module, threads=threads, verify=True)(array)
        np.testing.assert_allclose(got, want, rtol=0, atol=4e-6)


def test_a_tile_holds_whole_units() -> None:
    for name in ("avx512", "avx2", "generic"):
        for rows in (1, 2, 5, 64):
            for gates in (1, 2, 3, 4):
                tile = step_tile(Target.parse(name), rows, 96, gates)
                assert tile.blocks % gates == 0
