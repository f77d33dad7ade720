"""Physical layouts of logical tensors.

The IR speaks of logical shapes (N, C, H, W).  In memory a tensor is either *plain* (row-major) or
*blocked*: one axis is cut into blocks of ``block`` elements and the position inside the block
becomes the innermost dim, as in NCHW16c.  The last block may be short; its padding lanes hold
unspecified values, which no kernel lets into a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar

import numpy as np

from ixion.base.dim import Any as DimAny
from ixion.base.dim import SymExpr
from ixion.te.expr import Expr, wrap
from ixion.te.tensor import Extent

Array = np.ndarray[Any, np.dtype[Any]]
# Extents: numbers, dims of types, or expressions of tensor expressions.
N = TypeVar("N", int, int | Expr, int | DimAny | SymExpr)
_LETTERS = {3: "NCW", 4: "NCHW", 5: "NCDHW"}


@dataclass(frozen=True)
class Layout:
    """``axis`` None is plain; otherwise ``axis`` is cut into blocks of ``block`` elements."""

    axis: int | None = None
    block: int = 1

    @property
    def plain(self) -> bool:
        return self.axis is None

    def physical(self, shape: Sequence[N]) -> tuple[N, ...]:
        """Dims in memory order, outermost first."""
        if self.axis is None:
            return tuple(shape)
        dims: list[Any] = list(shape)
        dims[self.axis] = (dims[self.axis] + (self.block - 1)) // self.block
        return (*dims, self.block)

    def size(self, shape: Sequence[N]) -> N:
        """Elements in memory, padding included."""
        return prod(self.physical(shape))

    def strides(self, shape: Sequence[N]) -> tuple[N, ...]:
        """Elements between neighbours along each physical dim."""
        dims: tuple[Any, ...] = self.physical(shape)
        out: list[Any] = [1] * len(dims)
        for d in range(len(dims) - 2, -1, -1):
            out[d] = out[d + 1] * dims[d + 1]
        return tuple(out)

    def logical(self, physical: Sequence[Expr]) -> tuple[Expr, ...]:
        """Logical indices of a position given by physical ones."""
        if self.axis is None:
            return tuple(physical)
        index = list(physical[:-1])
        index[self.axis] = index[self.axis] * self.block + physical[-1]
        return tuple(index)

    def offset(self, shape: Sequence[Extent], index: Sequence[Expr]) -> Expr:
        """Flat element offset of a logical index."""
        parts = list(index)
        if self.axis is not None:
            along = parts[self.axis]
            parts[self.axis] = along // self.block
            parts.append(along % self.block)
        total: Expr = wrap(0)
        for i, stride in zip(parts, self.strides(shape), strict=True):
            total = total + i * stride
        return total

    def same_memory(self, other: Layout, shape: Sequence[N]) -> bool:
        """Whether both layouts put this shape's elements at the same offsets."""
        return self == other or (self._trivial(shape) and other._trivial(shape))

    def _trivial(self, shape: Sequence[N]) -> bool:
        if self.axis is None:
            return True
        along, after = shape[self.axis], shape[self.axis + 1 :]
        whole = isinstance(along, int) and along % self.block == 0
        return whole and all(isinstance(n, int) and n == 1 for n in after)

    def pack(self, array: Array) -> Array:
        """The logical array in memory order, flat; padding lanes are zero."""
        if self.axis is None:
            return np.ascontiguousarray(array).reshape(-1)
        pad = -array.shape[self.axis] % self.block
        widths = [(0, pad if d == self.axis else 0) for d in range(array.ndim)]
        padded = np.pad(array, widths) if pad else array
        shape = list(padded.shape)
        shape[self.axis : self.axis + 1] = [shape[self.axis] // self.block, self.block]
        moved = np.moveaxis(padded.reshape(shape), self.axis + 1, -1)
        return np.ascontiguousarray(moved).reshape(-1)

    def text(self, rank: int) -> str:
        """Relay's spelling (NCHW, NCHW16c) where there is one, else letters A, B, C, ..."""
        letters = _LETTERS.get(rank, "".join(chr(65 + d) for d in range(rank)))
        if self.axis is None:
            return letters
        return f"{letters}{self.block}{letters[self.axis].lower()}"


PLAIN = Layout()


def parse_layout(text: str) -> Layout:
    """The layout that ``Layout.text`` wrote; raises ValueError for anything else."""
    letters = "".join(c for c in text if c.isupper())
    digits = "".join(c for c in text if c.isdigit())
    if not digits:
        return PLAIN
    axis = letters.find(text[-1].upper())
    if axis < 0 or text != f"{letters}{digits}{letters[axis].lower()}":
        raise ValueError(f"layout {text!r}: expected letters, a block size and a letter: NCHW16c")
    return Layout(axis, int(digits))
