"""RemoveUnusedFunctions: drop globals that no entry function reaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ixion.ir import Function, GlobalVar, IRModule, post_order_visit
from ixion.transform.context import PassContext
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import ModulePass
from ixion.transform.registry import register_pass

__all__ = ["RemoveUnusedFunctions", "called_globals"]


@register_pass("RemoveUnusedFunctions")
@dataclass(frozen=True)
class RemoveUnusedFunctions(ModulePass):
    """Keeps the entry functions and all they mention, directly or not."""

    entry_functions: Sequence[str] = ("main",)
    info = PassInfo(1, "RemoveUnusedFunctions")

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        pending = [name for name in self.entry_functions if name in mod]
        reached = set(pending)
        while pending:
            func = mod[pending.pop()]
            for name in called_globals(func) if isinstance(func, Function) else ():
                if name not in reached and name in mod:
                    reached.add(name)
                    pending.append(name)
        unused = [var for var in mod.functions if var.name_hint not in reached]
        if not unused:
            return mod
        result = mod.clone()
        for var in unused:
            del result[var]
        return result


def called_globals(func: Function) -> list[str]:
    """Names of the global functions that ``func`` mentions, in order of first mention."""
    found: dict[str, None] = {}

    def visit(expr: object) -> None:
        if isinstance(expr, GlobalVar):
            found.setdefault(expr.name_hint)

    post_order_visit(func, visit)
    return list(found)
