from __future__ import annotations

import numpy as np
import pytest

from ixion import op
from ixion.analysis.dataflow import calls_inside, dataflow_order
from ixion.ir import Call, Expr, Function, IRModule, Tuple, const, var
from ixion.op.typed import callee, function_attr, op_name
from ixion.transform.form_kernels import LIMIT, FormKernels
from ixion.transform.pass_infra import Sequential
from ixion.transform.plan_layouts import PlanLayouts


def kernels(function: Function) -> list[tuple[str, list[str]]]:
    """Kind and ops of each formed kernel, in order."""
    return [
        (function_attr(callee(n), "kernel"), [op_name(c) for c in calls_inside(callee(n))])
        for n in dataflow_order(function.body) if isinstance(n, Call)
    ]  # fmt: skip


def formed(params: list, body: Expr, *, layouts: bool = False) -> Function:
    passes = [FormKernels(), PlanLayouts(target="avx512")] if layouts else [FormKernels()]
    return Sequential(passes)(IRModule.from_expr(Function(params, body)))["main"]


def conv(x: Expr, ins: int, outs: int) -> Expr:
    weight = const(np.ones((outs, ins, 1, 1), np.float32))
    return op.call("nn.conv2d", x, weight, channels=outs, kernel_size=(1, 1))


def test_a_convolution_takes_what_follows_up_to_the_next_shared_value() -> None:
    x = var("x", shape=(1, 16, 4, 4))
    y = op.call("nn.relu", conv(x, 16, 16))
    z = op.call("nn.relu", op.call("add", conv(y, 16, 16), y))
    assert kernels(formed([x], z)) == [
        ("nn.conv2d", ["nn.conv2d", "nn.relu"]),
        ("nn.conv2d", ["nn.conv2d", "add", "nn.relu"]),
    ]


def test_a_diamond_is_taken_whole() -> None:
    x = var("x", shape=(1, 16, 4, 4))
    y = conv(x, 16, 16)
    body = op.call("multiply", y, op.call("sigmoid", y))
    assert kernels(formed([x], body)) == [("nn.conv2d", ["nn.conv2d", "sigmoid", "multiply"])]


def test_a_value_that_is_also_a_result_ends_its_kernel() -> None:
    x = var("x", shape=(1, 16, 4, 4))
    y = conv(x, 16, 16)
    body = Tuple([y, op.call("nn.relu", y)])
    found = formed([x], body)
    kinds = [k for n in found.body.fields for k in [function_attr(callee(n), "kernel")]]
    assert kinds == ["nn.conv2d", "elementwise"]


def test_of_two_convolutions_that_meet_the_later_takes_the_sum() -> None:
    x = var("x", shape=(1, 16, 4, 4))
    body = op.call("add", conv(x, 16, 16), conv(x, 16, 16))
    found = [kind for kind, _ in kernels(formed([x], body))]
    assert found == ["nn.conv2d", "nn.conv2d"]


def test_views_alone_stay_views_and_moves_join() -> None:
    x = var("x", shape=(2, 3, 4))
    flat = op.call("reshape", op.call("nn.batch_flatten", x), newshape=(4, 6))
    assert kernels(formed([x], flat)) == [("view", ["nn.batch_flatten", "reshape"])]
    moved = op.call("reshape", op.call("transpose", x, axes=(2, 0, 1)), newshape=(24,))
    assert kernels(formed([x], moved)) == [("injective", ["transpose", "reshape"])]


def test_scalars_stay_inside_and_other_constants_become_parameters() -> None:
    x = var("x", shape=(2, 3))
    row = const(np.ones(3, np.float32))
    body = op.call("add", op.call("multiply", x, const(np.float32(2))), row)
    (kernel,) = [n for n in dataflow_order(formed([x], body).body) if isinstance(n, Call)]
    assert len(callee(kernel).params) == 2
    assert kernel.args[1] is row


def test_long_chains_are_cut() -> None:
    x = var("x", shape=(4,))
    body: Expr = x
    for _ in range(3 * LIMIT):
        body = op.call("exp", body)
    sizes = [len(ops) for _, ops in kernels(formed([x], body))]
    assert sum(sizes) == 3 * LIMIT
    assert max(sizes) <= LIMIT


