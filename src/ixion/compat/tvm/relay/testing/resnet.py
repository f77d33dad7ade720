"""ResNet with normalisation before convolution (He et al., 2016, "Identity Mappings")."""

from __future__ import annotations

from typing import Any

from ixion.compat.tvm.relay import op
from ixion.compat.tvm.relay.op import nn
from ixion.compat.tvm.relay.testing import layers
from ixion.compat.tvm.relay.testing.init import create_workload
from ixion.ir import Expr, Function, var

_UNITS = {
    18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3),
    200: (3, 24, 36, 3), 269: (3, 30, 48, 8),
}  # fmt: skip
_EPSILON = 2e-5


class _Builder:
    """Layers in one data layout."""

    def __init__(self, layout: str) -> None:
        self.layout = layout
        self.kernel_layout = layers.conv_kernel_layout(layout)
        self.axis = layout.index("C")

    def conv(self, net: Expr, channels: int, kernel: int, stride: int, name: str) -> Expr:
        pad = kernel // 2
        return layers.conv2d(
            net, channels=channels, kernel_size=(kernel, kernel), strides=(stride, stride),
            padding=(pad, pad), data_layout=self.layout, kernel_layout=self.kernel_layout,
            name=name,
        )  # fmt: skip

    def norm(self, net: Expr, name: str, **options: Any) -> Expr:
        return layers.batch_norm_infer(net, epsilon=_EPSILON, axis=self.axis, name=name, **options)

    def unit(
        self, net: Expr, channels: int, stride: int, same: bool, name: str, bottle_neck: bool
    ) -> Expr:
        """A residual unit; the shortcut is a convolution unless the shapes are the ``same``."""
        start = nn.relu(self.norm(net, f"{name}_bn1"))
        plan = [(channels, 3, stride), (channels, 3, 1)]
        if bottle_neck:
            inner = channels // 4
            plan = [(inner, 1, stride), (inner, 3, 1), (channels, 1, 1)]
        body = start
        for number, (width, kernel, step) in enumerate(plan, start=1):
            if number > 1:
                body = nn.relu(self.norm(body, f"{name}_bn{number}"))
            body = self.conv(body, width, kernel, step, f"{name}_conv{number}")
        shortcut = net if same else self.conv(start, channels, 1, stride, f"{name}_sc")
        return op.add(body, shortcut)  # type: ignore[no-any-return]


def _plan(num_layers: int, height: int) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    """Units and channels of each stage, and whether units have a bottleneck."""
    if height > 28:
        deep = num_layers >= 50
        if num_layers not in _UNITS:
            raise ValueError(f"no experiments done on num_layers {num_layers}")
        filters = (64, 256, 512, 1024, 2048) if deep else (64, 64, 128, 256, 512)
        return _UNITS[num_layers], filters, deep
    if (num_layers - 2) % 9 == 0 and num_layers >= 164:
        return ((num_layers - 2) // 9,) * 3, (16, 64, 128, 256), True
    if (num_layers - 2) % 6 == 0 and num_layers < 164:
        return ((num_layers - 2) // 6,) * 3, (16, 16, 32, 64), False
    raise ValueError(f"no experiments done on num_layers {num_layers}")


def get_net(
    batch_size: int,
    num_classes: int,
    num_layers: int = 50,
    image_shape: tuple[int, ...] = (3, 224, 224),
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Function:
    """Images of at most 28 rows get the small form; ValueError for a depth that does not exist."""
    height = image_shape[layout.index("H") - 1]
    units, filters, bottle_neck = _plan(num_layers, height)
    build = _Builder(layout)
    net: Expr = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    net = build.norm(net, "bn_data", scale=False)
    if height <= 32:
        net = build.conv(net, filters[0], 3, 1, "conv0")
    else:
        net = nn.relu(build.norm(build.conv(net, filters[0], 7, 2, "conv0"), "bn0"))
        net = nn.max_pool2d(net, pool_size=(3, 3), strides=(2, 2), padding=(1, 1), layout=layout)
    for stage, count in enumerate(units, start=1):
        for unit in range(1, count + 1):
            stride = 2 if unit == 1 and stage > 1 else 1
            name = f"stage{stage}_unit{unit}"
            net = build.unit(net, filters[stage], stride, unit > 1, name, bottle_neck)
    net = nn.relu(build.norm(net, "bn1"))
    net = nn.batch_flatten(nn.global_avg_pool2d(net, layout=layout))
    return layers.closed(nn.softmax(layers.dense_add_bias(net, units=num_classes, name="fc1")))


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    num_layers: int = 18,
    image_shape: tuple[int, ...] = (3, 224, 224),
    layout: str = "NCHW",
    dtype: str = "float32",
    **kwargs: Any,
) -> Any:
    """The module and random parameters."""
    return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype))


__all__ = ["get_net", "get_workload"]
