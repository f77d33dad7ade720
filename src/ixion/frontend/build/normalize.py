"""Normalisation: batch, layer, group, instance, RMS, local response, Lp."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ixion.frontend.build.movement import count, pad, reshape, slices
from ixion.frontend.emitter import Emitter
from ixion.frontend.term import Term, static


def affine(
    emit: Emitter, weight: Term | None, bias: Term | None, size: int, dtype: str
) -> list[Term]:
    """Scale and shift of `size`, ones and zeros where they are left out."""
    return [
        emit.full(1.0, (size,), dtype) if weight is None else weight,
        emit.full(0.0, (size,), dtype) if bias is None else bias,
    ]


def batch_norm(
    emit: Emitter,
    x: Term,
    mean: Term,
    variance: Term,
    weight: Term | None,
    bias: Term | None,
    epsilon: float,
) -> Term:
    """(x - mean) / sqrt(variance + epsilon) * weight + bias, each per channel (axis 1)."""
    scale, shift = affine(emit, weight, bias, static(mean.shape[0]), x.dtype)
    out = emit.call("nn.batch_norm", x, scale, shift, mean, variance, axis=1, epsilon=epsilon)
    return emit.item(out, 0)


def layer_norm(
    emit: Emitter, x: Term, axes: int, weight: Term | None, bias: Term | None, epsilon: float
) -> Term:
    """Normalised over the last `axes` axes, scaled and shifted by tensors of their shape."""
    size = count(x.shape[x.rank - axes :])
    scale, shift = (
        reshape(emit, term, (size,)) for term in affine(emit, weight, bias, size, x.dtype)
    )
    flat = x if axes == 1 else reshape(emit, x, (*x.shape[: x.rank - axes], size))
    out = emit.call("nn.layer_norm", flat, scale, shift, axis=-1, epsilon=epsilon)
    return reshape(emit, out, x.shape)


def rms_norm(emit: Emitter, x: Term, axes: int, weight: Term | None, epsilon: float) -> Term:
    """`x / sqrt(mean(x^2) + epsilon)` over the last `axes` axes, times a weight of their shape."""
    over = tuple(range(x.rank - axes, x.rank))
    square = emit.call("mean", emit.call("multiply", x, x), axis=over, keepdims=True)
    scale = emit.call("rsqrt", emit.call("add", square, epsilon))
    out = emit.call("multiply", x, scale)
    return out if weight is None else emit.call("multiply", out, weight)


def group_norm(
    emit: Emitter, x: Term, groups: int, weight: Term | None, bias: Term | None, epsilon: float
) -> Term:
    """Normalised over groups of channels (axis 1) and everything behind them."""
    scale, shift = affine(emit, weight, bias, static(x.shape[1]), x.dtype)
    return emit.call("nn.group_norm", x, scale, shift, num_groups=groups, axis=1, epsilon=epsilon)


def instance_norm(
    emit: Emitter, x: Term, weight: Term | None, bias: Term | None, epsilon: float
) -> Term:
    """Normalised over the spatial axes of each channel and sample."""
    scale, shift = affine(emit, weight, bias, static(x.shape[1]), x.dtype)
    return emit.call("nn.instance_norm", x, scale, shift, axis=1, epsilon=epsilon)


def local_response(
    emit: Emitter, x: Term, window: tuple[int, int], alpha: float, beta: float, bias: float
) -> Term:
    """`x / (bias + alpha / n * sum(x^2))^beta` over `window` channels before and after each."""
    before, after = window
    size = before + after + 1
    if before == after:
        return emit.call("nn.lrn", x, size=size, axis=1, bias=bias, alpha=alpha, beta=beta)
    square = pad(
        emit, emit.call("multiply", x, x), [(0, 0), (before, after), *[(0, 0)] * (x.rank - 2)]
    )
    channels = static(x.shape[1])
    total = slices(emit, square, [1], [0], [channels])
    for at in range(1, size):
        total = emit.call("add", total, slices(emit, square, [1], [at], [at + channels]))
    inner = emit.call("add", emit.call("multiply", total, alpha / size), bias)
    return emit.call("divide", x, emit.call("power", inner, beta))


def norm(emit: Emitter, x: Term, p: float, axes: Sequence[int] | None, keepdims: bool) -> Term:
    """The p-norm over `axes` (None: all): p may be infinite, 0 counts what is not 0."""
    over = tuple(range(x.rank)) if axes is None else tuple(axes)
    size = emit.call("abs", x)
    if math.isinf(p):
        return emit.call("max" if p > 0 else "min", size, axis=over, keepdims=keepdims)
    if p == 0:
        size = emit.call("cast", emit.call("not_equal", x, 0.0), dtype=x.dtype)
        return emit.call("sum", size, axis=over, keepdims=keepdims)
    if p == 1:
        return emit.call("sum", size, axis=over, keepdims=keepdims)
    if p == 2:
        total = emit.call("sum", emit.call("multiply", x, x), axis=over, keepdims=keepdims)
        return emit.call("sqrt", total)
    total = emit.call("sum", emit.call("power", size, float(p)), axis=over, keepdims=keepdims)
    return emit.call("power", total, 1.0 / p)
