"""Local rewrites applied until nothing changes.

A rule is a plain function ``rule(call, place) -> Expr | None``: it sees an operator call whose
operands are rewritten and typed, and gives back what takes its place (of the same type) or None.
Rules are indexed by the root's operator, so a call no rule knows costs one lookup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ixion.ir import Call, Expr, Function, Op, rewrite
from ixion.ir.visitor import children, post_order
from ixion.transform.infer_type import infer_expr
from ixion.transform.type_writer import keep_type

__all__ = ["Place", "Rule", "apply_rules"]

_MAX_SWEEPS = 100


class Place:
    """What a rule may ask about the program around the call it looks at."""

    def __init__(self, uses: Counter[Expr]) -> None:
        self._uses = uses

    def only_here(self, *exprs: Expr) -> bool:
        """Whether nothing else uses these operands, so that rewriting saves their computation."""
        return all(self._uses.get(expr, 1) <= 1 for expr in exprs)

    def replaced(self, old: Expr, new: Expr) -> None:
        if new is not old and new not in self._uses:
            self._uses[new] = self._uses.get(old, 1)


Rule = Callable[[Call, Place], "Expr | None"]


def apply_rules(func: Function, rules: Mapping[str, Sequence[Rule]]) -> Function:
    """``func`` rewritten bottom up, again until no rule applies; itself if none does.

    The rules of an operator are tried in their order; after a change the first is tried again.
    """
    for _ in range(_MAX_SWEEPS):
        new = _sweep(func, rules)
        if new is func:
            break
        func = new
    return func


def _sweep(func: Function, rules: Mapping[str, Sequence[Rule]]) -> Function:
    nodes = post_order(func)
    if not any(type(n) is Call and type(n.op) is Op and n.op.name in rules for n in nodes):
        return func
    uses: Counter[Expr] = Counter()
    for node in nodes:
        if type(node) is Call:
            uses.update(node.args)
        else:
            uses.update(children(node))
    place = Place(uses)

    def visit(old: Expr, new: Expr) -> Expr:
        new = keep_type(old, new)
        place.replaced(old, new)
        for _ in range(_MAX_SWEEPS):
            found = _first_change(new, rules, place)
            if found is None:
                return new
            place.replaced(old, found)
            new = found
        return new

    return rewrite(func, visit)  # type: ignore[return-value]  # a function stays one


def _first_change(expr: Expr, rules: Mapping[str, Sequence[Rule]], place: Place) -> Expr | None:
    if type(expr) is not Call or type(expr.op) is not Op:
        return None
    known = rules.get(expr.op.name)
    if known is None:
        return None
    call = infer_expr(expr)
    assert isinstance(call, Call)
    for rule in known:
        found = rule(call, place)
        if found is not None and found is not call:
            return infer_expr(found)
    return None
