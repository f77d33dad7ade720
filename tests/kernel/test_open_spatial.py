"""Kernels over pictures whose number, height and width are known at run time only."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernel.conftest import check_open

from ixion import op
from ixion.base.dim import SymVar
from ixion.ir import TensorType, Var, const
from ixion.kernel.schedule_conv import DirectConv

# Many kernels at many sizes: minutes of compilation.
pytestmark = pytest.mark.slow

RNG = np.random.default_rng(5)
N, H, W = SymVar("N"), SymVar("H"), SymVar("W")
SIZES = [(1, 1, 1), (2, 2, 1), (1, 1, 3), (1, 5, 9), (2, 4, 17), (1, 3, 31)]


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def picture(channels: int, name: str = "x", n=N, h=H, w=W) -> Var:
    return Var(name, TensorType((n, channels, h, w), "float32"))


def convolution(x, ins, out, kernel, *, stride=1, pad=(0, 0, 0, 0), dilation=1, groups=1):
    weight = const(normal(out, ins // groups, *kernel))
    y = op.call(
        "nn.conv2d", x, weight, strides=(stride, stride), padding=pad, groups=groups,
        dilation=(dilation, dilation), channels=out, kernel_size=kernel,
    )  # fmt: skip
    return op.call("nn.relu", op.call("add", y, const(normal(out, 1, 1))))


def shapes(channels: int, least=(1, 1), sizes=SIZES) -> list[list[tuple[int, ...]]]:
    """Pictures of these sizes, from the smallest that a window fits into."""
    return [[(n, channels, h + least[0] - 1, w + least[1] - 1)] for n, h, w in sizes]


def smallest(kernel, pad=(0, 0, 0, 0), dilation=1) -> tuple[int, int]:
    return tuple(
        max(1, (k - 1) * dilation + 1 - pad[d] - pad[d + 2]) for d, k in enumerate(kernel)
    )


@pytest.mark.parametrize(
    ("ins", "out", "kernel", "options"),
    [
        (3, 20, (3, 3), {"stride": 2, "pad": (1, 1, 1, 1)}),
        (24, 40, (1, 1), {}),
        (16, 16, (2, 3), {"pad": (0, 2, 1, 1), "dilation": 2}),
        (32, 48, (2, 2), {"stride": 2}),
        (32, 32, (3, 3), {"groups": 2, "pad": (1, 1, 1, 1)}),
        (18, 17, (1, 1), {"stride": 2}),
        (16, 16, (5, 5), {"pad": (4, 4, 4, 4)}),
        (3, 16, (7, 7), {"stride": 2, "pad": (3, 3, 3, 3)}),
        (16, 16, (5, 5), {"pad": (2, 2, 2, 2)}),
        (16, 16, (3, 3), {"pad": (6, 6, 6, 6), "dilation": 6}),
        (16, 16, (1, 2), {"pad": (0, 0, 0, 1)}),
    ],
)
def test_direct_convolution(target, ins, out, kernel, options) -> None:
    x = picture(ins)
    body = convolution(x, ins, out, kernel, **options)
    least = smallest(kernel, *(options[k] for k in ("pad", "dilation") if k in options))
    check_open([x], body, shapes(ins, least), target, expect=DirectConv)
