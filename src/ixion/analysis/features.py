"""Which language features a program uses (Relay's ``detect_feature``)."""

from __future__ import annotations

from enum import IntEnum

from ixion.analysis.binding import recursive_vars
from ixion.ir import Expr, IRModule, Op
from ixion.ir.visitor import children, post_order

__all__ = ["Feature", "detect_feature"]


class Feature(IntEnum):
    """Relay's names and numbers."""

    fVar = 0
    fGlobalVar = 1
    fConstant = 2
    fTuple = 3
    fTupleGetItem = 4
    fFunction = 5
    fOp = 6
    fCall = 7
    fLet = 8
    fIf = 9
    fRefCreate = 10
    fRefRead = 11
    fRefWrite = 12
    fConstructor = 13
    fMatch = 14
    fGraph = 15
    fLetRec = 16


_ATOMS = frozenset({"Var", "GlobalVar", "Op", "Constructor"})


def detect_feature(a: Expr | IRModule, b: IRModule | None = None) -> set[Feature]:
    """Features of an expression, a module, or both. ``fGraph``: an expression used twice."""
    found: set[Feature] = set()
    for part in (a, b):
        roots = list(part.functions.values()) if isinstance(part, IRModule) else [part]
        for root in roots:
            if root is not None:
                found |= _features(root)
    return found


def _features(root: Expr) -> set[Feature]:
    found: set[Feature] = set()
    used: set[Expr] = set()
    for expr in post_order(root):
        name = type(expr).__name__
        if f"f{name}" in Feature.__members__:
            found.add(Feature[f"f{name}"])
        for part in children(expr):
            if type(part).__name__ in _ATOMS or isinstance(part, Op):
                continue
            if part in used:
                found.add(Feature.fGraph)
            used.add(part)
    if recursive_vars(root):
        found.add(Feature.fLetRec)
    return found
