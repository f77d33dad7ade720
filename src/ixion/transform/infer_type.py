"""InferType: check a module and write every expression's type into it."""

from __future__ import annotations

from dataclasses import dataclass

from ixion.ir import (
    Expr,
    Function,
    FuncType,
    GlobalVar,
    IRModule,
    Type,
    rewrite,
    structural_equal,
)
from ixion.transform.context import PassContext
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import ModulePass, replace_functions
from ixion.transform.registry import register_pass
from ixion.transform.type_inferencer import TypeInferencer, written_type
from ixion.transform.type_writer import TypeWriter, write_type

_forget_type = vars(Expr)["_checked_type"].__delete__

__all__ = ["InferType", "expr_type", "infer_expr"]


@register_pass("InferType")
@dataclass(frozen=True)
class InferType(ModulePass):
    """Relay's type inference; raises TypeInferenceError naming the place and both types.

    Only expressions without a type are visited: after a pass that rewrote a few nodes this costs
    those few. Functions are made anew where a result type or annotation was missing.
    """

    info = PassInfo(0, "InferType")

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        resigned = _resigned(mod)
        if resigned:
            mod = replace_functions(mod, _without_stale_calls(mod, resigned))
        todo = {
            var: func
            for var, func in mod.functions.items()
            if isinstance(func, Function) and written_type(func) is None
        }
        return _typed(mod, todo) if todo else mod


def _typed(mod: IRModule, todo: dict[GlobalVar, Function]) -> IRModule:
    inferencer = TypeInferencer(mod)
    for var in todo:
        inferencer.infer_global(var)
    inferencer.solver.solve()
    writer = TypeWriter(inferencer)
    writer.write()
    updates: dict[GlobalVar, Function] = {}
    for var, func in todo.items():
        new = writer.result(func)
        write_type(var, new.checked_type)
        if new is not func:
            updates[var] = new
    return replace_functions(mod, updates)


def _resigned(mod: IRModule) -> set[GlobalVar]:
    """Functions replaced since their callers were typed, now perhaps of another type."""
    found = set()
    for var, func in mod.functions.items():
        if not isinstance(func, Function) or written_type(func) is not None:
            continue
        before = written_type(var)
        if before is not None and not _same_signature(func, before):
            _forget_type(var)
            found.add(var)
    return found


def _same_signature(func: Function, before: Type) -> bool:
    params = [param.type_annotation for param in func.params]
    if func.ret_type is None or any(annotation is None for annotation in params):
        return False
    return structural_equal(FuncType(params, func.ret_type, func.type_params), before)


def _without_stale_calls(mod: IRModule, changed: set[GlobalVar]) -> dict[GlobalVar, Function]:
    """The functions that mention changed ones, with everything above a mention made anew."""

    def anew(old: Expr, new: Expr) -> Expr:
        if new is not old or not any(part in changed for part in _global_parts(new)):
            return new
        return new._from_fields(dict(new.field_items()))

    updates = {}
    for var, func in mod.functions.items():
        if isinstance(func, Function):
            updated = rewrite(func, anew)
            if isinstance(updated, Function) and updated is not func:
                updates[var] = updated
    return updates


def _global_parts(expr: Expr) -> list[Expr]:
    """Global variables directly below ``expr``."""
    parts: list[Expr] = []
    for _, value in expr.field_items():
        values = value if isinstance(value, tuple) else (value,)
        parts.extend(each for each in values if isinstance(each, GlobalVar))
    return parts


def infer_expr(expr: Expr, mod: IRModule | None = None) -> Expr:
    """``expr`` type checked on its own; made anew only where an annotation was missing.

    ``mod`` has the functions and data types it mentions. Raises TypeInferenceError.
    """
    if written_type(expr) is not None:
        return expr
    inferencer = TypeInferencer(mod if mod is not None else IRModule())
    inferencer.infer(expr)
    writer = TypeWriter(inferencer)
    writer.write()
    result: Expr = writer.result(expr)
    return result


def expr_type(expr: Expr, mod: IRModule | None = None) -> Type:
    """The type of ``expr``, written into it and what is below it where no annotation is missing."""
    return infer_expr(expr, mod).checked_type
