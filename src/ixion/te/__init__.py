"""Tensor expressions and loop nests, and their evaluation in numpy."""

from ixion.te.expr import (
    Expr,
    Var,
    binary,
    cast,
    compare,
    intrinsic,
    logical_and,
    logical_or,
    maximum,
    minimum,
    select,
)
from ixion.te.tensor import (
    ReduceAxis,
    Tensor,
    compute,
    const,
    max,
    min,
    placeholder,
    reduce,
    reduce_axis,
    sum,
)

__all__ = [
    "Expr", "ReduceAxis", "Tensor", "Var", "binary", "cast", "compare", "compute", "const",
    "intrinsic", "logical_and", "logical_or", "max", "maximum", "min", "minimum", "placeholder",
    "reduce", "reduce_axis", "select", "sum",
]  # fmt: skip
