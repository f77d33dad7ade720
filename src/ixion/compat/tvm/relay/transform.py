"""``tvm.relay.transform``: Relay's passes under their names."""

from __future__ import annotations

from typing import Any

from ixion.compat.tvm.relay.infer_type import InferType
from ixion.compat.tvm.relay.parser import parse
from ixion.ir import Expr, IRModule, Type
from ixion.transform import (
    FunctionPass,
    ModulePass,
    Pass,
    PassContext,
    PassInfo,
    Sequential,
    function_pass,
    infer_expr,
    module_pass,
)


def AnnotateSpans() -> Pass:
    """A pass that prints the module and parses it back, so that everything has a span."""

    def annotate(module: IRModule, context: PassContext) -> IRModule:
        return parse(module.astext(), "GeneratedSource")

    made: Pass = module_pass(annotate, opt_level=0, name="AnnotateSpans")
    return made


def InferTypeLocal(expr: Expr) -> Type:
    """The type of an expression, also written into it."""
    found: Type = infer_expr(expr).checked_type
    expr._set_checked_type(found)
    return found


def __getattr__(name: str) -> Any:
    import ixion.transform

    return getattr(ixion.transform, name)


__all__ = [
    "AnnotateSpans",
    "FunctionPass",
    "InferType",
    "InferTypeLocal",
    "ModulePass",
    "Pass",
    "PassContext",
    "PassInfo",
    "Sequential",
    "function_pass",
    "module_pass",
]
