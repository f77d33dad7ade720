from __future__ import annotations

import numpy as np
import pytest

from ixion import op
from ixion.analysis import evaluate, list_op_freqs
from ixion.ir import Function, IRModule, TupleGetItem, var
from ixion.transform import CanonicalizeOps, InferType, SimplifyInference


def test_batch_norm_as_text(check):
    check(
        SimplifyInference(),
        """def @main(%x: Tensor[(1, 2, 3), float32], %g: Tensor[(2), float32],
                     %b: Tensor[(2), float32], %m: Tensor[(2), float32],
                     %v: Tensor[(2), float32]) {
          %0 = nn.batch_norm(%x, %g, %b, %m, %v, epsilon=0.5f);
          %0.0
        }""",
        """def @main(%x: Tensor[(1, 2, 3), float32], %g: Tensor[(2), float32],
                     %b: Tensor[(2), float32], %m: Tensor[(2), float32],
                     %v: Tensor[(2), float32]) {
          %0 = multiply(divide(1f, sqrt(add(%v, 0.5f))), %g);
          %1 = multiply(%x, expand_dims(%0, axis=1));
          %2 = add(multiply(negative(%m), %0), %b);
          add(%1, expand_dims(%2, axis=1))
        }""",
    )


def test_dropout_goes(check):
    check(
        SimplifyInference(),
        "def @main(%x: Tensor[(2), float32]) { %0 = nn.dropout(%x); exp(%0.0) }",
        "def @main(%x: Tensor[(2), float32]) { exp(%x) }",
    )


def test_bias_add_is_canonicalized(check):
    check(
        CanonicalizeOps(),
        """def @main(%x: Tensor[(1, 2, 3, 4), float32], %b: Tensor[(2), float32]) {
             nn.bias_add(%x, %b) }""",
        """def @main(%x: Tensor[(1, 2, 3, 4), float32], %b: Tensor[(2), float32]) {
             add(%x, expand_dims(%b, axis=1, num_newaxis=2)) }""",
    )
    check(
        CanonicalizeOps(),
        """def @main(%x: Tensor[(3, 4), float32], %b: Tensor[(4), float32]) {
             nn.bias_add(%x, %b, axis=-1) }""",
        "def @main(%x: Tensor[(3, 4), float32], %b: Tensor[(4), float32]) { add(%x, %b) }",
    )


@pytest.mark.parametrize(
    ("name", "shape", "size", "attrs"),
    [
        ("nn.layer_norm", (2, 3, 4), 4, {"axis": -1}),
        ("nn.layer_norm", (2, 3, 4), 3, {"axis": 1, "scale": False}),
        ("nn.instance_norm", (2, 3, 4, 4), 3, {"axis": 1, "center": False}),
        ("nn.group_norm", (2, 6, 4, 4), 6, {"num_groups": 3}),
        ("nn.batch_norm", (2, 3, 4), 3, {"axis": 1, "center": False}),
    ],
)
def test_norms_keep_their_value(name, shape, size, attrs):
    rng = np.random.default_rng(0)
    x = var("x", shape=shape)
    params = [x, *(var(n, shape=(size,)) for n in ("gamma", "beta"))]
    if name == "nn.batch_norm":
        params += [var("mean", shape=(size,)), var("variance", shape=(size,))]
    body = op.call(name, *params, **attrs)
    body = TupleGetItem(body, 0) if name == "nn.batch_norm" else body
    mod = InferType()(IRModule.from_expr(Function(params, body)))
    args = [np.abs(rng.normal(size=p.type_annotation.shape)).astype("float32") for p in params]
    simplified = SimplifyInference()(mod)
    assert name not in list_op_freqs(simplified)
    np.testing.assert_allclose(
        evaluate(simplified, args), evaluate(mod, args), rtol=1e-4, atol=1e-5
    )


def test_l2_normalize_keeps_its_value():
    x = var("x", shape=(2, 3))
    body = op.call("nn.l2_normalize", x, eps=1e-6, axis=[1])
    mod = InferType()(IRModule.from_expr(Function([x], body)))
    data = np.random.default_rng(0).normal(size=(2, 3)).astype("float32")
    np.testing.assert_allclose(
        evaluate(SimplifyInference()(mod), [data]), evaluate(mod, [data]), rtol=1e-5
    )
