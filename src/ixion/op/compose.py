"""Relay functions that build several calls: std, mean_variance, mean_std, logsumexp."""

from __future__ import annotations

from typing import Any

from ixion.ir.expr import Call, Expr, Tuple, TupleWrapper
from ixion.op import reduce
from ixion.op.binary import add, subtract
from ixion.op.shape import squeeze
from ixion.op.unary import exp, log, sqrt


def std(
    data: Expr,
    axis: Any = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
) -> Call:
    """Square root of the variance."""
    return sqrt(reduce.variance(data, axis, keepdims, exclude, unbiased))


def mean_variance(
    data: Expr,
    axis: Any = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
) -> TupleWrapper:
    """Mean and variance, the mean computed once."""
    centre = reduce.mean(data, axis, True, exclude)
    spread = reduce.variance(data, axis, keepdims, exclude, unbiased, with_mean=centre)
    shown = centre if keepdims else squeeze(centre, axis)
    return TupleWrapper(Tuple((shown, spread)), 2)


def mean_std(
    data: Expr, axis: Any = None, keepdims: bool = False, exclude: bool = False
) -> TupleWrapper:
    """Mean and standard deviation, the mean computed once."""
    mean, spread = mean_variance(data, axis, keepdims, exclude).tuple_value.fields  # type: ignore[attr-defined]
    return TupleWrapper(Tuple((mean, sqrt(spread))), 2)


def logsumexp(data: Expr, axis: Any = None, keepdims: bool = False) -> Call:
    """log(sum(exp(data))), shifted by the maximum so that nothing overflows."""
    top = reduce.max(data, axis, True)
    total = reduce.sum(exp(subtract(data, top)), axis, True)
    out = add(log(total), top)
    return out if keepdims else squeeze(out, axis)
