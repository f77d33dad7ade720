"""Distinct slices along an axis, in any order and with any notion of NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.base.dim import Dim
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Expr, TupleWrapper
from ixion.ir.types import TensorType, TupleType, Type
from ixion.op.axes import checked_axis
from ixion.op.bounds import Shapes
from ixion.op.call import call
from ixion.op.compare import Exact
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.order_key import order_keys
from ixion.op.rounding import Array
from ixion.op.sample import Draw, Sample, array, axis, choice, flag, shape
from ixion.op.scheduled import numbered


@register_attrs("ixion.attrs.UniqueSlicesAttrs")
class UniqueSlicesAttrs(Attrs):
    axis: int | None = attr(None, "the axis along which slices are compared; none flattens")
    sorted: bool = attr(True, "in rising order, else in order of first appearance")
    nan_equal: bool = attr(True, "NaN equals NaN; else no slice with one equals any other")


def _shapes(args: InferArgs, count: Dim | None) -> Shapes:
    """Shapes of the four results for so many distinct slices; for None, as many as there are."""
    data, at = args.tensor().shape, args.attrs.axis
    if at is None:
        data, at = (dims.prod(data),), 0
    at = checked_axis(args, at, len(data))
    found = data[at] if count is None else count
    return ((*data[:at], found, *data[at + 1 :]), (found,), (data[at],), (found,))


def _infer(args: InferArgs) -> Type:
    values, *places = _shapes(args, dims.Any())
    rest = (TensorType(s, "int64") for s in places)
    return TupleType((TensorType(values, args.tensor().dtype), *rest))


def group_rows(keys: Array, apart: Array) -> tuple[Array, Array]:
    """Row numbers in rising order, equal rows in theirs, and where in it a new value begins.

    ``keys``: unsigned (rows, columns), compared from the first column on; ``apart``: rows that
    equal no other.
    """
    order = np.lexsort(keys.T[::-1]) if keys.shape[1] else np.arange(len(keys))
    ranked = keys[order]
    first = np.ones(len(keys), bool)
    first[1:] = (ranked[1:] != ranked[:-1]).any(axis=1) | apart[order][1:]
    return order, first


def _reference(attrs: UniqueSlicesAttrs, inputs: tuple[Array, ...], out_type: Any) -> Any:
    data, at = inputs[0], attrs.axis
    if at is None:
        data, at = data.reshape(-1), 0
    moved = np.moveaxis(data, at, 0)
    rows = moved.reshape(len(moved), -1) if data.size else np.zeros((len(moved), 0), data.dtype)
    floats = dtypes.is_float(dtypes.from_numpy(rows.dtype))
    apart: Array = np.zeros(len(rows), bool)
    if floats and not attrs.nan_equal:
        apart = np.asarray(np.isnan(rows).any(axis=1))
    order, first = group_rows(order_keys(rows), apart)
    group = np.cumsum(first) - 1
    begins = order[first]
    counts = np.diff(np.append(np.flatnonzero(first), len(order)))
    if not attrs.sorted:
        appearance = np.argsort(begins, kind="stable")
        begins, counts = begins[appearance], counts[appearance]
        group = np.argsort(appearance, kind="stable")[group]
    inverse = np.empty(len(order), np.int64)
    inverse[order] = group
    values = np.take(data, begins, axis=at)
    return values, begins.astype(np.int64), inverse, counts.astype(np.int64)


def _samples(draw: Draw) -> Sample:
    x = array(draw, shape(draw, 1, 3, 1, 4), choice(draw, ("float32", "int32", "int8")), -1, 1)
    attrs = {
        "axis": axis(draw, x.ndim) if flag(draw) else None,
        "sorted": flag(draw),
        "nan_equal": flag(draw),
    }
    return Sample((x.round(),), attrs)


define(
    "unique_slices",
    attrs=UniqueSlicesAttrs,
    inputs=("data",),
    pattern=OpPattern.OPAQUE,
    level=10,
    infer=_infer,
    reference=_reference,
    compare=Exact(),
    samples=_samples,
    num_outputs=4,
    FScheduled=numbered,
    FResultBound=lambda args: _shapes(args, None),
    doc="Distinct slices, where each first occurs, which one each slice is, and how often.",
)


def unique_slices(
    data: Expr, axis: int | None = None, sorted: bool = True, nan_equal: bool = True
) -> TupleWrapper:
    made = call("unique_slices", data, axis=axis, sorted=sorted, nan_equal=nan_equal)
    return TupleWrapper(made, 4)
