"""Packed constants: each goes straight to its final place, and its original is let go.

A program's weights exist once at a time: while a network is lowered, the packed copy of one tensor
is made, put into a large aligned block, and, where the module belongs to the compiler alone, the
tensor it came from is freed after its last use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from ixion.ir import Constant
from ixion.runtime.arena import address_of, allocate, give_back
from ixion.runtime.program import ALIGNMENT, aligned

Array = np.ndarray[Any, np.dtype[Any]]
GIVE_BACK = 8 << 20  # bytes freed after which the heap is trimmed
KEEP = 4 << 20  # bytes from which an array of its own does no harm
BLOCK = 16 << 20  # bytes taken from the system at a time; what is not written costs nothing


class ConstantStore:
    """Aligned read-only arrays, by number."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._block = allocate(0)
        self._used = 0

    def add(self, array: Array, *, ours: bool = False) -> int:
        """Copies an array to a 64-byte boundary; returns its number.

        A large array that lies at one already stays where it is if it is ``ours``, that is if
        nobody will write to it.
        """
        large = ours and array.nbytes >= KEEP and array.flags.c_contiguous
        if large and address_of(array) % ALIGNMENT == 0:
            array.flags.writeable = False
            self.arrays.append(array)
            return len(self.arrays) - 1
        need = aligned(array.nbytes)
        if self._used + need > len(self._block):
            self._block, self._used = allocate(max(need, BLOCK)), 0
        place = np.ndarray(array.shape, array.dtype, self._block, self._used)
        place[...] = array
        place.flags.writeable = False
        self._used += need
        self.arrays.append(place)
        return len(self.arrays) - 1


class Originals:
    """Counts the uses of constants that are still to come; frees the data after the last one."""

    def __init__(self, uses: Iterable[Constant]) -> None:
        self._left = Counter(id(node) for node in uses)
        self._freed = 0

    def used(self, node: Constant) -> None:
        self._left[id(node)] -= 1
        if self._left[id(node)] == 0:
            self._freed += node.data.nbytes
            nothing = np.broadcast_to(np.zeros((), node.data.dtype), node.data.shape)
            _DATA.__set__(node, nothing)
            if self._freed > GIVE_BACK:
                give_back()
                self._freed = 0


# Nodes do not change for anybody else; here the module is at its end and nobody looks at it again.
_DATA = Constant.__dict__["data"]
