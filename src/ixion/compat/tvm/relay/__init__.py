"""``tvm.relay``: Relay's Python interface on Ixion's nodes, passes and operators."""

from __future__ import annotations

from typing import Any as _Any

from ixion.base.dim import Any
from ixion.base.span import SequentialSpan, SourceName, Span
from ixion.compat.tvm.relay import (
    adt,
    analysis,
    backend,
    base,
    build_module,
    dataflow_pattern,
    expr,
    expr_functor,
    function,
    loops,
    op,
    param_dict,
    parser,
    prelude,
    scope_builder,
    testing,
    transform,
    ty,
    type_functor,
    vm,
)
from ixion.compat.tvm.relay.build_module import create_executor
from ixion.compat.tvm.relay.op import image, nn, vision
from ixion.compat.tvm.relay.param_dict import load_param_dict, save_param_dict
from ixion.compat.tvm.relay.parser import SpanCheck, fromtext, parse, parse_expr
from ixion.compat.tvm.relay.prelude import Prelude
from ixion.ir import (
    Call,
    Clause,
    Constant,
    Constructor,
    Expr,
    ExprFunctor,
    ExprMutator,
    ExprVisitor,
    Function,
    FuncType,
    GlobalTypeVar,
    GlobalVar,
    If,
    IncompleteType,
    Let,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    RefCreate,
    RefRead,
    RefType,
    RefWrite,
    ScopeBuilder,
    ShapeVar,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    TypeCall,
    TypeConstraint,
    TypeData,
    TypeFunctor,
    TypeKind,
    TypeMutator,
    TypeRelation,
    TypeVar,
    TypeVisitor,
    Var,
    astext,
    bind,
    const,
    pretty_print,
    scalar_type,
    var,
)


def __getattr__(name: str) -> _Any:
    # The operators' functions stand at the top level too.
    return getattr(op, name)


__all__ = [
    "Any", "Call", "Clause", "Constant", "Constructor", "Expr", "ExprFunctor", "ExprMutator",
    "ExprVisitor", "FuncType", "Function", "GlobalTypeVar", "GlobalVar", "If", "IncompleteType",
    "Let", "Match", "Pattern", "PatternConstructor", "PatternTuple", "PatternVar",
    "PatternWildcard", "Prelude", "RefCreate", "RefRead", "RefType", "RefWrite", "ScopeBuilder",
    "SequentialSpan", "ShapeVar", "SourceName", "Span", "SpanCheck", "TensorType", "Tuple",
    "TupleGetItem", "TupleType", "Type", "TypeCall", "TypeConstraint", "TypeData", "TypeFunctor",
    "TypeKind", "TypeMutator", "TypeRelation", "TypeVar", "TypeVisitor", "Var", "adt", "analysis",
    "astext", "backend", "base", "bind", "build_module", "const", "create_executor",
    "dataflow_pattern", "expr", "expr_functor", "fromtext", "function", "image", "load_param_dict",
    "loops", "nn", "op", "param_dict", "parse", "parse_expr", "parser", "prelude", "pretty_print",
    "save_param_dict", "scalar_type", "scope_builder", "testing", "transform", "ty", "type_functor",
    "var", "vision", "vm",
]  # fmt: skip
