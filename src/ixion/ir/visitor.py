"""Walks over expressions that never recurse: a program may be any number of nodes deep.

``post_order_visit`` and ``rewrite`` see each shared node once. Questions about variables are in
``variables.py``, class-based visitors with one method per kind in ``functor.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ixion.ir.adt import Clause, Constructor, Match, Pattern, PatternVar, pattern_vars
from ixion.ir.expr import (
    Call,
    Constant,
    Expr,
    GlobalVar,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from ixion.ir.function import Function

_LEAF: tuple[Expr, ...] = ()


def _leaf(_: Any) -> tuple[Expr, ...]:
    return _LEAF


def _match_children(match: Match) -> tuple[Expr, ...]:
    return (match.data, *[clause.rhs for clause in match.clauses])


_CHILDREN: dict[type, Callable[[Any], tuple[Expr, ...]]] = {
    Constant: _leaf,
    Var: _leaf,
    GlobalVar: _leaf,
    Constructor: _leaf,
    Call: lambda e: (e.op, *e.args),
    Tuple: lambda e: e.fields,
    TupleGetItem: lambda e: (e.tuple_value,),
    Let: lambda e: (e.var, e.value, e.body),
    Function: lambda e: (*e.params, e.body),
    If: lambda e: (e.cond, e.true_branch, e.false_branch),
    RefCreate: lambda e: (e.value,),
    RefRead: lambda e: (e.ref,),
    RefWrite: lambda e: (e.ref, e.value),
    Match: _match_children,
}


def _field_children(node: Any) -> tuple[Expr, ...]:
    """The expressions among the fields of a kind that this file does not know."""
    found: list[Expr] = []
    for value in type(node)._children(node):
        if isinstance(value, Expr):
            found.append(value)
        elif type(value) is tuple:
            found.extend(item for item in value if isinstance(item, Expr))
    return tuple(found)


def _children_of_kind(kind: type) -> Callable[[Any], tuple[Expr, ...]]:
    """The children function of a kind met for the first time, entered in the table."""
    for base in kind.__mro__[1:]:
        if base in _CHILDREN and not set(kind._fields) - set(base._fields):  # type: ignore[attr-defined]
            break
    else:
        base = kind
    leaf = getattr(kind, "_by_identity", False) and not getattr(kind, "realize", None)
    return _CHILDREN.setdefault(kind, _leaf if leaf else _CHILDREN.get(base, _field_children))


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct subexpressions, in Relay's order: a call's operator first, a let's variable first.

    Types, attributes and the variables inside match patterns are not among them.
    """
    kind = type(expr)
    return (_CHILDREN.get(kind) or _children_of_kind(kind))(expr)


def post_order_visit(expr: Expr, fn: Callable[[Expr], Any]) -> None:
    """Call ``fn`` on every node once, each after its children."""
    table = _CHILDREN
    done: set[Expr] = set()
    opened: set[Expr] = set()
    stack: list[Expr] = [expr]
    while stack:
        node = stack.pop()
        if node in done:
            continue
        if node not in opened:
            kind = type(node)
            inner = (table.get(kind) or _children_of_kind(kind))(node)
            if inner:
                opened.add(node)
                stack.append(node)
                stack.extend(inner[::-1])
                continue
        done.add(node)
        fn(node)


def post_order(expr: Expr) -> list[Expr]:
    """Every node once, each after its children."""
    found: list[Expr] = []
    post_order_visit(expr, found.append)
    return found


Rewriter = Callable[[Expr, Expr], Expr]


def rewrite(expr: Expr, fn: Rewriter, memo: dict[Expr, Expr] | None = None) -> Expr:
    """Rebuild a program bottom up.

    ``fn(old, new)`` gets each node of the original once, and the same node with its children
    replaced (the same object where none changed), and returns what takes its place. Where nothing
    changes the result is ``expr`` itself. A binder keeps its variable where ``fn`` turns that into
    something that is not one. ``memo`` carries results, and replacements that were fixed before.
    """
    done: dict[Expr, Expr] = {} if memo is None else memo
    table = _CHILDREN
    opened: set[Expr] = set()
    stack: list[Expr] = [expr]
    while stack:
        node = stack.pop()
        if node in done:
            continue
        if node not in opened:
            kind = type(node)
            inner = (table.get(kind) or _children_of_kind(kind))(node)
            if inner:
                opened.add(node)
                stack.append(node)
                stack.extend(inner[::-1])
                continue
            done[node] = fn(node, node)
        else:
            done[node] = fn(node, _rebuilt(node, done))
    return done[expr]


