"""``tvm.relay.expr``."""

from __future__ import annotations

from ixion.compat.tvm.nd import NDArray
from ixion.ir import (
    Call,
    CallWithFields,
    Constant,
    ConstantWithFields,
    ExprWithOp,
    GlobalVar,
    If,
    IfWithFields,
    Let,
    LetWithFields,
    RefCreate,
    RefCreateWithFields,
    RefRead,
    RefReadWithFields,
    RefWrite,
    RefWriteWithFields,
    RelayExpr,
    TempExpr,
    Tuple,
    TupleGetItem,
    TupleGetItemWithFields,
    TupleWithFields,
    TupleWrapper,
    Var,
    VarWithFields,
    bind,
    const,
    var,
)

Expr = RelayExpr

__all__ = [
    "Call", "CallWithFields", "Constant", "ConstantWithFields", "Expr", "ExprWithOp", "GlobalVar",
    "If", "IfWithFields", "Let", "LetWithFields", "NDArray", "RefCreate", "RefCreateWithFields",
    "RefRead", "RefReadWithFields", "RefWrite", "RefWriteWithFields", "RelayExpr", "TempExpr",
    "Tuple", "TupleGetItem", "TupleGetItemWithFields", "TupleWithFields", "TupleWrapper", "Var",
    "VarWithFields", "bind", "const", "var",
]  # fmt: skip
