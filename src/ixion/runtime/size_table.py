"""Many dims evaluated at once: each distinct part of them is computed once for all."""

from __future__ import annotations

from collections.abc import Mapping

from ixion.base import dim as dims
from ixion.base.dim import Atom, Dim, SymExpr
from ixion.base.errors import InputError

_CONST, _SYMBOL, _ADD, _MULTIPLY, _DIVIDE, _MAX, _MIN = range(7)


class SizeTable:
    """Numbered values: ``add`` gives the number of a dim, ``values`` computes them all.

    A quotient by zero counts as 0: it is work cut into pieces of nothing.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self._rows: list[tuple[int, int, int]] = []
        self._known: dict[object, int] = {}

    def add(self, dim: Dim) -> int:
        """The number of a dim; InputError for one that only data tells (``Any``)."""
        if isinstance(dim, dims.Any):
            raise InputError("the dimension is unknown (Any) and has no value")
        found = self._known.get(dim)
        if found is None:
            made = self._row(_CONST, dim, 0) if isinstance(dim, int) else self._sum(dim)
            found = self._known[dim] = made
        return found

    def _row(self, kind: int, a: int, b: int) -> int:
        key = ("row", kind, a, b)
        if key not in self._known:
            self._known[key] = len(self._rows)
            self._rows.append((kind, a, b))
        return self._known[key]

    def _sum(self, dim: SymExpr) -> int:
        total = -1
        for monomial, factor in dims.terms_of(dim).items():
            part = -1
            for atom, power in monomial:
                for _ in range(power):
                    number = self._atom(atom)
                    part = number if part < 0 else self._row(_MULTIPLY, part, number)
            if part < 0 or factor != 1:
                number = self._row(_CONST, factor, 0)
                part = number if part < 0 else self._row(_MULTIPLY, part, number)
            total = part if total < 0 else self._row(_ADD, total, part)
        return total

    def _atom(self, atom: Atom) -> int:
        if atom.kind == "var":
            return self._symbol(str(atom.args[0]))
        kind = {"floordiv": _DIVIDE, "max": _MAX, "min": _MIN}[atom.kind]
        first, *rest = (self.add(d) for d in atom.dims())
        for number in rest:
            first = self._row(kind, first, number)
        return first

    def _symbol(self, name: str) -> int:
        if name not in self.names:
            self.names.append(name)
        return self._row(_SYMBOL, self.names.index(name), 0)

    def values(self, sizes: Mapping[str, int]) -> list[int]:
        """The values by number; InputError names a symbol that has none."""
        for name in self.names:
            if name not in sizes:
                raise InputError(f"no value for the symbolic dimension {name!r}")
        given = [sizes[name] for name in self.names]
        out: list[int] = []
        for kind, a, b in self._rows:
            if kind == _MULTIPLY:
                out.append(out[a] * out[b])
            elif kind == _ADD:
                out.append(out[a] + out[b])
            elif kind == _CONST:
                out.append(a)
            elif kind == _SYMBOL:
                out.append(given[a])
            elif kind == _DIVIDE:
                out.append(out[a] // out[b] if out[b] else 0)
            else:
                out.append(max(out[a], out[b]) if kind == _MAX else min(out[a], out[b]))
        return out
