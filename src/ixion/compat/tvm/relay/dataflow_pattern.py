"""``tvm.relay.dataflow_pattern``."""

from __future__ import annotations

from ixion.ir.pattern import (
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
    dominates,
    has_attr,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    match,
    wildcard,
)
from ixion.ir.pattern_rewrite import DFPatternCallback, partition, rewrite

__all__ = [
    "AltPattern", "AttrPattern", "CallPattern", "ConstantPattern", "DFPattern", "DFPatternCallback",
    "DataTypePattern", "DominatorPattern", "ExprPattern", "FunctionPattern", "IfPattern",
    "LetPattern", "ShapePattern", "TupleGetItemPattern", "TuplePattern", "TypePattern",
    "VarPattern", "WildcardPattern", "dominates", "has_attr", "has_dtype", "has_shape", "has_type",
    "is_constant", "is_expr", "is_if", "is_let", "is_op", "is_tuple", "is_tuple_get_item",
    "is_var", "match", "partition", "rewrite", "wildcard",
]  # fmt: skip
