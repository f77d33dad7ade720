from __future__ import annotations

import numpy as np
import pytest
from tests.kernel.conftest import check_schedule, formed, run_lowered, unpack

import ixion
from ixion import op
from ixion.base.target import Target
from ixion.ir import Constant, Function, IRModule, Tuple, const, var
from ixion.kernel.dense import chunk_rows, dense_tile
from ixion.kernel.group import Group
from ixion.kernel.layout import PLAIN
from ixion.kernel.schedule import channel_block, schedule_for
from ixion.kernel.schedule_concat import Concatenate
from ixion.kernel.schedule_dense import Dense
from ixion.kernel.schedule_generic import GenericSchedule
from ixion.kernel.schedule_softmax import Softmax
from ixion.te.text import kernel_text

RNG = np.random.default_rng(6)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("rows", "depth", "columns"), [(1, 37, 10), (5, 16, 64), (70, 9, 33)])
def test_dense(target, rows, depth, columns) -> None:
    x = var("x", shape=(rows, depth))
    y = op.call("nn.dense", x, const(normal(columns, depth)), units=columns)
    body = op.call("tanh", op.call("add", y, const(normal(columns))))
    check_schedule([x], body, [normal(rows, depth)], target, expect=Dense, blocked=False)


@pytest.mark.parametrize(("rows", "columns"), [(1, 20), (21, 40)])
def test_dense_with_long_work_on_its_result(target, rows, columns) -> None:
    x = var("x", shape=(rows, 24))
    y = op.call("nn.dense", x, const(normal(columns, 24)), units=columns)
    y = op.call("reshape", op.call("add", y, const(normal(columns))), newshape=(1, rows, columns))
    half = op.call("multiply", y, const(np.float32(0.5)))
    gate = op.call("erf", op.call("divide", y, const(np.float32(2**0.5))))
    body = op.call("multiply", half, op.call("add", gate, const(np.float32(1))))
    check_schedule([x], body, [normal(rows, 24)], target, expect=Dense, blocked=False)


@pytest.mark.parametrize(("shape", "columns"), [((1, 5, 7), 40), ((2, 3, 3), 16), ((1, 4, 30), 5)])
@pytest.mark.parametrize("long", [False, True])
def test_dense_with_its_columns_made_channels(target, shape, columns, long) -> None:
    """As at the end of a ConvNeXt block: scaled, and added to blocked channels."""
    x, r = var("x", shape=(*shape, 24)), var("r", shape=(shape[0], columns, *shape[1:]))
    y = op.call("nn.dense", x, const(normal(columns, 24)), units=columns)
    y = op.call("transpose", op.call("add", y, const(normal(columns))), axes=(0, 3, 1, 2))
    y = op.call("multiply", op.call("sigmoid", y) if long else y, const(normal(columns, 1, 1)))
    values = [normal(*shape, 24), normal(shape[0], columns, *shape[1:])]
    check_schedule([x, r], op.call("add", y, r), values, target, expect=Dense)


@pytest.mark.parametrize("machine", ["native", "avx2", "generic"])
def test_compiled_dense_with_its_columns_made_channels(machine) -> None:
    x, r = var("x", shape=(1, 9, 5, 33)), var("r", shape=(1, 50, 9, 5))
    y = op.call("nn.dense", x, const(normal(50, 33)), units=50)
    y = op.call("add", op.call("transpose", y, axes=(0, 3, 1, 2)), op.call("nn.relu", r))
    module = IRModule.from_expr(Function([x, r], op.call("nn.global_avg_pool2d", y)))
    values = [normal(1, 9, 5, 33), normal(1, 50, 9, 5)]
    want = ixion.compile(module, executor="reference")(*values)
    one, two = (ixion.compile(module, target=machine, threads=n)(*values) for n in (1, 2))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(one, want, rtol=1e-4, atol=1e-4)


def test_small_powers(target) -> None:
    x = var("x", shape=(3, 21))
    body = op.call("power", op.call("power", x, const(np.float32(3))), const(np.float32(2)))
    check_schedule([x], body, [normal(3, 21)], target, expect=GenericSchedule, blocked=False)


@pytest.mark.parametrize(("rows", "depth", "columns", "asks"), [
    (1, 2080, 512, True), (1, 512, 512, False), (8, 512, 512, True), (8, 64, 64, False)
])  # fmt: skip
def test_weights_are_asked_for_where_they_come_from_afar(rows, depth, columns, asks) -> None:
    """One row would lose by it while its weights stay in the second-level cache."""
    x, w = var("x", shape=(rows, depth)), const(np.zeros((columns, depth), np.float32))
    call = formed([x], op.call("nn.dense", x, w, units=columns))
    group = Group(call.op, [isinstance(a, Constant) for a in call.args])
    lowered = schedule_for(group, Target.parse("avx512")).lower("k", [PLAIN, PLAIN], PLAIN)
    assert all(("prefetch" in kernel_text(kernel)) == asks for kernel, _ in lowered.kernels)


def test_dense_tiles_suit_cache_and_rows() -> None:
    target = Target.parse("avx512")
    for rows, depth, blocks in [(128, 3072, 48), (49, 768, 192), (197, 768, 48), (64, 768, 3142)]:
        tile = dense_tile(target, 16, rows, blocks, depth)
        assert 20 <= tile.pixels * tile.blocks <= 30 - tile.blocks
        # Rows of 12 KiB share one set of the first-level cache.
        assert depth != 3072 or tile.pixels <= 8
        assert chunk_rows(rows, tile) <= 144


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("length", [1, 7, 50])
def test_softmax(target, log, length) -> None:
    x = var("x", shape=(3, length))
    body = op.call("nn.log_softmax" if log else "nn.softmax", x, axis=-1)
    check_schedule([x], body, [3 * normal(3, length)], target, expect=Softmax, blocked=False)


