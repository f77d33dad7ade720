"""Storages that can share memory: operands of concatenations and results over operands."""

from __future__ import annotations

from collections.abc import Sequence

from ixion.lower.lower import PlannedStep
from ixion.lower.storage import Storage, Value


def lifetimes(steps: Sequence[PlannedStep], results: Sequence[Value]) -> None:
    """First write and last read of every root storage, by step number."""
    seen = {s.root()[0] for step in steps for s in step.places}
    for root in seen:
        root.first = root.last = -1
    for number, step in enumerate(steps):
        for storage in step.places:
            root, _ = storage.root()
            root.first = number if root.first < 0 else root.first
            root.last = number
    for value in results:
        root, _ = value.storage.root()
        root.last = len(steps)


def join_results(steps: Sequence[PlannedStep]) -> None:
    """Elementwise results take the memory of an operand that nobody reads later."""
    for number, step in enumerate(steps):
        if not step.in_place or not step.writes:
            continue
        out = step.writes[0].storage
        for position in step.in_place:
            operand = step.places[position]
            if _free_for(operand, out, number, steps):
                operand.last = max(operand.last, out.last)
                out.parent = operand
                break


def _free_for(operand: Storage, out: Storage, number: int, steps: Sequence[PlannedStep]) -> bool:
    simple = operand.parent is None and out.parent is None and not operand.pinned
    alike = operand.kind == "arena" and out.kind == "arena" and operand.nbytes == out.nbytes
    only = out.first == number and operand.last == number and operand.first < number
    return simple and alike and only and operand is not out
