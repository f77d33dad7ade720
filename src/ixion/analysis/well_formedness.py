"""Well-formed programs: every variable bound once, and used only where it is in scope.

A shared expression is part of every scope it is used in, so what counts for a variable is the
innermost scope around all its uses (``dependency_scopes``): it must lie inside the binding one.
"""

from __future__ import annotations

from collections.abc import Iterator

from ixion.analysis.dependency_scopes import DependencyScopes
from ixion.base.errors import PassError
from ixion.ir import Expr, Function, IRModule, Let, Match, Op, Var, pattern_vars
from ixion.ir.visitor import children, post_order

__all__ = ["check_typed", "check_well_formed", "well_formed"]


def well_formed(target: Expr | IRModule) -> bool:
    """Whether ``target`` is well formed; an expression may have free variables, a module not."""
    try:
        check_well_formed(target)
    except PassError:
        return False
    return True


def check_well_formed(target: Expr | IRModule) -> None:
    """Raises PassError naming a variable that is bound twice, out of scope, or free in a module."""
    if not isinstance(target, IRModule):
        _check(target, closed=False)
        return
    for var, func in target.functions.items():
        if isinstance(func, Function):
            try:
                _check(func, closed=True)
            except PassError as error:
                error.where = f"@{var.name_hint}"
                raise


def _binders(expr: Expr) -> Iterator[tuple[Var, int]]:
    """The variables an expression binds, each with which of its inner scopes."""
    if isinstance(expr, Function):
        yield from ((param, 0) for param in expr.params)
    elif isinstance(expr, Let):
        yield expr.var, 0
    elif isinstance(expr, Match):
        for index, clause in enumerate(expr.clauses):
            yield from ((var, index) for var in pattern_vars(clause.lhs))


def _check(root: Expr, closed: bool) -> None:
    nodes = post_order(root)
    scopes = DependencyScopes(root)
    bound: dict[Var, int] = {}
    for expr in nodes:
        for var, index in _binders(expr):
            if var in bound:
                raise PassError(f"variable %{var.name_hint} is bound more than once")
            bound[var] = scopes.inner[expr][index]
    tree = scopes.tree
    for expr in nodes:
        if not isinstance(expr, Var) or expr not in scopes.scope:
            continue
        if expr not in bound:
            if closed:
                raise PassError(f"variable %{expr.name_hint} is free")
        elif tree.common(bound[expr], scopes.scope[expr])[0] != bound[expr]:
            raise PassError(f"variable %{expr.name_hint} is used outside of its scope")


def check_typed(mod: IRModule) -> None:
    """Raises PassError naming an expression that type inference should have typed and has not.

    That every typed expression has typed parts is what lets inference skip it.
    """
    for var, func in mod.functions.items():
        if not isinstance(func, Function):
            continue
        for expr in post_order(func):
            if not isinstance(expr, Op) and expr.checked_type_or_none is None:
                kind = type(expr).__name__
                parts = [p for p in children(expr) if p.checked_type_or_none is None]
                raise PassError(
                    f"a {kind} has no type",
                    where=f"@{var.name_hint}",
                    found=f"{len(parts)} of its parts have none either",
                )
