"""The generator of a DCGAN (Radford et al., 2015)."""

from __future__ import annotations

from typing import Any

from ixion.compat.tvm.relay import op
from ixion.compat.tvm.relay.op import nn
from ixion.compat.tvm.relay.testing import layers
from ixion.compat.tvm.relay.testing.init import create_workload
from ixion.ir import Expr, Function, var

_KERNEL_LAYOUT = {"NCHW": "IOHW", "NHWC": "HWOI"}


def _deconv(data: Expr, channels: int, layout: str, name: str) -> Expr:
    """A transposed convolution that doubles both extents."""
    return layers.conv2d_transpose(
        data, kernel_size=(4, 4), strides=(2, 2), channels=channels, padding=(1, 1),
        output_padding=(0, 0), data_layout=layout, kernel_layout=_KERNEL_LAYOUT[layout], name=name,
    )  # fmt: skip


def get_net(
    batch_size: int,
    random_len: int = 100,
    oshape: tuple[int, int, int] = (3, 64, 64),
    ngf: int = 128,
    code: Expr | None = None,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Function:
    """From ``random_len`` numbers to an image of 64 by 64, four doublings from 4 by 4."""
    if oshape[1:] != (64, 64):
        raise ValueError("only images of 64 by 64 are made")
    if code is None:
        code = var("data", shape=(batch_size, random_len), dtype=dtype)
    net = nn.relu(nn.dense(code, var("dense_weight"), units=4 * 4 * ngf * 8))
    grid = (-1, ngf * 8, 4, 4) if layout == "NCHW" else (-1, 4, 4, ngf * 8)
    net = op.reshape(net, newshape=grid)
    for stage, factor in enumerate((4, 2, 1), start=2):
        net = _deconv(net, ngf * factor, layout, f"g{stage}_deconv")
        net = layers.batch_norm_infer(
            net, epsilon=1e-5 + 1e-12, scale=False, axis=layout.index("C"),
            name=f"g{stage}_batch_norm",
        )  # fmt: skip
        net = nn.relu(net)
    net = op.tanh(_deconv(net, oshape[0], layout, "g5_deconv"))
    return layers.closed(net)


def get_workload(
    batch_size: int,
    oshape: tuple[int, int, int] = (3, 64, 64),
    ngf: int = 128,
    random_len: int = 100,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Any:
    """The module and random parameters."""
    return create_workload(get_net(batch_size, random_len, oshape, ngf, None, layout, dtype))


__all__ = ["get_net", "get_workload"]
