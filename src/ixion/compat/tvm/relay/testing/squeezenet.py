"""SqueezeNet 1.0 and 1.1 (Iandola et al., 2016)."""

from __future__ import annotations

from typing import Any

from ixion.compat.tvm.relay import op
from ixion.compat.tvm.relay.op import nn
from ixion.compat.tvm.relay.testing import layers
from ixion.compat.tvm.relay.testing.init import create_workload
from ixion.ir import Expr, Function, var

# Numbers are squeeze channels of a fire module, which expands each way to four times as many.
_FIRES: dict[str, tuple[int | str, ...]] = {
    "1.0": ("pool", 16, 16, 32, "pool", 32, 48, 48, 64, "pool", 64),
    "1.1": ("pool", 16, 16, "pool", 32, 32, "pool", 48, 48, 64, 64),
}


def _conv(net: Expr, channels: int, kernel: int, padding: int, name: str) -> Expr:
    net = layers.conv2d(
        net, channels=channels, kernel_size=(kernel, kernel), padding=(padding, padding), name=name
    )
    return nn.relu(nn.bias_add(net, var(f"{name}_bias")))  # type: ignore[no-any-return]


def _fire(net: Expr, squeeze: int, name: str) -> Expr:
    net = _conv(net, squeeze, 1, 0, f"{name}_input")
    left = _conv(net, squeeze * 4, 1, 0, f"{name}_left")
    right = _conv(net, squeeze * 4, 3, 1, f"{name}_right")
    return op.concatenate((left, right), axis=1)  # type: ignore[no-any-return]


def get_net(
    batch_size: int,
    image_shape: tuple[int, ...],
    num_classes: int,
    version: str,
    dtype: str,
) -> Function:
    """ValueError for a version other than 1.0 and 1.1."""
    if version not in _FIRES:
        raise ValueError(f"unsupported SqueezeNet version {version}: 1.0 or 1.1 expected")
    net: Expr = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    channels, kernel = (96, 7) if version == "1.0" else (64, 3)
    net = layers.conv2d(
        net, channels=channels, kernel_size=(kernel, kernel), strides=(2, 2),
        padding=(kernel // 2, kernel // 2), name="conv1",
    )  # fmt: skip
    net = nn.relu(nn.bias_add(net, var("conv1_bias")))
    for number, entry in enumerate(_FIRES[version]):
        if isinstance(entry, str):
            net = nn.max_pool2d(net, pool_size=(3, 3), strides=(2, 2))
        else:
            net = _fire(net, entry, f"fire{number}")
    net = nn.dropout(net, rate=0.5)
    net = _conv(net, num_classes, 1, 0, "conv_final")
    net = nn.batch_flatten(nn.global_avg_pool2d(net))
    return layers.closed(nn.softmax(net))


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    version: str = "1.0",
    image_shape: tuple[int, ...] = (3, 224, 224),
    dtype: str = "float32",
) -> Any:
    """The module and random parameters."""
    return create_workload(get_net(batch_size, image_shape, num_classes, version, dtype))


__all__ = ["get_net", "get_workload"]
