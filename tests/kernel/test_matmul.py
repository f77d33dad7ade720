from __future__ import annotations

import numpy as np
import pytest
from tests.kernel.conftest import check_schedule

from ixion import op
from ixion.ir import const, var
from ixion.kernel.schedule_matmul import Matmul

RNG = np.random.default_rng(11)
SIZES = [(3, 5, 17, 20), (2, 21, 8, 33), (1, 1, 40, 70), (2, 9, 3, 4)]


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("batch", "rows", "depth", "columns"), SIZES)
@pytest.mark.parametrize(("ta", "tb"), [(False, False), (False, True), (True, False), (True, True)])
def test_batched_products(target, batch, rows, depth, columns, ta, tb) -> None:
    left = (batch, depth, rows) if ta else (batch, rows, depth)
    right = (batch, columns, depth) if tb else (batch, depth, columns)
    x, y = var("x", shape=left), var("y", shape=right)
    product = op.call("nn.batch_matmul", x, y, transpose_a=ta, transpose_b=tb)
    body = op.call("tanh", op.call("add", product, const(normal(columns))))
    check_schedule([x, y], body, [normal(*left), normal(*right)], target, expect=Matmul,
                   blocked=False)


def test_one_right_operand_for_all_products(target) -> None:
    x, y = var("x", shape=(3, 7, 6)), var("y", shape=(1, 6, 18))
    body = op.call("nn.batch_matmul", x, y, transpose_b=False)
    check_schedule([x, y], body, [normal(3, 7, 6), normal(1, 6, 18)], target, expect=Matmul,
                   blocked=False)


@pytest.mark.parametrize("rows", [(4,), (2, 3), (150,)])
def test_a_dense_layer_of_computed_weights(target, rows) -> None:
    x, w, r = var("x", shape=(*rows, 18)), var("w", shape=(20, 18)), var("r", shape=(*rows, 20))
    body = op.call("add", op.call("nn.dense", x, w, units=20), r)
    check_schedule([x, w, r], body, [normal(*rows, 18), normal(20, 18), normal(*rows, 20)], target,
                   expect=Matmul, blocked=False)


def test_a_plain_product(target) -> None:
    x, y = var("x", shape=(6, 18)), var("y", shape=(18, 35))
    body = op.call("nn.relu", op.call("nn.matmul", x, y))
    check_schedule([x, y], body, [normal(6, 18), normal(18, 35)], target, expect=Matmul,
                   blocked=False)
