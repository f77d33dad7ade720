"""The network that plays Atari games (Mnih et al., 2013)."""

from __future__ import annotations

from typing import Any

from ixion.compat.tvm.relay.op import nn
from ixion.compat.tvm.relay.testing import layers
from ixion.compat.tvm.relay.testing.init import create_workload
from ixion.ir import Expr, Function, var

# channels, kernel, stride
_CONVS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))


def get_net(
    batch_size: int,
    num_actions: int = 18,
    image_shape: tuple[int, ...] = (4, 84, 84),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> Function:
    """Three convolutions, a dense layer of 512, a value per action."""
    net: Expr = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    for number, (channels, kernel, stride) in enumerate(_CONVS, start=1):
        net = layers.conv2d(
            net, kernel_size=(kernel, kernel), strides=(stride, stride), padding=(0, 0),
            channels=channels, name=f"conv{number}", data_layout=layout,
            kernel_layout=layers.conv_kernel_layout(layout),
        )  # fmt: skip
        net = nn.bias_add(net, var(f"conv{number}_bias"), layout.index("C"))
        net = nn.relu(net)
    net = nn.relu(layers.dense_add_bias(nn.batch_flatten(net), units=512, name="dense1"))
    return layers.closed(layers.dense_add_bias(net, units=num_actions, name="dense2"))


def get_workload(
    batch_size: int,
    num_actions: int = 18,
    image_shape: tuple[int, ...] = (4, 84, 84),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> Any:
    """The module and random parameters."""
    return create_workload(get_net(batch_size, num_actions, image_shape, dtype, layout))


__all__ = ["get_net", "get_workload"]
