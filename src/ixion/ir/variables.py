"""Which variables and type variables a program uses, binds, and leaves free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ixion.ir.adt import Match, pattern_vars
from ixion.ir.expr import Call, Expr, Let, Var
from ixion.ir.function import Function
from ixion.ir.types import FuncType, Type, TypeVar
from ixion.ir.visitor import post_order_visit, rewrite


class _Vars:
    """Variables in the order a walk meets them, and those that something binds."""

    def __init__(self, expr: Expr) -> None:
        self.used: dict[Var, None] = {}
        self.bound: dict[Var, None] = {}
        post_order_visit(expr, self._visit)

    def _visit(self, node: Expr) -> None:
        kind = type(node)
        if kind is Var:
            self.used[node] = None  # type: ignore[index]
        elif kind is Let:
            self.bound[node.var] = None  # type: ignore[attr-defined]
        elif kind is Function:
            self.bound.update(dict.fromkeys(node.params))  # type: ignore[attr-defined]
        elif kind is Match:
            for clause in node.clauses:  # type: ignore[attr-defined]
                self.bound.update(dict.fromkeys(pattern_vars(clause.lhs)))


def free_vars(expr: Expr) -> list[Var]:
    """Variables that nothing in ``expr`` binds, in order of first use."""
    found = _Vars(expr)
    return [var for var in found.used if var not in found.bound]


def bound_vars(expr: Any) -> list[Var]:
    """Variables that ``expr``, or a match pattern, binds."""
    return list(_Vars(expr).bound) if isinstance(expr, Expr) else pattern_vars(expr)


def all_vars(expr: Expr) -> list[Var]:
    """All variables, in order of first occurrence, then those only bound."""
    found = _Vars(expr)
    return list({**found.used, **found.bound})


class _TypeVars:
    def __init__(self, of: Expr | Type) -> None:
        self.used: dict[int, TypeVar] = {}
        self.bound: dict[int, TypeVar] = {}
        if isinstance(of, Type):
            self._visit_type(of)
        else:
            post_order_visit(of, self._visit)

    def _visit(self, node: Expr) -> None:
        for found in _types_in(node):
            self._visit_type(found)
        if type(node) is Function:
            self._bind(node.type_params)

    def _bind(self, params: tuple[TypeVar, ...]) -> None:
        for param in params:
            self.used.setdefault(id(param), param)
            self.bound.setdefault(id(param), param)

    def _visit_type(self, of: Type) -> None:
        pending: list[Any] = [of]
        while pending:
            found = pending.pop()
            if type(found) is TypeVar:
                self.used.setdefault(id(found), found)
                continue
            if type(found) is FuncType:
                self._bind(found.type_params)
            for value in reversed(type(found)._children(found)):
                if isinstance(value, Type):
                    pending.append(value)
                elif type(value) is tuple:
                    pending.extend(item for item in reversed(value) if isinstance(item, Type))


def _types_in(node: Expr) -> Iterator[Type]:
    kind = type(node)
    if kind is Var:
        if node.type_annotation is not None:  # type: ignore[attr-defined]
            yield node.type_annotation  # type: ignore[attr-defined]
    elif kind is Call:
        yield from node.type_args  # type: ignore[attr-defined]
    elif kind is Function:
        if node.ret_type is not None:  # type: ignore[attr-defined]
            yield node.ret_type  # type: ignore[attr-defined]
    elif kind is Match:
        for clause in node.clauses:  # type: ignore[attr-defined]
            for var in pattern_vars(clause.lhs):
                yield from _types_in(var)


def free_type_vars(of: Expr | Type, mod: Any = None) -> list[TypeVar]:
    """Type variables that nothing in an expression or type binds, in order of first use.

    The variables of a constructor's data type are bound by the type's definition.
    """
    found = _TypeVars(of)
    return [var for key, var in found.used.items() if key not in found.bound]


def bound_type_vars(of: Expr | Type, mod: Any = None) -> list[TypeVar]:
    """Type variables that functions or function types inside bind."""
    return list(_TypeVars(of).bound.values())


def all_type_vars(of: Expr | Type, mod: Any = None) -> list[TypeVar]:
    """All type variables, in order of first occurrence."""
    return list(_TypeVars(of).used.values())


def substitute(expr: Expr, values: Mapping[Var, Expr]) -> Expr:
    """``expr`` with variables replaced; the same object where none occurs."""
    memo: dict[Expr, Expr] = dict(values.items())
    return rewrite(expr, lambda old, new: new, memo) if values else expr


def bind_vars(expr: Expr, values: Mapping[Var, Expr]) -> Expr:
    """``expr`` with free variables replaced.

    A function loses the parameters that are replaced, and gains those variables that come in free
    with the new values. Raises ValueError where a let or an inner function binds one of them.
    """
    inner = expr.body if isinstance(expr, Function) else expr
    clash = [var for var in _Vars(inner).bound if var in values]
    if clash:
        raise ValueError(f"cannot bind %{clash[0].name_hint}: the expression itself binds it")
    if not isinstance(expr, Function):
        return substitute(expr, values)
    body = substitute(expr.body, values)
    params = [param for param in expr.params if param not in values]
    if body is expr.body and len(params) == len(expr.params):
        return expr
    outside = set(free_vars(expr))
    made = expr.copy(params=params, body=body)
    params += [var for var in free_vars(made) if var not in outside]
    return made.copy(params=params)


__all__ = [
    "all_type_vars",
    "all_vars",
    "bind_vars",
    "bound_type_vars",
    "bound_vars",
    "free_type_vars",
    "free_vars",
    "substitute",
]
