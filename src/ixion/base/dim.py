"""Dimensions: an int, ``Any`` (unknown), or a symbolic integer expression in one normal form.

The normal form is a sum of products with integer coefficients over *atoms*: a symbol, a floor
division, a maximum, a minimum. ``a % b`` is kept as ``a - b * (a // b)``, so it needs no atom of
its own and ``a // k * k + a % k`` is ``a`` without a rule; printing folds it back. A floor division
by a constant keeps only coefficients in ``[0, k)`` inside, so ``(n - 1) // 4 + 1`` and
``(n + 3) // 4`` are one expression. Equality is that of the normal forms. Symbols stand for
extents: whole numbers, zero or more.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import NoReturn, TypeAlias, TypeGuard, cast

from ixion.base.errors import InputError, did_you_mean

Monomial: TypeAlias = "tuple[tuple[Atom, int], ...]"
Terms: TypeAlias = "dict[Monomial, int]"


class Any:
    """A dimension nobody knows. Every two are equal, and arithmetic with one gives one."""

    __slots__ = ()
    _the: Any | None = None

    def __new__(cls) -> Any:
        if cls._the is None:
            cls._the = object.__new__(cls)
        return cls._the

    def _absorb(self, other: object) -> Any:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _absorb
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _absorb

    def __neg__(self) -> Any:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Any)

    def __hash__(self) -> int:
        return 0x3F

    def __reduce__(self) -> tuple[type[Any], tuple[()]]:
        return (Any, ())

    def __repr__(self) -> str:
        return "?"


class Atom:
    """An indivisible factor: ``var`` with a name, or ``floordiv``, ``max``, ``min`` of dims.

    The text is canonical, so it serves as the key for equality, hash and order.
    """

    __slots__ = ("args", "hash", "kind", "text")

    def __init__(self, kind: str, args: tuple[object, ...], text: str) -> None:
        self.kind = kind
        self.args = args
        self.text = text
        self.hash = hash(text)

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is Atom and self.text == other.text)

    def __hash__(self) -> int:
        return self.hash

    def dims(self) -> tuple[Dim, ...]:
        """The arguments of a non-symbol."""
        return cast("tuple[Dim, ...]", self.args)


class SymExpr:
    """A symbolic integer that is not a constant; see the module for its normal form.

    Operators return an int whenever the result is constant.
    """

    __slots__ = ("_hash", "_terms", "_text")
    _terms: tuple[tuple[Monomial, int], ...]
    _hash: int
    _text: str

    def __add__(self, other: Dim) -> Dim:
        return add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Dim) -> Dim:
        return add(self, multiply(-1, other))

    def __rsub__(self, other: Dim) -> Dim:
        return add(other, multiply(-1, self))

    def __neg__(self) -> Dim:
        return multiply(-1, self)

    def __mul__(self, other: Dim) -> Dim:
        return multiply(self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        return floordiv(self, other)

    def __rfloordiv__(self, other: Dim) -> Dim:
        return floordiv(other, self)

    def __mod__(self, other: Dim) -> Dim:
        return mod(self, other)

    def __rmod__(self, other: Dim) -> Dim:
        return mod(other, self)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, SymExpr) and self._terms == other._terms)

    def __hash__(self) -> int:
        return self._hash

    def __bool__(self) -> bool:
        return True

    def __index__(self) -> NoReturn:
        raise TypeError(f"the symbolic dimension {self} has no value yet; use evaluate()")

    __int__ = __index__

    def __reduce__(self) -> tuple[Callable[[str], Dim], tuple[str]]:
        return (parse, (plain_text(self._terms),))

    def __repr__(self) -> str:
        if not hasattr(self, "_text"):
            from ixion.base.dim_text import readable

            self._text = readable(dict(self._terms))
        return self._text

    def free_vars(self) -> frozenset[str]:
        """Names of the symbols in it."""
        found: set[str] = set()
        for atom in self._atoms():
            if atom.kind == "var":
                found.add(atom.text)
            else:
                found.update(*(free_vars(dim) for dim in atom.dims()))
        return frozenset(found)

    def _atoms(self) -> Iterable[Atom]:
        return (atom for monomial, _ in self._terms for atom, _ in monomial)

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The number it has for these symbol values; InputError names a symbol left without one."""
        return sum(
            factor * math.prod(_atom_value(atom, values) ** power for atom, power in monomial)
            for monomial, factor in self._terms
        )

    def substitute(self, values: Mapping[str, Dim]) -> Dim:
        """It with symbols replaced, simplified; others stay."""
        total: Dim = 0
        for monomial, factor in self._terms:
            product: Dim = factor
            for atom, power in monomial:
                replaced = _atom_substitute(atom, values)
                for _ in range(power):
                    product = multiply(product, replaced)
            total = add(total, product)
        return total


