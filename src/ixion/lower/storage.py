"""Where values live while a program is lowered: storages, and views of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ixion.base import dtype as dtypes
from ixion.base.dim import Dim
from ixion.kernel.layout import Layout

# A carried input is memory that a session keeps between runs: kernels may write it.
StorageKind = Literal["arena", "input", "carried", "const", "output"]


@dataclass(eq=False)
class Storage:
    """A piece of memory.  ``index`` numbers inputs, constants and outputs.

    ``first`` and ``last`` are the steps that first write and last read it.  A storage that was
    joined into another one (a part of a concatenation, a result written over its operand) has
    ``parent`` and sits ``at`` bytes into it.
    """

    kind: StorageKind
    nbytes: Dim
    index: int = 0
    first: int = -1
    last: int = -1
    parent: Storage | None = None
    at: Dim = 0

    def root(self) -> tuple[Storage, Dim]:
        """The storage that has memory, and where in it this one starts."""
        storage: Storage = self
        at: Dim = 0
        while storage.parent is not None:
            at += storage.at
            storage = storage.parent
        return storage, at


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor of the program: its storage and how it lies in it (from the start)."""

    storage: Storage
    layout: Layout
    shape: tuple[Dim, ...]
    dtype: str

    @property
    def nbytes(self) -> Dim:
        return self.layout.size(self.shape) * dtypes.itemsize(self.dtype)
