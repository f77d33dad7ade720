"""Losses: cross entropy, with and without logits, and negative log likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op.call import binary_builder, call
from ixion.op.compare import Accumulation
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.rounding import Array, narrow, wide
from ixion.op.sample import Draw, Sample, array, choice, shape


@register_attrs("relay.attrs.NLLLossAttrs")
class NLLLossAttrs(Attrs):
    reduction: str = attr("mean", "how losses combine", choices=("none", "sum", "mean"))
    ignore_index: int = attr(-100, "target that counts nothing")


def _infer_entropy(args: InferArgs) -> Type:
    x, y = args.tensor(0), args.tensor(1)
    if len(x.shape) != 2 or len(y.shape) != 2:
        args.fail("both arguments are matrices", found=f"{x}, {y}")
    args.agree_all(x.shape, y.shape, "shapes must match", expected=x, found=y)
    return TensorType((), x.dtype)


def _entropy(logits: bool) -> Callable[..., Array]:
    def reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
        x, y = wide(inputs[0]), wide(inputs[1])
        terms = (x if logits else np.log(x)) * y
        return narrow(-np.sum(terms) / len(x), out_type.dtype)

    return reference


def _entropy_samples(draw: Draw) -> Sample:
    dims_ = shape(draw, 2, 2)
    return Sample((array(draw, dims_, "float32", 0.1, 1), array(draw, dims_, "float32", 0, 1)))


for _name, _logits in (("nn.cross_entropy", False), ("nn.cross_entropy_with_logits", True)):
    define(
        _name,
        inputs=(("x", "1D Tensor"), ("y", "1D Tensor")),
        pattern=OpPattern.OPAQUE,
        level=10,
        infer=_infer_entropy,
        reference=_entropy(_logits),
        compare=Accumulation(),
        samples=_entropy_samples,
        doc="-sum(x * y) / batch." if _logits else "-sum(log(x) * y) / batch.",
    )


def _infer_nll(args: InferArgs) -> Type:
    predictions, targets, weights = args.tensor(0), args.tensor(1), args.tensor(2)
    rank = len(predictions.shape)
    if rank < 1 or len(targets.shape) != rank - 1:
        args.fail("targets have one axis less than predictions", found=f"{predictions}, {targets}")
    classes = predictions.shape[1 if rank > 1 else 0]
    rule = "one weight per class"
    args.agree_all([classes], weights.shape, rule, expected=classes, found=weights)
    reduced = args.attrs.reduction != "none"
    return TensorType(() if reduced else targets.shape, predictions.dtype)


def _nll_reference(attrs: NLLLossAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    predictions, targets, weights = wide(inputs[0]), inputs[1], wide(inputs[2])
    at = 1 if predictions.ndim > 1 else 0
    live = targets != attrs.ignore_index
    safe = np.where(live, targets, 0).astype(np.int64)
    picked = np.take_along_axis(predictions, np.expand_dims(safe, at), axis=at)
    factor = np.where(live, weights[safe], 0.0)
    loss = -np.squeeze(picked, at) * factor
    if attrs.reduction == "none":
        return narrow(loss, out_type.dtype)
    total = np.sum(loss)
    return narrow(total / np.sum(factor) if attrs.reduction == "mean" else total, out_type.dtype)


def _nll_samples(draw: Draw) -> Sample:
    classes, rest = draw.integer(2, 4), shape(draw, 0, 2)
    batch = draw.integer(1, 3)
    predictions = array(draw, (batch, classes, *rest), "float32", -4, -0.1)
    targets = array(draw, (batch, *rest), "int32", 0, classes - 1)
    weights = array(draw, (classes,), "float32", 0.2, 1)
    attrs = {"reduction": choice(draw, ("none", "sum", "mean")), "ignore_index": -100}
    return Sample((predictions, targets, weights), attrs)


define(
    "nn.nll_loss",
    attrs=NLLLossAttrs,
    inputs=("predictions", "targets", "weights"),
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=10,
    infer=_infer_nll,
    reference=_nll_reference,
    compare=Accumulation(),
    samples=_nll_samples,
    doc="Weighted negative prediction of the target class.",
)

cross_entropy = binary_builder("nn.cross_entropy")
cross_entropy_with_logits = binary_builder("nn.cross_entropy_with_logits")


def nll_loss(
    predictions: Expr,
    targets: Expr,
    weights: Expr,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> Call:
    attrs = {"reduction": reduction, "ignore_index": ignore_index}
    return call("nn.nll_loss", predictions, targets, weights, **attrs)