def test_layouts_convert_only_at_the_ends() -> None:
    x = var("x", shape=(1, 32, 8, 8))
    y = op.call("nn.relu", conv(op.call("nn.relu", conv(x, 32, 32)), 32, 32))
    y = op.call("nn.max_pool2d", op.call("exp", y), pool_size=(2, 2), strides=(2, 2))
    function = formed([x], y, layouts=True)
    chain = [n for n in dataflow_order(function.body) if isinstance(n, Call)]
    found = [
        (function_attr(callee(n), "kernel"), function_attr(callee(n), "out_layout")) for n in chain
    ]
    assert found == [
        ("relayout", "NCHW16c"), ("nn.conv2d", "NCHW16c"), ("nn.conv2d", "NCHW16c"),
        ("nn.max_pool2d", "NCHW16c"), ("relayout", "NCHW"),
    ]  # fmt: skip


def test_a_stem_reads_the_plain_image() -> None:
    x = var("x", shape=(1, 3, 8, 8))
    function = formed([x], conv(x, 3, 16), layouts=True)
    first = next(n for n in dataflow_order(function.body) if isinstance(n, Call))
    assert function_attr(callee(first), "in_layouts")[0] == "NCHW"


def test_a_product_takes_what_only_names_its_rows_anew() -> None:
    x = var("x", shape=(6, 8))
    y = op.call("nn.dense", x, const(np.zeros((10, 8), np.float32)), units=10)
    y = op.call("tanh", op.call("reshape", y, newshape=(2, 3, 10)))
    body = op.call("reshape", y, newshape=(2, 3, 2, 5))
    assert kernels(formed([x], body)) == [
        ("nn.dense", ["nn.dense", "reshape", "tanh"]), ("view", ["reshape"]),
    ]  # fmt: skip


def test_moved_rows_are_read_where_they_were() -> None:
    x = var("x", shape=(5, 24))
    y = op.call("nn.dense", x, const(np.zeros((24, 24), np.float32)), units=24)
    parts = op.call("transpose", op.call("reshape", y, newshape=(5, 3, 8)), axes=(1, 0, 2))
    first, second = (
        op.call("multiply", op.call("take", parts, const(np.int64(i)), axis=0),
                const(np.float32(2)))
        for i in range(2)
    )  # fmt: skip
    found = kernels(formed([x], Tuple([first, second])))
    moves = ["reshape", "transpose", "take", "multiply"]
    assert found == [("nn.dense", ["nn.dense"]), ("injective", moves), ("injective", moves)]


def dense(x: Expr, ins: int, outs: int) -> Expr:
    return op.call("nn.dense", x, const(np.ones((outs, ins), np.float32)), units=outs)


def norm(x: Expr, size: int) -> Expr:
    one = const(np.ones(size, np.float32))
    return op.call("nn.layer_norm", x, one, one, axis=-1)


def test_a_norm_of_rows_takes_elementwise_work_and_moves_around_it() -> None:
    x, y = (var(n, shape=(1, 4, 6, 8)) for n in "xy")
    z = norm(op.call("add", x, y), 8)
    z = op.call("reshape", op.call("transpose", z, axes=(0, 2, 1, 3)), newshape=(6, 4, 8))
    body = op.call("nn.relu", z)
    assert kernels(formed([x, y], body)) == [
        ("nn.layer_norm", ["add", "nn.layer_norm", "transpose", "reshape", "nn.relu"])
    ]


def test_a_sum_that_others_read_is_no_part_of_the_norm() -> None:
    x, y = (var(n, shape=(4, 8)) for n in "xy")
    total = op.call("add", x, y)
    found = formed([x, y], op.call("add", dense(norm(total, 8), 8, 8), total))
    assert [ops for _, ops in kernels(found)] == [["add"], ["nn.layer_norm"], ["nn.dense", "add"]]


def test_moves_that_tear_rows_are_no_part_of_the_norm() -> None:
    x = var("x", shape=(4, 8))
    y = norm(op.call("nn.relu", op.call("transpose", x, axes=(1, 0))), 4)
    found = kernels(formed([x], op.call("reshape", y, newshape=(4, 8))))
    assert [kind for kind, _ in found] == ["injective", "nn.layer_norm", "view"]
    x = var("x", shape=(2, 3, 5, 8))
    y = op.call("transpose", norm(x, 8), axes=(0, 3, 1, 2))
    found = kernels(formed([x], op.call("transpose", y, axes=(0, 2, 1, 3))))
    assert [kind for kind, _ in found] == ["nn.layer_norm", "injective"]
    x = var("x", shape=(2, 4, 8, 3))
    y = norm(op.call("transpose", x, axes=(1, 0, 3, 2)), 8)
    assert [kind for kind, _ in kernels(formed([x], y))] == ["injective", "nn.layer_norm"]