class SymVar(SymExpr):
    """A symbol of the given name, as an expression. Symbols of one name are equal."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        if not name:
            raise ValueError("a symbolic dimension needs a name")
        self.name = name
        self._terms = ((((Atom("var", (name,), name), 1),), 1),)
        self._hash = hash(self._terms)

    def __reduce__(self) -> tuple[type[SymVar], tuple[str]]:
        return (SymVar, (self.name,))


Dim: TypeAlias = int | Any | SymExpr


def terms_of(dim: int | SymExpr) -> Terms:
    if isinstance(dim, SymExpr):
        return dict(dim._terms)
    return {(): int(dim)} if dim else {}


def order(item: tuple[Monomial, int]) -> tuple[int, tuple[tuple[str, int], ...]]:
    monomial = item[0]
    return (-sum(power for _, power in monomial), tuple((a.text, power) for a, power in monomial))


def build(terms: Terms) -> int | SymExpr:
    kept = [(monomial, factor) for monomial, factor in terms.items() if factor]
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    made = object.__new__(SymExpr)
    made._terms = tuple(sorted(kept, key=order))
    made._hash = hash(made._terms)
    return made


def add(a: Dim, b: Dim) -> Dim:
    """The sum."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if isinstance(a, Any) or isinstance(b, Any):
        return Any()
    total = terms_of(a)
    for monomial, factor in terms_of(b).items():
        total[monomial] = total.get(monomial, 0) + factor
    return build(total)


def _join(a: Monomial, b: Monomial) -> Monomial:
    if not a or not b:
        return a or b
    powers = dict(a)
    for atom, power in b:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: item[0].text))


def multiply(a: Dim, b: Dim) -> Dim:
    """The product; zero times the unknown is zero."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if isinstance(a, Any) or isinstance(b, Any):
        return 0 if a == 0 or b == 0 else Any()
    product: Terms = {}
    for left, x in terms_of(a).items():
        for right, y in terms_of(b).items():
            monomial = _join(left, right)
            product[monomial] = product.get(monomial, 0) + x * y
    return build(product)


def floordiv(a: Dim, b: Dim) -> Dim:
    """Division rounded towards minus infinity; ZeroDivisionError for a constant zero divisor."""
    if isinstance(b, int) and b == 0:
        raise ZeroDivisionError(f"{a} // 0")
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if isinstance(a, Any) or isinstance(b, Any):
        return Any()
    from ixion.base import dim_division

    if isinstance(b, SymExpr):
        return dim_division.by_symbolic(a, b)
    return dim_division.by_constant(a if b > 0 else multiply(-1, a), abs(b))


def mod(a: Dim, b: Dim) -> Dim:
    """The remainder of ``floordiv``, with the divisor's sign."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    return add(a, multiply(-1, multiply(b, floordiv(a, b))))


def maximum(*dims: Dim) -> Dim:
    """The largest; what is provably never larger than another is dropped."""
    return _extreme("max", dims)


def minimum(*dims: Dim) -> Dim:
    """The smallest; what is provably never smaller than another is dropped."""
    return _extreme("min", dims)


def _extreme(kind: str, dims: Iterable[Dim]) -> Dim:
    flat: list[Dim] = []
    for dim in dims:
        atom = _single_atom(dim)
        flat.extend(atom.dims() if atom is not None and atom.kind == kind else (dim,))
    if any(isinstance(dim, Any) for dim in flat):
        return Any()
    kept: list[Dim] = []
    for dim in flat:
        if not any(_beats(kind, other, dim) for other in kept):
            kept = [other for other in kept if not _beats(kind, dim, other)]
            kept.append(dim)
    if not kept:
        raise ValueError(f"{kind} of no dimensions")
    return kept[0] if len(kept) == 1 else make_atom(kind, tuple(sorted(kept, key=_argument_order)))


