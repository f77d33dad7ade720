"""Proofs about index arithmetic whose sizes are known at run time only.

An index is a polynomial over loop variables and sizes.  To show that it is never negative, each
loop variable is put at the end of its range that makes the polynomial smallest, where the sign of
its coefficient is known; what is left is a polynomial over sizes, which are not negative, and
neither is it when none of its coefficients is.  Quotients, minima and maxima are replaced by what
bounds them from the right side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ixion.te.expr import Binary, Const, Expr, Size, Var, walk
from ixion.te.simplify import (
    Linear,
    Ranges,
    atom_key,
    bounds,
    bounds_of,
    factors_of,
    linear,
    multiplied,
)

DEEPEST = 6  # replacements that may depend on each other
MOST = 64  # terms of a polynomial
LONGEST = 1000  # steps of a proof


def never_negative(form: Linear, ranges: Ranges) -> bool:
    """Whether the form is at least 0 for all values in the ranges and all sizes."""
    lo, _ = bounds_of(form, ranges)
    if lo is not None and lo >= 0:
        return True
    if not any(_is_symbolic(e, ranges) for e, _ in form.terms.values()):
        return False
    return _Search(ranges).proved(form, DEEPEST)


def _is_symbolic(expr: Expr, ranges: Ranges) -> bool:
    return any(
        isinstance(n, Var) and (isinstance(n, Size) or isinstance(ranges.get(n, (0, 0))[1], Expr))
        for n in walk(expr)
    )


class _Search:
    """One proof; gives up after ``LONGEST`` steps, for what one replacement leads to multiplies."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges, self.steps = ranges, 0

    def proved(self, form: Linear, depth: int) -> bool:
        self.steps += 1
        if len(form.terms) > MOST or self.steps > LONGEST:
            return False
        for var in _loop_variables(form):
            slope, rest = coefficient(form, var)
            if slope is None or rest is None:
                continue
            end = self._worst_end(var, slope, depth)
            if end is not None:
                return self.proved(rest.plus(multiplied(slope, end)), depth)
        positive = _all_positive(form, self.ranges)
        return positive or (depth > 0 and self._proved_by_bounds(form, depth))

    def _worst_end(self, var: Var, slope: Linear, depth: int) -> Linear | None:
        lo, hi = self.ranges.get(var, (None, None))
        below = depth - 1 if depth else 0
        if lo is not None and self.proved(slope, below):
            return Linear(lo, {})
        if hi is not None and self.proved(slope.scaled(-1), below):
            return linear(hi, {}) if isinstance(hi, Expr) else Linear(hi, {})
        return None

    def _proved_by_bounds(self, form: Linear, depth: int) -> bool:
        """Replaces one quotient, minimum or maximum by something that makes the form smaller."""
        for key, (e, c) in form.terms.items():
            rest = Linear(form.const, {k: t for k, t in form.terms.items() if k != key})
            factors = factors_of(e)
            for position, f in enumerate(factors):
                others = factors[:position] + factors[position + 1 :]
                if not isinstance(f, Binary) or any(_below_zero(o, self.ranges) for o in others):
                    continue
                if c == -1 and not others and self._above_quotient(rest, f, depth):
                    return True
                around = _term(others, c)
                for scale, smaller in _bounds_of_atom(f, c > 0):
                    lower = rest.scaled(scale).plus(multiplied(around, smaller))
                    if self.proved(lower, depth - 1):
                        return True
        return False

    def _above_quotient(self, rest: Linear, quotient: Binary, depth: int) -> bool:
        """``rest >= a // b`` in whole numbers is ``(rest + 1) * b > a``."""
        if quotient.op != "floordiv" or _below_one(quotient.b, self.ranges):
            return False
        whole = multiplied(rest.plus(Linear(1, {})), linear(quotient.b, {}))
        apart = whole.plus(linear(quotient.a, {}).scaled(-1)).plus(Linear(-1, {}))
        return self.proved(apart, depth - 1)


