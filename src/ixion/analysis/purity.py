"""Which expressions neither read nor change state, so that they may be dropped or moved.

Besides whether evaluating an expression is pure, function values carry whether calling them is;
functions that come out of tuples, references, data types or arguments count as impure to call.
After Relay's analysis, without its bound on call depth.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from ixion.ir import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    FuncType,
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
    get_attr_map,
    pattern_vars,
)
from ixion.ir.trampoline import run

__all__ = ["Purity", "PurityAnalysis"]

_STATEFUL = get_attr_map("TOpIsStateful")


class Purity(NamedTuple):
    """Whether evaluating the expression is pure, and calling its value (first-order: True)."""

    evaluation: bool
    call: bool


_PURE = Purity(True, True)
_VALUE = Purity(True, False)
Step = Generator[Any, Any, Purity]


class PurityAnalysis:
    """Purity of everything let-bound in a typed module."""

    def __init__(self, mod: IRModule) -> None:
        self._mod = mod
        self._vars: dict[Var, Purity] = {}
        self._globals: dict[str, Purity] = {}
        self._memo: dict[Expr, Purity] = {}
        for var, func in mod.functions.items():
            if isinstance(func, Function) and not _is_opaque(func):
                run(self._global(var))

    def is_pure(self, var: Var) -> bool:
        """Whether evaluating what ``var`` is bound to is pure; False for an unknown variable."""
        return self._vars.get(var, Purity(False, False)).evaluation

    def _region(self, root: Expr) -> Step:
        memo = self._memo
        stack = [root]
        while stack:
            expr = stack[-1]
            if expr in memo:
                stack.pop()
                continue
            operands = _OPERANDS.get(type(expr))
            if operands is None:
                found = yield self._scope(expr)
            else:
                missing = [part for part in operands(expr) if part not in memo]
                if missing:
                    stack.extend(reversed(missing))
                    continue
                found = self._simple(expr)
            memo[expr] = found
            stack.pop()
        return memo[root]

    def _simple(self, expr: Expr) -> Purity:
        memo = self._memo
        if isinstance(expr, Call):
            parts = [memo[arg].evaluation for arg in expr.args]
            callee = memo[expr.op]
            pure = all(parts) and callee.evaluation and callee.call
            return Purity(pure, callee.call or _is_first_order(expr))
        if isinstance(expr, Op):
            return Purity(True, not _STATEFUL.get(expr, False))
        if isinstance(expr, Var):
            return Purity(True, self._vars[expr].call if expr in self._vars else False)
        if isinstance(expr, Tuple):
            return Purity(all(memo[field].evaluation for field in expr.fields), True)
        if isinstance(expr, TupleGetItem):
            return Purity(memo[expr.tuple_value].evaluation, _is_first_order(expr))
        if isinstance(expr, RefWrite):
            return Purity(False, True)
        if isinstance(expr, RefRead):
            return Purity(False, _is_first_order(expr))
        return _PURE

    def _scope(self, expr: Expr) -> Step:
        if isinstance(expr, Let):
            return self._let(expr)
        if isinstance(expr, Function):
            return self._function(expr)
        if isinstance(expr, If):
            return self._if(expr)
        if isinstance(expr, Match):
            return self._match(expr)
        assert isinstance(expr, GlobalVar)
        return self._global(expr)

    def _global(self, var: GlobalVar) -> Step:
        name = var.name_hint
        if name in self._globals:
            return self._globals[name]
        if name not in self._mod:
            return _VALUE
        func = self._mod[name]
        if not isinstance(func, Function) or _has(func, "Extern"):
            return _VALUE
        # A recursive call is as pure as the rest turns out to be.
        self._globals[name] = _PURE
        found: Purity = yield self._region(func)
        self._globals[name] = found
        return found

    def _function(self, func: Function) -> Step:
        for param in func.params:
            self._vars[param] = Purity(True, _is_first_order(param))
        body = yield self._region(func.body)
        return Purity(True, body.evaluation and body.call)

    def _let(self, let: Let) -> Step:
        pure = True
        expr: Expr = let
        while isinstance(expr, Let):
            self._vars[expr.var] = _PURE
            value = yield self._region(expr.value)
            self._vars[expr.var] = value
            pure = pure and value.evaluation
            expr = expr.body
        body = yield self._region(expr)
        return Purity(pure and body.evaluation, body.call)

    def _if(self, expr: If) -> Step:
        cond = yield self._region(expr.cond)
        then = yield self._region(expr.true_branch)
        other = yield self._region(expr.false_branch)
        pure = cond.evaluation and then.evaluation and other.evaluation
        return Purity(pure, then.call and other.call)

    def _match(self, match: Match) -> Step:
        data = yield self._region(match.data)
        pure, call = data.evaluation, True
        for clause in match.clauses:
            for var in pattern_vars(clause.lhs):
                self._vars[var] = Purity(True, _is_first_order(var))
            found = yield self._region(clause.rhs)
            pure, call = pure and found.evaluation, call and found.call
        return Purity(pure, call)


def _none(expr: Expr) -> tuple[Expr, ...]:
    return ()


_OPERANDS: dict[type, Callable[[Any], tuple[Expr, ...]]] = {
    Call: lambda expr: (expr.op, *expr.args),
    Tuple: lambda expr: expr.fields,
    TupleGetItem: lambda expr: (expr.tuple_value,),
    RefCreate: lambda expr: (expr.value,),
    RefRead: lambda expr: (expr.ref,),
    RefWrite: lambda expr: (expr.ref, expr.value),
    **dict.fromkeys((Var, Op, Constant, Constructor), _none),
}


def _has(func: Function, attr: str) -> bool:
    return func.attrs is not None and bool(func.attrs.get(attr, 0))


def _is_opaque(func: Function) -> bool:
    return _has(func, "Primitive") or _has(func, "Extern")


def _is_first_order(expr: Expr) -> bool:
    return not isinstance(expr.checked_type, FuncType)
