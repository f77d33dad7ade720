"""MobileNet (Howard et al., 2017)."""

from __future__ import annotations

from typing import Any

from ixion.compat.tvm.relay.op import nn
from ixion.compat.tvm.relay.testing import layers
from ixion.compat.tvm.relay.testing.init import create_workload
from ixion.ir import Expr, Function, var

_SHALLOW = ((64, False), (128, True), (128, False), (256, True), (256, False), (512, True))
# output channels, halves the extent
_BLOCKS = (*_SHALLOW, *((512, False),) * 5, (1024, True), (1024, False))


def _normalised(net: Expr, layout: str, epsilon: float, name: str) -> Expr:
    axis = layout.index("C")
    return nn.relu(layers.batch_norm_infer(net, epsilon=epsilon, axis=axis, name=name))  # type: ignore[no-any-return]


def conv_block(
    data: Expr,
    name: str,
    channels: int,
    kernel_size: tuple[int, int] = (3, 3),
    strides: tuple[int, int] = (1, 1),
    padding: tuple[int, int] = (1, 1),
    epsilon: float = 1e-5,
    layout: str = "NCHW",
) -> Expr:
    """Convolution, normalisation, relu."""
    net = layers.conv2d(
        data, channels=channels, kernel_size=kernel_size, strides=strides, padding=padding,
        data_layout=layout, kernel_layout=layers.conv_kernel_layout(layout), name=f"{name}_conv",
    )  # fmt: skip
    return _normalised(net, layout, epsilon, f"{name}_bn")


def separable_conv_block(
    data: Expr,
    name: str,
    depthwise_channels: int,
    pointwise_channels: int,
    kernel_size: tuple[int, int] = (3, 3),
    downsample: bool = False,
    padding: tuple[int, int] = (1, 1),
    epsilon: float = 1e-5,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Expr:
    """A depthwise and a pointwise convolution, each normalised."""
    depthwise = layers.conv_kernel_layout(layout, True)
    shape = (depthwise_channels, 1, *kernel_size)
    if layout == "NHWC":
        shape = (*kernel_size, depthwise_channels, 1)
    stride = 2 if downsample else 1
    net = layers.conv2d(
        data, weight=var(f"{name}_weight", shape=shape, dtype=dtype), channels=depthwise_channels,
        groups=depthwise_channels, kernel_size=kernel_size, strides=(stride, stride),
        padding=padding, data_layout=layout, kernel_layout=depthwise,
        name=f"{name}_depthwise_conv1",
    )  # fmt: skip
    net = _normalised(net, layout, epsilon, f"{name}_bn1")
    net = layers.conv2d(
        net, channels=pointwise_channels, kernel_size=(1, 1), strides=(1, 1), padding=(0, 0),
        data_layout=layout, kernel_layout=layers.conv_kernel_layout(layout), name=f"{name}_conv2",
    )  # fmt: skip
    return _normalised(net, layout, epsilon, f"{name}_bn2")


def mobile_net(
    num_classes: int = 1000,
    data_shape: tuple[int, ...] = (1, 3, 224, 224),
    dtype: str = "float32",
    alpha: float = 1.0,
    is_shallow: bool = False,
    layout: str = "NCHW",
) -> Function:
    """``alpha`` scales the channels; the shallow form leaves out the blocks of 512 and more."""
    net: Expr = var("data", shape=data_shape, dtype=dtype)
    net = conv_block(net, "conv_block_1", int(32 * alpha), strides=(2, 2), layout=layout)
    inputs = 32
    for number, (outputs, halve) in enumerate(_SHALLOW if is_shallow else _BLOCKS, start=1):
        net = separable_conv_block(
            net, f"separable_conv_block_{number}", int(inputs * alpha), int(outputs * alpha),
            downsample=halve, layout=layout, dtype=dtype,
        )  # fmt: skip
        inputs = outputs
    net = nn.batch_flatten(nn.global_avg_pool2d(net, layout=layout))
    net = nn.dense(net, var("fc_weight"), units=num_classes)
    return layers.closed(nn.softmax(nn.bias_add(net, var("fc_bias"))))


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: tuple[int, int, int] = (3, 224, 224),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> Any:
    """The module and random parameters; ``image_shape`` is channels, height, width."""
    channels, height, width = image_shape
    shape = (channels, height, width) if layout == "NCHW" else (height, width, channels)
    return create_workload(mobile_net(num_classes, (batch_size, *shape), dtype, layout=layout))


__all__ = ["conv_block", "get_workload", "mobile_net", "separable_conv_block"]
