"""SimplifyInference: normalisations as plain arithmetic, dropout gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ixion.analysis.constants import scalar
from ixion.ir import Call, Expr, Function, IRModule, Op, TensorType, TupleGetItem, rewrite
from ixion.op.call import call
from ixion.op.reshapes import reshape_to
from ixion.transform.channel_axes import expand_to_axes
from ixion.transform.context import PassContext
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import FunctionPass
from ixion.transform.registry import register_pass

__all__ = ["SimplifyInference"]


@register_pass("SimplifyInference")
@dataclass(frozen=True)
class SimplifyInference(FunctionPass):
    """Unpacks batch, layer, group and instance norm and l2_normalize; removes dropout.

    Batch norm becomes ``data * scale + shift`` of its moving statistics, which constants then
    fold into; the forms are Relay's.  With ``keep_rows``, layer norms that have a kernel of their
    own (``is_row_norm``) stay whole.
    """

    keep_rows: bool = False
    info = PassInfo(0, "SimplifyInference", ["InferType"])

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        unpack = _unpack_others if self.keep_rows else _unpack
        return rewrite(func, unpack)  # type: ignore[return-value]  # a function stays one


def is_row_norm(call: Call) -> bool:
    """Whether a typed call is a layer norm of float32 rows: along the last axis."""
    kind = call.checked_type
    if not isinstance(call.op, Op) or call.op.name != "nn.layer_norm":
        return False
    attrs: Any = call.attrs
    rows = isinstance(kind, TensorType) and attrs.axis in (-1, len(kind.shape) - 1)
    return rows and isinstance(kind, TensorType) and kind.dtype == "float32"


def _unpack_others(old: Expr, new: Expr) -> Expr:
    return new if isinstance(old, Call) and is_row_norm(old) else _unpack(old, new)


def _unpack(old: Expr, new: Expr) -> Expr:
    if isinstance(new, TupleGetItem):
        return _unpack_first(old, new)
    if not isinstance(new, Call) or not isinstance(new.op, Op):
        return new
    unpack = _NORMS.get(new.op.name)
    if unpack is None:
        return new
    assert isinstance(old, Call)
    kind = old.args[0].checked_type
    assert isinstance(kind, TensorType)
    return unpack(new, kind)


def _unpack_first(old: Expr, new: TupleGetItem) -> Expr:
    """The first result of batch norm or dropout."""
    producer = new.tuple_value
    if new.index != 0 or not isinstance(producer, Call) or not isinstance(producer.op, Op):
        return new
    if producer.op.name == "nn.dropout":
        return producer.args[0]
    if producer.op.name != "nn.batch_norm":
        return new
    assert isinstance(old, TupleGetItem)
    assert isinstance(old.tuple_value, Call)
    kind = old.tuple_value.args[0].checked_type
    assert isinstance(kind, TensorType)
    return _batch_norm(producer, kind)


def _epsilon(value: float, dtype: str) -> Expr:
    # Relay stores epsilon as a float32 first.
    return scalar(dtype, float(np.float32(value)))


def _axis(attrs: Any, kind: TensorType) -> int:
    axis: int = attrs.axis
    return axis + len(kind.shape) if axis < 0 else axis


def _batch_norm(norm: Call, kind: TensorType) -> Expr:
    data, gamma, beta, mean, variance = norm.args
    attrs: Any = norm.attrs
    deviation = call("sqrt", call("add", variance, _epsilon(attrs.epsilon, kind.dtype)))
    scale = call("divide", scalar(kind.dtype, 1.0), deviation)
    if attrs.scale:
        scale = call("multiply", scale, gamma)
    shift = call("multiply", call("negative", mean), scale)
    if attrs.center:
        shift = call("add", shift, beta)
    axes = (_axis(attrs, kind),)
    scaled = call("multiply", data, _expanded(scale, kind, axes))
    return call("add", scaled, _expanded(shift, kind, axes))


def _expanded(vector: Expr, kind: TensorType, axes: tuple[int, ...]) -> Expr:
    result = expand_to_axes(vector, kind.shape, axes)
    assert result is not None
    return result


def _standardised(data: Expr, axes: list[int], epsilon: Expr) -> Expr:
    mean = call("mean", data, axis=axes, keepdims=True, exclude=False)
    variance = call("variance", data, mean, axis=axes, keepdims=True, exclude=False)
    deviation = call("sqrt", call("add", variance, epsilon))
    return call("divide", call("subtract", data, mean), deviation)


def _affine(out: Expr, norm: Call, kind: TensorType) -> Expr:
    attrs: Any = norm.attrs
    axes = (_axis(attrs, kind),)
    if attrs.scale:
        out = call("multiply", out, _expanded(norm.args[1], kind, axes))
    if attrs.center:
        out = call("add", out, _expanded(norm.args[2], kind, axes))
    return out


def _layer_norm(norm: Call, kind: TensorType) -> Expr:
    attrs: Any = norm.attrs
    epsilon = _epsilon(attrs.epsilon, kind.dtype)
    return _affine(_standardised(norm.args[0], [attrs.axis], epsilon), norm, kind)


def _instance_norm(norm: Call, kind: TensorType) -> Expr:
    attrs: Any = norm.attrs
    axes = [i for i in range(1, len(kind.shape)) if i != _axis(attrs, kind)]
    out = _standardised(norm.args[0], axes, _epsilon(attrs.epsilon, kind.dtype))
    return _affine(out, norm, kind)


def _group_norm(norm: Call, kind: TensorType) -> Expr:
    """The channel axis is split in groups and channels of one; all but batch and group reduce."""
    attrs: Any = norm.attrs
    axis, groups = _axis(attrs, kind), attrs.num_groups
    shape = list(kind.shape)
    split = [*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :]]
    axes = list(range(axis + 1, len(split)))
    data = reshape_to(norm.args[0], split)
    out = _standardised(data, axes, _epsilon(attrs.epsilon, kind.dtype))
    return _affine(reshape_to(out, shape), norm, kind)


def _l2_normalize(norm: Call, kind: TensorType) -> Expr:
    attrs: Any = norm.attrs
    data = norm.args[0]
    square = call("multiply", data, data)
    total = call("sum", square, axis=attrs.axis, keepdims=True, exclude=False)
    floor = _epsilon(attrs.eps, "float32")
    return call("divide", data, call("sqrt", call("maximum", total, floor)))


_NORMS: dict[str, Callable[[Call, TensorType], Expr]] = {
    "nn.layer_norm": _layer_norm,
    "nn.group_norm": _group_norm,
    "nn.instance_norm": _instance_norm,
    "nn.l2_normalize": _l2_normalize,
}
