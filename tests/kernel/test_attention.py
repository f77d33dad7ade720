from __future__ import annotations

import numpy as np
import pytest
from tests.kernel.conftest import check_schedule

from ixion import op
from ixion.ir import Expr, const, var
from ixion.kernel.schedule_attention import AttentionSchedule

RNG = np.random.default_rng(8)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def heads(x: Expr, batch: int, length: int, count: int, width: int, axes=(0, 2, 1, 3)) -> Expr:
    split = op.call("reshape", x, newshape=(batch, length, count, width))
    moved = op.call("transpose", split, axes=axes)
    sizes = [(batch, length, count, width)[a] for a in axes]
    return op.call("reshape", moved, newshape=(batch * count, *sizes[2:]))


def joined(x: Expr, batch: int, length: int, count: int, width: int) -> Expr:
    split = op.call("reshape", x, newshape=(batch, count, length, width))
    moved = op.call("transpose", split, axes=(0, 2, 1, 3))
    return op.call("reshape", moved, newshape=(batch, length, count * width))


@pytest.mark.parametrize(("batch", "length", "count", "width"), [(2, 9, 2, 5), (1, 17, 3, 16)])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_through_heads(target, batch, length, count, width, masked) -> None:
    shape = (batch, length, count * width)
    q, k, v = (var(name, shape=shape) for name in "qkv")
    scores = op.call(
        "nn.batch_matmul", heads(q, batch, length, count, width),
        heads(k, batch, length, count, width, (0, 2, 3, 1)),
    )  # fmt: skip
    scores = op.call("reshape", scores, newshape=(batch, count, length, length))
    scores = op.call("multiply", scores, const(np.float32(width**-0.5)))
    inputs, values = [q, k, v], [normal(*shape) for _ in range(3)]
    if masked:
        mask = var("mask", shape=(batch, 1, 1, length))
        scores = op.call("add", scores, mask)
        inputs.append(mask)
        blocked = np.where(RNG.random((batch, 1, 1, length)) < 0.4, -np.float32(3e38), 0)
        values.append(blocked.astype(np.float32))
    weights = op.call("nn.softmax", scores, axis=-1)
    weights = op.call("reshape", weights, newshape=(batch * count, length, length))
    out = op.call("nn.batch_matmul", weights, heads(v, batch, length, count, width))
    body = joined(out, batch, length, count, width)
    check_schedule(inputs, body, values, target, expect=AttentionSchedule, blocked=False)


def test_attention_of_other_lengths_and_transposed_keys(target) -> None:
    q, k, v = var("q", shape=(3, 5, 8)), var("k", shape=(3, 20, 8)), var("v", shape=(3, 20, 4))
    scores = op.call("nn.batch_matmul", q, k, transpose_b=True)
    body = op.call("nn.batch_matmul", op.call("nn.softmax", scores, axis=-1), v)
    check_schedule(
        [q, k, v], body, [normal(3, 5, 8), normal(3, 20, 8), normal(3, 20, 4)], target,
        expect=AttentionSchedule, blocked=False,
    )  # fmt: skip