def test_a_norm_whose_parameter_is_computed_along_with_its_data() -> None:
    x = var("x", shape=(8, 8))
    y = op.call("nn.relu", x)
    row = op.call("sum", y, axis=(0,))
    found = formed([x], op.call("nn.layer_norm", y, row, row, axis=-1))
    assert [kind for kind, _ in kernels(found)] == ["elementwise", "reduce", "nn.layer_norm"]


def test_dense_columns_become_channels_once() -> None:
    x, r = var("x", shape=(1, 4, 5, 8)), var("r", shape=(1, 16, 4, 5))
    y = op.call("transpose", dense(x, 8, 16), axes=(0, 3, 1, 2))
    total = op.call("add", y, r)
    found = kernels(formed([x, r], total))
    assert found == [("nn.dense", ["nn.dense", "transpose", "add"])]
    again = kernels(formed([x, r], op.call("transpose", total, axes=(0, 2, 3, 1))))
    assert [kind for kind, _ in again] == ["nn.dense", "injective"]
    turned = kernels(formed([x], op.call("transpose", dense(x, 8, 16), axes=(0, 2, 1, 3))))
    assert [kind for kind, _ in turned] == ["nn.dense", "injective"]
    view = kernels(formed([x], op.call("reshape", y, newshape=(1, 64, 5))))
    assert [kind for kind, _ in view] == ["nn.dense", "view"]


def depthwise(x: Expr, channels: int) -> Expr:
    weight = const(np.ones((channels, 1, 3, 3), np.float32))
    return op.call(
        "nn.conv2d", x, weight, channels=channels, kernel_size=(3, 3), groups=channels,
        padding=(1, 1, 1, 1),
    )  # fmt: skip


@pytest.mark.parametrize(("size", "together"), [(8, 2), (80, 3)])
def test_a_chain_of_pointwise_and_depthwise_convolutions_is_one_kernel(size, together) -> None:
    """Its second product only where what it reads would be written far away."""
    x = var("x", shape=(1, 16, size, size))
    y = op.call("nn.relu", depthwise(op.call("nn.relu", conv(x, 16, 48)), 48))
    found = kernels(formed([x], op.call("add", conv(y, 48, 16), x)))
    assert [k for k, _ in found] == ["separable", "nn.conv2d"][: 4 - together]
    assert [o for _, ops in found for o in ops].count("nn.conv2d") == 3
    assert found[0][1].count("nn.conv2d") == together


def test_an_expanded_value_with_two_readers_is_not_hidden_in_a_chain() -> None:
    x = var("x", shape=(1, 16, 8, 8))
    y = conv(x, 16, 48)
    body = op.call("add", depthwise(y, 48), y)
    assert [k for k, _ in kernels(formed([x], body))] == ["nn.conv2d", "nn.conv2d"]


@pytest.mark.parametrize(("outs", "together"), [(32, True), (80, False)])
def test_a_gate_goes_into_the_next_convolution_with_fewer_results_than_pixels(
    outs, together
) -> None:
    x, gate = var("x", shape=(1, 16, 8, 8)), var("g", shape=(1, 16, 1, 1))
    body = op.call("nn.relu", conv(op.call("multiply", gate, x), 16, outs))
    one = [("nn.conv2d", ["multiply", "nn.conv2d", "nn.relu"])]
    two = [("elementwise", ["multiply"]), ("nn.conv2d", ["nn.conv2d", "nn.relu"])]
    assert kernels(formed([x, gate], body)) == (one if together else two)


def test_a_gated_value_with_two_readers_has_a_kernel_of_its_own() -> None:
    x, gate = var("x", shape=(1, 16, 8, 8)), var("g", shape=(1, 16, 1, 1))
    y = op.call("multiply", gate, x)
    body = op.call("add", conv(y, 16, 16), y)
    assert [k for k, _ in kernels(formed([x, gate], body))] == ["elementwise", "nn.conv2d"]
