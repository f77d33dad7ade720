"""The memory plan: arena offsets for pieces of memory by lifetime.

Greedy by size (Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference,
2020): the largest first, each at the lowest offset that nothing alive at the same time occupies.
The largest sum of bytes alive at one step bounds any plan from below.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 64


@dataclass(eq=False)
class Room:
    """A piece of memory of known size; see ``outline.RoomSpec``.  ``offset``: in the arena."""

    kind: str
    nbytes: int
    index: int = 0
    first: int = -1
    last: int = -1
    parent: Room | None = None
    at: int = 0
    offset: int = -1

    def root(self) -> tuple[Room, int]:
        """The room that has memory of its own, and where in it this one starts."""
        room, at = self, 0
        while room.parent is not None:
            at += room.at
            room = room.parent
        return room, at

    def place(self) -> tuple[object, int, int] | None:
        """The memory it lies in, first byte and end; None for memory that no step writes."""
        root, at = self.root()
        if root.kind in ("const", "input"):
            return None
        if root.kind == "arena":
            return "arena", root.offset + at, root.offset + at + self.nbytes
        return (root.kind, root.index), at, at + self.nbytes


def plan(rooms: Sequence[Room]) -> int:
    """Gives every arena room without a parent its offset; returns the arena's size."""
    roots = [r for r in rooms if r.kind == "arena" and r.parent is None and r.first >= 0]
    placed: list[tuple[int, int, Room]] = []
    total = 0
    for number, r in enumerate(sorted(roots, key=lambda r: (-r.nbytes, r.first))):
        r.offset = _lowest(r, placed)
        insort(placed, (r.offset, number, r))
        total = max(total, r.offset + _aligned(r.nbytes))
    return total


def _lowest(room: Room, placed: Sequence[tuple[int, int, Room]]) -> int:
    at = 0
    for offset, _, other in placed:
        if other.last < room.first or room.last < other.first:
            continue
        if at + _aligned(room.nbytes) <= offset:
            return at
        at = max(at, offset + _aligned(other.nbytes))
    return at


def lower_bound(rooms: Sequence[Room]) -> int:
    """The largest sum of bytes that are alive at one step."""
    events: list[tuple[int, int]] = []
    for r in rooms:
        if r.kind == "arena" and r.parent is None and r.first >= 0:
            events += [(r.first, _aligned(r.nbytes)), (r.last + 1, -_aligned(r.nbytes))]
    best = alive = 0
    for _, change in sorted(events):
        alive += change
        best = max(best, alive)
    return best


def _aligned(nbytes: int) -> int:
    return -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
