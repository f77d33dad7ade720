"""Broadcasting as an operator, and the sums that undo it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ixion import te
from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.ir.expr import Call, Expr, const
from ixion.ir.types import TensorType, Type
from ixion.op.axes import shape_text
from ixion.op.broadcast import read_broadcast
from ixion.op.call import call, known_ints
from ixion.op.compare import Accumulation, Exact
from ixion.op.create import InitOpAttrs, shape_at
from ixion.op.define import InferArgs, OpPattern, Reference, define
from ixion.op.extent import extents
from ixion.op.rounding import Array, narrow, wide
from ixion.op.sample import FLOATS, Draw, Sample, array, broadcastable, choice, shape
from ixion.op.value import Value, as_objects


def _check_dim(args: InferArgs, own: Dim, wanted: Dim, **shapes: str) -> None:
    """A size that is no literal 1 broadcasts to what is wanted."""
    if isinstance(own, int) or (isinstance(wanted, int) and wanted == 1):
        # Only 1 goes to another size, and to 1.
        args.agree(own, wanted, "cannot broadcast", **shapes)
    elif not dims.same(own, wanted):
        args.guard("expand", own, wanted, "cannot broadcast")


def check_broadcast(args: InferArgs, source: Sequence[Dim], target: Sequence[Dim]) -> None:
    """Raises TypeInferenceError unless ``source`` broadcasts to exactly ``target``."""
    lead = len(target) - len(source)
    if lead < 0:
        args.fail("cannot broadcast", expected=shape_text(target), found=shape_text(source))
    for s, t in zip(source, target[lead:], strict=True):
        if not (isinstance(s, int) and s == 1):
            _check_dim(args, s, t, expected=shape_text(target), found=shape_text(source))


def _infer_broadcast(args: InferArgs) -> Type:
    data, target = args.tensor(), tuple(args.attrs.shape or ())
    check_broadcast(args, data.shape, target)
    return TensorType(target, data.dtype)


def _broadcast_compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    dims_ = extents(out_type)
    return te.compute(dims_, lambda *i: read_broadcast(ins[0], i, dims_), "broadcast_to")


def _broadcast_reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
    target = attrs.shape if len(inputs) == 1 else inputs[1]
    return np.broadcast_to(inputs[0], [int(d) for d in target or ()]).copy()


def _broadcast_samples(draw: Draw) -> Sample:
    full = shape(draw, 0)
    x = array(draw, broadcastable(draw, full), choice(draw, (*FLOATS, "int64")))
    return Sample((x,), {"shape": full})


def _value_to(args: InferArgs, out: Type, reference: Reference | None) -> Value:
    if not isinstance(out, TensorType) or not dims.is_static(out.shape):
        return None
    return np.broadcast_to(as_objects(args.values[0]), out.shape)


define(
    "broadcast_to",
    attrs=InitOpAttrs,
    inputs=("data",),
    pattern=OpPattern.BROADCAST,
    level=4,
    infer=_infer_broadcast,
    reference=_broadcast_reference,
    compute=_broadcast_compute,
    compare=Exact(),
    symbolic=_value_to,
    samples=_broadcast_samples,
    doc="Data repeated along axes of size 1 and new leading axes.",
)


def _infer_dyn_broadcast(args: InferArgs) -> Type:
    data, target = args.tensor(0), shape_at(args, 1)
    check_broadcast(args, data.shape, target)
    return TensorType(target, data.dtype)


define(
    "dyn.broadcast_to",
    attrs=InitOpAttrs,
    inputs=("data", "shape"),
    pattern=OpPattern.BROADCAST,
    level=4,
    infer=_infer_dyn_broadcast,
    reference=lambda attrs, ins, out: np.broadcast_to(ins[0], [int(d) for d in ins[1]]).copy(),
    compute=_broadcast_compute,
    compare=Exact(),
    symbolic=_value_to,
    samples=lambda draw: Sample((array(draw, (3, 1)), np.array([2, 3, 4], np.int64))),
    doc="broadcast_to a shape computed at run time.",
)


def _infer_broadcast_like(args: InferArgs) -> Type:
    data, like = args.tensor(0), args.tensor(1)
    check_broadcast(args, data.shape, like.shape)
    return TensorType(like.shape, data.dtype)


define(
    "broadcast_to_like",
    inputs=("data", "broadcast_type"),
    pattern=OpPattern.BROADCAST,
    level=10,
    infer=_infer_broadcast_like,
    reference=lambda attrs, ins, out: np.broadcast_to(ins[0], ins[1].shape).copy(),
    compute=_broadcast_compute,
    compare=Exact(),
    samples=lambda draw: Sample((array(draw, (3, 1)), array(draw, (2, 3, 4)))),
    doc="broadcast_to the shape of another tensor.",
)


def _summed_down(x: Array, target: Sequence[int]) -> Array:
    lead = x.ndim - len(target)
    axes = tuple(range(lead)) + tuple(
        lead + i for i, n in enumerate(target) if n == 1 and x.shape[lead + i] != 1
    )
    return np.asarray(np.sum(x, axis=axes, keepdims=True).reshape(target))


def _collapse_reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
    return narrow(_summed_down(wide(inputs[0]), inputs[1].shape), out_type.dtype)


def _infer_collapse(args: InferArgs) -> Type:
    data, like = args.tensor(0), args.tensor(1)
    check_broadcast(args, like.shape, data.shape)
    return like


define(
    "collapse_sum_like",
    inputs=("data", "collapse_type"),
    pattern=OpPattern.COMM_REDUCE,
    level=10,
    infer=_infer_collapse,
    reference=_collapse_reference,
    compare=Accumulation(
        8, lambda attrs, ins, out: _summed_down(np.abs(ins[0].astype(np.float64)), ins[1].shape)
    ),
    samples=lambda draw: Sample((array(draw, (2, 3, 4)), array(draw, (3, 1)))),
    doc="The sum that undoes a broadcast from the second argument's shape.",
)


def _infer_collapse_to(args: InferArgs) -> Type:
    target = shape_at(args, 1)
    check_broadcast(args, target, args.tensor(0).shape)
    return TensorType(target, args.tensor(0).dtype)


def _collapse_to_reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
    return narrow(_summed_down(wide(inputs[0]), [int(d) for d in inputs[1]]), out_type.dtype)


define(
    "collapse_sum_to",
    attrs=InitOpAttrs,
    inputs=("data", "shape"),
    pattern=OpPattern.COMM_REDUCE,
    level=4,
    infer=_infer_collapse_to,
    reference=_collapse_to_reference,
    compare=Accumulation(8, lambda attrs, ins, out: _summed_down(
        np.abs(ins[0].astype(np.float64)), [int(d) for d in ins[1]])),
    samples=lambda draw: Sample((array(draw, (2, 3, 4)), np.array([3, 1], np.int64))),
    doc="The sum that undoes a broadcast from a given shape.",
)  # fmt: skip


def broadcast_to(data: Expr, shape: Any) -> Call:
    """Relay's builder; a shape given as an expression makes the dynamic op."""
    shape = known_ints(shape)
    if isinstance(shape, Expr):
        return call("dyn.broadcast_to", data, shape)
    return call("broadcast_to", data, shape=[shape] if isinstance(shape, int) else shape)


def broadcast_to_like(data: Expr, broadcast_type: Expr) -> Call:
    return call("broadcast_to_like", data, broadcast_type)


def collapse_sum_like(data: Expr, collapse_type: Expr) -> Call:
    return call("collapse_sum_like", data, collapse_type)


def collapse_sum_to(data: Expr, shape: Any) -> Call:
    target = shape if isinstance(shape, Expr) else const(np.asarray(shape, np.int64))
    return call("collapse_sum_to", data, target)
