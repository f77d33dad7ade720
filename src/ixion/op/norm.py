"""Normalisation with scale and shift: batch, layer, instance and group norm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ixion import te
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr, TupleWrapper
from ixion.ir.types import TensorType, TupleType, Type
from ixion.op.accumulate import accumulator, raised
from ixion.op.axes import checked_axis
from ixion.op.call import call
from ixion.op.compare import Accumulation
from ixion.op.define import Completes, Infer, InferArgs, OpPattern, Reference, define
from ixion.op.extent import Extent, extents, index, product
from ixion.op.rounding import Array, narrow, wide
from ixion.op.sample import FLOATS, Draw, Sample, Sampler, array, choice, flag, shape


@register_attrs("relay.attrs.BatchNormAttrs")
class BatchNormAttrs(Attrs):
    axis: int = attr(1, "the channel axis")
    epsilon: float = attr(1e-5, "added to the variance")
    center: bool = attr(True, "add beta")
    scale: bool = attr(True, "multiply by gamma")


@register_attrs("relay.attrs.InstanceNormAttrs")
class InstanceNormAttrs(Attrs):
    axis: int = attr(1, "the channel axis")
    epsilon: float = attr(1e-5, "added to the variance")
    center: bool = attr(True, "add beta")
    scale: bool = attr(True, "multiply by gamma")


@register_attrs("relay.attrs.LayerNormAttrs")
class LayerNormAttrs(Attrs):
    axis: int = attr(-1, "the axis to normalise over")
    epsilon: float = attr(1e-5, "added to the variance")
    center: bool = attr(True, "add beta")
    scale: bool = attr(True, "multiply by gamma")


@register_attrs("relay.attrs.GroupNormAttrs")
class GroupNormAttrs(Attrs):
    num_groups: int = attr(0, "groups of channels")
    axis: int = attr(1, "the channel axis")
    epsilon: float = attr(1e-5, "added to the variance")
    center: bool = attr(True, "add beta")
    scale: bool = attr(True, "multiply by gamma")


def _channels(args: InferArgs) -> TensorType:
    data = args.tensor(0)
    axis = checked_axis(args, args.attrs.axis, len(data.shape))
    return TensorType((data.shape[axis],), data.dtype)


def _completes(count: int) -> Completes:
    """Every parameter is a vector along the channel axis."""

    def completes(args: InferArgs) -> tuple[Type | None, ...]:
        if not isinstance(args.types[0], TensorType):
            return args.types
        return (args.types[0], *(t or _channels(args) for t in args.types[1 : count + 1]))

    return completes


def _infer(count: int) -> Infer:
    def infer(args: InferArgs) -> Type:
        wanted = _channels(args)
        for i in range(1, count + 1):
            found = args.tensor(i)
            rule = "parameters have one value per channel"
            args.agree_all(wanted.shape, found.shape, rule, expected=wanted, found=found)
        return args.tensor(0)

    return infer


def _infer_batch(args: InferArgs) -> Type:
    _infer(4)(args)
    return TupleType((args.tensor(0), args.tensor(3), args.tensor(4)))


def _line(x: Array, axis: int, vector: Array) -> Array:
    """``vector`` shaped to broadcast along ``axis`` of ``x``."""
    where = [1] * x.ndim
    where[axis] = -1
    return wide(vector).reshape(where)


def _affine(attrs: Any, x: Array, normal: Array, gamma: Array, beta: Array) -> Array:
    if attrs.scale:
        normal = normal * _line(x, attrs.axis, gamma)
    return normal + _line(x, attrs.axis, beta) if attrs.center else normal


def _batch_reference(attrs: BatchNormAttrs, inputs: tuple[Array, ...], out_type: Any) -> Any:
    x, gamma, beta, mean, var = inputs
    apart = wide(x) - _line(x, attrs.axis, mean)
    normal = apart / np.sqrt(_line(x, attrs.axis, var) + attrs.epsilon)
    kind: Any = out_type.fields[0] if isinstance(out_type, TupleType) else out_type
    return narrow(_affine(attrs, x, normal, gamma, beta), kind.dtype), mean, var


def _batch_scale(attrs: BatchNormAttrs, inputs: tuple[Array, ...], out_type: Any) -> Any:
    x, gamma, beta, mean, var = inputs
    size = np.abs(wide(x)) + np.abs(_line(x, attrs.axis, mean))
    normal = size / np.sqrt(_line(x, attrs.axis, var) + attrs.epsilon)
    return _affine(attrs, x, normal, np.abs(gamma), np.abs(beta)), np.abs(mean), np.abs(var)


def _affine_expr(
    attrs: Any, normal: te.Expr, gamma: te.Tensor, beta: te.Tensor, channel: te.Expr
) -> te.Expr:
    if attrs.scale:
        normal = normal * raised(gamma(channel), normal.dtype)
    return normal + raised(beta(channel), normal.dtype) if attrs.center else normal


def _batch_compute(attrs: BatchNormAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> Any:
    x, gamma, beta, mean, var = ins
    at, dtype = attrs.axis % x.ndim, accumulator(x.dtype)

    def body(*i: te.Expr) -> te.Expr:
        c = i[at]
        spread = raised(var(c), dtype) + te.const(attrs.epsilon, dtype)
        normal = (raised(x(*i), dtype) - raised(mean(c), dtype)) / te.intrinsic("sqrt", spread)
        return te.cast(_affine_expr(attrs, normal, gamma, beta, c), x.dtype)

    def copied(v: te.Tensor) -> te.Tensor:
        return te.compute(v.shape, v, "copy")

    return te.compute(x.shape, body, "batch_norm"), copied(mean), copied(var)


def _parameters(draw: Draw, channels: int, dtype: str) -> tuple[Array, Array]:
    return array(draw, (channels,), dtype), array(draw, (channels,), dtype)


def _switches(draw: Draw) -> dict[str, Any]:
    return {"center": flag(draw), "scale": flag(draw), "epsilon": choice(draw, (1e-5, 1e-3))}


def _batch_samples(draw: Draw) -> Sample:
    x = array(draw, shape(draw, 2), choice(draw, FLOATS))
    axis, dtype = draw.integer(-x.ndim, x.ndim - 1), x.dtype.name
    channels = x.shape[axis]
    stats = (array(draw, (channels,), dtype), array(draw, (channels,), dtype, 0.25, 2))
    return Sample(
        (x, *_parameters(draw, channels, dtype), *stats), {**_switches(draw), "axis": axis}
    )


define(
    "nn.batch_norm",
    attrs=BatchNormAttrs,
    inputs=("data", "gamma", "beta", "moving_mean", "moving_var"),
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=1,
    infer=_infer_batch,
    completes=_completes(4),
    reference=_batch_reference,
    compute=_batch_compute,
    compare=Accumulation(8, _batch_scale),
    samples=_batch_samples,
    num_outputs=3,
    doc="(x - mean) / sqrt(var + epsilon) * gamma + beta with the given statistics, which follow.",
)

# Which axes share statistics, given the attributes and the rank.
Groups = Callable[[Any, int], tuple[int, ...]]


def _own_axis(attrs: Any, rank: int) -> tuple[int, ...]:
    return (attrs.axis % rank,)


def _spatial_axes(attrs: Any, rank: int) -> tuple[int, ...]:
    return tuple(a for a in range(1, rank) if a != attrs.axis % rank)


def _statistics(x: Array, over: tuple[int, ...]) -> tuple[Array, Array]:
    mean = np.mean(x, axis=over, keepdims=True)
    return mean, np.mean((x - mean) ** 2, axis=over, keepdims=True)


def _normal_reference(groups: Groups) -> Reference:
    def reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
        x = wide(inputs[0])
        mean, var = _statistics(x, groups(attrs, x.ndim))
        normal = (x - mean) / np.sqrt(var + attrs.epsilon)
        return narrow(_affine(attrs, x, normal, inputs[1], inputs[2]), out_type.dtype)

    return reference


def _normal_scale(groups: Groups) -> Callable[..., Array]:
    def scale(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
        x = wide(inputs[0])
        over = groups(attrs, x.ndim)
        _, var = _statistics(x, over)
        size = np.abs(x) + np.max(np.abs(x), axis=over, keepdims=True)
        # A variance error of eps * max(x)^2 is amplified where the variance is small.
        room = 1 + np.max(np.abs(x), axis=over, keepdims=True) ** 2 / (var + attrs.epsilon)
        normal = size * room / np.sqrt(var + attrs.epsilon)
        return _affine(attrs, x, normal, np.abs(inputs[1]), np.abs(inputs[2]))

    return scale


def _moments(
    x: te.Tensor, over: Sequence[int], dtype: str
) -> tuple[te.Tensor, te.Tensor, list[int]]:
    """Mean and variance of ``x`` over some axes, as tensors of the others, and those."""
    kept = [d for d in range(x.ndim) if d not in over]
    rest = [x.shape[d] for d in kept]
    count = te.cast(index(product(x.shape[d] for d in over)), dtype)

    def read(i: Sequence[te.Expr], k: Sequence[te.ReduceAxis]) -> te.Expr:
        at: list[Any] = [None] * x.ndim
        for d, one in zip(kept, i, strict=True):
            at[d] = one
        for d, axis in zip(over, k, strict=True):
            at[d] = axis.var
        return raised(x(*at), dtype)

    def average(*i: te.Expr) -> te.Expr:
        k = [te.reduce_axis(x.shape[d], "rk") for d in over]
        return te.sum(read(i, k), k) / count

    mean = te.compute(rest, average, "mean")

    def spread(*i: te.Expr) -> te.Expr:
        k = [te.reduce_axis(x.shape[d], "rk") for d in over]
        apart = read(i, k) - mean(*i)
        return te.sum(apart * apart, k) / count

    return mean, te.compute(rest, spread, "variance"), kept


def _normal_compute(groups: Groups) -> Callable[..., te.Tensor]:
    def compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
        x, gamma, beta = ins
        dtype = accumulator(x.dtype)
        mean, var, kept = _moments(x, groups(attrs, x.ndim), dtype)

        def body(*i: te.Expr) -> te.Expr:
            rest = [i[d] for d in kept]
            spread = te.intrinsic("sqrt", var(*rest) + te.const(attrs.epsilon, dtype))
            normal = (raised(x(*i), dtype) - mean(*rest)) / spread
            channel = i[attrs.axis % x.ndim]
            return te.cast(_affine_expr(attrs, normal, gamma, beta, channel), out_type.dtype)

        return te.compute(extents(out_type), body, "norm")

    return compute


def _normal_samples(least_rank: int, axis: int | None) -> Sampler:
    def samples(draw: Draw) -> Sample:
        x = array(draw, shape(draw, least_rank, 4, 1, 6), choice(draw, FLOATS))
        at = draw.integer(-x.ndim, x.ndim - 1) if axis is None else axis
        pair = _parameters(draw, x.shape[at], x.dtype.name)
        return Sample((x, *pair), {**_switches(draw), "axis": at})

    return samples


for _name, _attrs, _groups, _sampler, _doc in (
    ("nn.layer_norm", LayerNormAttrs, _own_axis, _normal_samples(1, None), "one axis"),
    ("nn.instance_norm", InstanceNormAttrs, _spatial_axes, _normal_samples(3, 1),
     "all axes but the batch and the channels"),
):  # fmt: skip
    define(
        _name,
        attrs=_attrs,
        inputs=("data", "gamma", "beta"),
        pattern=None,
        level=1,
        infer=_infer(2),
        completes=_completes(2),
        reference=_normal_reference(_groups),
        compute=_normal_compute(_groups),
        compare=Accumulation(16, _normal_scale(_groups)),
        samples=_sampler,
        doc=f"Zero mean and unit variance over {_doc}, then scale and shift per channel.",
    )


def _infer_group(args: InferArgs) -> Type:
    _infer(2)(args)
    channels = _channels(args).shape[0]
    groups = args.attrs.num_groups
    if groups < 1 or (isinstance(channels, int) and channels % groups):
        args.fail("num_groups must divide the channels", expected=channels, found=groups)
    return args.tensor(0)


def _grouped(attrs: GroupNormAttrs, x: Array) -> tuple[Array, tuple[int, ...]]:
    """X with the channel axis split into (groups, channels of a group), and the normalised axes."""
    at = attrs.axis % x.ndim
    dims_ = list(x.shape)
    dims_[at : at + 1] = [attrs.num_groups, x.shape[at] // attrs.num_groups]
    return x.reshape(dims_), tuple(a for a in range(1, len(dims_)) if a != at)


def _group_reference(attrs: GroupNormAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x = wide(inputs[0])
    split, over = _grouped(attrs, x)
    mean, var = _statistics(split, over)
    normal = ((split - mean) / np.sqrt(var + attrs.epsilon)).reshape(x.shape)
    return narrow(_affine(attrs, x, normal, inputs[1], inputs[2]), out_type.dtype)


def _group_scale(attrs: GroupNormAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x = wide(inputs[0])
    split, over = _grouped(attrs, x)
    _, var = _statistics(split, over)
    most = np.max(np.abs(split), axis=over, keepdims=True)
    spread = var + attrs.epsilon
    normal = (np.abs(split) + most) * (1 + most**2 / spread) / np.sqrt(spread)
    return _affine(attrs, x, normal.reshape(x.shape), np.abs(inputs[1]), np.abs(inputs[2]))


def _split_channels(x: te.Tensor, at: int, groups: int) -> te.Tensor:
    size: Extent = x.shape[at] // groups
    split = (*x.shape[:at], groups, size, *x.shape[at + 1 :])

    def body(*i: te.Expr) -> te.Expr:
        return x(*i[:at], i[at] * size + i[at + 1], *i[at + 2 :])

    return te.compute(split, body, "split")


def _group_compute(attrs: GroupNormAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    x, gamma, beta = ins
    at, dtype = attrs.axis % x.ndim, accumulator(x.dtype)
    split = _split_channels(x, at, attrs.num_groups)
    over = [a for a in range(1, split.ndim) if a != at]
    mean, var, kept = _moments(split, over, dtype)
    per_group = split.shape[at + 1]

    def body(*i: te.Expr) -> te.Expr:
        wide_index = (*i[:at], i[at] // per_group, i[at] % per_group, *i[at + 1 :])
        rest = [wide_index[d] for d in kept]
        spread = te.intrinsic("sqrt", var(*rest) + te.const(attrs.epsilon, dtype))
        normal = (raised(x(*i), dtype) - mean(*rest)) / spread
        return te.cast(_affine_expr(attrs, normal, gamma, beta, i[at]), out_type.dtype)

    return te.compute(extents(out_type), body, "group_norm")


def _group_samples(draw: Draw) -> Sample:
    groups, size = draw.integer(1, 3), draw.integer(1, 3)
    dims_ = (draw.integer(1, 2), groups * size, *shape(draw, 0, 2))
    x = array(draw, dims_, choice(draw, FLOATS))
    pair = _parameters(draw, groups * size, x.dtype.name)
    return Sample((x, *pair), {**_switches(draw), "num_groups": groups})


define(
    "nn.group_norm",
    attrs=GroupNormAttrs,
    inputs=("data", "gamma", "beta"),
    pattern=None,
    level=1,
    infer=_infer_group,
    completes=_completes(2),
    reference=_group_reference,
    compute=_group_compute,
    compare=Accumulation(16, _group_scale),
    samples=_group_samples,
    doc="Zero mean and unit variance per group of channels, then scale and shift per channel.",
)


def batch_norm(
    data: Expr,
    gamma: Expr,
    beta: Expr,
    moving_mean: Expr,
    moving_var: Expr,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> TupleWrapper:
    made = call(
        "nn.batch_norm", data, gamma, beta, moving_mean, moving_var, axis=axis, epsilon=epsilon,
        center=center, scale=scale,
    )  # fmt: skip
    return TupleWrapper(made, 3)


def _norm(name: str, data: Expr, gamma: Expr, beta: Expr, **attrs: Any) -> Call:
    return call(name, data, gamma, beta, **attrs)


def instance_norm(
    data: Expr,
    gamma: Expr,
    beta: Expr,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Call:
    attrs = {"axis": axis, "epsilon": epsilon, "center": center, "scale": scale}
    return _norm("nn.instance_norm", data, gamma, beta, **attrs)


def layer_norm(
    data: Expr,
    gamma: Expr,
    beta: Expr,
    axis: int = -1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Call:
    attrs = {"axis": axis, "epsilon": epsilon, "center": center, "scale": scale}
    return _norm("nn.layer_norm", data, gamma, beta, **attrs)


def group_norm(
    data: Expr,
    gamma: Expr,
    beta: Expr,
    num_groups: int,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Call:
    attrs = {"axis": axis, "epsilon": epsilon, "center": center, "scale": scale}
    return _norm("nn.group_norm", data, gamma, beta, num_groups=num_groups, **attrs)
