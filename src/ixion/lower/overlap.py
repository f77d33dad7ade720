"""Lifetimes stretched so that steps that do not depend on each other may overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ixion.lower.storage import Storage

if TYPE_CHECKING:
    from ixion.lower.step import PlannedStep


def spread_lifetimes(steps: Sequence[PlannedStep]) -> None:
    """Keeps what a step reads last until after the next one where that does not depend on it.

    Else the next step could be given the memory that this one is still reading.  Before planning.
    """
    roots = {s.root()[0] for step in steps for s in step.places}
    last: dict[int, list[Storage]] = {}
    for root in roots:
        last.setdefault(root.last, []).append(root)
    for number, step in enumerate(steps[:-1]):
        written = {v.storage.root()[0] for v in step.writes} | _temporaries(step)
        after = {s.root()[0] for s in steps[number + 1].places}
        if not written & after:
            for root in last.get(number, ()):
                root.last = number + 1


def _temporaries(step: PlannedStep) -> set[Storage]:
    known = {v.storage for v in (*step.reads, *step.writes)}
    return {s.root()[0] for s in step.places if s not in known}
