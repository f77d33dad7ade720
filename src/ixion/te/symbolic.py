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


def never_negative(form: Linear, ranges: Ranges) -> bool:
    """Whether the form is at least 0 for all values in the ranges and all sizes."""
    lo, _ = bounds_of(form, ranges)
    if lo is not None and lo >= 0:
        return True
    if not any(_is_symbolic(e, ranges) for e, _ in form.terms.values()):
        return False
    return _proved(form, ranges, DEEPEST)


def _is_symbolic(expr: Expr, ranges: Ranges) -> bool:
    return any(
        isinstance(n, Var) and (isinstance(n, Size) or isinstance(ranges.get(n, (0, 0))[1], Expr))
        for n in walk(expr)
    )


def _proved(form: Linear, ranges: Ranges, depth: int) -> bool:
    if len(form.terms) > MOST:
        return False
    for var in _loop_variables(form):
        slope, rest = coefficient(form, var)
        if slope is None or rest is None:
            continue
        end = _worst_end(var, slope, ranges, depth)
        if end is not None:
            return _proved(rest.plus(multiplied(slope, end)), ranges, depth)
    return _all_positive(form, ranges) or (depth > 0 and _proved_by_bounds(form, ranges, depth))


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


def _worst_end(var: Var, slope: Linear, ranges: Ranges, depth: int) -> Linear | None:
    lo, hi = ranges.get(var, (None, None))
    if lo is not None and _proved(slope, ranges, depth - 1 if depth else 0):
        return Linear(lo, {})
    if hi is not None and _proved(slope.scaled(-1), ranges, depth - 1 if depth else 0):
        return linear(hi, {}) if isinstance(hi, Expr) else Linear(hi, {})
    return None


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


def _proved_by_bounds(form: Linear, ranges: Ranges, depth: int) -> bool:
    """Replaces one quotient, minimum or maximum by something that makes the form smaller."""
    for key, (e, c) in form.terms.items():
        rest = Linear(form.const, {k: t for k, t in form.terms.items() if k != key})
        factors = factors_of(e)
        for position, f in enumerate(factors):
            others = factors[:position] + factors[position + 1 :]
            if not isinstance(f, Binary) or any(_below_zero(o, ranges) for o in others):
                continue
            if c == -1 and not others and f.op == "floordiv" and not _below_one(f.b, ranges):
                # ``rest >= a // b`` in whole numbers is ``(rest + 1) * b > a``.
                whole = multiplied(rest.plus(Linear(1, {})), linear(f.b, {}))
                apart = whole.plus(linear(f.a, {}).scaled(-1)).plus(Linear(-1, {}))
                if _proved(apart, ranges, depth - 1):
                    return True
            around = _term(others, c)
            for scale, smaller in _bounds_of_atom(f, c > 0):
                lower = rest.scaled(scale).plus(multiplied(around, smaller))
                if _proved(lower, ranges, depth - 1):
                    return True
    return False


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
