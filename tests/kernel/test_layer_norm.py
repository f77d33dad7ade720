from __future__ import annotations

import numpy as np
import pytest
from tests.kernel.conftest import check_schedule, formed

import ixion
from ixion import op
from ixion.base.target import Target
from ixion.ir import Constant, Expr, Function, IRModule, Var, const, var
from ixion.kernel.group import Group
from ixion.kernel.layout import PLAIN
from ixion.kernel.schedule import channel_block, schedule_for
from ixion.kernel.schedule_generic import GenericSchedule
from ixion.kernel.schedule_layer_norm import LayerNorm

RNG = np.random.default_rng(9)
TARGETS = ("native", "avx2", "generic")


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def norm(x: Expr, size: int, **attrs: object) -> Expr:
    parameters = const(normal(size)), const(normal(size))
    return op.call("nn.layer_norm", x, *parameters, axis=-1, **attrs)


def compiled(params: list[Var], body: Expr, values: list[np.ndarray], target: str) -> np.ndarray:
    """The result, the same with one and two threads."""
    module = IRModule.from_expr(Function(params, body))
    one, two = (ixion.compile(module, target=target, threads=n)(*values) for n in (1, 2))
    np.testing.assert_array_equal(one, two)
    return one


def exact(params: list[Var], body: Expr, values: list[np.ndarray]) -> np.ndarray:
    module = IRModule.from_expr(Function(params, body))
    return ixion.compile(module, executor="reference")(*values)


@pytest.mark.parametrize("shape", [(1, 2), (3, 7), (6, 16), (2, 3, 33), (5, 300), (2, 70)])
def test_rows(target, shape) -> None:
    x = var("x", shape=shape)
    values = [normal(*shape) + 2]
    check_schedule([x], norm(x, shape[-1]), values, target, expect=LayerNorm, blocked=False)


@pytest.mark.parametrize(("scale", "center"), [(True, False), (False, True), (False, False)])
def test_parameters_without_effect(target, scale, center) -> None:
    x = var("x", shape=(5, 20))
    body = norm(x, 20, scale=scale, center=center, epsilon=0.5)
    check_schedule([x], body, [normal(5, 20)], target, expect=LayerNorm, blocked=False)


def test_elementwise_work_before_and_after(target) -> None:
    x, y, z = (var(n, shape=(2, 9, 40)) for n in "xyz")
    total = op.call("add", op.call("nn.relu", x), y)
    body = op.call("multiply", norm(op.call("add", total, const(normal(40))), 40), z)
    values = [normal(2, 9, 40) for _ in range(3)]
    check_schedule([x, y, z], body, values, target, expect=LayerNorm, blocked=False)


def test_a_value_used_twice_after_the_norm(target) -> None:
    x = var("x", shape=(7, 24))
    y = norm(x, 24)
    body = op.call("multiply", y, op.call("sigmoid", y))
    check_schedule([x], body, [normal(7, 24)], target, expect=LayerNorm, blocked=False)


@pytest.mark.parametrize("channels", [16, 40, 5])
def test_channels_moved_to_the_end_and_back(target, channels) -> None:
    x = var("x", shape=(2, channels, 3, 5))
    rows = op.call("transpose", op.call("nn.relu", x), axes=(0, 2, 3, 1))
    body = op.call("transpose", norm(rows, channels), axes=(0, 3, 1, 2))
    values = [normal(2, channels, 3, 5)]
    check_schedule([x], body, values, target, expect=LayerNorm)
    group = Group(formed([x], body).op, [False, True, True])
    schedule = schedule_for(group, Target.parse(target))
    assert schedule.wanted(0) == schedule.result() == channel_block(Target.parse(target))


def test_channels_moved_to_the_end_alone(target) -> None:
    x = var("x", shape=(1, 24, 4, 5))
    body = op.call("nn.relu", norm(op.call("transpose", x, axes=(0, 2, 3, 1)), 24))
    check_schedule([x], body, [normal(1, 24, 4, 5)], target, expect=LayerNorm)