def _argument_order(dim: Dim) -> tuple[bool, str]:
    return (isinstance(dim, int), str(dim))


def _beats(kind: str, a: Dim, b: Dim) -> bool:
    """``b`` can be dropped beside ``a``."""
    bound = lower_bound(add(a, multiply(-1, b)) if kind == "max" else add(b, multiply(-1, a)))
    return bound is not None and bound >= 0


def _single_atom(dim: Dim) -> Atom | None:
    if isinstance(dim, SymExpr) and len(dim._terms) == 1:
        monomial, factor = dim._terms[0]
        if factor == 1 and len(monomial) == 1 and monomial[0][1] == 1:
            return monomial[0][0]
    return None


def make_atom(kind: str, args: tuple[Dim, ...]) -> Dim:
    shown = [plain_text(dim._terms) if isinstance(dim, SymExpr) else str(dim) for dim in args]
    if kind == "floordiv":
        text = " // ".join(
            part if part.isidentifier() or part.isdigit() else f"({part})" for part in shown
        )
    else:
        text = f"{kind}({', '.join(shown)})"
    return build({((Atom(kind, args, text), 1),): 1})


def lower_bound(dim: Dim) -> int | None:
    """A number it is never below, since symbols are not negative; None where unknown.

    Divisions, maxima and minima are bounded by their arguments: ``n - 2*(n // 2)`` is never
    negative because ``2*(n // 2)`` is at most n.
    """
    if isinstance(dim, int):
        return dim
    if isinstance(dim, Any):
        return 0
    found = term_bound(dim)
    if found is None:
        from ixion.base import dim_bounds

        return dim_bounds.by_arguments(dim)
    return found


def term_bound(dim: SymExpr) -> int | None:
    """The sum of what each term is never below; None where a term is not bounded."""
    total = 0
    for monomial, factor in dim._terms:
        bounds = [_atom_bound(atom) for atom, _ in monomial]
        known = [bound for bound in bounds if bound is not None]
        if not monomial:
            total += factor
        elif factor > 0 and len(known) == len(bounds) == 1 and monomial[0][1] == 1:
            total += factor * known[0]
        elif factor < 0 or len(known) != len(bounds) or min(known) < 0:
            return None
    return total


def _atom_bound(atom: Atom) -> int | None:
    if atom.kind == "var":
        return 0
    bounds = [lower_bound(dim) for dim in atom.dims()]
    known = [bound for bound in bounds if bound is not None]
    if atom.kind == "max":
        return max(known, default=None)
    if len(known) != len(bounds):
        return None
    if atom.kind == "min":
        return min(known)
    divisor = atom.args[1]
    if isinstance(divisor, int) and divisor > 0:
        return known[0] // divisor
    return 0 if min(known) >= 0 else None


_FOLD: dict[str, Callable[..., int]] = {"floordiv": operator.floordiv, "max": max, "min": min}
BUILD: dict[str, Callable[..., Dim]] = {"floordiv": floordiv, "max": maximum, "min": minimum}


def _atom_value(atom: Atom, values: Mapping[str, int]) -> int:
    if atom.kind != "var":
        return _FOLD[atom.kind](*(evaluate(dim, values) for dim in atom.dims()))
    if atom.text not in values:
        raise InputError(
            f"no value for the symbolic dimension {atom.text!r}",
            hint=did_you_mean(atom.text, values),
        )
    return int(values[atom.text])


def _atom_substitute(atom: Atom, values: Mapping[str, Dim]) -> Dim:
    if atom.kind == "var":
        return values.get(atom.text, build({((atom, 1),): 1}))
    return BUILD[atom.kind](*(substitute(dim, values) for dim in atom.dims()))


def evaluate(dim: Dim, values: Mapping[str, int]) -> int:
    """The number a dim has for these symbol values; InputError where it stays unknown."""
    if isinstance(dim, int):
        return dim
    if isinstance(dim, Any):
        raise InputError("the dimension is unknown (Any) and has no value")
    return dim.evaluate(values)


def substitute(dim: Dim, values: Mapping[str, Dim]) -> Dim:
    """A dim with symbols replaced."""
    return dim.substitute(values) if isinstance(dim, SymExpr) else dim


def free_vars(dim: Dim) -> frozenset[str]:
    """Names of the symbols in a dim."""
    return dim.free_vars() if isinstance(dim, SymExpr) else frozenset()


