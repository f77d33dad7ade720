"""A network of three dense layers."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from ixion.compat.tvm.relay.op import nn
from ixion.compat.tvm.relay.testing import layers
from ixion.compat.tvm.relay.testing.init import create_workload
from ixion.ir import Function, var


def get_net(
    batch_size: int,
    num_classes: int = 10,
    image_shape: tuple[int, ...] = (1, 28, 28),
    dtype: str = "float32",
) -> Function:
    """``image_shape`` flattened, 128 units, 64 units, ``num_classes``, softmax."""
    shape = (batch_size, *image_shape)
    net = nn.batch_flatten(var("data", shape=shape, dtype=dtype))
    sizes = (math.prod(image_shape), 128, 64, num_classes)
    for number, (inputs, units) in enumerate(pairwise(sizes), start=1):
        weight = var(f"fc{number}_weight", shape=(units, inputs), dtype=dtype)
        bias = var(f"fc{number}_bias", shape=(units,), dtype=dtype)
        net = layers.dense_add_bias(net, weight, bias, units, name=f"fc{number}")
        if number < 3:
            net = nn.relu(net)
    return layers.closed(nn.softmax(net))


def get_workload(
    batch_size: int,
    num_classes: int = 10,
    image_shape: tuple[int, ...] = (1, 28, 28),
    dtype: str = "float32",
) -> Any:
    """The module and random parameters."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))


__all__ = ["get_net", "get_workload"]
