"""Index arithmetic: folding while expressions are built, and simplification under known ranges.

Layout changes and reshapes compose into chains of ``//`` and ``%``.  ``simplify`` rewrites an
int64 expression as a sum ``c0 + c1*a1 + c2*a2 + ...`` over atoms (variables and what cannot be
split), and uses the range of each variable to drop divisions: if every coefficient but some is
divisible by ``d`` and the others sum to a value in ``[0, d)``, then ``e // d`` is the divided part
and ``e % d`` the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import gcd

from ixion.te.expr import (
    INDEX,
    Binary,
    Cast,
    Checked,
    Compare,
    Const,
    Expr,
    Intrinsic,
    Load,
    Select,
    Size,
    Var,
    wrap,
)

Range = tuple[int | None, int | None]  # inclusive bounds, None = unbounded
# Of a loop variable; the upper bound may be an expression over sizes.
Ranges = Mapping[Var, tuple[int | None, "int | Expr | None"]]

_FOLD: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b if b else 0,
    "floormod": lambda a, b: a % b if b else 0,
    "truncdiv": lambda a, b: int(a / b) if b else 0,
    "truncmod": lambda a, b: a - b * int(a / b) if b else 0,
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
}


def const_value(expr: Expr) -> int | None:
    """The Python int of an integer constant, else None."""
    return int(expr.value) if isinstance(expr, Const) else None


def fold_index(op: str, a: Expr, b: Expr) -> Expr:
    """``Binary(op, a, b)`` of int64 with the cheap identities applied."""
    x, y = const_value(a), const_value(b)
    if x is not None and y is not None and op in _FOLD:
        return Const(_FOLD[op](x, y), INDEX, a.lanes)
    if op == "add":
        return _fold_add(a, b, x, y)
    if op == "sub" and y is not None:
        return a if y == 0 else _fold_add(a, Const(-y, INDEX, a.lanes), x, -y)
    if op == "mul":
        return _fold_mul(a, b, x, y)
    if op in ("floordiv", "truncdiv") and y == 1:
        return a
    if op in ("floormod", "truncmod") and y == 1:
        return Const(0, INDEX, a.lanes)
    return Binary(op, a, b)


def _fold_add(a: Expr, b: Expr, x: int | None, y: int | None) -> Expr:
    if x == 0:
        return b
    if y == 0:
        return a
    if x is not None:
        a, b, y = b, a, x
    if y is not None and isinstance(a, Binary) and a.op == "add":
        inner = const_value(a.b)
        if inner is not None:
            return fold_index("add", a.a, Const(inner + y, INDEX, a.lanes))
    return Binary("add", a, b)


def _fold_mul(a: Expr, b: Expr, x: int | None, y: int | None) -> Expr:
    if x is not None:
        a, b, x, y = b, a, None, x
    if y == 1:
        return a
    if y == 0:
        return Const(0, INDEX, a.lanes)
    if y is not None and isinstance(a, Binary) and a.op == "mul":
        inner = const_value(a.b)
        if inner is not None:
            return fold_index("mul", a.a, Const(inner * y, INDEX, a.lanes))
    return Binary("mul", a, b)


@dataclass
class Linear:
    """``const + sum(coefficient * atom)``; atoms are keyed by structure (see ``atom_key``)."""

    const: int
    terms: dict[object, tuple[Expr, int]]

    def scaled(self, k: int) -> Linear:
        if k == 0:
            return Linear(0, {})
        return Linear(self.const * k, {key: (e, c * k) for key, (e, c) in self.terms.items()})

    def plus(self, other: Linear) -> Linear:
        terms = dict(self.terms)
        for key, (e, c) in other.terms.items():
            total = terms[key][1] + c if key in terms else c
            if total:
                terms[key] = (e, total)
            else:
                terms.pop(key, None)
        return _recombined(Linear(self.const + other.const, terms))

    def expr(self) -> Expr:
        """Back to an expression; the constant comes last so that it can become an offset."""
        total: Expr | None = None
        for e, c in self.terms.values():
            part = fold_index("mul", e, wrap(c))
            total = part if total is None else Binary("add", total, part)
        if total is None:
            return Const(self.const, INDEX)
        return fold_index("add", total, Const(self.const, INDEX))


def _recombined(lin: Linear) -> Linear:
    """``(e // d) * d * k + (e % d) * k`` is ``e * k``: an index split and joined again."""
    for key, (atom, c) in lin.terms.items():
        if isinstance(atom, Binary) and atom.op in ("mul", "floormod") and _has_open_rest(atom):
            joined = _joined_by_size(lin, key, atom, c)
            if joined is not None:
                return joined
        if not (isinstance(atom, Binary) and atom.op == "floordiv" and isinstance(atom.b, Const)):
            continue
        d = int(atom.b.value)
        other = atom_key(Binary("floormod", atom.a, atom.b))
        if d > 0 and c % d == 0 and other in lin.terms and lin.terms[other][1] == c // d:
            terms = {k: t for k, t in lin.terms.items() if k not in (key, other)}
            whole = linear(atom.a, {}).scaled(c // d)
            return Linear(lin.const, terms).plus(whole)
    return lin


def _has_open_rest(atom: Expr) -> bool:
    return any(_is_open_rest(f) for f in factors_of(atom))


def _is_open_rest(expr: Expr) -> bool:
    """Whether it is ``e % d`` with a divisor known at run time only."""
    return isinstance(expr, Binary) and expr.op == "floormod" and not isinstance(expr.b, Const)


def _joined_by_size(lin: Linear, key: object, atom: Expr, c: int) -> Linear | None:
    """``_recombined`` for the term ``c * atom``, where ``d`` is an expression over sizes."""
    factors = factors_of(atom)
    for position, rest in enumerate(factors):
        if not (isinstance(rest, Binary) and _is_open_rest(rest)):
            continue
        others = Linear(c, {})
        for f in factors[:position] + factors[position + 1 :]:
            others = multiplied(others, _atom(f))
        quotient = fold_index("floordiv", rest.a, rest.b)
        wanted = multiplied(multiplied(others, _atom(quotient)), linear(rest.b, {}))
        found = (lin.terms.get(k, (None, None))[1] == t[1] for k, t in wanted.terms.items())
        if wanted.const == 0 and wanted.terms and all(found):
            terms = {k: t for k, t in lin.terms.items() if k != key and k not in wanted.terms}
            return Linear(lin.const, terms).plus(multiplied(others, linear(rest.a, {})))
    return None


def atom_key(expr: Expr) -> object:
    """Equal for expressions of equal structure; variables and buffers count by identity."""
    if isinstance(expr, Var):
        return expr
    if isinstance(expr, Const):
        return ("const", expr.value, expr.dtype)
    label: object = type(expr).__name__
    if is_product(expr):
        factors = Counter(atom_key(f) for f in factors_of(expr))
        return ("product", frozenset(factors.items()))
    if isinstance(expr, (Binary, Compare)):
        label = expr.op
    elif isinstance(expr, Intrinsic):
        label = expr.name
    elif isinstance(expr, Checked):
        label = ("checked", expr.extent if isinstance(expr.extent, int) else None)
    elif isinstance(expr, Load):
        label = (id(expr.buffer), expr.lanes, expr.stride)
    elif not isinstance(expr, (Select, Cast)):
        label = id(expr)
    return (label, expr.dtype, *(atom_key(c) for c in expr.children()))


def linear(expr: Expr, ranges: Ranges) -> Linear:
    """``expr`` (scalar int64) as a linear form, its atoms simplified."""
    if isinstance(expr, Const):
        return Linear(int(expr.value), {})
    if isinstance(expr, Var):
        lo, hi = ranges.get(expr, (None, None))
        if lo is not None and isinstance(hi, int) and lo == hi:
            return Linear(lo, {})
        return Linear(0, {expr: (expr, 1)})
    if isinstance(expr, Binary):
        if expr.op == "add":
            return linear(expr.a, ranges).plus(linear(expr.b, ranges))
        if expr.op == "sub":
            return linear(expr.a, ranges).plus(linear(expr.b, ranges).scaled(-1))
        return _linear_product(expr, ranges)
    if isinstance(expr, Cast) and isinstance(expr.a, Const):
        return Linear(int(expr.a.value), {})
    return _atom(_rebuilt(expr, ranges))


def _linear_product(expr: Binary, ranges: Ranges) -> Linear:
    a, b = linear(expr.a, ranges), linear(expr.b, ranges)
    if expr.op == "mul" and not b.terms:
        return a.scaled(b.const)
    if expr.op == "mul" and not a.terms:
        return b.scaled(a.const)
    if expr.op in ("floordiv", "floormod") and not b.terms and b.const > 0:
        return _divide(expr.op, a, b.const, ranges)
    if expr.op in ("min", "max"):
        return _extreme(expr.op, a, b, ranges)
    if expr.op == "mul":
        return multiplied(a, b)
    if expr.op in ("floordiv", "floormod") and b.terms:
        return divided(expr.op, a, b, ranges)
    folded = fold_index(expr.op, a.expr(), b.expr())
    return Linear(int(folded.value), {}) if isinstance(folded, Const) else _atom(folded)


def is_product(expr: Expr) -> bool:
    """Whether an index expression is a product of two that both vary."""
    return isinstance(expr, Binary) and expr.op == "mul" and expr.dtype == INDEX


def factors_of(expr: Expr) -> list[Expr]:
    """What a product is made of."""
    stack, found = [expr], []
    while stack:
        node = stack.pop()
        if is_product(node):
            stack += [node.b, node.a]  # type: ignore[attr-defined]
        else:
            found.append(node)
    return found


def multiplied(a: Linear, b: Linear) -> Linear:
    """The product, its terms products of atoms."""
    total = Linear(a.const * b.const, {}).plus(Linear(0, a.scaled(b.const).terms))
    total = total.plus(Linear(0, b.scaled(a.const).terms))
    for x, c in a.terms.values():
        for y, d in b.terms.values():
            product = Binary("mul", x, y)
            total = total.plus(Linear(0, {atom_key(product): (product, c * d)}))
    return total


def divided(op: str, a: Linear, b: Linear, ranges: Ranges) -> Linear:
    """Division by an expression over sizes: what is a multiple of it leaves the division."""
    from ixion.te.symbolic import never_negative, quotient

    whole, rest = quotient(a, b)
    inside = never_negative(rest, ranges) and never_negative(
        b.plus(Linear(-1, {})).plus(rest.scaled(-1)), ranges
    )
    if inside:
        return whole if op == "floordiv" else rest
    found = _divided_by_size_coarsely(op, rest, b, ranges)
    if found is None:
        found = _atom(fold_index(op, rest.expr(), b.expr()))
    return whole.plus(found) if op == "floordiv" else found


def _divided_by_size_coarsely(op: str, a: Linear, b: Linear, ranges: Ranges) -> Linear | None:
    """As ``_divided_coarsely``, for a divisor ``c * sizes`` and a ``g`` that has sizes in it."""
    from ixion.te.symbolic import never_negative, quotient

    if b.const or len(b.terms) != 1:
        return None
    for g in _common_parts(a, b):
        x, fine = quotient(a, g)
        inside = x.terms and never_negative(fine, ranges)
        below = g.plus(Linear(-1, {})).plus(fine.scaled(-1))
        if not inside or not never_negative(below, ranges):
            continue
        (divisor, _) = quotient(b, g)
        if op == "floordiv":
            return _quotient_of(x, divisor, ranges)
        return multiplied(_rest_of(x, divisor, ranges), g).plus(fine)
    return None


def _common_parts(a: Linear, b: Linear) -> list[Linear]:
    """What a term of ``a`` and all of ``b`` (one term) can be divided by, sizes among it."""
    ((of_b, times),) = b.terms.values()
    found: dict[object, Linear] = {}
    for e, c in a.terms.values():
        left = Counter(atom_key(f) for f in factors_of(e))
        part = Linear(gcd(c, times), {})
        for f in factors_of(of_b):
            if left[atom_key(f)] > 0:
                left[atom_key(f)] -= 1
                part = multiplied(part, _atom(f))
        if part.terms and len(part.terms) == 1:
            key, (_, factor) = next(iter(part.terms.items()))
            found.setdefault((key, factor), part)
    return sorted(found.values(), key=lambda g: -max(c for _, c in g.terms.values()))


def _quotient_of(a: Linear, b: Linear, ranges: Ranges) -> Linear:
    if not b.terms:
        return _divide("floordiv", a, b.const, ranges)
    return divided("floordiv", a, b, ranges)


def _rest_of(a: Linear, b: Linear, ranges: Ranges) -> Linear:
    if not b.terms:
        return _divide("floormod", a, b.const, ranges)
    return divided("floormod", a, b, ranges)


def _divide(op: str, a: Linear, d: int, ranges: Ranges) -> Linear:
    whole = {k: t for k, t in a.terms.items() if t[1] % d == 0}
    rest = Linear(a.const % d, {k: t for k, t in a.terms.items() if k not in whole})
    quotient = Linear(a.const // d, {k: (e, c // d) for k, (e, c) in whole.items()})
    lo, hi = bounds_of(rest, ranges)
    if lo is not None and hi is not None and lo // d == hi // d:
        shift = lo // d
        if op == "floordiv":
            return quotient.plus(Linear(shift, {}))
        return rest.plus(Linear(-shift * d, {}))
    found = _divided_coarsely(op, rest, d, ranges)
    if found is None:
        found = _atom(Binary(op, rest.expr(), wrap(d)))
    return quotient.plus(found) if op == "floordiv" else found


def _divided_coarsely(op: str, a: Linear, d: int, ranges: Ranges) -> Linear | None:
    """``(g*x + r) // (g*k)`` is ``x // k`` where ``0 <= r < g``; the remainder accordingly."""
    steps = {abs(c) for _, c in a.terms.values() if 1 < abs(c) < d and d % abs(c) == 0}
    for g in sorted(steps, reverse=True):
        coarse = {k: (e, c // g) for k, (e, c) in a.terms.items() if c % g == 0}
        fine = Linear(a.const % g, {k: t for k, t in a.terms.items() if t[1] % g})
        lo, hi = bounds_of(fine, ranges)
        if lo is None or hi is None or lo < 0 or hi >= g:
            continue
        x = Linear(a.const // g, coarse)
        if op == "floordiv":
            return _divide("floordiv", x, d // g, ranges)
        return _divide("floormod", x, d // g, ranges).scaled(g).plus(fine)
    return None


def _extreme(op: str, a: Linear, b: Linear, ranges: Ranges) -> Linear:
    lo, hi = bounds_of(a.plus(b.scaled(-1)), ranges)
    if lo is not None and lo >= 0:
        return a if op == "max" else b
    if hi is not None and hi <= 0:
        return b if op == "max" else a
    if lo is None or hi is None:
        from ixion.te.symbolic import never_negative

        if never_negative(a.plus(b.scaled(-1)), ranges):
            return a if op == "max" else b
        if never_negative(b.plus(a.scaled(-1)), ranges):
            return b if op == "max" else a
    return _atom(Binary(op, a.expr(), b.expr()))


def _atom(expr: Expr) -> Linear:
    if isinstance(expr, Const):
        return Linear(int(expr.value), {})
    return Linear(0, {atom_key(expr): (expr, 1)})


def _rebuilt(expr: Expr, ranges: Ranges) -> Expr:
    old = expr.children()
    new = [simplify(c, ranges) for c in old]
    if all(x is y for x, y in zip(old, new, strict=True)):
        return expr
    return expr.rebuild(new)


def bounds_of(lin: Linear, ranges: Ranges) -> Range:
    """Inclusive bounds of a linear form."""
    lo: int | None = lin.const
    hi: int | None = lin.const
    for e, c in lin.terms.values():
        a, b = bounds(e, ranges)
        if c < 0:
            a, b = b, a
        lo = None if lo is None or a is None else lo + c * a
        hi = None if hi is None or b is None else hi + c * b
    return lo, hi


def bounds(expr: Expr, ranges: Ranges) -> Range:
    """Inclusive bounds of a scalar int64 expression, as far as ``ranges`` tells."""
    if isinstance(expr, Const):
        return int(expr.value), int(expr.value)
    if isinstance(expr, Var):
        return _known_bounds(expr, ranges)
    if isinstance(expr, Checked):
        return 0, expr.extent - 1 if isinstance(expr.extent, int) else None
    if isinstance(expr, Binary):
        return _binary_bounds(expr, ranges)
    if isinstance(expr, Select):
        a, b = bounds(expr.a, ranges), bounds(expr.b, ranges)
        lo = None if a[0] is None or b[0] is None else min(a[0], b[0])
        hi = None if a[1] is None or b[1] is None else max(a[1], b[1])
        return lo, hi
    return None, None


def _known_bounds(var: Var, ranges: Ranges) -> Range:
    lo, hi = ranges.get(var, (0, None) if isinstance(var, Size) else (None, None))
    return lo, hi if isinstance(hi, int) else None


def _binary_bounds(expr: Binary, ranges: Ranges) -> Range:
    (a0, a1), (b0, b1) = bounds(expr.a, ranges), bounds(expr.b, ranges)
    if expr.op == "add":
        return (
            None if a0 is None or b0 is None else a0 + b0,
            None if a1 is None or b1 is None else a1 + b1,
        )
    if expr.op == "sub":
        return (
            None if a0 is None or b1 is None else a0 - b1,
            None if a1 is None or b0 is None else a1 - b0,
        )
    if b0 is not None and b0 == b1 and b0 > 0:
        if expr.op == "floordiv":
            return (None if a0 is None else a0 // b0, None if a1 is None else a1 // b0)
        if expr.op == "floormod":
            return 0, b0 - 1
    if expr.op == "mul" and None not in (a0, a1, b0, b1):
        products = [x * y for x in (a0, a1) for y in (b0, b1) if x is not None and y is not None]
        return min(products), max(products)
    if expr.op == "mul" and a0 is not None and b0 is not None and a0 >= 0 and b0 >= 0:
        return a0 * b0, None
    if expr.op == "floordiv" and a0 is not None and b0 is not None and a0 >= 0 and b0 > 0:
        return 0, a1
    if expr.op == "floormod" and b0 is not None and b0 > 0:
        return 0, None if b1 is None else b1 - 1
    if expr.op == "min":
        return (
            None if a0 is None or b0 is None else min(a0, b0),
            b1 if a1 is None else a1 if b1 is None else min(a1, b1),
        )
    if expr.op == "max":
        return (
            b0 if a0 is None else a0 if b0 is None else max(a0, b0),
            None if a1 is None or b1 is None else max(a1, b1),
        )
    return None, None


def simplify(expr: Expr, ranges: Ranges | None = None) -> Expr:
    """An equal expression, shorter where ``ranges`` allows.

    Comparisons that the ranges decide become constants, and selects on them one branch.
    """
    known: Ranges = ranges if ranges is not None else {}
    if expr.dtype == INDEX and expr.lanes == 1:
        return linear(expr, known).expr()
    new = _rebuilt(expr, known)
    if isinstance(new, Compare) and new.a.dtype == INDEX and new.lanes == 1:
        decided = _decide(new, known)
        return new if decided is None else Const(decided, "bool")
    if isinstance(new, Select) and isinstance(new.cond, Const):
        return new.a if new.cond.value else new.b
    if isinstance(new, Binary) and new.dtype == "bool":
        return _fold_logic(new)
    return new


def _decide(cmp: Compare, ranges: Ranges) -> bool | None:
    lo, hi = bounds_of(linear(cmp.a, ranges).plus(linear(cmp.b, ranges).scaled(-1)), ranges)
    always = {
        "lt": hi is not None and hi < 0,
        "le": hi is not None and hi <= 0,
        "gt": lo is not None and lo > 0,
        "ge": lo is not None and lo >= 0,
        "eq": lo is not None and lo == hi == 0,
        "ne": (lo is not None and lo > 0) or (hi is not None and hi < 0),
    }
    if not any(always.values()) and (lo is None or hi is None):
        _decide_symbolically(always, cmp, ranges)
    opposite = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}
    if always[cmp.op]:
        return True
    return False if always[opposite[cmp.op]] else None


def _decide_symbolically(always: dict[str, bool], cmp: Compare, ranges: Ranges) -> None:
    from ixion.te.symbolic import never_negative

    apart = linear(cmp.a, ranges).plus(linear(cmp.b, ranges).scaled(-1))
    one = Linear(-1, {})
    always["ge"] = never_negative(apart, ranges)
    always["le"] = never_negative(apart.scaled(-1), ranges)
    always["gt"] = always["ge"] and never_negative(apart.plus(one), ranges)
    always["lt"] = always["le"] and never_negative(apart.scaled(-1).plus(one), ranges)
    always["eq"] = always["ge"] and always["le"]
    always["ne"] = always["gt"] or always["lt"]


def _fold_logic(expr: Binary) -> Expr:
    for this, other in ((expr.a, expr.b), (expr.b, expr.a)):
        if isinstance(this, Const):
            if expr.op == "and":
                return other if this.value else this
            if expr.op == "or":
                return this if this.value else other
    return expr
