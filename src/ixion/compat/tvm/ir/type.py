"""``tvm.ir.type``."""

from __future__ import annotations

from ixion.ir import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    PointerType,
    PrimType,
    RelayRefType,
    TupleType,
    Type,
    TypeConstraint,
    TypeKind,
    TypeVar,
)

__all__ = [
    "FuncType", "GlobalTypeVar", "IncompleteType", "PointerType", "PrimType", "RelayRefType",
    "TupleType", "Type", "TypeConstraint", "TypeKind", "TypeVar",
]  # fmt: skip
