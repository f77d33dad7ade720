from __future__ import annotations

import numpy as np
import pytest

from ixion import op
from ixion.analysis import evaluate, list_op_freqs
from ixion.ir import Function, IRModule, TupleGetItem, const, var
from ixion.transform import (
    BackwardFoldScaleAxis,
    CanonicalizeOps,
    FoldChannelScale,
    FoldConstant,
    FoldScaleAxis,
    ForwardFoldScaleAxis,
    InferType,
    PassContext,
    Sequential,
    SimplifyExpr,
    SimplifyInference,
)

RNG = np.random.default_rng(1)


def tensor(*shape: int, positive: bool = False) -> np.ndarray:
    data = RNG.normal(size=shape).astype("float32")
    return np.abs(data) + np.float32(0.1) if positive else data


def conv(data, out, inputs, size=3, **attrs):
    weight = const(tensor(out, inputs, size, size))
    return op.call("nn.conv2d", data, weight, channels=out, kernel_size=(size, size), **attrs)


def batch_norm(data, channels, positive=False):
    gamma = const(tensor(channels, positive=positive))
    values = [const(tensor(channels)) for _ in range(2)]
    variance = const(tensor(channels, positive=True))
    return TupleGetItem(op.call("nn.batch_norm", data, gamma, *values, variance), 0)


def channels(*values: float):
    return const(np.array(values, "float32").reshape(-1, 1, 1))


def fold(body, x, *passes):
    """The program folded, checked against its value before."""
    mod = InferType()(IRModule.from_expr(Function([x], body)))
    data = tensor(*x.type_annotation.shape)
    with PassContext(opt_level=3):
        folded = Sequential(list(passes))(mod)
    np.testing.assert_allclose(
        evaluate(folded, [data]), evaluate(mod, [data]), rtol=1e-4, atol=1e-4
    )
    return list_op_freqs(folded)


INFERENCE = (SimplifyInference(), FoldConstant(), FoldScaleAxis(), FoldConstant())
CLEAN = (*INFERENCE, CanonicalizeOps(), FoldConstant(), SimplifyExpr())


def test_batch_norm_after_a_convolution():
    x = var("x", shape=(1, 3, 6, 6))
    body = op.call("nn.relu", batch_norm(conv(x, 4, 3), 4))
    assert fold(body, x, *INFERENCE) == {"nn.conv2d": 1, "add": 1, "nn.relu": 1}


def test_batch_norm_after_a_convolution_with_bias():
    x = var("x", shape=(1, 3, 6, 6))
    biased = op.call("nn.bias_add", conv(x, 4, 3), const(tensor(4)), axis=1)
    assert fold(batch_norm(biased, 4), x, *CLEAN) == {"nn.conv2d": 1, "add": 1}


def test_batch_norm_after_a_depthwise_convolution():
    x = var("x", shape=(1, 4, 6, 6))
    assert fold(batch_norm(conv(x, 4, 1, groups=4), 4), x, *CLEAN) == {"nn.conv2d": 1, "add": 1}


def test_batch_norm_before_a_convolution():
    x = var("x", shape=(1, 3, 6, 6))
    body = conv(op.call("nn.relu", batch_norm(x, 3, positive=True)), 4, 3)
    assert fold(body, x, *CLEAN) == {"add": 1, "nn.relu": 1, "nn.conv2d": 1}


def test_batch_norm_after_a_dense_layer():
    x = var("x", shape=(2, 8))
    body = batch_norm(op.call("nn.dense", x, const(tensor(5, 8))), 5)
    assert fold(body, x, *CLEAN) == {"nn.dense": 1, "add": 1}


def test_residual_block():
    x = var("x", shape=(1, 3, 6, 6))
    left = batch_norm(conv(x, 4, 3), 4)
    body = op.call("nn.relu", left + batch_norm(conv(x, 4, 3), 4))
    assert fold(body, x, *CLEAN) == {"nn.conv2d": 2, "add": 3, "nn.relu": 1}


def test_a_sum_of_convolutions_is_scaled_on_both_sides():
    x = var("x", shape=(1, 3, 6, 6))
    body = (conv(x, 2, 3) + conv(x, 2, 3)) * channels(2.0, -3.0)
    assert fold(body, x, BackwardFoldScaleAxis(), FoldConstant()) == {"nn.conv2d": 2, "add": 1}


@pytest.mark.parametrize("side", [0, 1])
def test_a_negative_scale_does_not_pass_a_relu_in_either_branch(side):
    x = var("x", shape=(1, 3, 6, 6))
    branches = [conv(x, 2, 3), conv(x, 2, 3)]
    branches[side] = op.call("nn.relu", branches[side])
    body = (branches[0] + branches[1]) * channels(2.0, -3.0)
    counts = fold(body, x, BackwardFoldScaleAxis(), FoldConstant())
    assert counts["multiply"] == 1


