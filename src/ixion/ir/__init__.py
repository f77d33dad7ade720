"""The intermediate representation: what a program is.

Every public name can be imported from here; its file is loaded on first use.
"""

from __future__ import annotations

import importlib
import typing
from typing import TYPE_CHECKING

_FILES: dict[str, str] = {
    "node": "NODE_TYPES Field Node field make_node node_type plain_repr register_node",
    "containers": "Map MissingKeyError as_value",
    "attrs": "REQUIRED Attrs DictAttrs FieldInfo attr register_attrs",
    "env": "GLOBAL_FUNCS EnvFunc get_global_func register_func",
    "types": (
        "FuncType GlobalTypeVar IncompleteType PointerType PrimType RefType RelayRefType ShapeVar "
        "TensorAffineType TensorType TupleAffineType TupleType Type TypeCall TypeConstraint "
        "TypeKind TypeRelation TypeVar is_dynamic scalar_type"
    ),
    "expr": (
        "Call Constant Expr ExprWithOp GlobalVar Id If Let RefCreate RefRead RefWrite RelayExpr "
        "TempExpr Tuple TupleGetItem TupleWrapper Var as_expr bind const var"
    ),
    "function": (
        "BaseFunc CallWithFields ConstantWithFields Function FunctionWithFields IfWithFields "
        "LetWithFields RefCreateWithFields RefReadWithFields RefWriteWithFields "
        "TupleGetItemWithFields TupleWithFields VarWithFields"
    ),
    "adt": (
        "Clause Constructor Match Pattern PatternConstructor PatternTuple PatternVar "
        "PatternWildcard TypeData pattern_vars"
    ),
    "module": "IRModule",
    "op": "OP_TABLE Op OpGroup get_attr_map list_op_names register_op",
    "visitor": "children let_chain post_order post_order_visit rebuilt rewrite",
    "functor": "ExprFunctor ExprMutator ExprVisitor",
    "type_functor": "TypeFunctor TypeMutator TypeVisitor",
    "variables": (
        "all_type_vars all_vars bind_vars bound_type_vars bound_vars free_type_vars free_vars "
        "substitute"
    ),
    "equal": "assert_structural_equal get_first_structural_mismatch structural_equal",
    "object_path": "ObjectPath ObjectPathPair",
    "hash": "structural_hash",
    "json": "from_graph load_json save_json to_graph",
    "builder": "ScopeBuilder",
    "printer": "MetaTable astext pretty_print",
    "parser": "fromtext parse parse_expr",
    "diagnostics": "Diagnostic DiagnosticContext DiagnosticLevel DiagnosticRenderer",
}
_HOME = {name: file for file, names in _FILES.items() for name in names.split()}
_ELSEWHERE = {
    "Any": ("ixion.base.dim", "Any"),
    "SymVar": ("ixion.base.dim", "SymVar"),
    "Span": ("ixion.base.span", "Span"),
    "SourceName": ("ixion.base.span", "SourceName"),
    "SequentialSpan": ("ixion.base.span", "SequentialSpan"),
}


