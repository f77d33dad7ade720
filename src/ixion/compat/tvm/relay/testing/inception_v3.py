"""Inception v3 (Szegedy et al., 2015)."""

from __future__ import annotations

from typing import Any

from ixion.compat.tvm.relay import op
from ixion.compat.tvm.relay.op import nn
from ixion.compat.tvm.relay.testing import layers
from ixion.compat.tvm.relay.testing.init import create_workload
from ixion.ir import Expr, Function, var

# A convolution of a branch: channels, kernel, stride, padding (the last two default to 1 and 0).
_Conv = tuple[Any, ...]


def _conv(
    net: Expr,
    channels: int,
    kernel: tuple[int, int],
    stride: int = 1,
    pad: tuple[int, int] = (0, 0),
    *,
    name: str,
) -> Expr:
    net = layers.conv2d(
        net, channels=channels, kernel_size=kernel, strides=(stride, stride), padding=pad,
        name=f"{name}_conv1",
    )  # fmt: skip
    net = layers.batch_norm_infer(net, epsilon=2e-5, scale=False, name=f"{name}_bn")
    return nn.relu(net)  # type: ignore[no-any-return]


def _branch(net: Expr, convs: tuple[_Conv, ...], name: str) -> Expr:
    for number, conv in enumerate(convs):
        net = _conv(net, *conv, name=f"{name}_{number}")
    return net


def _pool(net: Expr, kind: str, stride: int = 1, pad: int = 0) -> Expr:
    options: dict[str, Any] = {"pool_size": (3, 3), "strides": (stride, stride)}
    options["padding"] = (pad, pad)
    if kind == "avg":
        return nn.avg_pool2d(net, count_include_pad=True, **options)  # type: ignore[no-any-return]
    return nn.max_pool2d(net, **options)  # type: ignore[no-any-return]


def _joined(*branches: Expr) -> Expr:
    return op.concatenate(branches, axis=1)  # type: ignore[no-any-return]


def _square(net: Expr, projected: int, name: str) -> Expr:
    """1x1, 5x5, twice 3x3 and pooling, side by side."""
    return _joined(
        _branch(net, ((64, (1, 1)),), f"{name}_conv"),
        _branch(net, ((48, (1, 1)), (64, (5, 5), 1, (2, 2))), f"{name}_tower"),
        _branch(
            net, ((64, (1, 1)), (96, (3, 3), 1, (1, 1)), (96, (3, 3), 1, (1, 1))), f"{name}_tower_1"
        ),
        _branch(_pool(net, "avg", 1, 1), ((projected, (1, 1)),), f"{name}_tower_2"),
    )


def _first_reduction(net: Expr, name: str) -> Expr:
    return _joined(
        _branch(net, ((384, (3, 3), 2),), f"{name}_conv"),
        _branch(net, ((64, (1, 1)), (96, (3, 3), 1, (1, 1)), (96, (3, 3), 2)), f"{name}_tower"),
        _pool(net, "max", 2),
    )


def _factored(net: Expr, width: int, name: str) -> Expr:
    """Convolutions of 7 as 1x7 and 7x1."""
    row: tuple[Any, ...] = ((1, 7), 1, (0, 3))
    column: tuple[Any, ...] = ((7, 1), 1, (3, 0))
    return _joined(
        _branch(net, ((192, (1, 1)),), f"{name}_conv"),
        _branch(net, ((width, (1, 1)), (width, *row), (192, *column)), f"{name}_tower"),
        _branch(
            net,
            ((width, (1, 1)), (width, *column), (width, *row), (width, *column), (192, *row)),
            f"{name}_tower_1",
        ),
        _branch(_pool(net, "avg", 1, 1), ((192, (1, 1)),), f"{name}_tower_2"),
    )


def _second_reduction(net: Expr, name: str) -> Expr:
    tower = ((192, (1, 1)), (192, (1, 7), 1, (0, 3)), (192, (7, 1), 1, (3, 0)), (192, (3, 3), 2))
    return _joined(
        _branch(net, ((192, (1, 1)), (320, (3, 3), 2)), f"{name}_tower"),
        _branch(net, tower, f"{name}_tower_1"),
        _pool(net, "max", 2),
    )


def _split(net: Expr, name: str) -> list[Expr]:
    """A 1x3 and a 3x1 convolution of the same input."""
    return [
        _branch(net, ((384, (1, 3), 1, (0, 1)),), f"{name}_mixed_conv"),
        _branch(net, ((384, (3, 1), 1, (1, 0)),), f"{name}_mixed_conv_1"),
    ]


def _expanded(net: Expr, pool: str, name: str) -> Expr:
    tower = _branch(net, ((384, (1, 1)),), f"{name}_tower")
    double = _branch(net, ((448, (1, 1)), (384, (3, 3), 1, (1, 1))), f"{name}_tower_1")
    return _joined(
        _branch(net, ((320, (1, 1)),), f"{name}_conv"),
        *_split(tower, f"{name}_tower"),
        *_split(double, f"{name}_tower_1"),
        _branch(_pool(net, pool, 1, 1), ((192, (1, 1)),), f"{name}_tower_2"),
    )


def get_net(
    batch_size: int, num_classes: int, image_shape: tuple[int, ...], dtype: str
) -> Function:
    """The network for images of 299 by 299."""
    net: Expr = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    net = _branch(net, ((32, (3, 3), 2), (32, (3, 3)), (64, (3, 3), 1, (1, 1))), "stem")
    net = _pool(net, "max", 2)
    net = _branch(net, ((80, (1, 1)), (192, (3, 3))), "stem_1")
    net = _pool(net, "max", 2)
    for number, projected in enumerate((32, 64, 64)):
        net = _square(net, projected, f"mixed{number or ''}")
    net = _first_reduction(net, "mixed_3")
    for number, width in enumerate((128, 160, 160, 192), start=4):
        net = _factored(net, width, f"mixed_{number}")
    net = _second_reduction(net, "mixed_8")
    net = _expanded(net, "avg", "mixed_9")
    net = _expanded(net, "max", "mixed_10")
    net = nn.avg_pool2d(net, pool_size=(8, 8), strides=(1, 1), count_include_pad=True)
    net = layers.dense_add_bias(nn.batch_flatten(net), units=num_classes, name="fc1")
    return layers.closed(nn.softmax(net))


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: tuple[int, ...] = (3, 299, 299),
    dtype: str = "float32",
) -> Any:
    """The module and random parameters."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))


__all__ = ["get_net", "get_workload"]
