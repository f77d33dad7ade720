"""Expressions flattened once: a list of steps that the emitter runs for every unrolled copy.

Operands come before their users and a node used twice appears once. No recursion over depth.
"""

from __future__ import annotations

from typing import NamedTuple

from ixion.te.expr import Expr, Select


class Rare(Select):
    """``Select(cond, a, b)`` whose ``a`` is long and seldom wanted.

    Evaluates like a select; code for ``a`` runs only when ``cond`` holds in some lane.
    """

    __slots__ = ()


class Step(NamedTuple):
    """One node, its place in the table of values, the places of its operands.

    ``rare`` are the steps of a ``Rare`` node's seldom side, whose result is the last operand.
    """

    node: Expr
    place: int
    operands: tuple[int, ...]
    rare: tuple[Step, ...] = ()


class Plan(NamedTuple):
    """Steps in order; the value of the expression ends up in the last of ``size`` places."""

    steps: tuple[Step, ...]
    size: int


class _Planner:
    def __init__(self) -> None:
        self.size = 0

    def steps(self, root: Expr, places: dict[int, int]) -> tuple[Step, ...]:
        """Steps for what ``places`` (node to place) lacks of ``root``; extends ``places``."""
        steps: list[Step] = []
        stack = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if id(node) in places:
                continue
            if ready:
                steps.append(self._step(node, places))
            else:
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(_eager(node)))
        return tuple(steps)

    def _step(self, node: Expr, places: dict[int, int]) -> Step:
        operands = tuple(places[id(child)] for child in _eager(node))
        rare: tuple[Step, ...] = ()
        if isinstance(node, Rare):
            # What only the rare side computes is not there for anybody after it.
            inside = dict(places)
            rare = self.steps(node.a, inside)
            operands += (inside[id(node.a)],)
        place = places[id(node)] = self.size
        self.size += 1
        return Step(node, place, operands, rare)


def _eager(node: Expr) -> tuple[Expr, ...]:
    """The children that are always computed."""
    return (node.cond, node.b) if isinstance(node, Rare) else node.children()


def plan(root: Expr) -> Plan:
    """The steps that compute ``root``."""
    planner = _Planner()
    steps = planner.steps(root, {})
    return Plan(steps, planner.size)
