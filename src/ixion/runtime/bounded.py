"""Results that lie at the start of larger buffers, in shapes that their kernel reports."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def cut(buffers: Sequence[Array], extents: npt.NDArray[np.int64]) -> list[Array]:
    """Each buffer's result: a view of its first elements in the true shape.

    ``extents`` holds the true shapes one after another, an entry for each axis of each buffer.
    """
    results = []
    at = 0
    for buffer in buffers:
        shape = tuple(int(n) for n in extents[at : at + buffer.ndim])
        results.append(buffer.reshape(-1)[: prod(shape)].reshape(shape))
        at += buffer.ndim
    return results
