"""Lower bounds of symbolic dims that follow from what is inside divisions, maxima and minima."""

from __future__ import annotations

import math

from ixion.base.dim import Atom, Dim, SymExpr, add, build, multiply, term_bound

#: So many atoms are replaced by their arguments, one after the other.
_MOST = 4


def by_arguments(dim: SymExpr, left: int = _MOST) -> int | None:
    """The best bound after one of the atoms is replaced by what it is never beyond."""
    for monomial, factor in dim._terms if left else ():
        if len(monomial) != 1 or monomial[0][1] != 1:
            continue
        rest = add(dim, multiply(-factor, build({monomial: 1})))
        bounds = []
        for times, below in _never_above(monomial[0][0], factor):
            bound = _bound(add(multiply(times, rest), below), left - 1)
            if bound is not None:
                bounds.append(-(-bound // times))
        if bounds:
            return max(bounds)
    return None


def _bound(dim: Dim, left: int) -> int | None:
    if not isinstance(dim, SymExpr):
        return dim if isinstance(dim, int) else None
    found = term_bound(dim)
    return by_arguments(dim, left) if found is None else found


def _never_above(atom: Atom, factor: int) -> list[tuple[int, Dim]]:
    """(times, dim): ``times * factor`` times the atom is never below the dim."""
    if atom.kind == "floordiv":
        whole, divisor = atom.dims()
        if not isinstance(divisor, int):
            return []
        # A quotient is at most the fraction and less than 1 below it.
        nearest = whole if factor < 0 else add(whole, 1 - divisor)
        shared = math.gcd(factor, divisor)
        return [(divisor // shared, multiply(factor // shared, nearest))]
    if (atom.kind, factor > 0) in (("max", True), ("min", False)):
        return [(1, multiply(factor, dim)) for dim in atom.dims()]
    return []
