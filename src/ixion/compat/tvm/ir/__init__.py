"""``tvm.ir``: nodes, types, modules, structural comparison and JSON."""

from __future__ import annotations

from ixion.base.span import SequentialSpan, SourceName, Span
from ixion.compat.tvm import transform
from ixion.compat.tvm._protocol import ItemMap
from ixion.compat.tvm.ir import attrs, base, container, diagnostics, expr, instrument, supply, type
from ixion.compat.tvm.ir.structural import (
    assert_structural_equal,
    get_first_structural_mismatch,
    structural_equal,
    structural_hash,
)
from ixion.compat.tvm.tir.expr import FloatImm, IntImm, PrimExpr
from ixion.ir import (
    Attrs,
    BaseFunc,
    Constructor,
    DictAttrs,
    EnvFunc,
    FuncType,
    GlobalTypeVar,
    GlobalVar,
    IncompleteType,
    IRModule,
    Map,
    Node,
    Op,
    PointerType,
    PrimType,
    RelayExpr,
    RelayRefType,
    TensorAffineType,
    TensorType,
    TupleAffineType,
    TupleType,
    Type,
    TypeCall,
    TypeConstraint,
    TypeData,
    TypeKind,
    TypeRelation,
    TypeVar,
    load_json,
    make_node,
    save_json,
)
from ixion.ir.op import register_op_attr

Array = container.Array

__all__ = [
    "Array", "Attrs", "BaseFunc", "Constructor", "DictAttrs", "EnvFunc", "FloatImm", "FuncType",
    "GlobalTypeVar", "GlobalVar", "IRModule", "IncompleteType", "IntImm", "ItemMap", "Map", "Node",
    "Op", "PointerType", "PrimExpr", "PrimType", "RelayExpr", "RelayRefType", "SequentialSpan",
    "SourceName", "Span", "TensorAffineType", "TensorType", "TupleAffineType", "TupleType", "Type",
    "TypeCall", "TypeConstraint", "TypeData", "TypeKind", "TypeRelation", "TypeVar",
    "assert_structural_equal", "attrs", "base", "container", "diagnostics", "expr",
    "get_first_structural_mismatch", "instrument", "load_json", "make_node", "register_op_attr",
    "save_json", "structural_equal", "structural_hash", "supply", "transform", "type",
]  # fmt: skip
