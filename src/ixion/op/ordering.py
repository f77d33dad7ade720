"""Ordering: sort, argsort, topk, searchsorted; all stable, with NaN above every number."""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.base.dim import Dim
from ixion.base.errors import KernelError
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr, TupleWrapper
from ixion.ir.types import TensorType, TupleType, Type
from ixion.op.axes import checked_axis
from ixion.op.bounds import Shapes, result_types
from ixion.op.call import call, known_ints
from ixion.op.compare import Exact
from ixion.op.define import InferArgs, Names, OpPattern, define
from ixion.op.rounding import Array
from ixion.op.sample import FLOATS, Draw, Sample, array, axis, choice, flag, shape
from ixion.op.scheduled import plain_tensors


@register_attrs("relay.attrs.ArgsortAttrs")
class ArgsortAttrs(Attrs):
    axis: int = attr(-1, "the axis to order")
    is_ascend: bool = attr(True, "smallest first")
    dtype: str = attr("int32", "dtype of positions")


@register_attrs("relay.attrs.TopkAttrs")
class TopKAttrs(Attrs):
    k: Dim | None = attr(None, "how many; below 1 means all")
    axis: int = attr(-1, "the axis to order")
    ret_type: str = attr("both", "what to give", choices=("both", "values", "indices"))
    is_ascend: bool = attr(False, "smallest first")
    dtype: str = attr("int32", "dtype of positions")


@register_attrs("relay.attrs.SearchSortedAttrs")
class SearchSortedAttrs(Attrs):
    right: bool = attr(False, "count equal elements too")
    dtype: str = attr("int32", "dtype of positions")


def stable_order(x: Array, axis: int, ascending: bool) -> Array:
    """Positions in order; equal elements keep theirs, in both directions."""
    if ascending:
        return np.argsort(x, axis=axis, kind="stable")
    # Sorting the reversed axis and reading it backwards keeps equal elements in order.
    backwards = np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    return np.asarray(x.shape[axis] - 1 - backwards)


def _infer_ordered(args: InferArgs) -> TensorType:
    data = args.tensor(0)
    checked_axis(args, args.attrs.axis, len(data.shape))
    return data


def _infer_argsort(args: InferArgs) -> Type:
    return TensorType(_infer_ordered(args).shape, args.attrs.dtype)


