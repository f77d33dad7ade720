"""ToANormalForm and ToBasicBlockNormalForm: implicit sharing becomes let bindings."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

from ixion.analysis.dependency_scopes import DependencyScopes
from ixion.ir import (
    Call,
    Clause,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    Op,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from ixion.ir.trampoline import run
from ixion.ir.visitor import post_order
from ixion.transform.context import PassContext
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import ModulePass, replace_functions
from ixion.transform.registry import register_pass

__all__ = ["ToANormalForm", "ToBasicBlockNormalForm", "a_normal_form"]

Step = Generator[Any, Any, Expr]


@register_pass("ToANormalForm")
@dataclass(frozen=True)
class ToANormalForm(ModulePass):
    """Binds every operand by a let, in the innermost scope around all its uses.

    The result is a sequence of single operations on variables, which fixes evaluation order.
    """

    info = PassInfo(1, "ToANormalForm")

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return _normalised(mod, bind_all=True)


@register_pass("ToBasicBlockNormalForm")
@dataclass(frozen=True)
class ToBasicBlockNormalForm(ModulePass):
    """Binds by a let only what is shared between scopes (branches, closures, clauses)."""

    info = PassInfo(1, "ToBasicBlockNormalForm")

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return _normalised(mod, bind_all=False)


def _normalised(mod: IRModule, bind_all: bool) -> IRModule:
    updates = {}
    for var, func in mod.functions.items():
        if isinstance(func, Function) and (func.attrs is None or "Compiler" not in func.attrs):
            new = _bound(func, bind_all)
            if new is not func:
                updates[var] = new
    return replace_functions(mod, updates)  # type: ignore[arg-type]  # functions stay ones


def a_normal_form(expr: Expr) -> Expr:
    """An expression in A-normal form."""
    return _bound(expr, bind_all=True)


def _bound(expr: Expr, bind_all: bool) -> Expr:
    scopes = DependencyScopes(expr)
    if not bind_all and not scopes.lifted and not _has_alias(expr):
        return expr
    binder = _Binder(scopes, bind_all)
    atom = run(binder.visit(expr))
    return binder.bindings(scopes.scope[expr]).around(atom)


def _has_alias(expr: Expr) -> bool:
    """Whether a let binds a mere name, which then stands for the bound value everywhere after."""
    return any(isinstance(node, Let) and isinstance(node.value, Var) for node in post_order(expr))


class _Bindings:
    """Let bindings in order. A list of another scope may stand among them, to be opened late."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[tuple[Var, Expr] | _Bindings] = []

    def push(self, var: Var, value: Expr) -> Var:
        self._entries.append((var, value))
        return var

    def splice(self, inner: _Bindings) -> None:
        self._entries.append(inner)

    def around(self, body: Expr) -> Expr:
        for var, value in self._reversed():
            body = Let(var, value, body)
        return body

    def _reversed(self) -> Iterator[tuple[Var, Expr]]:
        stack: list[Iterator[tuple[Var, Expr] | _Bindings]] = [reversed(self._entries)]
        while stack:
            entry = next(stack[-1], None)
            if entry is None:
                stack.pop()
            elif isinstance(entry, _Bindings):
                stack.append(reversed(entry._entries))
            else:
                yield entry


