"""Two convolutions, a pooling and a dense layer: a network small enough for any test."""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion.compat.tvm.relay import op
from ixion.compat.tvm.relay.op import nn
from ixion.compat.tvm.relay.testing import layers
from ixion.compat.tvm.relay.testing.init import create_workload
from ixion.ir import Expr, Function, const, var


def _weight(name: str, shape: tuple[int, ...], dtype: str, wtype: str | None) -> Expr:
    weight: Expr = var(name, shape=shape, dtype=wtype or dtype)
    return op.cast(weight, dtype) if wtype is not None else weight


def get_net(
    input_shape: tuple[int, ...] = (1, 3, 24, 12),
    dtype: str = "float32",
    wtype: str | None = None,
) -> Function:
    """``wtype``, if given, is the dtype the weights are stored in."""
    data: Expr = var("data", shape=input_shape, dtype=dtype)
    first = nn.conv2d(
        data, _weight("conv_weight", (3, 3, 3, 3), dtype, wtype), kernel_size=(3, 3),
        channels=3, padding=(1, 1),
    )  # fmt: skip
    scaled = op.multiply(nn.relu(first), const(np.float32(2), dtype=dtype))
    second = nn.conv2d(
        scaled, _weight("dwise_conv_weight", (3, 1, 3, 3), dtype, wtype), kernel_size=(3, 3),
        channels=3, groups=3, padding=(1, 1),
    )  # fmt: skip
    pooled = nn.batch_flatten(nn.avg_pool2d(nn.relu(second), pool_size=(1, 1)))
    units = 3 * input_shape[2] * input_shape[3]
    out = nn.dense(pooled, _weight("dense_weight", (units, units), dtype, wtype))
    return layers.closed(nn.softmax(out))


def get_workload(
    input_shape: tuple[int, ...] = (1, 3, 24, 12),
    dtype: str = "float32",
    wtype: str | None = None,
) -> Any:
    """The module and random parameters."""
    return create_workload(get_net(input_shape, dtype, wtype))


__all__ = ["get_net", "get_workload"]
