"""InlineGlobals: put the bodies of functions marked Inline in place of calls to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ixion.ir import (
    Call,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    bind_vars,
    rewrite,
)
from ixion.transform.context import PassContext
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import ModulePass
from ixion.transform.registry import register_pass
from ixion.transform.remove_unused_functions import called_globals

__all__ = ["InlineGlobals"]


@register_pass("InlineGlobals")
@dataclass(frozen=True)
class InlineGlobals(ModulePass):
    """Inlines functions with the attribute ``Inline``, callees first, and drops them.

    Left alone are recursive functions, those that call one that cannot be inlined, and functions
    nobody calls. A function for an external compiler is inlined as a function, not as its body.
    """

    info = PassInfo(1, "InlineGlobals")

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        graph = _CallGraph(mod)
        result = mod.clone()
        for name in graph.callees_first():
            func = result[name]
            chosen = {callee for callee in graph.calls[name] if graph.can_inline(callee)}
            if chosen and isinstance(func, Function):
                result.update_func(result.get_global_var(name), _inlined(func, result, chosen))
        for name in graph.calls:
            if graph.is_called(name) and graph.can_inline(name):
                del result[name]
        same = all(result.functions.get(var) is func for var, func in mod.functions.items())
        return mod if same else result


class _CallGraph:
    def __init__(self, mod: IRModule) -> None:
        self._mod = mod
        self.calls: dict[str, list[str]] = {}
        for var, func in mod.functions_items():
            names = called_globals(func) if isinstance(func, Function) else []
            self.calls[var.name_hint] = [name for name in names if name in mod]
        self._order = list(self._postorder())
        self._inlinable: set[str] = set()
        self._recursive = {name for name in self.calls if self._reaches(name, name)}
        for name in self._order:
            if self._qualifies(name):
                self._inlinable.add(name)

    def callees_first(self) -> list[str]:
        return self._order

    def can_inline(self, name: str) -> bool:
        return name in self._inlinable

    def is_called(self, name: str) -> bool:
        return any(name in callees for callees in self.calls.values())

    def _qualifies(self, name: str) -> bool:
        func = self._mod[name]
        if name in self._recursive or not isinstance(func, Function) or func.attrs is None:
            return False
        marked = bool(func.attrs.get("Inline", 0))
        return marked and all(callee in self._inlinable for callee in self.calls[name])

    def _postorder(self) -> Iterator[str]:
        seen: set[str] = set()
        for root in self.calls:
            stack = [(root, False)]
            while stack:
                name, done = stack.pop()
                if done:
                    yield name
                elif name not in seen:
                    seen.add(name)
                    stack.append((name, True))
                    stack.extend((callee, False) for callee in reversed(self.calls[name]))

    def _reaches(self, start: str, goal: str) -> bool:
        pending, seen = list(self.calls[start]), set()
        while pending:
            name = pending.pop()
            if name == goal:
                return True
            if name not in seen:
                seen.add(name)
                pending.extend(self.calls[name])
        return False


def _inlined(func: Function, mod: IRModule, chosen: set[str]) -> Function:
    def visit(old: Expr, new: Expr) -> Expr:
        if isinstance(new, Call) and _names(new.op, chosen):
            return _call_site(new, mod[new.op.name_hint])  # type: ignore[attr-defined]
        return new

    def value(old: Expr, new: Expr) -> Expr:
        return mod[new.name_hint] if _names(new, chosen) else new  # type: ignore[attr-defined]

    # Calls first: what is left of the names stands for function values.
    return rewrite(rewrite(func, visit), value)  # type: ignore[return-value]


def _names(expr: Expr, chosen: set[str]) -> bool:
    return isinstance(expr, GlobalVar) and expr.name_hint in chosen


def _call_site(call: Call, callee: Function) -> Expr:
    attrs = callee.attrs
    external = attrs is not None and ("Compiler" in attrs or bool(attrs.get("Extern", 0)))
    if external or callee.type_params:
        return call.copy(op=callee)
    return bind_vars(callee.body, dict(zip(callee.params, call.args, strict=True)))