class _Binder:
    """Rebuilds an expression with its compound parts bound in their scopes."""

    def __init__(self, scopes: DependencyScopes, bind_all: bool) -> None:
        self._scopes = scopes
        self._bind_all = bind_all
        self._bindings: dict[int, _Bindings] = {}
        self._memo: dict[Expr, Expr] = {}
        self._depth = 0
        self._count = 0

    def bindings(self, scope: int) -> _Bindings:
        return self._bindings.setdefault(scope, _Bindings())

    def visit(self, expr: Expr, var: Var | None = None) -> Step:
        """What stands for ``expr``: an atom if everything is bound. ``var``: bind it to this."""
        found = self._memo.get(expr)
        if found is None:
            if isinstance(expr, (Var, GlobalVar, Op, Constructor)):
                found = expr if var is None else self._own(expr).push(var, expr)
            else:
                found = yield self._compound(expr, var)
            self._memo[expr] = found
        elif var is not None:
            self._own(expr).push(var, found)
        return found

    def _own(self, expr: Expr) -> _Bindings:
        return self.bindings(self._scopes.scope[expr])

    def _inner(self, expr: Expr, index: int = 0) -> _Bindings:
        return self.bindings(self._scopes.inner[expr][index])

    def _bind(self, expr: Expr, now: Expr, var: Var | None) -> Expr:
        if var is None:
            if not self._bind_all and expr not in self._scopes.lifted:
                return now
            var = Var(f"x{self._count}")
            self._count += 1
        return self._own(expr).push(var, now)

    def _all(self, exprs: tuple[Expr, ...]) -> Generator[Any, Any, tuple[Expr, ...]]:
        found = []
        for expr in exprs:
            if isinstance(expr, (Var, Op)) and expr not in self._memo:
                found.append(expr)
            else:
                found.append((yield self.visit(expr)))
        return tuple(found)

    def _compound(self, expr: Expr, var: Var | None) -> Step:
        now: Expr
        if isinstance(expr, Function):
            now = yield self._function(expr, var)
            return now
        if isinstance(expr, Let):
            now = yield self._let(expr, var)
            return now
        if isinstance(expr, Call):
            args = yield self._all(expr.args)
            op = yield self.visit(expr.op)
            now = expr.copy(op=op, args=args)
        elif isinstance(expr, Tuple):
            now = expr.copy(fields=(yield self._all(expr.fields)))
        elif isinstance(expr, TupleGetItem):
            now = expr.copy(tuple_value=(yield self.visit(expr.tuple_value)))
        elif isinstance(expr, (If, Match)):
            now = yield self._branches(expr)
        elif isinstance(expr, (RefCreate, RefRead, RefWrite)):
            now = yield self._ref(expr)
        else:
            now = expr
        return self._bind(expr, now, var)

    def _ref(self, expr: RefCreate | RefRead | RefWrite) -> Step:
        if isinstance(expr, RefCreate):
            return expr.copy(value=(yield self.visit(expr.value)))
        ref = yield self.visit(expr.ref)
        if isinstance(expr, RefRead):
            return expr.copy(ref=ref)
        return expr.copy(ref=ref, value=(yield self.visit(expr.value)))

    def _branches(self, expr: If | Match) -> Step:
        if isinstance(expr, If):
            cond = yield self.visit(expr.cond)
            then = yield self.visit(expr.true_branch)
            then = self._inner(expr, 0).around(then)
            other = yield self.visit(expr.false_branch)
            other = self._inner(expr, 1).around(other)
            return expr.copy(cond=cond, true_branch=then, false_branch=other)
        data = yield self.visit(expr.data)
        clauses = []
        for index, clause in enumerate(expr.clauses):
            rhs = yield self.visit(clause.rhs)
            clauses.append(Clause(clause.lhs, self._inner(expr, index).around(rhs)))
        return expr.copy(data=data, clauses=tuple(clauses))

    def _function(self, func: Function, var: Var | None) -> Step:
        now = func
        if func.attrs is None or not func.attrs.get("Primitive", 0):
            self._depth += 1
            body = yield self.visit(func.body)
            now = func.copy(body=self._inner(func).around(body))
            self._depth -= 1
        # A global function is what the module holds: nothing binds it.
        return now if self._depth == 0 else self._bind(func, now, var)

    def _let(self, let: Let, var: Var | None) -> Step:
        yield self.visit(let.value, let.var)
        body = yield self.visit(let.body)
        inner = self._inner(let)
        if var is None and not self._bind_all and let not in self._scopes.lifted:
            return inner.around(body)
        # The let's own bindings go into the scope around it.
        self._own(let).splice(inner)
        return self._bind(let, body, var)
