"""Updates written to indexed places: scatter_elements, scatter_nd, and argwhere's inverse kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ixion.base import dtype as dtypes
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op.axes import checked_axis
from ixion.op.broadcast import same_dtype
from ixion.op.call import call
from ixion.op.compare import Accumulation
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.index import check_integer, check_range, draw_rows
from ixion.op.rounding import Array, narrow, wide
from ixion.op.sample import FLOATS, Draw, Sample, array, axis, choice, shape
from ixion.op.scheduled import numbered

_REDUCTIONS = ("update", "add", "mul", "mean", "min", "max")
_UFUNCS: dict[str, Callable[..., Any]] = {
    "add": np.add.at,
    "mul": np.multiply.at,
    "min": np.minimum.at,
    "max": np.maximum.at,
}


@register_attrs("relay.attrs.ScatterElementsAttrs")
class ScatterElementsAttrs(Attrs):
    axis: int = attr(0, "axis the indices run along")
    reduction: str = attr("update", "how an update meets what is there", choices=_REDUCTIONS)


@register_attrs("relay.attrs.ScatterNDAttrs")
class ScatterNDAttrs(Attrs):
    mode: str = attr(
        "update",
        "how an update meets what is there",
        choices=("update", "add", "mul", "min", "max"),
    )


def _apply(data: Array, where: tuple[Any, ...], updates: Array, mode: str) -> Array:
    """Data with updates combined at ``where``; later updates win, sums run in float64."""
    out = wide(data).copy()
    values = np.broadcast_to(wide(updates), out[where].shape)
    if mode == "update":
        out[where] = values
    elif mode == "mean":
        count = np.ones(out.shape, np.int64)
        np.add.at(count, where, 1)
        np.add.at(out, where, values)
        out = out // count if out.dtype.kind in "iu" else out / count
    else:
        _UFUNCS[mode](out, where, values)
    return narrow(out, dtypes.from_numpy(data.dtype))


def _check_reach(args: InferArgs, data: TensorType, indices: TensorType) -> None:
    """Only along the axis may there be more indices than places."""
    for d, (size, count) in enumerate(zip(data.shape, indices.shape, strict=True)):
        along = d == args.attrs.axis % len(data.shape)
        if isinstance(size, int) and isinstance(count, int) and count > size and not along:
            args.fail("indices reach past the data", expected=f"<= {size}", found=count)


def _scheduled(attrs: Any, types: tuple[Type, ...], out: Type) -> bool:
    """Kernels know everything but the mean of bools."""
    way = getattr(attrs, "reduction", None)
    no_mean = isinstance(out, TensorType) and dtypes.is_bool(out.dtype) and way == "mean"
    return not no_mean and numbered(attrs, types, out)


def _infer_elements(args: InferArgs) -> Type:
    data, indices, updates = args.tensor(0), args.tensor(1), args.tensor(2)
    check_integer(args, 1)
    same_dtype(args, data, updates)
    checked_axis(args, args.attrs.axis, len(data.shape))
    ranks = {len(data.shape), len(indices.shape), len(updates.shape)}
    if len(ranks) != 1:
        args.fail("data, indices and updates have one rank", expected=len(data.shape), found=ranks)
    rule = "indices and updates have one shape"
    args.agree_all(indices.shape, updates.shape, rule, expected=indices, found=updates)
    _check_reach(args, data, indices)
    return data


def _elements_reference(
    attrs: ScatterElementsAttrs, inputs: tuple[Array, ...], out_type: Any
) -> Array:
    data, indices, updates = inputs
    at = attrs.axis % data.ndim
    size = data.shape[at]
    rows = check_range("scatter_elements", indices.astype(np.int64), size, -size)
    where: list[Array] = [*np.ix_(*(np.arange(n) for n in indices.shape))]
    where[at] = np.where(rows < 0, rows + size, rows)
    return _apply(data, tuple(where), updates, attrs.reduction)


def _elements_samples(draw: Draw) -> Sample:
    data = array(draw, shape(draw, 1), choice(draw, (*FLOATS, "int32")))
    at = axis(draw, data.ndim)
    dims_ = [draw.integer(1, n) for n in data.shape]
    indices = array(draw, dims_, "int64", -data.shape[at], data.shape[at] - 1)
    updates = array(draw, dims_, data.dtype.name)
    return Sample((data, indices, updates), {"axis": at, "reduction": choice(draw, _REDUCTIONS)})


define(
    "scatter_elements",
    attrs=ScatterElementsAttrs,
    inputs=("data", "indices", "updates"),
    pattern=OpPattern.OPAQUE,
    level=3,
    infer=_infer_elements,
    reference=_elements_reference,
    compare=Accumulation(),
    samples=_elements_samples,
    FScheduled=_scheduled,
    doc="data with updates at indices along an axis; negative indices count from the end.",
)


def _infer_nd(args: InferArgs) -> Type:
    data, indices, updates = args.tensor(0), args.tensor(1), args.tensor(2)
    check_integer(args, 1)
    same_dtype(args, data, updates)
    depth = indices.shape[0] if indices.shape else None
    if not isinstance(depth, int):
        args.fail("the first axis of indices must have a known size", found=indices)
    if depth > len(data.shape):
        args.fail("indices are deeper than the data", expected=len(data.shape), found=depth)
    wanted = (*indices.shape[1:], *data.shape[depth:])
    rule = "updates do not fit the places"
    args.agree_all(wanted, updates.shape, rule, expected=TensorType(wanted), found=updates)
    return data


def _nd_reference(attrs: ScatterNDAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    data, indices, updates = inputs
    rows = []
    for m, row in enumerate(indices.astype(np.int64)):
        size = data.shape[m]
        checked = check_range("scatter_nd", row, size, -size)
        rows.append(np.where(checked < 0, checked + size, checked))
    return _apply(data, tuple(rows), updates, attrs.mode)


def _nd_samples(draw: Draw) -> Sample:
    data = array(draw, shape(draw, 1), choice(draw, (*FLOATS, "int32")))
    depth = draw.integer(1, data.ndim)
    places = shape(draw, 0, 2)
    updates = array(draw, (*places, *data.shape[depth:]), data.dtype.name)
    mode = choice(draw, ("update", "add", "mul", "min", "max"))
    return Sample((data, draw_rows(draw, data.shape[:depth], places), updates), {"mode": mode})


define(
    "scatter_nd",
    attrs=ScatterNDAttrs,
    inputs=("data", "indices", "updates"),
    pattern=OpPattern.OPAQUE,
    level=3,
    infer=_infer_nd,
    reference=_nd_reference,
    compare=Accumulation(),
    samples=_nd_samples,
    FScheduled=_scheduled,
    doc="data with slices replaced or combined at index tuples along the first axis of indices.",
)


def scatter_elements(
    data: Expr, indices: Expr, updates: Expr, axis: int = 0, reduction: str = "update"
) -> Call:
    return call("scatter_elements", data, indices, updates, axis=axis, reduction=reduction)


def scatter_nd(data: Expr, indices: Expr, updates: Expr, mode: str = "update") -> Call:
    return call("scatter_nd", data, indices, updates, mode=mode)