def test_rows_in_another_order(target) -> None:
    """Windows of a picture, as in Swin."""
    x = var("x", shape=(1, 4, 6, 20))
    windows = op.call("reshape", norm(x, 20), newshape=(2, 2, 3, 2, 20))
    windows = op.call("transpose", windows, axes=(0, 2, 1, 3, 4))
    body = op.call("reshape", windows, newshape=(6, 4, 20))
    check_schedule([x], body, [normal(1, 4, 6, 20)], target, expect=LayerNorm, blocked=False)


def test_one_row_of_many(target) -> None:
    """The class token: no other row is normalised."""
    x = var("x", shape=(2, 7, 20))
    body = op.call("take", norm(x, 20), const(np.int64(3)), axis=1)
    check_schedule([x], body, [normal(2, 7, 20)], target, expect=LayerNorm, blocked=False)
    call = formed([x], body)
    assert isinstance(call.args[1], Constant)
    schedule = schedule_for(Group(call.op, [False, True, True]), Target.parse(target))
    kernel, _ = schedule.lower("k", [PLAIN] * 3, PLAIN).kernels[0]
    assert kernel.tasks == 1


def test_what_rows_do_not_make_up_is_left_to_others(target) -> None:
    x = var("x", shape=(3, 8))
    y = norm(x, 8)
    body = op.call("strided_slice", y, begin=(7,), end=(-9,), strides=(-1,), axes=(1,))
    call = formed([x], body)
    group = Group(call.op, [False, True, True])
    assert isinstance(schedule_for(group, Target.parse(target)), GenericSchedule)
    module = IRModule.from_expr(Function([x], body))
    value = normal(3, 8)
    np.testing.assert_allclose(
        ixion.compile(module, target=target)(value), exact([x], body, [value]), rtol=1e-5, atol=1e-6
    )


def test_norms_of_other_axes_and_dtypes_have_the_generic_schedule(target) -> None:
    x = var("x", shape=(3, 8, 4))
    body = op.call("nn.layer_norm", x, const(normal(8)), const(normal(8)), axis=1)
    check_schedule([x], body, [normal(3, 8, 4)], target, expect=GenericSchedule, blocked=False)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 5), (9, 31), (50, 96), (4, 17, 100), (3, 5000), (1, 1290), (2, 70001)]
)
def test_compiled_rows(shape, target) -> None:
    x, y = var("x", shape=shape), var("y", shape=shape)
    body = op.call("nn.relu", norm(op.call("add", x, y), shape[-1], epsilon=1e-6))
    values = [normal(*shape), normal(*shape)]
    found = compiled([x, y], body, values, target)
    np.testing.assert_allclose(found, exact([x, y], body, values), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("channels", [3, 32, 50])
def test_compiled_channels(channels, target) -> None:
    """A convolution's blocks, normalised by pixel, back to blocks."""
    x = var("x", shape=(2, channels, 5, 7))
    weight = const(normal(channels, channels, 1, 1))
    y = op.call("nn.conv2d", x, weight, channels=channels, kernel_size=(1, 1))
    y = norm(op.call("transpose", y, axes=(0, 2, 3, 1)), channels)
    y = op.call("transpose", y, axes=(0, 3, 1, 2))
    body = op.call("nn.conv2d", y, weight, channels=channels, kernel_size=(1, 1))
    values = [normal(2, channels, 5, 7)]
    found, want = compiled([x], body, values, target), exact([x], body, values)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("mean", [1e3, -3e5])
def test_a_large_mean_costs_no_digits(mean, target) -> None:
    x = var("x", shape=(6, 100))
    values = [(normal(6, 100) * 3 + mean).astype(np.float32)]
    body = norm(x, 100)
    found = compiled([x], body, values, target)
    np.testing.assert_allclose(found, exact([x], body, values), rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_equal_elements_and_what_is_not_finite(target) -> None:
    x = var("x", shape=(4, 20))
    value = np.full((4, 20), 0.1, np.float32)
    value[1] = 3e7
    value[2, 5], value[3, 7] = np.inf, np.nan
    body = op.call("nn.layer_norm", x, const(np.ones(20, "f")), const(np.zeros(20, "f")))
    found = compiled([x], body, [value], target)
    np.testing.assert_allclose(found[:2], 0, atol=1e-5)
    assert np.isnan(found[2:]).all()
