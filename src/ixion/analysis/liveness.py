"""How often and how long values of a dataflow are needed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ixion.ir import Expr, Op
from ixion.ir.visitor import children, post_order

__all__ = ["Liveness", "last_uses", "use_counts"]


def use_counts(root: Expr) -> Counter[Expr]:
    """Uses of each expression below ``root``: one for every time it is an operand."""
    counts: Counter[Expr] = Counter()
    for expr in post_order(root):
        counts.update(children(expr))
    return counts


@dataclass(frozen=True)
class Liveness:
    """Expressions in evaluation order, and for each the position of its last user.

    The root is live to the end: its last use is its own position.
    """

    order: tuple[Expr, ...]
    last_use: dict[Expr, int]

    def dying_at(self) -> list[list[Expr]]:
        """For each position the values whose last user stands there."""
        found: list[list[Expr]] = [[] for _ in self.order]
        for expr, position in self.last_use.items():
            if expr is not self.order[-1]:
                found[position].append(expr)
        return found


def last_uses(root: Expr) -> Liveness:
    """Liveness of the values below ``root``, operators left out."""
    order = tuple(expr for expr in post_order(root) if not isinstance(expr, Op))
    last = {}
    for position, expr in enumerate(order):
        for operand in children(expr):
            if not isinstance(operand, Op):
                last[operand] = position
        last[expr] = position
    return Liveness(order, last)