def _loop_variables(form: Linear) -> list[Var]:
    found: dict[Var, None] = {}
    for e, _ in form.terms.values():
        for f in factors_of(e):
            if isinstance(f, Var) and not isinstance(f, Size):
                found[f] = None
    # Those of inner loops first: their ends may name the variables around them.
    return list(reversed(found))


def coefficient(form: Linear, var: Var) -> tuple[Linear | None, Linear | None]:
    """``(c, r)`` with ``form == c * var + r`` and no ``var`` in either; None if there is none."""
    slope, rest = Linear(0, {}), Linear(form.const, {})
    for key, (e, c) in form.terms.items():
        factors = factors_of(e)
        times = sum(f is var for f in factors)
        inside = any(f is not var and any(n is var for n in walk(f)) for f in factors)
        if times > 1 or inside:
            return None, None
        if times:
            slope = slope.plus(_term([f for f in factors if f is not var], c))
        else:
            rest = rest.plus(Linear(0, {key: (e, c)}))
    return slope, rest


def _term(factors: list[Expr], c: int) -> Linear:
    if not factors:
        return Linear(c, {})
    product = factors[0]
    for f in factors[1:]:
        product = Binary("mul", product, f)
    return Linear(0, {atom_key(product): (product, c)})


def _all_positive(form: Linear, ranges: Ranges) -> bool:
    """Whether no coefficient is negative once everything is counted from its least value."""
    shifted = Linear(form.const, {})
    for e, c in form.terms.values():
        part = Linear(c, {})
        for f in factors_of(e):
            lo, _ = bounds(f, ranges)
            if lo is None or lo < 0:
                return False
            one = Linear(lo, {atom_key(f): (f, 1)})  # f stands for what it is above ``lo``
            part = multiplied(part, one)
        shifted = shifted.plus(part)
        if len(shifted.terms) > MOST:
            return False
    return shifted.const >= 0 and all(c >= 0 for _, c in shifted.terms.values())


def _below_one(expr: Expr, ranges: Ranges) -> bool:
    lo, _ = bounds(expr, ranges)
    return lo is None or lo < 1


def _below_zero(expr: Expr, ranges: Ranges) -> bool:
    lo, _ = bounds(expr, ranges)
    return lo is None or lo < 0


def _bounds_of_atom(atom: Binary, from_below: bool) -> Iterable[tuple[int, Linear]]:
    """``(s, e)`` with ``s * atom >= e`` (``from_below``) or ``s * atom <= e``, and ``s > 0``."""
    if atom.op == "floordiv" and isinstance(atom.b, Const) and atom.b.value > 0:
        d = int(atom.b.value)
        yield d, linear(atom.a, {}).plus(Linear(1 - d if from_below else 0, {}))
    if atom.op == "floormod" and not from_below:
        yield 1, linear(atom.b, {}).plus(Linear(-1, {}))
    if atom.op == ("max" if from_below else "min"):
        yield 1, linear(atom.a, {})
        yield 1, linear(atom.b, {})


def quotient(a: Linear, b: Linear) -> tuple[Linear, Linear]:
    """``(q, r)`` with ``a == q * b + r``, ``q`` as large a part as divides evenly."""
    first, by = max(b.terms.values(), key=lambda t: (len(factors_of(t[0])), str(t[0])))
    wanted = Counter(atom_key(f) for f in factors_of(first))
    whole, rest = Linear(0, {}), a
    for _ in range(MOST):
        part = _divisible(rest, wanted, by)
        if part is None:
            break
        whole = whole.plus(part)
        rest = rest.plus(multiplied(part, b).scaled(-1))
    return whole, rest


def _divisible(a: Linear, wanted: Counter[object], by: int) -> Linear | None:
    """The quotient of one term of ``a`` that the leading term divides."""
    for e, c in a.terms.values():
        if c % by:
            continue
        left = Counter(wanted)
        others: list[Expr] = []
        for f in factors_of(e):
            key = atom_key(f)
            if left[key] > 0:
                left[key] -= 1
            else:
                others.append(f)
        if not +left:
            return _term(others, c // by)
    return None