def __getattr__(name: str) -> typing.Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"ixion.ir.{_HOME[name]}"), name)
    elif name in _ELSEWHERE:
        file, inner = _ELSEWHERE[name]
        value = getattr(importlib.import_module(file), inner)
    else:
        raise AttributeError(f"module 'ixion.ir' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_ELSEWHERE})


if TYPE_CHECKING:
    from ixion.base.dim import (
        Any as Any,
    )
    from ixion.base.dim import (
        SymVar as SymVar,
    )
    from ixion.base.span import (
        SequentialSpan as SequentialSpan,
    )
    from ixion.base.span import (
        SourceName as SourceName,
    )
    from ixion.base.span import (
        Span as Span,
    )
    from ixion.ir.adt import (
        Clause as Clause,
    )
    from ixion.ir.adt import (
        Constructor as Constructor,
    )
    from ixion.ir.adt import (
        Match as Match,
    )
    from ixion.ir.adt import (
        Pattern as Pattern,
    )
    from ixion.ir.adt import (
        PatternConstructor as PatternConstructor,
    )
    from ixion.ir.adt import (
        PatternTuple as PatternTuple,
    )
    from ixion.ir.adt import (
        PatternVar as PatternVar,
    )
    from ixion.ir.adt import (
        PatternWildcard as PatternWildcard,
    )
    from ixion.ir.adt import (
        TypeData as TypeData,
    )
    from ixion.ir.adt import (
        pattern_vars as pattern_vars,
    )
    from ixion.ir.attrs import (
        REQUIRED as REQUIRED,
    )
    from ixion.ir.attrs import (
        Attrs as Attrs,
    )
    from ixion.ir.attrs import (
        DictAttrs as DictAttrs,
    )
    from ixion.ir.attrs import (
        FieldInfo as FieldInfo,
    )
    from ixion.ir.attrs import (
        attr as attr,
    )
    from ixion.ir.attrs import (
        register_attrs as register_attrs,
    )
    from ixion.ir.builder import (
        ScopeBuilder as ScopeBuilder,
    )
    from ixion.ir.containers import (
        Map as Map,
    )
    from ixion.ir.containers import (
        MissingKeyError as MissingKeyError,
    )
    from ixion.ir.containers import (
        as_value as as_value,
    )
    from ixion.ir.diagnostics import (
        Diagnostic as Diagnostic,
    )
    from ixion.ir.diagnostics import (
        DiagnosticContext as DiagnosticContext,
    )
    from ixion.ir.diagnostics import (
        DiagnosticLevel as DiagnosticLevel,
    )
    from ixion.ir.diagnostics import (
        DiagnosticRenderer as DiagnosticRenderer,
    )
    from ixion.ir.env import (
        GLOBAL_FUNCS as GLOBAL_FUNCS,
    )
    from ixion.ir.env import (
        EnvFunc as EnvFunc,
    )
    from ixion.ir.env import (
        get_global_func as get_global_func,
    )
    from ixion.ir.env import (
        register_func as register_func,
    )
    from ixion.ir.equal import (
        assert_structural_equal as assert_structural_equal,
    )
    from ixion.ir.equal import (
        get_first_structural_mismatch as get_first_structural_mismatch,
    )
    from ixion.ir.equal import (
        structural_equal as structural_equal,
    )
    from ixion.ir.expr import (
        Call as Call,
    )
    from ixion.ir.expr import (
        Constant as Constant,
    )
    from ixion.ir.expr import (
        Expr as Expr,
    )
    from ixion.ir.expr import (
        ExprWithOp as ExprWithOp,
    )
    from ixion.ir.expr import (
        GlobalVar as GlobalVar,
    )
    from ixion.ir.expr import (
        Id as Id,
    )
    from ixion.ir.expr import (
        If as If,
    )
    from ixion.ir.expr import (
        Let as Let,
    )
    from ixion.ir.expr import (
        RefCreate as RefCreate,
    )
    from ixion.ir.expr import (
        RefRead as RefRead,
    )
    from ixion.ir.expr import (
        RefWrite as RefWrite,
    )
    from ixion.ir.expr import (
        RelayExpr as RelayExpr,
    )
    from ixion.ir.expr import (
        TempExpr as TempExpr,
    )
    from ixion.ir.expr import (
        Tuple as Tuple,
    )
    from ixion.ir.expr import (
        TupleGetItem as TupleGetItem,
    )
    from ixion.ir.expr import (
        TupleWrapper as TupleWrapper,
    )
    from ixion.ir.expr import (
        Var as Var,
    )
    from ixion.ir.expr import (
        as_expr as as_expr,
    )
    from ixion.ir.expr import (
        bind as bind,
    )
    from ixion.ir.expr import (
        const as const,
    )
    from ixion.ir.expr import (
        var as var,
    )
    from ixion.ir.function import (
        BaseFunc as BaseFunc,
    )
    from ixion.ir.function import (
        CallWithFields as CallWithFields,
    )
    from ixion.ir.function import (
        ConstantWithFields as ConstantWithFields,
    )
    from ixion.ir.function import (
        Function as Function,
    )
    from ixion.ir.function import (
        FunctionWithFields as FunctionWithFields,
    )
    from ixion.ir.function import (
        IfWithFields as IfWithFields,
    )
    from ixion.ir.function import (
        LetWithFields as LetWithFields,
    )
    from ixion.ir.function import (
        RefCreateWithFields as RefCreateWithFields,
    )
    from ixion.ir.function import (
        RefReadWithFields as RefReadWithFields,
    )
    from ixion.ir.function import (
        RefWriteWithFields as RefWriteWithFields,
    )
    from ixion.ir.function import (
        TupleGetItemWithFields as TupleGetItemWithFields,
    )
    from ixion.ir.function import (
        TupleWithFields as TupleWithFields,
    )
    from ixion.ir.function import (
        VarWithFields as VarWithFields,
    )
    from ixion.ir.functor import (
        ExprFunctor as ExprFunctor,
    )
    from ixion.ir.functor import (
        ExprMutator as ExprMutator,
    )
    from ixion.ir.functor import (
        ExprVisitor as ExprVisitor,
    )
    from ixion.ir.hash import (
        structural_hash as structural_hash,
    )
    from ixion.ir.json import (
        from_graph as from_graph,
    )
    from ixion.ir.json import (
        load_json as load_json,
    )
    from ixion.ir.json import (
        save_json as save_json,
    )
    from ixion.ir.json import (
        to_graph as to_graph,
    )
    from ixion.ir.module import (
        IRModule as IRModule,
    )
    from ixion.ir.node import (
        NODE_TYPES as NODE_TYPES,
    )
    from ixion.ir.node import (
        Field as Field,
    )
    from ixion.ir.node import (
        Node as Node,
    )
    from ixion.ir.node import (
        field as field,
    )
    from ixion.ir.node import (
        make_node as make_node,
    )
    from ixion.ir.node import (
        node_type as node_type,
    )
    from ixion.ir.node import (
        plain_repr as plain_repr,
    )
    from ixion.ir.node import (
        register_node as register_node,
    )
    from ixion.ir.object_path import (
        ObjectPath as ObjectPath,
    )
    from ixion.ir.object_path import (
        ObjectPathPair as ObjectPathPair,
    )
    from ixion.ir.op import (
        OP_TABLE as OP_TABLE,
    )
    from ixion.ir.op import (
        Op as Op,
    )
    from ixion.ir.op import (
        OpGroup as OpGroup,
    )
    from ixion.ir.op import (
        get_attr_map as get_attr_map,
    )
    from ixion.ir.op import (
        list_op_names as list_op_names,
    )
    from ixion.ir.op import (
        register_op as register_op,
    )
    from ixion.ir.parser import (
        fromtext as fromtext,
    )
    from ixion.ir.parser import (
        parse as parse,
    )
    from ixion.ir.parser import (
        parse_expr as parse_expr,
    )
    from ixion.ir.printer import (
        astext as astext,
    )
    from ixion.ir.printer import (
        pretty_print as pretty_print,
    )
    from ixion.ir.type_functor import (
        TypeFunctor as TypeFunctor,
    )
    from ixion.ir.type_functor import (
        TypeMutator as TypeMutator,
    )
    from ixion.ir.type_functor import (
        TypeVisitor as TypeVisitor,
    )
    from ixion.ir.types import (
        FuncType as FuncType,
    )
    from ixion.ir.types import (
        GlobalTypeVar as GlobalTypeVar,
    )
    from ixion.ir.types import (
        IncompleteType as IncompleteType,
    )
    from ixion.ir.types import (
        PointerType as PointerType,
    )
    from ixion.ir.types import (
        PrimType as PrimType,
    )
    from ixion.ir.types import (
        RefType as RefType,
    )
    from ixion.ir.types import (
        RelayRefType as RelayRefType,
    )
    from ixion.ir.types import (
        ShapeVar as ShapeVar,
    )
    from ixion.ir.types import (
        TensorAffineType as TensorAffineType,
    )
    from ixion.ir.types import (
        TensorType as TensorType,
    )
    from ixion.ir.types import (
        TupleAffineType as TupleAffineType,
    )
    from ixion.ir.types import (
        TupleType as TupleType,
    )
    from ixion.ir.types import (
        Type as Type,
    )
    from ixion.ir.types import (
        TypeCall as TypeCall,
    )
    from ixion.ir.types import (
        TypeConstraint as TypeConstraint,
    )
    from ixion.ir.types import (
        TypeKind as TypeKind,
    )
    from ixion.ir.types import (
        TypeRelation as TypeRelation,
    )
    from ixion.ir.types import (
        TypeVar as TypeVar,
    )
    from ixion.ir.types import (
        is_dynamic as is_dynamic,
    )
    from ixion.ir.types import (
        scalar_type as scalar_type,
    )
    from ixion.ir.variables import (
        all_type_vars as all_type_vars,
    )
    from ixion.ir.variables import (
        all_vars as all_vars,
    )
    from ixion.ir.variables import (
        bind_vars as bind_vars,
    )
    from ixion.ir.variables import (
        bound_type_vars as bound_type_vars,
    )
    from ixion.ir.variables import (
        bound_vars as bound_vars,
    )
    from ixion.ir.variables import (
        free_type_vars as free_type_vars,
    )
    from ixion.ir.variables import (
        free_vars as free_vars,
    )
    from ixion.ir.variables import (
        substitute as substitute,
    )
    from ixion.ir.visitor import (
        children as children,
    )
    from ixion.ir.visitor import (
        let_chain as let_chain,
    )
    from ixion.ir.visitor import (
        post_order as post_order,
    )
    from ixion.ir.visitor import (
        post_order_visit as post_order_visit,
    )
    from ixion.ir.visitor import (
        rebuilt as rebuilt,
    )
    from ixion.ir.visitor import (
        rewrite as rewrite,
    )
