"""``tvm.tir``: what of the loop level appears in Relay programs: dimensions and scalars."""

from __future__ import annotations

from ixion.compat.tvm.tir import expr
from ixion.compat.tvm.tir.expr import (
    Any,
    FloatImm,
    IntImm,
    PrimExpr,
    SizeVar,
    StringImm,
    Var,
    const,
)
from ixion.compat.tvm.tir.layout import BijectiveLayout, bijective_layout

__all__ = [
    "Any",
    "BijectiveLayout",
    "FloatImm",
    "IntImm",
    "PrimExpr",
    "SizeVar",
    "StringImm",
    "Var",
    "bijective_layout",
    "const",
    "expr",
]
