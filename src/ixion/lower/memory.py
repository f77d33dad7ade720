"""The memory plan: arena offsets for storages by lifetime.

Greedy by size (Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference,
2020): the largest storage first, each at the lowest offset that no storage alive at the same time
occupies.  The largest sum of bytes alive at one step bounds any plan from below.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

from ixion.lower.storage import Storage

ALIGNMENT = 64


def plan(storages: Sequence[Storage]) -> int:
    """Gives every arena storage without a parent its offset; returns the arena's size."""
    roots = [s for s in storages if s.kind == "arena" and s.parent is None and s.first >= 0]
    placed: list[tuple[int, int, Storage]] = []
    total = 0
    for number, s in enumerate(sorted(roots, key=lambda s: (-s.nbytes, s.first))):
        s.offset = _lowest(s, placed)
        insort(placed, (s.offset, number, s))
        total = max(total, s.offset + _aligned(s.nbytes))
    return total


def _lowest(storage: Storage, placed: Sequence[tuple[int, int, Storage]]) -> int:
    at = 0
    for offset, _, other in placed:
        if other.last < storage.first or storage.last < other.first:
            continue
        if at + _aligned(storage.nbytes) <= offset:
            return at
        at = max(at, offset + _aligned(other.nbytes))
    return at


def lower_bound(storages: Sequence[Storage]) -> int:
    """The largest sum of bytes that are alive at one step."""
    events: list[tuple[int, int]] = []
    for s in storages:
        if s.kind == "arena" and s.parent is None and s.first >= 0:
            events += [(s.first, _aligned(s.nbytes)), (s.last + 1, -_aligned(s.nbytes))]
    best = alive = 0
    for _, change in sorted(events):
        alive += change
        best = max(best, alive)
    return best


def _aligned(nbytes: int) -> int:
    return -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
