"""How much a kernel does, roughly: stores and the loads behind them, whatever their width."""

from __future__ import annotations

from ixion.te.expr import Const, Expr, Load, Var, substitute
from ixion.te.simplify import linear
from ixion.te.stmt import For, If, Kernel, Let, Seq, Stmt, Store

__all__ = ["effort"]

_UNKNOWN = 64  # rounds of a loop whose bounds are not known


def effort(kernel: Kernel) -> int:
    """Stores and loads of one task."""
    total = 0
    first: dict[Var, Expr] = {kernel.task: Const(0, "int64")}
    stack: list[tuple[Stmt, int, dict[Var, Expr]]] = [(kernel.body, 1, first)]
    while stack:
        stmt, times, known = stack.pop()
        if isinstance(stmt, Seq):
            stack.extend((one, times, known) for one in stmt.body)
        elif isinstance(stmt, For):
            low, high = _number(stmt.lo, known), _number(stmt.hi, known)
            rounds = _UNKNOWN if low is None or high is None else -(-(high - low) // stmt.step)
            start = {stmt.var: stmt.lo if low is None else Const(low, "int64")}
            stack.append((stmt.body, times * max(rounds, 0), {**known, **start}))
        elif isinstance(stmt, Let):
            stack.append((stmt.body, times, known))
        elif isinstance(stmt, If):
            stack.append((stmt.then, times, known))
            if stmt.orelse is not None:
                stack.append((stmt.orelse, times, known))
        elif isinstance(stmt, Store):
            total += times * (1 + _loads(stmt.value))
    return total


def _loads(value: Expr) -> int:
    seen: set[int] = set()
    stack, count = [value], 0
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            count += isinstance(node, Load)
            stack.extend(node.children())
    return count


def _number(bound: Expr, known: dict[Var, Expr]) -> int | None:
    form = linear(substitute(bound, known), {})
    return None if form.terms else int(form.const)
