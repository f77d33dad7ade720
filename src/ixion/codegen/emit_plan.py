"""Expressions flattened once: a list of steps that the emitter runs for every unrolled copy.

Operands come before their users and a node used twice appears once. Sums and multiples of scalar
int64 values, which indices are made of, become one step however many nodes they have. No recursion
over depth.
"""

from __future__ import annotations

from typing import NamedTuple

from ixion.te.expr import INDEX, Binary, Const, Expr, Select, Var


class Rare(Select):
    """``Select(cond, a, b)`` whose ``a`` is long and seldom wanted.

    Evaluates like a select; code for ``a`` runs only when ``cond`` holds in some lane.
    """

    __slots__ = ()


class Affine(NamedTuple):
    """``constant + sum(factor * atom)``; an atom is a variable or the place of a value."""

    constant: int
    parts: tuple[tuple[Var | int, int], ...]


class Step(NamedTuple):
    """One node, its place in the table of values, the places of its operands.

    ``rare`` are the steps of a ``Rare`` node's seldom side, whose result is the last operand.
    """

    node: Expr | Affine
    place: int
    operands: tuple[int, ...]
    rare: tuple[Step, ...] = ()


class Plan(NamedTuple):
    """Steps in order, over a table of ``size`` values; the expression's ends up in ``result``."""

    steps: tuple[Step, ...]
    size: int
    result: int


Form = tuple[int, dict[Var | int, int]]  # an Affine being put together
Places = dict[int, int | Form]  # id of a node -> place of its value, or form not yet needed


class _Planner:
    def __init__(self) -> None:
        self.size = 0

    def add(self, root: Expr, places: Places, steps: list[Step]) -> int:
        """Appends what ``places`` lacks of ``root`` to ``steps``; the place of its value."""
        stack = [(root, False)]
        while stack:
            node, ready = stack.pop()
            key = id(node)
            if key in places:
                continue
            if ready:
                form = self._form(node, places)
                places[key] = self._step(node, places, steps) if form is None else form
            else:
                stack.append((node, True))
                stack.extend([(child, False) for child in _eager(node)])
        return self._place(root, places, steps)

    def _form(self, node: Expr, places: Places) -> Form | None:
        if node.dtype != INDEX or node.lanes != 1:
            return None
        if isinstance(node, Const):
            return int(node.value), {}
        if isinstance(node, Var):
            return 0, {node: 1}
        if isinstance(node, Binary) and node.op in ("add", "sub", "mul"):
            return _combined(node.op, _form_of(node.a, places), _form_of(node.b, places))
        return None

    def _step(self, node: Expr, places: Places, steps: list[Step]) -> int:
        operands = tuple([self._place(child, places, steps) for child in _eager(node)])
        rare: list[Step] = []
        if isinstance(node, Rare):
            # What only the rare side computes is not there for anybody after it.
            operands += (self.add(node.a, dict(places), rare),)
        return self._append(node, operands, steps, tuple(rare))

    def _place(self, node: Expr, places: Places, steps: list[Step]) -> int:
        place = places[id(node)]
        if not isinstance(place, int):
            affine = Affine(place[0], tuple(place[1].items()))
            place = places[id(node)] = self._append(affine, (), steps)
        return place

    def _append(
        self,
        node: Expr | Affine,
        operands: tuple[int, ...],
        steps: list[Step],
        rare: tuple[Step, ...] = (),
    ) -> int:
        place = self.size
        self.size += 1
        steps.append(Step(node, place, operands, rare))
        return place


def _form_of(node: Expr, places: Places) -> Form:
    place = places[id(node)]
    return (0, {place: 1}) if isinstance(place, int) else place


def _combined(op: str, a: Form, b: Form) -> Form | None:
    if op == "mul":
        if a[1] and b[1]:
            return None
        k, form = (a[0], b) if b[1] else (b[0], a)
        return form[0] * k, {atom: factor * k for atom, factor in form[1].items() if k}
    sign = 1 if op == "add" else -1
    parts = dict(a[1])
    for atom, factor in b[1].items():
        parts[atom] = parts.get(atom, 0) + sign * factor
    return a[0] + sign * b[0], parts


def _eager(node: Expr) -> tuple[Expr, ...]:
    """The children that are always computed."""
    return (node.cond, node.b) if type(node) is Rare else node.children()


def plan(root: Expr) -> Plan:
    """The steps that compute ``root``."""
    planner = _Planner()
    steps: list[Step] = []
    result = planner.add(root, {}, steps)
    return Plan(tuple(steps), planner.size, result)
