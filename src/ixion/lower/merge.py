"""Small steps of a loop in a row, as one: calling a kernel would cost more than its work.

Outside of loops a step's kernel is shared with all steps like it, and run once: nothing to gain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ixion.lower.carry import depths
from ixion.lower.step import PlannedStep
from ixion.lower.storage import Storage, Value
from ixion.te.effort import effort
from ixion.te.merge import merged

__all__ = ["merge_small"]

MOST_KERNELS = 16
MOST_TASKS = 4
MOST_EFFORT = 4096  # vectors loaded and stored, about


def merge_small(steps: Sequence[PlannedStep]) -> list[PlannedStep]:
    """The steps, small ones that follow each other inside a loop joined."""
    done: list[PlannedStep] = []
    row: list[PlannedStep] = []
    for step, depth in zip(steps, depths(steps), strict=True):
        fits = depth > 0 and _is_small(step)
        if row and (not fits or len(row) == MOST_KERNELS):
            done.append(_joined(row))
            row = []
        if fits:
            row.append(step)
        else:
            done.append(step)
    return done + ([_joined(row)] if row else [])


def _is_small(step: PlannedStep) -> bool:
    kernel = step.kernel
    if step.kind != "call" or kernel is None or kernel.when is not None:
        return False
    if not isinstance(kernel.tasks, int) or not isinstance(kernel.scratch, int):
        return False
    return kernel.tasks <= MOST_TASKS and kernel.tasks * effort(kernel) <= MOST_EFFORT


def _joined(row: Sequence[PlannedStep]) -> PlannedStep:
    if len(row) == 1:
        return row[0]
    named = _Named()
    parts = [(step.kernel, [named.of(s) for s in step.places]) for step in row]
    kernel, first = merged("merged", [(k, keys) for k, keys in parts if k is not None])
    places = [storage for step in row for storage in step.places]
    return PlannedStep(
        "; ".join(step.label for step in row),
        named.values(value for step in row for value in step.reads),
        named.values(value for step in row for value in step.writes),
        [named.of(places[number]) for number in first],
        kernel,
        products=sum(step.products for step in row if isinstance(step.products, int)),
        calls=tuple(call for step in row for call in step.calls),
    )


class _Named:
    """One storage for each piece of memory: the first that was met."""

    def __init__(self) -> None:
        self._known: dict[tuple[Storage, object], Storage] = {}

    def of(self, storage: Storage) -> Storage:
        return self._known.setdefault(storage.root(), storage)

    def values(self, values: Iterable[Value]) -> list[Value]:
        return [replace(v, storage=self.of(v.storage)) for v in values]
