"""Sliding windows of convolution and pooling: sizes, padding, and where they read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product as grid
from typing import TYPE_CHECKING, Any

import numpy as np

from ixion import te
from ixion.base import dim as dims
from ixion.op.call import two_sided
from ixion.op.extent import Extent
from ixion.op.rounding import Array

if TYPE_CHECKING:
    from ixion.base.dim import Dim

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


@dataclass(frozen=True)
class Window:
    """A window along every spatial axis: size, stride, dilation, padding before and after."""

    size: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @staticmethod
    def of(size: Sequence[Any], strides: Any, dilation: Any, padding: Any) -> Window:
        """From attributes, whose padding has 1, n or 2n values (befores, then afters)."""
        rank = len(size)
        pad = two_sided(padding, rank)
        return Window(tuple(size), tuple(strides), tuple(dilation), pad[:rank], pad[rank:])

    @property
    def rank(self) -> int:
        return len(self.size)

    def span(self, axis: int) -> int:
        """Input elements from the first to the last one a window touches."""
        return (self.size[axis] - 1) * self.dilation[axis] + 1

    def out_dim(self, axis: int, size: Dim, ceil_mode: bool = False) -> Dim:
        """Number of windows along ``axis``.

        In ceil mode a window may hang over the padded end, but one that would start beyond the
        input and its left padding is dropped (torch's and ONNX's rule).
        """
        if isinstance(size, dims.Any):
            return size
        room = size + self.before[axis] + self.after[axis] - self.span(axis)
        stride = self.strides[axis]
        if not ceil_mode:
            return room // stride + 1
        count = (room + stride - 1) // stride + 1
        if isinstance(count, int) and isinstance(size, int):
            return count - int((count - 1) * stride >= size + self.before[axis])
        return dims.minimum(count, (size + self.before[axis] - 1) // stride + 1)

    def out_shape(self, shape: Sequence[Dim], ceil_mode: bool = False) -> tuple[Dim, ...]:
        return tuple(self.out_dim(a, d, ceil_mode) for a, d in enumerate(shape))

    def offsets(self) -> list[tuple[int, ...]]:
        """Every position inside a window, in row-major order."""
        return list(grid(*(range(k) for k in self.size)))

    def padded(self, x: Array, counts: Sequence[int], fill: Any) -> Array:
        """The trailing spatial axes of ``x`` padded so that ``counts`` windows fit."""
        rank = self.rank
        widths = [(0, 0)] * (x.ndim - rank)
        for a, n in enumerate(counts):
            need = (n - 1) * self.strides[a] + self.span(a) if n else 0
            have = self.before[a] + x.shape[x.ndim - rank + a]
            widths.append((self.before[a], max(self.after[a], need - have, 0)))
        return np.pad(x, widths, constant_values=fill) if any(map(any, widths)) else x

    def element(self, padded: Array, offset: Sequence[int], counts: Sequence[int]) -> Array:
        """A view: the elements at ``offset`` of every window."""
        slices = [
            slice(o * d, o * d + (n - 1) * s + 1 if n else 0, s)
            for o, d, s, n in zip(offset, self.dilation, self.strides, counts, strict=True)
        ]
        index: tuple[Any, ...] = (..., *slices)
        return np.asarray(padded[index])

    def read(
        self,
        x: Callable[..., te.Expr],
        lead: Sequence[te.Expr],
        at: Sequence[te.Expr],
        inside: Sequence[te.Expr],
        sizes: Sequence[Extent],
        fill: te.Expr,
        counts: Sequence[Extent] = (),
    ) -> te.Expr:
        """Element ``inside`` the window at ``at``, or ``fill`` where it lies outside the input.

        ``counts``: numbers of windows where ceil mode may let the last one hang over the end.
        """
        index = self.positions(at, inside)
        value = x(*lead, *index)
        if fill.dtype != value.dtype:
            value = te.cast(value, fill.dtype)
        guard = self.guard(index, sizes, counts)
        return value if guard is None else te.select(guard, value, fill)

    def positions(self, at: Sequence[te.Expr], inside: Sequence[te.Expr]) -> list[te.Expr]:
        """Input positions, negative or too large where the window hangs over."""
        return [
            i * s + k * d - b
            for i, k, s, d, b in zip(
                at, inside, self.strides, self.dilation, self.before, strict=True
            )
        ]

    def guard(
        self, index: Sequence[te.Expr], sizes: Sequence[Extent], counts: Sequence[Extent] = ()
    ) -> te.Expr | None:
        """Condition that ``index`` is inside the input; None when it always is."""
        parts: list[te.Expr] = []
        for a, (i, n) in enumerate(zip(index, sizes, strict=True)):
            if self.before[a] > 0:
                parts.append(te.compare("ge", i, 0))
            if self.after[a] > 0 or self._hangs_over(a, n, counts):
                parts.append(te.compare("lt", i, n))
        if not parts:
            return None
        out = parts[0]
        for p in parts[1:]:
            out = te.logical_and(out, p)
        return out

    def _hangs_over(self, axis: int, size: Extent, counts: Sequence[Extent]) -> bool:
        if not counts:
            return False
        n = counts[axis]
        if not isinstance(size, int) or not isinstance(n, int):
            return True
        return (n - 1) * self.strides[axis] + self.span(axis) - self.before[axis] > size
