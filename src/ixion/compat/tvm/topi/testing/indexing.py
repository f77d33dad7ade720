"""Elements taken by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def one_hot(
    indices: Array, on_value: float, off_value: float, depth: int, axis: int, dtype: Any
) -> Array:
    """A new axis of ``depth`` with ``on_value`` at each index and ``off_value`` elsewhere."""
    hot = np.expand_dims(indices, -1) == np.arange(depth)
    return np.moveaxis(np.where(hot, on_value, off_value), -1, axis).astype(dtype)


def gather_python(data: Array, axis: int, indices: Array) -> Array:
    """Elements of ``data`` at each place of ``indices``, with the place on ``axis`` exchanged.

    ``indices`` may be shorter than ``data`` along the other axes.
    """
    axis %= data.ndim
    kept = tuple(slice(None) if d == axis else slice(n) for d, n in enumerate(indices.shape))
    return np.take_along_axis(data[kept], indices, axis)


def searchsorted_ref(sorted_sequence: Array, values: Array, right: bool, out_dtype: Any) -> Array:
    """Where each value belongs in its row, or in the only row there is."""
    side: Any = "right" if right else "left"
    rows = np.broadcast_to(sorted_sequence, (*values.shape[:-1], sorted_sequence.shape[-1]))
    found = np.empty(values.shape, out_dtype)
    for row in np.ndindex(*values.shape[:-1]):
        found[row] = np.searchsorted(rows[row], values[row], side)
    return found


def strided_slice_python(
    data: Array,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None,
    slice_mode: str = "end",
    axes: Sequence[int] | None = None,
) -> Array:
    """Slices along ``axes``, or along the first ones.

    With ``slice_mode`` "size", ``end`` holds sizes, -1 means everything that is left, and the
    strides are not looked at.
    """
    steps = list(strides) if strides is not None and slice_mode == "end" else []
    chosen = [slice(None)] * data.ndim
    for i, axis in enumerate(range(len(begin)) if axes is None else axes):
        stop: int | None = int(end[i]) if i < len(end) else None
        if slice_mode == "size" and stop is not None:
            stop = None if stop < 0 else int(begin[i]) + stop
        chosen[axis] = slice(int(begin[i]), stop, int(steps[i]) if i < len(steps) else None)
    return data[tuple(chosen)]