def is_dim(value: object) -> TypeGuard[Dim]:
    """It is an int (not a bool), ``Any``, or symbolic."""
    return (isinstance(value, int) and not isinstance(value, bool)) or isinstance(
        value, (Any, SymExpr)
    )


def as_dim(value: object) -> Dim:
    """A dim from a dim or anything that is an index to Python; TypeError otherwise."""
    if type(value) is int or isinstance(value, (Any, SymExpr)):
        return value
    if isinstance(value, bool):
        raise TypeError(f"{value} is not a dimension")
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"not a dimension: {value!r}") from None


def is_static(shape: Iterable[Dim]) -> TypeGuard[tuple[int, ...]]:
    """Every dim is an int."""
    return all(isinstance(dim, int) for dim in shape)


def prod(shape: Iterable[Dim]) -> Dim:
    """The product of dims; 1 for none."""
    total: Dim = 1
    for dim in shape:
        total = multiply(total, dim)
    return total


def ceil_div(a: Dim, b: Dim) -> Dim:
    """Division rounded up, for a positive divisor."""
    return floordiv(add(a, add(b, -1)), b)


def solved(dim: Dim, size: int) -> tuple[str, int] | None:
    """The symbol and its value with which a dim is ``size``, if it is ``k * symbol + c``.

    None for other dims, and where no whole number does it.
    """
    if not isinstance(dim, SymExpr) or len(dim.free_vars()) != 1:
        return None
    terms = terms_of(dim)
    constant = terms.pop((), 0)
    ((monomial, factor), *more) = terms.items()
    if more or len(monomial) != 1 or monomial[0][1] != 1 or monomial[0][0].kind != "var":
        return None
    value, rest = divmod(size - constant, factor)
    return None if rest or value < 0 else (monomial[0][0].text, value)


def reduced(a: Dim, b: Dim) -> tuple[Dim, Dim]:
    """Two dims divided by the integer that divides all their coefficients."""
    if isinstance(a, Any) or isinstance(b, Any):
        return a, b
    left, right = terms_of(a), terms_of(b)
    shared = math.gcd(*left.values(), *right.values())
    if shared < 2:
        return a, b
    return (
        build({monomial: factor // shared for monomial, factor in left.items()}),
        build({monomial: factor // shared for monomial, factor in right.items()}),
    )


def simpler(a: Dim, b: Dim) -> Dim:
    """Of two dims that stand for one size, a number, else the one with the shorter text."""
    if isinstance(a, int) or isinstance(b, Any):
        return a
    if isinstance(b, int) or isinstance(a, Any):
        return b
    return b if len(str(b)) < len(str(a)) else a


def same(a: Dim, b: Dim) -> bool | None:
    """True if two dims are equal for all symbol values, False if for none, None if unknown."""
    if isinstance(a, Any) or isinstance(b, Any):
        return None
    difference = add(a, multiply(-1, b))
    if isinstance(difference, int):
        return difference == 0
    if _never_zero(cast("SymExpr", difference)):
        return False
    return None


def _never_zero(difference: SymExpr) -> bool:
    terms = dict(difference._terms)
    constant = terms.pop((), 0)
    if constant % math.gcd(*terms.values()):
        return True
    low, high = lower_bound(difference), lower_bound(multiply(-1, difference))
    return (low is not None and low > 0) or (high is not None and high > 0)


def plain_text(terms: Iterable[tuple[Monomial, int]]) -> str:
    """Canonical text, in Python's syntax."""
    text = ""
    for monomial, factor in terms:
        parts = [_factor_text(atom, power) for atom, power in monomial]
        if abs(factor) != 1 or not parts:
            parts.insert(0, str(abs(factor)))
        sign = ("-" if factor < 0 else "") if not text else (" - " if factor < 0 else " + ")
        text += sign + "*".join(parts)
    return text


def _factor_text(atom: Atom, power: int) -> str:
    text = f"({atom.text})" if atom.kind == "floordiv" else atom.text
    return "*".join([text] * power)


def parse(text: str) -> Dim:
    """The dim a text denotes: names, integers, ``? + - * // %``, ``max(...)`` and ``min(...)``.

    ``parse(str(dim)) == dim``. Raises ValueError for anything else.
    """
    from ixion.base import dim_text

    return dim_text.parse(text)
