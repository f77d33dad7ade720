"""Copies between what a region gives and where it is wanted, left out where one memory serves both.

This is the coalescing of a register allocator (Chaitin, Register allocation and spilling via graph
coloring, 1982) on tensors: the two ends of a copy become one where neither is written while the
other is still needed. A kernel that reads one end while it writes the other must do so position by
position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ixion.lower.step import PlannedStep
from ixion.lower.storage import Storage, Value

__all__ = ["depths", "join_carries", "loops_of"]


def join_carries(steps: Sequence[PlannedStep], results: Sequence[Value]) -> list[PlannedStep]:
    """The steps without the copies that became unnecessary; their storages share memory."""
    copies = [n for n, step in enumerate(steps) if step.carries]
    if not copies:
        return list(steps)
    live = _Liveness(steps, results, _candidates(steps, copies))
    gone: set[int] = set()
    # Innermost first: what is written most often gets the first choice of places.
    for number in sorted(copies, key=lambda n: -live.depth[n]):
        if live.join(number):
            gone.add(number)
    return [step for number, step in enumerate(steps) if number not in gone]


def _candidates(steps: Sequence[PlannedStep], copies: Sequence[int]) -> list[Storage]:
    """Both ends of the copies that may become one."""
    found: dict[Storage, None] = {}
    for number in copies:
        for storage in steps[number].places:
            if storage.parent is None and storage.kind in ("arena", "output"):
                found[storage] = None
    return list(found)


@dataclass(eq=False)
class _Class:
    """Storages that share memory: the steps that read and write it, as bits, and its root."""

    root: Storage
    defined: int = 0  # steps that begin a new value
    written: int = 0
    read: int = 0
    live: int = 0  # steps after which the value is still needed
    members: list[Storage] = field(default_factory=list)


class _Liveness:
    """For each candidate the steps after which it is needed, as the bits of a number."""

    def __init__(
        self, steps: Sequence[PlannedStep], results: Sequence[Value], storages: Sequence[Storage]
    ) -> None:
        self.steps = steps
        self.classes = {s: _Class(s, members=[s]) for s in storages}
        self.depth = depths(steps)
        self._note_uses()
        self._flow(results)

    def _note_uses(self) -> None:
        for number, step in enumerate(self.steps):
            bit = 1 << number
            writes = {v.storage.root()[0] for v in step.writes}
            reads = {v.storage.root()[0] for v in step.reads}
            for storage in {s.root()[0] for s in step.places}:
                found = self.classes.get(storage)
                if found is None:
                    continue
                if storage in writes or storage not in reads:
                    # The parts of a result are written one after the other: the first begins it.
                    if step.carries or not found.written:
                        found.defined |= bit
                    found.written |= bit
                if storage in reads:
                    found.read |= bit

    def _flow(self, results: Sequence[Value]) -> None:
        """Backward over the steps, again until nothing changes: loops go back."""
        count = len(self.steps)
        order = list(self.classes.values())
        after = _successors(self.steps)
        needs = [0] * (count + 1)
        reads, kills = _by_step(order, count)
        ending = {v.storage.root()[0] for v in results}
        needs[count] = sum(1 << i for i, c in enumerate(order) if c.root in ending)
        out = [0] * count
        changed = True
        while changed:
            changed = False
            for number in range(count - 1, -1, -1):
                left = 0
                for following in after[number]:
                    left |= needs[following]
                needed = reads[number] | (left & ~kills[number])
                changed |= needed != needs[number]
                out[number], needs[number] = left, needed
        for one, live in zip(order, _turned(out, len(order)), strict=True):
            one.live = live

    def join(self, number: int) -> bool:
        """Makes the ends of a copy one memory, if they can be."""
        step = self.steps[number]
        to, source = (s.root()[0] for s in step.places)
        if to is source:
            return True
        a, b = self.classes.get(to), self.classes.get(source)
        whole = step.places[1].parent is None or step.places[1].root()[1] == 0
        if a is None or b is None or not whole or to.nbytes != source.nbytes:
            return False
        if not a.written or not b.written or self._clash(a, b, 1 << number):
            return False
        if b.root.kind == "output":
            a, b = b, a
        if b.root.kind == "output":
            return False
        self._merge(a, b, 1 << number)
        return True

    def _clash(self, a: _Class, b: _Class, copy: int) -> bool:
        """Whether one is written, other than by the copy between them, while the other lives."""
        if (a.written & ~copy) & b.live or (b.written & ~copy) & a.live:
            return True
        both = ((a.written & b.read) | (b.written & a.read)) & ~copy
        return any(not self._in_place(n, a, b) for n in _bits(both))

    def _in_place(self, number: int, a: _Class, b: _Class) -> bool:
        """Whether a step may write one of the two where it reads the other."""
        step = self.steps[number]
        if step.carries:
            return True
        allowed = {step.places[i] for i in step.in_place}
        written = {v.storage for v in step.writes}
        for value in step.reads:
            root = value.storage.root()[0]
            if root in (*a.members, *b.members) and value.storage not in allowed | written:
                return False
        return bool(allowed)

    def _merge(self, a: _Class, b: _Class, copy: int) -> None:
        b.root.parent = a.root
        a.members += b.members
        a.defined = (a.defined | b.defined) & ~copy
        a.written = (a.written | b.written) & ~copy
        a.read = (a.read | b.read) & ~copy
        a.live |= b.live
        for member in b.members:
            self.classes[member] = a


def _by_step(order: Sequence[_Class], count: int) -> tuple[list[int], list[int]]:
    """What each step reads and begins anew, as bits by class."""
    reads, kills = [0] * count, [0] * count
    for i, one in enumerate(order):
        for number in _bits(one.read):
            reads[number] |= 1 << i
        for number in _bits(one.defined):
            kills[number] |= 1 << i
    return reads, kills


def _turned(rows: Sequence[int], columns: int) -> list[int]:
    """A matrix of bits, given by rows, by columns."""
    width = -(-columns // 8)
    data = b"".join(row.to_bytes(width, "little") for row in rows)
    matrix = np.frombuffer(data, np.uint8).reshape(len(rows), width)
    bits = np.unpackbits(matrix, axis=1, bitorder="little")[:, :columns]
    turned = np.packbits(bits.T, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in turned]


def _bits(mask: int) -> list[int]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def _successors(steps: Sequence[PlannedStep]) -> list[tuple[int, ...]]:
    place = {id(step): number for number, step in enumerate(steps)}
    found: list[tuple[int, ...]] = []
    for number, step in enumerate(steps):
        if step.target is None or step.kind == "solo":
            found.append((number + 1,))
        elif step.kind == "jump":
            found.append((place[id(step.target)],))
        else:
            found.append((number + 1, place[id(step.target)]))
    return found


def loops_of(steps: Sequence[PlannedStep]) -> list[tuple[int, int]]:
    """First and last step of each loop, inner ones before those around them."""
    place = {id(step): number for number, step in enumerate(steps)}
    found = []
    for number, step in enumerate(steps):
        if step.target is not None and place[id(step.target)] <= number:
            found.append((place[id(step.target)], number))
    return found


def depths(steps: Sequence[PlannedStep]) -> list[int]:
    """How many loops are around each step."""
    change = [0] * (len(steps) + 1)
    for first, last in loops_of(steps):
        change[first] += 1
        change[last + 1] -= 1
    depth, found = 0, []
    for number in range(len(steps)):
        depth += change[number]
        found.append(depth)
    return found
