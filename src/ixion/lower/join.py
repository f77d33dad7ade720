"""Storages that can share memory: operands of concatenations and results over operands."""

from __future__ import annotations

from collections.abc import Sequence

from ixion.lower.carry import loops_of
from ixion.lower.step import PlannedStep
from ixion.lower.storage import Storage, Value


def lifetimes(steps: Sequence[PlannedStep], results: Sequence[Value]) -> None:
    """First write and last read of every root storage, by step number.

    What is used inside a loop and outside of it lives as long as the loop runs.
    """
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
    for first, last in loops_of(steps):
        for root in seen:
            if root.first < first <= root.last <= last or first <= root.first <= last < root.last:
                root.first, root.last = min(root.first, first), max(root.last, last)


def join_copies(steps: Sequence[PlannedStep], results: Sequence[Value]) -> list[PlannedStep]:
    """Operands of concatenations are written straight to their places; returns what steps remain.

    A storage joins the first concatenation that copies it, when a kernel writes all of it and it is
    no result itself, nor where something is carried to.
    """
    kept = {v.storage for v in results}
    kept |= {v.storage.root()[0] for step in steps if step.carries for v in step.writes}
    made = {v.storage.root()[0] for step in steps for v in step.writes}
    remaining = []
    for step in steps:
        if step.copy_to is None:
            remaining.append(step)
            continue
        out, source = step.places[0], step.places[1]
        whole = source.nbytes == step.reads[0].nbytes
        free = source.kind == "arena" and source.parent is None and source in made
        if free and whole and source not in kept and out.parent is not source:
            source.parent, source.at = out, step.copy_to
        else:
            remaining.append(step)
    return remaining


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
    simple = operand.parent is None and out.parent is None
    alike = operand.kind == "arena" and out.kind == "arena" and operand.nbytes == out.nbytes
    only = out.first == number and operand.last == number and operand.first < number
    return simple and alike and only and operand is not out
