from __future__ import annotations

import numpy as np
import pytest
from tests.kernel.conftest import check_schedule

from ixion import op
from ixion.ir import Tuple, const, var
from ixion.kernel.schedule_concat import Concatenate
from ixion.kernel.schedule_dense import Dense
from ixion.kernel.schedule_generic import GenericSchedule
from ixion.kernel.schedule_softmax import Softmax

RNG = np.random.default_rng(6)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("rows", "depth", "columns"), [(1, 37, 10), (5, 16, 64), (70, 9, 33)])
def test_dense(target, rows, depth, columns) -> None:
    x = var("x", shape=(rows, depth))
    y = op.call("nn.dense", x, const(normal(columns, depth)), units=columns)
    body = op.call("tanh", op.call("add", y, const(normal(columns))))
    check_schedule([x], body, [normal(rows, depth)], target, expect=Dense, blocked=False)


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


@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_generic_schedule(target, case, blocked) -> None:
    x = var("x", shape=(1, 20, 6, 7))
    check_schedule(
        [x], CASES[case](x), [normal(1, 20, 6, 7)], target, expect=GenericSchedule, blocked=blocked
    )