def _rebuilt(node: Expr, done: dict[Expr, Expr]) -> Expr:
    """``node`` over the new children, or itself where they are the old ones."""
    if type(node) is Call:
        op, args = node.op, node.args
        new_op = done[op]
        new_args = [done[arg] for arg in args]
        if new_op is op and all(map(_is, new_args, args)):
            return node
        return node._copied(
            {
                "op": new_op,
                "args": tuple(new_args),
                "attrs": node.attrs,
                "type_args": node.type_args,
                "span": node.span,
            }
        )
    return (_REBUILD.get(type(node)) or _rebuilt_fields)(node, done)


def _is(a: object, b: object) -> bool:
    return a is b


def _binder(old: Var, done: dict[Expr, Expr]) -> Var:
    new = done.get(old, old)
    return new if isinstance(new, Var) else old


def _rebuilt_let(node: Let, done: dict[Expr, Expr]) -> Expr:
    variable, value, body = _binder(node.var, done), done[node.value], done[node.body]
    if variable is node.var and value is node.value and body is node.body:
        return node
    return node._copied({"var": variable, "value": value, "body": body, "span": node.span})


def _rebuilt_function(node: Function, done: dict[Expr, Expr]) -> Expr:
    return node.copy(params=[_binder(param, done) for param in node.params], body=done[node.body])


def _rebuilt_match(node: Match, done: dict[Expr, Expr]) -> Expr:
    clauses = []
    for clause in node.clauses:
        lhs = _renamed_pattern(clause.lhs, done)
        rhs = done[clause.rhs]
        same = lhs is clause.lhs and rhs is clause.rhs
        clauses.append(clause if same else Clause(lhs, rhs))
    return node.copy(data=done[node.data], clauses=tuple(clauses))


def _renamed_pattern(pattern: Pattern, done: dict[Expr, Expr]) -> Pattern:
    """A pattern whose variables are those that now stand for them in the clause."""
    if all(_binder(var, done) is var for var in pattern_vars(pattern)):
        return pattern
    # Patterns are written by hand: they are never deep enough for recursion to matter.
    if isinstance(pattern, PatternVar):
        return pattern.copy(var=_binder(pattern.var, done))
    inner = tuple(_renamed_pattern(part, done) for part in pattern.patterns)  # type: ignore[attr-defined]
    return pattern.copy(patterns=inner)


def _rebuilt_fields(node: Expr, done: dict[Expr, Expr]) -> Expr:
    """Rebuild of any kind by replacing the expressions among its fields."""
    changes: dict[str, Any] = {}
    for name, value in node.field_items():
        if isinstance(value, Expr):
            changes[name] = done.get(value, value)
        elif type(value) is tuple and value and any(isinstance(item, Expr) for item in value):
            changes[name] = tuple(done.get(v, v) if isinstance(v, Expr) else v for v in value)
    return node.copy(**changes)


_REBUILD: dict[type, Callable[[Any, dict[Expr, Expr]], Expr]] = {
    Let: _rebuilt_let,
    Function: _rebuilt_function,
    Match: _rebuilt_match,
}


def rebuilt(node: Expr, done: dict[Expr, Expr]) -> Expr:
    """``node`` with each child replaced by ``done[child]``; itself where nothing changes."""
    return _rebuilt(node, done) if children(node) else node


def let_chain(expr: Expr) -> tuple[list[Let], Expr]:
    """The lets that ``expr`` starts with, outermost first, and the body of the last."""
    found: list[Let] = []
    while type(expr) is Let:
        found.append(expr)
        expr = expr.body
    return found, expr


__all__ = [
    "children",
    "let_chain",
    "post_order",
    "post_order_visit",
    "rebuilt",
    "rewrite",
]
