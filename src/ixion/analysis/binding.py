"""Which let variables are recursive, and what binds what."""

from __future__ import annotations

from ixion.ir import Expr, Let, Var
from ixion.ir.visitor import children

__all__ = ["let_values", "recursive_vars"]


def recursive_vars(expr: Expr) -> set[Var]:
    """Let variables that occur in their own value, as functions that call themselves do.

    Linear: one walk that knows whose values it is inside.
    """
    found: set[Var] = set()
    active: set[Var] = set()
    seen: set[Expr] = set()
    # A None marks the end of the value of the variable beside it.
    stack: list[tuple[Expr | None, Var | None]] = [(expr, None)]
    while stack:
        node, var = stack.pop()
        if node is None:
            active.discard(var)
            continue
        if var is not None:
            active.add(var)
        if isinstance(node, Var) and node in active:
            found.add(node)
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, Let):
            stack.append((node.body, None))
            stack.append((None, node.var))
            stack.append((node.value, node.var))
        else:
            stack.extend((child, None) for child in reversed(children(node)))
    return found


def let_values(nodes: list[Expr]) -> dict[Expr, list[Var]]:
    """For each expression that is the value of a let, the variables bound to it."""
    bound: dict[Expr, list[Var]] = {}
    for node in nodes:
        if type(node) is Let:
            bound.setdefault(node.value, []).append(node.var)
    return bound
