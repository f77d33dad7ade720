from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernel.conftest import check_schedule

from ixion import op
from ixion.base.target import Target
from ixion.ir import const, var
from ixion.kernel.schedule_conv import DepthwiseConv, DirectConv, TransposedConv
from ixion.kernel.schedule_pool import Pool
from ixion.kernel.schedule_stem import StemConv
from ixion.kernel.schedule_winograd import WinogradConv

RNG = np.random.default_rng(5)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def roomy(name: str) -> Target:
    """A target whose memory is so near that layers as small as a test's have their algorithm."""
    return replace(Target.parse(name), l2=1 << 20, far_rate=64.0)


def convolution(x, out, kernel, *, stride=1, pad=(0, 0, 0, 0), dilation=1, groups=1, epilogue=True):
    channels = x.type_annotation.shape[1]
    weight = const(normal(out, channels // groups, *kernel))
    y = op.call(
        "nn.conv2d", x, weight, strides=(stride, stride), padding=pad, groups=groups,
        dilation=(dilation, dilation), channels=out, kernel_size=kernel,
    )  # fmt: skip
    return op.call("nn.relu", op.call("add", y, const(normal(out, 1, 1)))) if epilogue else y


@pytest.mark.parametrize(
    ("shape", "out", "kernel", "options"),
    [
        ((1, 3, 9, 11), 20, (3, 3), {"stride": 2, "pad": (1, 1, 1, 1)}),
        ((2, 24, 5, 6), 40, (1, 1), {}),
        ((1, 16, 5, 16), 16, (2, 3), {"pad": (0, 2, 1, 1), "dilation": 2}),
        ((1, 32, 4, 4), 48, (2, 2), {"stride": 2}),
        ((1, 32, 5, 5), 32, (3, 3), {"groups": 2, "pad": (1, 1, 1, 1)}),
        ((1, 18, 7, 3), 17, (1, 1), {"stride": 2}),
        ((1, 16, 2, 2), 16, (5, 5), {"pad": (4, 4, 4, 4)}),
    ],
)
def test_direct_convolution(target, shape, out, kernel, options) -> None:
    x = var("x", shape=shape)
    check_schedule(
        [x], convolution(x, out, kernel, **options), [normal(*shape)], target, expect=DirectConv
    )


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_direct_convolution_of_any_shape(data) -> None:
    pick = lambda lo, hi: data.draw(st.integers(lo, hi))
    kernel = (pick(1, 4), pick(1, 4))
    shape = (pick(1, 2), pick(1, 18), pick(kernel[0], 5), pick(kernel[1], 16))
    pad = tuple(pick(0, 2) for _ in range(4))
    dilation = 2 if all(2 * k - 1 <= n for k, n in zip(kernel, shape[2:], strict=True)) else 1
    x = var("x", shape=shape)
    body = convolution(x, pick(1, 20), kernel, stride=pick(1, 3), pad=pad, dilation=dilation)
    check_schedule(
        [x],
        body,
        [normal(*shape)],
        data.draw(st.sampled_from(["avx512", "generic"])),
        expect=DirectConv,
    )


def test_residual_and_swish_in_the_epilogue(target) -> None:
    x, r = var("x", shape=(1, 16, 5, 5)), var("r", shape=(1, 24, 5, 5))
    y = op.call("add", convolution(x, 24, (1, 1), epilogue=False), r)
    body = op.call("multiply", y, op.call("sigmoid", y))
    check_schedule(
        [x, r], body, [normal(1, 16, 5, 5), normal(1, 24, 5, 5)], target, expect=DirectConv
    )


@pytest.mark.parametrize("size", [(8, 7), (4, 9)])
@pytest.mark.parametrize("channels", [(16, 32), (24, 32)])
def test_winograd(size, channels) -> None:
    shape = (2, channels[0], *size)
    x = var("x", shape=shape)
    body = convolution(x, channels[1], (3, 3), pad=(1, 1, 1, 1))
    target = roomy("avx512")
    check_schedule([x], body, [normal(*shape)], target, expect=WinogradConv, tolerance=2e-4)


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2)])
def test_depthwise(target, stride, dilation) -> None:
    shape = (1, 20, 9, 13)
    x = var("x", shape=shape)
    body = convolution(x, 20, (3, 3), stride=stride, pad=(1, 1, 1, 1), dilation=dilation, groups=20)
    check_schedule([x], body, [normal(*shape)], target, expect=DepthwiseConv)


@pytest.mark.parametrize(
    ("stride", "kernel", "pad", "dilation", "groups"),
    [
        (2, 2, 0, 1, 1),
        (2, 3, 1, 1, 1),
        (3, 2, 0, 1, 1),
        (1, 3, 1, 1, 1),
        (2, 3, 2, 2, 2),
        (4, 2, 0, 1, 1),
    ],
)
def test_transposed(target, stride, kernel, pad, dilation, groups) -> None:
    shape = (1, 32, 4, 5)
    x = var("x", shape=shape)
    weight = const(normal(32, 32 // groups, kernel, kernel))
    body = op.call(
        "nn.conv2d_transpose", x, weight, strides=(stride, stride), padding=(pad,) * 4,
        dilation=(dilation, dilation), groups=groups, channels=32, kernel_size=(kernel, kernel),
    )  # fmt: skip
    check_schedule([x], body, [normal(*shape)], target, expect=TransposedConv)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("include", [False, True])
def test_pooling(target, kind, ceil_mode, include) -> None:
    shape = (1, 20, 8, 9)
    x = var("x", shape=shape)
    extra = {"count_include_pad": include} if kind == "avg" else {}
    body = op.call(
        f"nn.{kind}_pool2d", x, pool_size=(3, 2), strides=(2, 2), padding=(1, 0, 1, 1),
        ceil_mode=ceil_mode, **extra,
    )  # fmt: skip
    check_schedule([x], body, [normal(*shape)], target, expect=Pool)


@pytest.mark.parametrize(
    ("kernel", "stride", "pad", "size", "swish"),
    [
        ((3, 3), 2, (1, 1, 1, 1), (24, 23), True),
        ((5, 5), 1, (2, 2, 2, 2), (5, 7), False),
        ((1, 7), 1, (0, 3, 0, 3), (5, 9), False),
        ((7, 1), 1, (3, 0, 3, 0), (9, 5), True),
        ((3, 3), 1, (0, 1, 2, 0), (8, 9), True),
    ],
)
def test_winograd_of_other_windows(kernel, stride, pad, size, swish) -> None:
    shape = (1, 32, *size)
    x = var("x", shape=shape)
    body = convolution(x, 32, kernel, stride=stride, pad=pad, epilogue=not swish)
    body = op.call("multiply", body, op.call("sigmoid", body)) if swish else body
    target = roomy("avx512")
    check_schedule([x], body, [normal(*shape)], target, expect=WinogradConv, tolerance=2e-4)


@pytest.mark.parametrize("target", ["avx512", "avx2"])
@pytest.mark.parametrize(
    ("kernel", "pad", "size"), [((6, 6), (2, 2, 2, 2), (16, 16)), ((7, 6), (3, 2, 3, 1), (21, 18))],
)  # fmt: skip
def test_first_layers(target, kernel, pad, size) -> None:
    shape = (2, 3, *size)
    x = var("x", shape=shape)
    body = convolution(x, 32, kernel, stride=2, pad=pad)
    check_schedule([x], body, [normal(*shape)], roomy(target), expect=StemConv, tolerance=2e-4)
