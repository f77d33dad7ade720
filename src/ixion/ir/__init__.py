"""The intermediate representation: what a program is.

Every public name can be imported from here; its file is loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_FILES: dict[str, str] = {
    "node": "NODE_TYPES Field Node field make_node node_type plain_repr register_node",
    "containers": "Map MissingKeyError as_value",
    "attrs": "REQUIRED Attrs DictAttrs FieldInfo attr register_attrs",
    "env": "GLOBAL_FUNCS EnvFunc get_global_func register_func",
    "types": (
        "FuncType GlobalTypeVar IncompleteType PointerType PrimType RefType RelayRefType ShapeVar "
        "TensorAffineType TensorType TupleAffineType TupleType Type TypeCall TypeConstraint TypeKind "
        "TypeRelation TypeVar is_dynamic scalar_type"
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
        "Clause Constructor Match Pattern PatternConstructor PatternTuple PatternVar PatternWildcard "
        "TypeData pattern_vars"
    ),
    "module": "IRModule",
    "op": "OP_TABLE Op OpGroup get_attr_map list_op_names register_op",
    "visitor": "post_order_visit rewrite rewrite_with_scopes children",
    "functor": "ExprFunctor ExprMutator ExprVisitor TypeFunctor TypeMutator TypeVisitor",
    "variables": (
        "all_type_vars all_vars bind_vars bound_type_vars bound_vars free_type_vars free_vars"
    ),
    "equal": "assert_structural_equal get_first_structural_mismatch structural_equal",
    "object_path": "ObjectPath ObjectPathPair",
    "hash": "structural_hash",
    "json": "from_graph load_json save_json to_graph",
    "builder": "ScopeBuilder",
    "printer": "astext pretty_print",
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


def __getattr__(name: str) -> Any:
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
    from ixion.base.dim import Any as Any
    from ixion.base.dim import SymVar as SymVar
