"""A recurrent network of LSTM cells, unrolled, written with lets and an inner function."""

from __future__ import annotations

from typing import Any

from ixion.compat.tvm.relay import op
from ixion.compat.tvm.relay.testing import layers
from ixion.compat.tvm.relay.testing.init import create_workload
from ixion.ir import (
    Call,
    Function,
    ScopeBuilder,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    const,
    free_vars,
)


def lstm_cell(
    num_hidden: int, batch_size: int = 1, dtype: str = "float32", name: str = ""
) -> Function:
    """``(inputs, (hidden, cell), weights...) -> (output, (hidden, cell))``."""
    state = TensorType((batch_size, num_hidden), dtype)
    weight = TensorType((4 * num_hidden, num_hidden), dtype)
    bias = TensorType((4 * num_hidden,), dtype)
    gates = TensorType((batch_size, 4 * num_hidden), dtype)
    inputs, states = Var("inputs", state), Var("states", TupleType((state, state)))
    weights = [Var("i2h_weight", weight), Var("i2h_bias", bias)]
    weights += [Var("h2h_weight", weight), Var("h2h_bias", bias)]
    scope = ScopeBuilder()
    units = 4 * num_hidden
    i2h = layers.dense_add_bias(inputs, weights[0], weights[1], units, name=f"{name}i2h")
    hidden = TupleGetItem(states, 0)
    h2h = layers.dense_add_bias(hidden, weights[2], weights[3], units, name=f"{name}h2h")
    i2h = scope.let(("i2h", gates), i2h)
    h2h = scope.let(("h2h", gates), h2h)
    total = scope.let(("gates", gates), op.add(i2h, h2h))
    parts = op.split(total, indices_or_sections=4, axis=1).astuple()
    parts = scope.let(("slice_gates", TupleType((state,) * 4)), parts)
    part = [TupleGetItem(parts, index) for index in range(4)]
    enter = scope.let(("in_gate", state), op.sigmoid(part[0]))
    forget = scope.let(("forget_gate", state), op.sigmoid(part[1]))
    change = scope.let(("in_transform", state), op.tanh(part[2]))
    leave = scope.let(("out_gate", state), op.sigmoid(part[3]))
    kept = op.multiply(forget, TupleGetItem(states, 1))
    cell = scope.let(("next_c", state), op.add(kept, op.multiply(enter, change)))
    out = scope.let(("next_h", state), op.multiply(leave, op.tanh(cell)))
    scope.ret(scope.let(("ret", TupleType((state, TupleType((state, state))))), _result(out, cell)))
    return Function((inputs, states, *weights), scope.get())


def _result(out: Any, cell: Any) -> Tuple:
    return Tuple((out, Tuple((out, cell))))


def get_net(
    iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32"
) -> Function:
    """``iterations`` cells in a row, all fed the same data, starting from zeros."""
    import numpy as np

    state = TensorType((batch_size, num_hidden), dtype)
    weight = TensorType((4 * num_hidden, num_hidden), dtype)
    bias = TensorType((4 * num_hidden,), dtype)
    scope = ScopeBuilder()
    zeros = scope.let(("zeros", state), const(np.zeros((batch_size, num_hidden), dtype)))
    states: Any = scope.let(("init_states", TupleType((state, state))), Tuple((zeros, zeros)))
    data = Var("data", state)
    out: Any = None
    for step in range(iterations):
        cell = lstm_cell(num_hidden, batch_size, dtype, f"lstm_{step}")
        params = [
            Var(f"lstm_{step}_{part}_{kind}", weight if kind == "weight" else bias)
            for part in ("i2h", "h2h")
            for kind in ("weight", "bias")
        ]
        result = scope.let(f"call_{step}", Call(cell, (data, states, *params)))
        out = scope.let((f"out_{step}", state), TupleGetItem(result, 0))
        kind = TupleType((state, state))
        states = scope.let((f"states_{step}", kind), TupleGetItem(result, 1))
    scope.ret(out)
    body = scope.get()
    return Function(tuple(free_vars(body)), body, state)


def get_workload(
    iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32"
) -> Any:
    """The module and random parameters."""
    return create_workload(get_net(iterations, num_hidden, batch_size, dtype))


__all__ = ["get_net", "get_workload", "lstm_cell"]
