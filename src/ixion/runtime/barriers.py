"""Which steps may overlap: a barrier is needed only before a step that meets unfinished memory.

Since the last barrier some steps may still be running.  A step can join them when it writes no
byte that they touch and reads none that they write; the memory plan decides, not the dataflow, so
two tensors that share a place in the arena count as one.  Steps of one concatenation write
different parts of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MOST = 64  # pieces of memory that a step is compared with: keeps the work linear
Place = tuple[object, int, int]  # a memory, first byte, end
Piece = tuple[object, int, int, int]  # and the concatenation, -1 for none


@dataclass(frozen=True)
class Touch:
    """The memory of a step: places and whether it writes them.  ``alone``: all wait for it."""

    places: tuple[tuple[Place | None, bool], ...]
    joint: int = -1
    alone: bool = False


def needed_barriers(steps: Sequence[Touch]) -> list[bool]:
    """For each step, whether all must wait after it."""
    needed = [True] * len(steps)
    read: list[Piece] = []
    written: list[Piece] = []
    for number, step in enumerate(steps):
        reads = [(*p, step.joint) for p, writes in step.places if p is not None and not writes]
        writes = [(*p, step.joint) for p, writes in step.places if p is not None and writes]
        full = len(read) + len(written) > MOST
        if number and (
            step.alone or full or _meet(writes, read) or _meet((*reads, *writes), written)
        ):
            read, written = [], []
        elif number:
            needed[number - 1] = steps[number - 1].alone
        read += reads
        written += writes
    return needed


def _meet(some: Sequence[Piece], others: Sequence[Piece]) -> bool:
    return any(
        where == place and start < end and first < stop and (joint < 0 or joint != other)
        for where, start, stop, joint in some
        for place, first, end, other in others
    )