def _sort_reference(attrs: ArgsortAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x = inputs[0]
    return np.take_along_axis(x, stable_order(x, attrs.axis, attrs.is_ascend), axis=attrs.axis)


def _argsort_reference(attrs: ArgsortAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    order = stable_order(inputs[0], attrs.axis, attrs.is_ascend)
    return order.astype(dtypes.to_numpy(out_type.dtype))


def _ties(draw: Draw, least_rank: int = 1) -> Array:
    x = array(draw, shape(draw, least_rank), choice(draw, (*FLOATS, "int32")))
    return np.round(x) if x.dtype.kind == "f" else x


def _samples(draw: Draw) -> Sample:
    x = _ties(draw)
    attrs = {"axis": axis(draw, x.ndim), "is_ascend": flag(draw)}
    return Sample((x,), {**attrs, "dtype": choice(draw, ("int32", "int64"))})


define(
    "sort",
    attrs=ArgsortAttrs,
    inputs=("data",),
    pattern=OpPattern.OPAQUE,
    level=6,
    infer=_infer_ordered,
    reference=_sort_reference,
    compare=Exact(),
    samples=_samples,
    FScheduled=plain_tensors,
    doc="Elements in order along an axis.",
)

define(
    "argsort",
    attrs=ArgsortAttrs,
    inputs=("data",),
    pattern=OpPattern.OPAQUE,
    level=6,
    infer=_infer_argsort,
    reference=_argsort_reference,
    compare=Exact(),
    names=Names(),
    samples=_samples,
    FScheduled=plain_tensors,
    doc="Positions of elements in order along an axis.",
)


def _topk_type(args: InferArgs, k: Any) -> Type:
    data, attrs = _infer_ordered(args), args.attrs
    out = list(data.shape)
    if not (isinstance(k, int) and k < 1):
        args.at_most(k, out[attrs.axis], "k is larger than the axis")
        if not isinstance(k, int):
            args.at_most(1, k, "k must not be 0, which means all")
        out[attrs.axis] = k
    values, indices = TensorType(out, data.dtype), TensorType(out, attrs.dtype)
    if attrs.ret_type == "both":
        return TupleType((values, indices))
    return values if attrs.ret_type == "values" else indices


def _infer_topk(args: InferArgs) -> Type:
    return _topk_type(args, 1 if args.attrs.k is None else args.attrs.k)


def _topk_reference(attrs: TopKAttrs, inputs: tuple[Array, ...], out_type: Any) -> Any:
    x = inputs[0]
    k: Any = attrs.k if len(inputs) == 1 else int(inputs[1].ravel()[0])
    k = 1 if k is None else int(k)
    if k > x.shape[attrs.axis]:
        raise KernelError(f"topk: k = {k} of an axis of {x.shape[attrs.axis]}", index=k)
    order = stable_order(x, attrs.axis, attrs.is_ascend)
    order = order.take(range(k if k > 0 else x.shape[attrs.axis]), axis=attrs.axis)
    values = np.take_along_axis(x, order, axis=attrs.axis)
    indices = order.astype(dtypes.to_numpy(attrs.dtype))
    if attrs.ret_type == "both":
        return values, indices
    return values if attrs.ret_type == "values" else indices


def _topk_samples(draw: Draw) -> Sample:
    x = _ties(draw)
    at = axis(draw, x.ndim)
    attrs = {
        "k": draw.integer(0, x.shape[at]),
        "axis": at,
        "ret_type": choice(draw, ("both", "values", "indices")),
        "is_ascend": flag(draw),
        "dtype": choice(draw, ("int32", "int64")),
    }
    return Sample((x,), attrs)


def _topk_outputs(attrs: TopKAttrs) -> int:
    return 2 if attrs.ret_type == "both" else 1


define(
    "topk",
    attrs=TopKAttrs,
    inputs=("data",),
    pattern=OpPattern.OPAQUE,
    level=6,
    infer=_infer_topk,
    reference=_topk_reference,
    compare=Exact(),
    samples=_topk_samples,
    num_outputs=_topk_outputs,
    FScheduled=plain_tensors,
    doc="The k largest (or smallest) elements along an axis in order, and their positions.",
)


def _infer_dyn_topk(args: InferArgs) -> Type:
    value = args.value(1)
    return _topk_type(args, dims.Any() if value is None else value.ravel()[0])


def _dyn_topk_bound(args: InferArgs) -> Shapes:
    found = result_types(_topk_type(args, (args.ints(1) or (0,))[0]))
    return tuple(tuple(t.shape) for t in found)


def _dyn_topk_samples(draw: Draw) -> Sample:
    made = _topk_samples(draw)
    attrs = dict(made.attrs)
    return Sample((*made.args, np.array(max(attrs.pop("k"), 1), np.int64)), attrs)


define(
    "dyn.topk",
    attrs=TopKAttrs,
    inputs=("data", "k"),
    pattern=OpPattern.OPAQUE,
    level=6,
    infer=_infer_dyn_topk,
    reference=_topk_reference,
    compare=Exact(),
    samples=_dyn_topk_samples,
    num_outputs=_topk_outputs,
    FResultBound=_dyn_topk_bound,
    FScheduled=plain_tensors,
    doc="topk with k computed at run time.",
)


def _infer_search(args: InferArgs) -> Type:
    table, values = args.tensor(0), args.tensor(1)
    if not table.shape:
        args.fail("the table has at least one axis", found=table)
    if len(table.shape) != 1 and table.shape[:-1] != values.shape[:-1]:
        args.fail("leading axes agree unless the table is a vector", expected=table, found=values)
    return TensorType(values.shape, args.attrs.dtype)


def _search_reference(attrs: SearchSortedAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    table, values = inputs
    side = "right" if attrs.right else "left"
    dtype = dtypes.to_numpy(out_type.dtype)
    if table.ndim == 1:
        return np.asarray(np.searchsorted(table, values, side=side)).astype(dtype)  # type: ignore[call-overload]
    out = np.empty(values.shape, dtype)
    for lead in np.ndindex(*values.shape[:-1]):
        out[lead] = np.searchsorted(table[lead], values[lead], side=side)  # type: ignore[call-overload]
    return out


def _search_scheduled(attrs: Any, types: tuple[Type, ...], out: Type) -> bool:
    """Table and values have one dtype."""
    kinds = {t.dtype for t in types if isinstance(t, TensorType)}
    return len(kinds) == 1 and plain_tensors(attrs, types, out)


def _search_samples(draw: Draw) -> Sample:
    lead = shape(draw, 0, 2)
    table = np.sort(array(draw, (*lead, draw.integer(1, 6)), "int32"), axis=-1)
    values = array(draw, (*lead, draw.integer(1, 4)), "int32")
    return Sample((table, values), {"right": flag(draw)})


define(
    "searchsorted",
    attrs=SearchSortedAttrs,
    inputs=("sorted_sequence", "values"),
    pattern=OpPattern.OPAQUE,
    level=6,
    infer=_infer_search,
    reference=_search_reference,
    compare=Exact(),
    samples=_search_samples,
    FScheduled=_search_scheduled,
    doc="Where values would go in sorted rows.",
)


def sort(data: Expr, axis: int = -1, is_ascend: bool = True) -> Call:
    return call("sort", data, axis=axis, is_ascend=is_ascend)


def argsort(data: Expr, axis: int = -1, is_ascend: bool = True, dtype: str = "int32") -> Call:
    return call("argsort", data, axis=axis, is_ascend=is_ascend, dtype=dtype)


def topk(
    data: Expr,
    k: Any = 1,
    axis: int = -1,
    ret_type: str = "both",
    is_ascend: bool = False,
    dtype: str = "int32",
) -> Any:
    """Relay's builder; a k given as an expression makes the dynamic op."""
    k = known_ints(k)
    attrs = {"axis": axis, "ret_type": ret_type, "is_ascend": is_ascend, "dtype": dtype}
    if isinstance(k, Expr):
        made = call("dyn.topk", data, k, **attrs)
    else:
        made = call("topk", data, k=k[0] if isinstance(k, list) else k, **attrs)
    return TupleWrapper(made, 2) if ret_type == "both" else made


def searchsorted(
    sorted_sequence: Expr, values: Expr, right: bool = False, dtype: str = "int32"
) -> Call:
    return call("searchsorted", sorted_sequence, values, right=right, dtype=dtype)
