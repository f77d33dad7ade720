"""``tvm.relay.ty``."""

from __future__ import annotations

from ixion.base.dim import Any
from ixion.ir import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    ShapeVar,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeConstraint,
    TypeKind,
    TypeRelation,
    TypeVar,
    is_dynamic,
    scalar_type,
)

__all__ = [
    "Any", "FuncType", "GlobalTypeVar", "IncompleteType", "RefType", "ShapeVar", "TensorType",
    "TupleType", "Type", "TypeCall", "TypeConstraint", "TypeKind", "TypeRelation", "TypeVar",
    "is_dynamic", "scalar_type",
]  # fmt: skip
