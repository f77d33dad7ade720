from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.kernel.conftest import check_schedule

from ixion import op
from ixion.base.target import Target
from ixion.ir import Expr, const, var
from ixion.kernel.attention import attention_tile, result_blocks
from ixion.kernel.attention_blocks import BlockedAttention, attention_class
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


@pytest.mark.parametrize(("length", "count", "width"), [(49, 2, 32), (18, 3, 20), (37, 1, 17)])
def test_keys_that_lie_row_by_row_are_transposed(target, length, count, width) -> None:
    shape = (1, length, count * width)
    q, k, v = (var(name, shape=shape) for name in "qkv")
    scores = op.call(
        "nn.batch_matmul", heads(q, 1, length, count, width),
        heads(k, 1, length, count, width, (0, 2, 3, 1)),
    )  # fmt: skip
    bias = normal(count, length, length)
    bias[:, :, 1::3] = -np.inf  # masked: must weigh nothing, not even as denormal numbers
    weights = op.call("nn.softmax", op.call("add", scores, const(bias)), axis=-1)
    out = op.call("nn.batch_matmul", weights, heads(v, 1, length, count, width))
    body = joined(out, 1, length, count, width)
    values = [normal(*shape) for _ in range(3)]
    check_schedule([q, k, v], body, values, target, expect=AttentionSchedule, blocked=False)


def test_a_masked_row_and_a_nan_stay_in_their_rows(target) -> None:
    q, k, v = var("q", shape=(1, 6, 8)), var("k", shape=(1, 19, 8)), var("v", shape=(1, 19, 4))
    mask = var("mask", shape=(1, 6, 19))
    scores = op.call("add", op.call("nn.batch_matmul", q, k, transpose_b=True), mask)
    body = op.call("nn.batch_matmul", op.call("nn.softmax", scores, axis=-1), v)
    values = [normal(1, 6, 8), normal(1, 19, 8), normal(1, 19, 4), np.zeros((1, 6, 19), np.float32)]
    values[0][0, 1, 3] = np.nan
    values[3][0, 4] = -np.inf
    check_schedule([q, k, v, mask], body, values, target, expect=AttentionSchedule, blocked=False)


def test_tiles_fit_the_registers() -> None:
    for name, registers in (("avx512", 32), ("avx2", 16), ("generic", 16)):
        target = Target.parse(name)
        lanes = target.lanes("float32")
        for rows, keys, depth, width in [(49, 49, 32, 32), (250, 1500, 64, 64), (1, 5, 3, 2)]:
            tile = attention_tile(target, lanes, rows, keys, depth, width)
            assert tile.pixels * tile.blocks + tile.blocks < registers
            results = result_blocks(registers, tile.pixels)
            assert results == 1 or tile.pixels * results + results < registers


@pytest.mark.parametrize("keys", [600, 1050])
def test_attention_over_blocks_of_keys(target, keys) -> None:
    q, k, v = var("q", shape=(2, 7, 8)), var("k", shape=(2, keys, 8)), var("v", shape=(2, keys, 20))
    mask = var("mask", shape=(1, 1, keys))
    scores = op.call("add", op.call("nn.batch_matmul", q, k, transpose_b=True), mask)
    weights = op.call("nn.softmax", scores, axis=-1)
    body = op.call("nn.batch_matmul", weights, v, transpose_b=False)
    values = [normal(2, 7, 8), normal(2, keys, 8), normal(2, keys, 20)]
    # The first block of keys is hidden altogether, and the best match comes late.
    hidden = np.where(np.arange(keys) < 550, -np.inf, 0).astype(np.float32)
    hidden[-3] = 5
    small = replace(Target.parse(target), l1=1 << 10)
    assert attention_class(small, 5, keys) is BlockedAttention
    check_schedule(
        [q, k, v, mask], body, [*values, hidden.reshape(1, 1, keys)], small,
        expect=AttentionSchedule, blocked=False,
    )  # fmt: skip
