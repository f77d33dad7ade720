"""DenseNet (Huang et al., 2016)."""

from __future__ import annotations

from typing import Any

from ixion.compat.tvm.relay import op
from ixion.compat.tvm.relay.op import nn
from ixion.compat.tvm.relay.testing import layers
from ixion.compat.tvm.relay.testing.init import create_workload
from ixion.ir import Expr, Function, var

# depth: (channels of the stem, growth, layers of each block)
_SPECS = {
    121: (64, 32, (6, 12, 24, 16)),
    161: (96, 48, (6, 12, 36, 24)),
    169: (64, 32, (6, 12, 32, 32)),
    201: (64, 32, (6, 12, 48, 32)),
}
_BOTTLENECK = 4


def _activated(net: Expr, name: str) -> Expr:
    return nn.relu(layers.batch_norm_infer(net, scale=True, epsilon=1e-5, name=name))  # type: ignore[no-any-return]


def _layer(net: Expr, growth: int, name: str) -> Expr:
    inner = layers.conv2d(
        _activated(net, f"{name}_bn1"), channels=_BOTTLENECK * growth, kernel_size=(1, 1),
        name=f"{name}_conv1",
    )  # fmt: skip
    return layers.conv2d(
        _activated(inner, f"{name}_bn2"), channels=growth, kernel_size=(3, 3), padding=(1, 1),
        name=f"{name}_conv2",
    )  # fmt: skip


def _transition(net: Expr, channels: int, name: str) -> Expr:
    net = layers.conv2d(
        _activated(net, f"{name}_bn"), channels=channels, kernel_size=(1, 1), name=f"{name}_conv"
    )
    return nn.avg_pool2d(net, pool_size=(2, 2), strides=(2, 2))  # type: ignore[no-any-return]


def get_net(
    densenet_size: int, classes: int, data_shape: tuple[int, ...], dtype: str = "float32"
) -> Function:
    """KeyError for a depth other than 121, 161, 169 and 201."""
    channels, growth, blocks = _SPECS[densenet_size]
    net: Expr = var("data", shape=data_shape, dtype=dtype)
    net = layers.conv2d(
        net, channels=channels, kernel_size=(7, 7), strides=(2, 2), padding=(3, 3), name="conv1"
    )
    net = nn.max_pool2d(_activated(net, "batch1"), pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
    for block, count in enumerate(blocks):
        for number in range(count):
            made = _layer(net, growth, f"block{block}_layer{number}")
            net = op.concatenate((net, made), axis=1)
        channels += count * growth
        if block < len(blocks) - 1:
            channels //= 2
            net = _transition(net, channels, f"transition{block}")
    net = _activated(net, "batch_final")
    net = nn.batch_flatten(nn.avg_pool2d(net, pool_size=(7, 7)))
    net = layers.dense_add_bias(net, units=classes, name="dense")
    return layers.closed(net)


def get_workload(
    densenet_size: int = 121,
    classes: int = 1000,
    batch_size: int = 4,
    image_shape: tuple[int, ...] = (3, 224, 224),
    dtype: str = "float32",
) -> Any:
    """The module and random parameters."""
    return create_workload(get_net(densenet_size, classes, (batch_size, *image_shape), dtype))


__all__ = ["get_net", "get_workload"]
