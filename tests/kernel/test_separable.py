"""Chains of pointwise and depthwise convolutions in one kernel, and gates before them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernel.conftest import check_schedule

import ixion
from ixion import op
from ixion.analysis.dataflow import dataflow_order
from ixion.ir import Call, Expr, Function, IRModule, Var, const, var
from ixion.kernel import separable_plan
from ixion.kernel.schedule_gated import GatedConv
from ixion.kernel.schedule_separable import SeparableSchedule
from ixion.op.typed import op_name
from ixion.transform import conv_chain
from ixion.transform.infer_type import InferType

RNG = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def convolved(x: Expr, ins: int, outs: int, size: int = 1, stride: int = 1, pad: int = 0) -> Expr:
    """With a bias; depthwise where the window is larger than 1."""
    groups = ins if size > 1 else 1
    y = op.call(
        "nn.conv2d", x, const(normal(outs, ins // groups, size, size)), groups=groups,
        strides=(stride, stride), padding=(pad,) * 4, channels=outs, kernel_size=(size, size),
    )  # fmt: skip
    return op.call("add", y, const(normal(outs, 1, 1)))


def clipped(x: Expr) -> Expr:
    return op.call("clip", x, a_min=0.0, a_max=6.0)


def swish(x: Expr) -> Expr:
    return op.call("multiply", x, op.call("sigmoid", x))


CASES = [
    # shape, middle channels, window, stride, padding, activation
    ((1, 16, 6, 14), 40, 3, 1, 1, clipped),
    ((2, 24, 5, 15), 20, 5, 2, 2, swish),
    ((1, 20, 7, 7), 96, 3, 2, 0, clipped),
    ((1, 8, 6, 20), 17, 5, 1, 3, swish),
]


@pytest.fixture(params=["whole", "bands"])
def cut(request, monkeypatch) -> None:
    """Chains of any size become one kernel; its tasks are the whole image or bands of few rows."""
    monkeypatch.setattr(conv_chain, "FAR", 0)
    if request.param == "bands":
        monkeypatch.setattr(separable_plan, "STRIP", 12 << 10)
        monkeypatch.setattr(separable_plan, "SHARED", 0)
        monkeypatch.setattr(separable_plan, "SHARED_BY_TWO", 0)


@pytest.mark.parametrize(("shape", "mid", "size", "stride", "pad", "act"), CASES)
def test_expand_and_depthwise(target, cut, shape, mid, size, stride, pad, act) -> None:
    x = var("x", shape=shape)
    y = act(convolved(x, shape[1], mid))
    body = act(convolved(y, mid, mid, size, stride, pad))
    check_schedule([x], body, [normal(*shape)], target, expect=SeparableSchedule)


@pytest.mark.parametrize(("shape", "mid", "size", "stride", "pad", "act"), CASES)
def test_depthwise_and_project(target, cut, shape, mid, size, stride, pad, act) -> None:
    x = var("x", shape=shape)
    y = act(convolved(x, shape[1], shape[1], size, stride, pad))
    body = act(convolved(y, shape[1], mid))
    check_schedule([x], body, [normal(*shape)], target, expect=SeparableSchedule)


@pytest.mark.parametrize(("shape", "mid", "size", "stride", "pad", "act"), CASES)
def test_expand_depthwise_and_project(target, cut, shape, mid, size, stride, pad, act) -> None:
    x = var("x", shape=shape)
    y = act(convolved(x, shape[1], mid))
    z = act(convolved(y, mid, mid, size, stride, pad))
    body = convolved(z, mid, shape[1])
    if stride == 1 and 2 * pad == size - 1:
        body = op.call("add", body, x)
    check_schedule([x], body, [normal(*shape)], target, expect=SeparableSchedule)


@pytest.mark.parametrize("name", ["native", "avx2", "generic"])
@pytest.mark.parametrize("project", [False, True])
def test_machine_code(cut, name, project) -> None:
    x = var("x", shape=(1, 24, 19, 30))
    y = clipped(convolved(x, 24, 72))
    y = swish(convolved(y, 72, 72, 3, 1, 1))
    if project:
        y = op.call("add", convolved(y, 72, 24), x)
    check_machine_code([x], y, name)


def check_machine_code(params: list[Var], body: Expr, name: str) -> None:
    """Against the reference, and the same bits whatever the number of threads."""
    module = IRModule.from_expr(Function(params, body))
    given = {p.name_hint: normal(*p.type_annotation.shape) for p in params}
    (want,) = ixion.compile(module, executor="reference").run(given).values()
    runs = [ixion.compile(module, name, threads=n).run(given) for n in (1, 2)]
    (one,), (two,) = (r.values() for r in runs)
    np.testing.assert_allclose(one, want, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(("shape", "outs"), [((2, 20, 5, 9), 36), ((1, 32, 7, 7), 17)])
def test_gate_before_a_product(target, shape, outs, first) -> None:
    x, gate = var("x", shape=shape), var("g", shape=(*shape[:2], 1, 1))
    y = op.call("multiply", *((gate, x) if first else (x, gate)))
    body = swish(convolved(y, shape[1], outs))
    values = [normal(*shape), normal(*shape[:2], 1, 1)]
    check_schedule([x, gate], body, values, target, expect=GatedConv)


@pytest.mark.parametrize("name", ["native", "avx2", "generic"])
def test_gate_in_machine_code(name) -> None:
    x, r = var("x", shape=(2, 40, 30, 13)), var("r", shape=(2, 24, 30, 13))
    gate = op.call("sigmoid", convolved(op.call("nn.global_avg_pool2d", x), 40, 40))
    body = op.call("add", convolved(op.call("multiply", gate, x), 40, 24), r)
    check_machine_code([x, r], body, name)


def test_dilation_and_uneven_padding(target, cut) -> None:
    x, weight = var("x", shape=(1, 16, 9, 12)), const(normal(20, 1, 3, 3))
    y = clipped(convolved(x, 16, 20))
    body = op.call(
        "nn.conv2d", y, weight, groups=20, channels=20, kernel_size=(3, 3), dilation=(2, 2),
        padding=(0, 3, 4, 1),
    )  # fmt: skip
    check_schedule([x], body, [normal(1, 16, 9, 12)], target, expect=SeparableSchedule)


@pytest.mark.parametrize(("side", "stride"), [(14, 1), (56, 1), (112, 2), (224, 1), (640, 2)])
def test_bands_share_few_rows(side, stride) -> None:
    """Whatever the width: else expanding them twice costs more than the tensor saves."""
    heads = chain(side, stride)
    plan = separable_plan.separable_plan(heads, 16, 2)
    assert plan is not None
    assert plan.whole or plan.band * stride >= separable_plan.SHARED * (3 - stride)
    assert 4 * 16 * plan.panel * plan.height * side <= separable_plan.LONGEST


def test_rows_too_wide_for_a_strip_are_left_to_two_kernels() -> None:
    assert separable_plan.separable_plan(chain(2000, 1), 16, 2) is None


def chain(side: int, stride: int) -> list[Call]:
    """The convolutions of an expanding chain, typed."""
    x = var("x", shape=(1, 16, side, side))
    body = convolved(convolved(x, 16, 96), 96, 96, 3, stride, 1)
    typed = InferType()(IRModule.from_expr(Function([x], body)))["main"]
    calls = [n for n in dataflow_order(typed.body) if isinstance(n, Call)]
    return [c for c in calls if op_name(c) == "nn.conv2d"]
