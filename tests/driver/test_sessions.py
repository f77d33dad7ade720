"""State from run to run: caches that grow in place, and states that are replaced."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ixion
from ixion import op
from ixion.base.dim import SymVar
from ixion.base.errors import ConfigError, InputError
from ixion.ir import Function, IRModule, TensorType, Tuple, Var, const

Array = np.ndarray[Any, np.dtype[Any]]
past, new = SymVar("past"), SymVar("new")
GPT = Path(__file__).parents[2] / "examples" / "gpt2_decode.py"


def tensor(name: str, *shape: Any) -> Var:
    return Var(name, TensorType(shape, "float32"))


def module(params: list[Var], results: list[Any], names: list[str]) -> IRModule:
    made = IRModule.from_expr(Function(params, Tuple(results)))
    inputs = [p.name_hint for p in params]
    return made.with_attrs({"input_names": inputs, "output_names": names})


def attention() -> Any:
    query, key = tensor("query", 2, new, 16), tensor("key", 2, new, 16)
    keys = tensor("keys", 2, past, 16)
    longer = op.concatenate(Tuple((keys, key)), 1)
    weights = op.nn.softmax(op.nn.batch_matmul(query, longer, transpose_b=True), -1)
    mixed = op.nn.batch_matmul(weights, longer, transpose_b=False)
    made = module([query, key, keys], [mixed, longer], ["mixed", "longer"])
    return ixion.compile(made, states={"keys": "longer"}).session()


def mixed_with(query: Array, keys: Array) -> Array:
    scores = np.exp(query @ keys.transpose(0, 2, 1))
    return scores / scores.sum(-1, keepdims=True) @ keys


def test_a_cache_grows_where_it_is() -> None:
    session, rng = attention(), np.random.default_rng(0)
    assert [spec.name for spec in session.inputs] == ["query", "key"]
    assert [spec.name for spec in session.outputs] == ["mixed"]
    keys = np.zeros((2, 0, 16), np.float32)
    places = set()
    for count in [5, *[1] * 70, 3]:
        query, key = (rng.standard_normal((2, count, 16)).astype(np.float32) for _ in range(2))
        keys = np.concatenate([keys, key], 1)
        got = session.run({"query": query, "key": key})
        np.testing.assert_allclose(got["mixed"], mixed_with(query, keys), rtol=1e-4, atol=1e-5)
        places.add(session._buffers["keys"].now.ctypes.data)
    np.testing.assert_array_equal(session.state("keys"), keys)
    assert len(places) == 2  # room for 64, then for 128


def test_sessions_do_not_know_each_other() -> None:
    one, rng = attention(), np.random.default_rng(0)
    other = ixion.runtime.session.Session(one.executable, one.carried)  # type: ignore[attr-defined]
    first, second = (rng.standard_normal((2, 3, 16)).astype(np.float32) for _ in range(2))
    one.run({"query": first, "key": first})
    got = other.run({"query": second, "key": second})
    np.testing.assert_allclose(got["mixed"], mixed_with(second, second), rtol=1e-4, atol=1e-5)


def test_states_can_be_read_set_and_reset() -> None:
    session, rng = attention(), np.random.default_rng(1)
    with pytest.raises(InputError, match="before the first run"):
        session.state("keys")
    keys = rng.standard_normal((2, 9, 16)).astype(np.float32)
    session.set_state("keys", keys)
    step = rng.standard_normal((2, 1, 16)).astype(np.float32)
    longer = np.concatenate([keys, step], 1)
    got = session.run({"query": step, "key": step})
    np.testing.assert_allclose(got["mixed"], mixed_with(step, longer), rtol=1e-4, atol=1e-5)
    session.reset()
    got = session.run({"query": step, "key": step})
    np.testing.assert_allclose(got["mixed"], step, rtol=1e-5)
    with pytest.raises(InputError, match="'kes'"):
        session.state("kes")
    with pytest.raises(InputError, match="rank"):
        session.set_state("keys", keys[0])


def test_a_state_that_is_replaced() -> None:
    x, hidden = tensor("x", 3, 8), tensor("hidden", 3, 8)
    following = op.tanh(op.add(x, hidden))
    made = module([x, hidden], [op.exp(following), following], ["y", "next"])
    session = ixion.compile(made, states={"hidden": "next"}).session()
    state = np.zeros((3, 8), np.float32)
    for seed in range(5):
        value = np.random.default_rng(seed).standard_normal((3, 8)).astype(np.float32)
        state = np.tanh(value + state)
        np.testing.assert_allclose(session.run({"x": value})["y"], np.exp(state), rtol=1e-5)
    np.testing.assert_allclose(session.state("hidden"), state, rtol=1e-5)


def test_a_large_state_is_never_copied() -> None:
    x, hidden = tensor("x", 64, 1024), tensor("hidden", 64, 1024)
    made = module([x, hidden], [op.add(x, hidden)], ["next"])
    session = ixion.compile(made, states={"hidden": "next"}).session()
    ones = np.ones((64, 1024), np.float32)
    session.run({"x": ones})
    buffers = session._buffers["hidden"]
    pair = {b.ctypes.data for b in (buffers.now, buffers.then)}
    for _ in range(4):
        session.run({"x": ones})
        assert session._buffers["hidden"].now.ctypes.data in pair
    np.testing.assert_array_equal(session.state("hidden"), 5 * ones)


def test_what_cannot_be_a_state_is_said() -> None:
    x, hidden = tensor("x", 4), tensor("hidden", 4)
    made = module([x, hidden], [op.concatenate(Tuple((x, hidden)), 0)], ["y"])
    with pytest.raises(InputError, match="'y' cannot follow state 'hidden'"):
        ixion.compile(made, states={"hidden": "y"})
    with pytest.raises(ConfigError, match="no output 'z'"):
        ixion.compile(made, states={"hidden": "z"})
    with pytest.raises(ConfigError, match="no input 'hiden'"):
        ixion.compile(made, states={"hiden": "y"})
    x = tensor("x", new)
    plain = ixion.compile(module([x], [op.exp(x)], ["y"]))
    with pytest.raises(ConfigError, match="without states"):
        plain.session()


def test_append_where_nobody_keeps_the_buffer() -> None:
    """The operator alone does not change its operand."""
    buffer, more = tensor("buffer", 5, 3), tensor("more", 2, 3)
    model = ixion.compile(Function([buffer, more], op.state.append(buffer, more, 0, 1)))
    base = np.zeros((5, 3), np.float32)
    got = model(base, np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(got, np.array([[0] * 3, [1] * 3, [1] * 3, [0] * 3, [0] * 3]))
    np.testing.assert_array_equal(base, 0)
    kept = const(np.zeros((5, 3), np.float32))
    again = ixion.compile(Function([more], op.state.append(kept, more, 0, 3)))
    for _ in range(2):
        assert again(np.ones((2, 3), np.float32)).sum() == 6


def test_decoding_gives_the_tokens_of_recomputing() -> None:
    spec = importlib.util.spec_from_file_location("gpt2_decode", GPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    builder = script.Builder(layers=2, width=128, vocabulary=300, seed=3)
    prompt = np.random.default_rng(1).integers(0, 300, (1, 7))
    kept, _ = script.decode_with_cache(builder, prompt, 20, 1)
    whole, _ = script.decode_again_and_again(builder, prompt, 20, 1)
    assert kept == whole
    assert len(set(kept)) > 3
