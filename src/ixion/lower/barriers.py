"""Which steps may overlap: a barrier is needed only before a step that meets unfinished memory.

Since the last barrier some steps may still be running.  A step can join them when it writes no
byte that they touch and reads none that they write; the memory plan decides, not the dataflow, so
two tensors that share a place in the arena count as one.  Steps of one concatenation write
different parts of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ixion.lower.storage import Storage
from ixion.op.typed import op_name

if TYPE_CHECKING:
    from ixion.lower.lower import PlannedStep

MOST = 64  # pieces of memory that a step is compared with: keeps the work linear
Piece = tuple[object, int, int, object]  # a memory, first byte, end, and the concatenation


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


def needed_barriers(steps: Sequence[PlannedStep]) -> list[bool]:
    """For each step, whether all must wait after it; needs planned offsets."""
    needed = [True] * len(steps)
    read: list[Piece] = []
    written: list[Piece] = []
    for number, step in enumerate(steps):
        reads, writes = _touched(step)
        alone = step.host is not None
        full = len(read) + len(written) > MOST
        if number and (
            alone or full or _meet(writes, read) or _meet((*reads, *writes), written)
        ):
            read, written = [], []
        elif number:
            needed[number - 1] = steps[number - 1].host is not None
        read += reads
        written += writes
    return needed


def _touched(step: PlannedStep) -> tuple[list[Piece], list[Piece]]:
    """Bytes read and bytes written; temporaries count as written."""
    joins = bool(step.calls) and op_name(step.calls[0]) == "concatenate"
    owner = id(step.calls) if joins else None
    only_read = {v.storage for v in step.reads} - {v.storage for v in step.writes}
    reads: list[Piece] = []
    writes: list[Piece] = []
    for storage in step.places:
        place = _place(storage)
        if place is not None:
            (reads if storage in only_read else writes).append((*place, owner))
    return reads, writes


def _place(storage: Storage) -> tuple[object, int, int] | None:
    """Where a storage lies; None for memory that no step writes."""
    root, at = storage.root()
    if root.kind in ("const", "input"):
        return None
    if root.kind == "arena":
        return "arena", root.offset + at, root.offset + at + storage.nbytes
    return (root.kind, root.index), at, at + storage.nbytes


def _meet(some: Sequence[Piece], others: Sequence[Piece]) -> bool:
    return any(
        where == place and start < end and first < stop and (owner is None or owner != other)
        for where, start, stop, owner in some
        for place, first, end, other in others
    )
