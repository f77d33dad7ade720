"""Types for patterns that ask for them.

Type inference is a pass and passes stand above this room, so whoever loads them hands the function
in.
"""

from __future__ import annotations

from collections.abc import Callable

from ixion.base.errors import IxionError
from ixion.ir.expr import Expr
from ixion.ir.function import Function
from ixion.ir.module import IRModule
from ixion.ir.op import Op
from ixion.ir.types import Type
from ixion.ir.variables import free_type_vars, free_vars

Inference = Callable[[IRModule], IRModule]
_inference: Inference | None = None


def set_type_inference(infer: Inference | None) -> None:
    """Use ``infer(module) -> module`` wherever a pattern or a callback needs types."""
    global _inference
    _inference = infer


def _infer(module: IRModule) -> IRModule:
    if _inference is None:
        raise IxionError(
            "this pattern needs types and no type inference is loaded",
            hint="import ixion.transform, or run InferType on the expression first",
        )
    return _inference(module)


def type_of(expr: Expr) -> Type | None:
    """The type of an expression, inferred on the spot where it has none yet; None for an
    operator.
    """
    found = expr.checked_type_or_none
    if found is not None or isinstance(expr, Op):
        return found
    return with_types(expr, IRModule()).checked_type


def with_types(expr: Expr, module: IRModule) -> Expr:
    """``expr`` with types, as it stands beside the functions of ``module``."""
    names = {variable.name_hint for variable in module.functions}
    name = next(f"_tmp{i}" for i in range(len(names) + 1) if f"_tmp{i}" not in names)
    if isinstance(expr, Function):
        function = expr
    else:
        function = Function(free_vars(expr), expr, None, free_type_vars(expr, module))
    whole = module.clone()
    whole[name] = function
    typed: Function = _infer(whole)[name]
    return typed if isinstance(expr, Function) else typed.body


__all__ = ["set_type_inference", "type_of", "with_types"]
