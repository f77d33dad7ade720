"""DeadCodeElimination: drop let bindings nobody needs."""

from __future__ import annotations

from dataclasses import dataclass

from ixion.analysis.purity import PurityAnalysis
from ixion.ir import Expr, Function, IRModule, Let, Op, Var, rewrite
from ixion.ir.visitor import children, post_order
from ixion.transform.context import PassContext
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import ModulePass, replace_functions
from ixion.transform.registry import register_pass

__all__ = ["DeadCodeElimination"]


@register_pass("DeadCodeElimination")
@dataclass(frozen=True)
class DeadCodeElimination(ModulePass):
    """Removes let bindings of pure values that are not used, directly or only by each other.

    ``inline_once`` also moves a pure value that is used once to its use, unless that is inside a
    function. ``ignore_impurity`` treats everything as pure.
    """

    inline_once: bool = False
    ignore_impurity: bool = False
    info = PassInfo(1, "DeadCodeElimination", ["InferType"])

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        todo = {
            var: func
            for var, func in mod.functions.items()
            if isinstance(func, Function) and any(type(n) is Let for n in post_order(func))
        }
        if not todo:
            return mod
        purity = None if self.ignore_impurity else PurityAnalysis(mod)
        updates = {}
        for var, func in todo.items():
            new = _Eliminator(_Usage(func, purity), self.inline_once).run(func)
            if new is not func:
                updates[var] = new
        return replace_functions(mod, updates)


class _Usage:
    """How often each let variable is used, counting two as many.

    The value of a pure binding is looked at only once its variable is used, so that bindings used
    only by dead ones are dead too. A use inside a function counts twice: it may be called twice.
    """

    def __init__(self, root: Expr, purity: PurityAnalysis | None) -> None:
        self.values: dict[Var, Expr] = {}
        self.uses: dict[Var, int] = {}
        self._purity = purity
        self._levels: dict[Var, int] = {}
        self._visits: dict[Expr, int] = {}
        self._stack: list[tuple[Expr, int]] = [(root, 0)]
        while self._stack:
            self._visit(*self._stack.pop())

    def is_pure(self, var: Var) -> bool:
        return self._purity is None or self._purity.is_pure(var)

    def _visit(self, expr: Expr, level: int) -> None:
        visits = self._visits[expr] = self._visits.get(expr, 0) + 1
        if visits > 2 or type(expr) is Op:
            return
        if isinstance(expr, Let):
            self._let(expr, level)
        elif isinstance(expr, Var):
            self._var(expr, level)
        else:
            level += type(expr) is Function
            self._stack.extend((part, level) for part in reversed(children(expr)))

    def _let(self, let: Let, level: int) -> None:
        var = let.var
        self.values[var] = let.value
        # A let inside a shared expression is met twice, its uses perhaps only before that.
        self.uses.setdefault(var, 0)
        self._levels[var] = level
        self._stack.append((let.body, level))
        if not self.is_pure(var):
            self._stack.append((let.value, level))

    def _var(self, var: Var, level: int) -> None:
        if var not in self.values:
            return
        self.uses[var] += 1
        if self.uses[var] == 1 and self.is_pure(var):
            self._stack.append((self.values[var], level))
        if self._levels[var] < level:
            self.uses[var] += 1


class _Eliminator:
    def __init__(self, usage: _Usage, inline_once: bool) -> None:
        self._dead: set[Var] = set()
        self._inlined: dict[Expr, list[Var]] = {}
        self._done: dict[Expr, Expr] = {}
        for var, value in usage.values.items():
            if not usage.is_pure(var):
                continue
            if usage.uses[var] == 0:
                self._dead.add(var)
            elif usage.uses[var] == 1 and inline_once:
                self._inlined.setdefault(value, []).append(var)
                self._dead.add(var)

    def run(self, func: Function) -> Function:
        return rewrite(func, self._visit, self._done)  # type: ignore[return-value]

    def _visit(self, old: Expr, new: Expr) -> Expr:
        if isinstance(old, Let) and old.var in self._dead:
            new = self._done[old.body]
        # A let's body is visited after its value.
        for var in self._inlined.get(old, ()):
            self._done[var] = new
        return new
