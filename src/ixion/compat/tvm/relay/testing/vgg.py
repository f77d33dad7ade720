"""VGG (Simonyan and Zisserman, 2014)."""

from __future__ import annotations

from typing import Any

from ixion.compat.tvm.relay.op import nn
from ixion.compat.tvm.relay.testing import layers
from ixion.compat.tvm.relay.testing.init import create_workload
from ixion.ir import Expr, Function, var

_LAYERS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
_FILTERS = (64, 128, 256, 512, 512)


def _stage(net: Expr, stage: int, count: int, batch_norm: bool) -> Expr:
    for number in range(1, count + 1):
        name = f"conv{stage}_{number}"
        net = layers.conv2d(
            net, kernel_size=(3, 3), padding=(1, 1), channels=_FILTERS[stage - 1], name=name
        )
        net = nn.bias_add(net, var(f"{name}_bias"))
        if batch_norm:
            net = layers.batch_norm_infer(net, name=f"bn{stage}_{number}")
        net = nn.relu(net)
    return nn.max_pool2d(net, pool_size=(2, 2), strides=(2, 2))  # type: ignore[no-any-return]


def get_net(
    batch_size: int,
    image_shape: tuple[int, ...],
    num_classes: int,
    dtype: str,
    num_layers: int = 11,
    batch_norm: bool = False,
) -> Function:
    """ValueError for a depth other than 11, 13, 16 and 19."""
    if num_layers not in _LAYERS:
        raise ValueError(f"Invalid num_layers {num_layers}: one of {sorted(_LAYERS)} expected")
    net: Expr = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    for stage, count in enumerate(_LAYERS[num_layers], start=1):
        net = _stage(net, stage, count, batch_norm)
    net = nn.batch_flatten(net)
    for name in ("fc6", "fc7"):
        net = nn.dropout(nn.relu(layers.dense_add_bias(net, units=4096, name=name)), rate=0.5)
    net = layers.dense_add_bias(net, units=num_classes, name="fc8")
    return layers.closed(nn.softmax(net))


def get_workload(
    batch_size: int,
    num_classes: int = 1000,
    image_shape: tuple[int, ...] = (3, 224, 224),
    dtype: str = "float32",
    num_layers: int = 11,
    batch_norm: bool = False,
) -> Any:
    """The module and random parameters."""
    net = get_net(batch_size, image_shape, num_classes, dtype, num_layers, batch_norm)
    return create_workload(net)


__all__ = ["get_net", "get_workload"]
