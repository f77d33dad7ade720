"""Floor division of symbolic dims; see ``dim.py`` for the normal form it keeps."""

from __future__ import annotations

import math
from typing import cast

from ixion.base.dim import (
    Atom,
    Dim,
    Monomial,
    SymExpr,
    Terms,
    add,
    build,
    floordiv,
    make_atom,
    multiply,
    order,
    terms_of,
)


def by_constant(a: Dim, k: int) -> Dim:
    whole: Terms = {}
    rest: Terms = {}
    for monomial, factor in terms_of(cast("int | SymExpr", a)).items():
        whole[monomial], rest[monomial] = divmod(factor, k)
    rest = {monomial: factor for monomial, factor in rest.items() if factor}
    constant = rest.pop((), 0)
    if rest:
        # A factor g of k and of all coefficients goes out, taking floor(c / g) of the constant.
        shared = math.gcd(k, *rest.values())
        k //= shared
        rest = {monomial: factor // shared for monomial, factor in rest.items()}
        rest[()] = constant // shared
        return add(build(whole), _of_rest(build(rest), k))
    return build(whole)


def _of_rest(a: Dim, k: int) -> Dim:
    """Division of a remainder that nothing can be taken out of; (x // j + c) // k loses a level."""
    terms = terms_of(cast("int | SymExpr", a))
    constant = terms.pop((), 0)
    if k == 1 or not terms:
        return floordiv(a, k) if not terms else a
    (monomial, factor), *others = terms.items()
    if not others and factor == 1 and len(monomial) == 1:
        atom, power = monomial[0]
        if power == 1 and atom.kind == "floordiv" and isinstance(atom.args[1], int):
            inner, divisor = atom.dims()[0], atom.args[1]
            return floordiv(add(inner, constant * divisor), divisor * k)
    return make_atom("floordiv", (a, k))


def by_symbolic(a: Dim, b: SymExpr) -> Dim:
    whole, rest = _divide_out(terms_of(cast("int | SymExpr", a)), b)
    if not rest:
        return build(whole)
    left, right = _cancel(rest, dict(b._terms))
    if isinstance(right, int):
        return add(build(whole), floordiv(left, right))
    return add(build(whole), make_atom("floordiv", (left, right)))


def _divide_out(terms: Terms, b: SymExpr) -> tuple[Terms, Terms]:
    """Quotient and remainder by the leading term of ``b``, while the remainder gets no longer."""
    whole: Terms = {}
    lead, lead_factor = b._terms[0]
    for monomial in sorted(terms, key=lambda item: order((item, 1))):
        factor = terms.get(monomial, 0)
        quotient = _monomial_quotient(monomial, lead)
        if quotient is None or factor % lead_factor:
            continue
        step = {quotient: factor // lead_factor}
        smaller = _terms_minus(terms, step, b)
        if len(smaller) < len(terms):
            terms = smaller
            whole[quotient] = whole.get(quotient, 0) + step[quotient]
    return whole, terms


def _terms_minus(terms: Terms, step: Terms, b: SymExpr) -> Terms:
    product = multiply(build(step), b)
    return terms_of(cast("int | SymExpr", add(build(terms), multiply(-1, product))))


def _monomial_quotient(a: Monomial, b: Monomial) -> Monomial | None:
    powers = dict(a)
    for atom, power in b:
        left = powers.get(atom, 0) - power
        if left < 0:
            return None
        powers[atom] = left
    return tuple((atom, power) for atom, power in powers.items() if power)


def _cancel(a: Terms, b: Terms) -> tuple[int | SymExpr, int | SymExpr]:
    """``a`` and ``b`` without the integer and the atoms that every term of both has."""
    shared = math.gcd(*a.values(), *b.values())
    common: dict[Atom, int] = dict(next(iter(a)))
    for monomial in (*a, *b):
        powers = dict(monomial)
        common = {x: min(p, powers[x]) for x, p in common.items() if x in powers}
    factor = tuple(common.items())

    def reduced(terms: Terms) -> int | SymExpr:
        quotients = ((_monomial_quotient(m, factor), f // shared) for m, f in terms.items())
        return build({m: f for m, f in quotients if m is not None})

    return reduced(a), reduced(b)