def test_a_value_with_two_users_is_not_scaled():
    x = var("x", shape=(1, 3, 6, 6))
    shared = conv(x, 2, 3)
    body = shared * channels(2.0, 3.0) + op.call("exp", shared)
    assert fold(body, x, BackwardFoldScaleAxis(), FoldConstant())["multiply"] == 1


def test_forward_needs_all_users_to_take_the_scale():
    x = var("x", shape=(1, 2, 6, 6))
    scaled = x * channels(2.0, 3.0)
    both = conv(scaled, 2, 2) + conv(scaled, 2, 2)
    assert "multiply" not in fold(both, x, ForwardFoldScaleAxis(), FoldConstant())
    one = conv(scaled, 2, 2, padding=(1, 1)) + op.call("exp", scaled)
    assert fold(one, x, ForwardFoldScaleAxis(), FoldConstant())["multiply"] == 1


def test_forward_does_not_divide_by_a_scale_of_zero():
    x = var("x", shape=(1, 2, 6, 6))
    body = conv(x * channels(0.0, 3.0) + channels(1.0, 2.0), 2, 2)
    assert fold(body, x, ForwardFoldScaleAxis(), FoldConstant())["multiply"] == 1


def test_forward_through_relu_needs_a_positive_scale():
    x = var("x", shape=(1, 2, 6, 6))
    for scale, left in ((channels(2.0, 3.0), 0), (channels(2.0, -3.0), 1)):
        body = conv(op.call("nn.relu", x * scale), 2, 2)
        counts = fold(body, x, ForwardFoldScaleAxis(), FoldConstant())
        assert counts.get("multiply", 0) == left


def test_scalar_scale_and_other_layouts():
    x = var("x", shape=(1, 6, 6, 3))
    weight = const(tensor(3, 3, 3, 4))
    layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    body = op.call("nn.conv2d", x, weight, channels=4, kernel_size=(3, 3), **layouts)
    assert fold(body * const(2.0), x, FoldScaleAxis()) == {"nn.conv2d": 1}


def test_grouped_convolutions_are_left_to_others(check):
    text = """def @main(%x: Tensor[(1, 4, 5, 5), float32], %w: Tensor[(4, 2, 3, 3), float32],
                        %s: Tensor[(4, 1, 1), float32]) {
      multiply(nn.conv2d(%x, %w, groups=2, channels=4, kernel_size=[3, 3]), %s)
    }"""
    check(BackwardFoldScaleAxis(), text, text)


OWN = (*INFERENCE[:2], FoldChannelScale(), *CLEAN[3:])


def test_own_pass_folds_into_grouped_convolutions():
    x = var("x", shape=(1, 4, 6, 6))
    biased = op.call("nn.bias_add", conv(x, 6, 2, groups=2), const(tensor(6)), axis=1)
    assert fold(batch_norm(biased, 6), x, *OWN) == {"nn.conv2d": 1, "add": 1}


def test_own_pass_folds_into_transposed_convolutions():
    x = var("x", shape=(1, 4, 6, 6))
    weight = const(tensor(4, 3, 3, 3))
    body = op.call("nn.conv2d_transpose", x, weight, channels=3, kernel_size=(3, 3))
    assert fold(batch_norm(body, 3), x, *OWN) == {"nn.conv2d_transpose": 1, "add": 1}


def test_own_pass_folds_in_one_dimension():
    x = var("x", shape=(1, 4, 9))
    body = op.call("nn.conv1d", x, const(tensor(3, 4, 3)), channels=3, kernel_size=3)
    assert fold(batch_norm(body, 3), x, *OWN) == {"nn.conv1d": 1, "add": 1}


def test_the_folded_program_as_text(check):
    check(
        BackwardFoldScaleAxis(),
        """def @main(%x: Tensor[(1, 3, 5, 5), float32], %w: Tensor[(4, 3, 3, 3), float32],
                     %b: Tensor[(4), float32], %s: Tensor[(4, 1, 1), float32]) {
          %0 = nn.conv2d(%x, %w, channels=4, kernel_size=[3, 3]);
          multiply(nn.bias_add(%0, %b), %s)
        }""",
        """def @main(%x: Tensor[(1, 3, 5, 5), float32], %w: Tensor[(4, 3, 3, 3), float32],
                     %b: Tensor[(4), float32], %s: Tensor[(4, 1, 1), float32]) {
          %0 = squeeze(%s, axis=[1, 2]);
          %1 = expand_dims(%0, axis=1, num_newaxis=3);
          %2 = multiply(%w, %1);
          %3 = nn.conv2d(%x, %2, channels=4, kernel_size=[3, 3]);
          nn.bias_add(%3, multiply(%b, %0))
        }""",
    )