@pytest.mark.parametrize("blocked", [False, True])
def test_concatenation_with_elementwise_work(target, blocked) -> None:
    a, b = var("a", shape=(2, 32, 3, 5)), var("b", shape=(2, 19, 3, 5))
    joined = op.call("concatenate", Tuple([a, b]), axis=1)
    body = op.call("nn.relu", op.call("multiply", joined, const(normal(51, 1, 1))))
    check_schedule(
        [a, b],
        body,
        [normal(2, 32, 3, 5), normal(2, 19, 3, 5)],
        target,
        expect=Concatenate,
        blocked=blocked,
    )


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_concatenation_of_single_slices(target, axis) -> None:
    shapes = [[1, 2, 7, 6], [1, 2, 7, 6]]
    shapes[1][axis] = 1
    a, b = var("a", shape=tuple(shapes[0])), var("b", shape=tuple(shapes[1]))
    body = op.call("concatenate", Tuple([b, a]), axis=axis)
    check_schedule([a, b], body, [normal(*s) for s in shapes], target, expect=Concatenate,
                   blocked=False)


CASES = {
    "transpose": lambda x: op.call("transpose", x, axes=(0, 2, 3, 1)),
    "shuffle": lambda x: op.call("reshape", op.call(
        "transpose", op.call("reshape", x, newshape=(1, 2, 10, 6, 7)), axes=(0, 2, 1, 3, 4)
    ), newshape=(1, 20, 6, 7)),
    "slice": lambda x: op.call(
        "strided_slice", x, begin=(5, 1), end=(17, 6), strides=(1, 2), axes=(1, 3)
    ),
    "mean": lambda x: op.call("mean", x, axis=(2, 3), keepdims=True),
    "max over channels": lambda x: op.call("max", x, axis=(1,)),
    "sum of squares": lambda x: op.call("sum", op.call("multiply", x, x), axis=(3,)),
    "global pool": lambda x: op.call("nn.global_avg_pool2d", x),
    "adaptive pool": lambda x: op.call("nn.adaptive_avg_pool2d", x, output_size=(4, 3)),
    "softmax over channels": lambda x: op.call("nn.softmax", x, axis=1),
    "scale and clip": lambda x: op.call(
        "clip", op.call("multiply", x, const(np.float32(3))), a_min=0.0, a_max=6.0
    ),
    "upsample": lambda x: op.call("nn.upsampling", x, scale_h=2.0, scale_w=2.0),
}  # fmt: skip


MOVES = {
    "to rows": lambda x: op.call("transpose", x, axes=(0, 2, 3, 1)),
    "to rows, scaled": lambda x: op.call(
        "multiply", op.call("transpose", x, axes=(0, 2, 3, 1)), const(normal(38))),
    "slice within blocks": lambda x: op.call("strided_slice", x, begin=(7,), end=(36,), axes=(1,)),
    "second half": lambda x: op.call("strided_slice", x, begin=(19,), end=(38,), axes=(1,)),
    "swap": lambda x: op.call("transpose", x, axes=(0, 1, 3, 2)),
    "shuffle": lambda x: op.call("reshape", op.call(
        "transpose", op.call("reshape", x, newshape=(1, 2, 19, 9, 11)), axes=(0, 2, 1, 3, 4)
    ), newshape=(1, 38, 9, 11)),
    "integers": lambda x: op.call(
        "cast", op.call("transpose", op.call("cast", x, dtype="int32"), axes=(0, 3, 2, 1)),
        dtype="float32"),
}  # fmt: skip


@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize("case", MOVES)
def test_moves_in_squares(target, case, blocked) -> None:
    x = var("x", shape=(1, 38, 9, 11))
    check_schedule([x], MOVES[case](x), [normal(1, 38, 9, 11)], target, expect=GenericSchedule,
                   blocked=blocked)


@pytest.mark.parametrize(("source", "result"), [(PLAIN, None), (None, PLAIN)])
@pytest.mark.parametrize("channels", [5, 16, 58])
def test_relayouts(target, source, result, channels) -> None:
    """A copy from plain to blocked channels and back; padding lanes are NaN before and after."""
    block = channel_block(Target.parse(target))
    source, result = source or block, result or block
    shape = (2, channels, 3, 7)
    x = var("x", shape=shape)
    call = formed([x], op.call("copy", x))
    call = call.op.with_attr("kernel", "relayout")
    array = normal(*shape)
    flat = np.where(source.pack(np.ones(shape, np.float32)) == 1, source.pack(array), np.nan)
    schedule = schedule_for(Group(call, [False]), Target.parse(target))
    lowered = schedule.lower("k", [source], result)
    got = run_lowered(lowered, [flat.astype(np.float32)], result.size(shape))
    np.testing.assert_array_equal(unpack(got, result, shape), array)


@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_generic_schedule(target, case, blocked) -> None:
    x = var("x", shape=(1, 20, 6, 7))
    check_schedule(
        [x], CASES[case](x), [normal(1, 20, 6, 7)], target, expect=GenericSchedule, blocked=blocked
    )
