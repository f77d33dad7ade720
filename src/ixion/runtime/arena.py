"""Aligned memory of our own: anonymous private pages, huge ones asked for where it pays."""

from __future__ import annotations

import contextlib
import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

_HUGE_PAGE = 2 << 20
_HUGE_FROM = 2 * _HUGE_PAGE
_PAGE = mmap.PAGESIZE
_ADVICE = getattr(mmap, "MADV_HUGEPAGE", None)


def allocate(size: int) -> npt.NDArray[np.uint8]:
    """Zeroed uint8[size] at a page boundary, freed with the last view of it.

    From 4 MiB on it lies at a 2 MiB boundary and the system is asked for huge pages. Private: a
    forked child gets a copy, not a share.
    """
    huge = size >= _HUGE_FROM
    boundary = _HUGE_PAGE if huge else _PAGE
    pages = mmap.mmap(
        -1, max(size, 1) + (boundary if huge else 0), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    )
    whole = np.frombuffer(pages, np.uint8)
    skip = -address_of(whole) % boundary
    if huge and _ADVICE is not None:
        _advise(pages)
    return whole[skip : skip + size]


def address_of(array: npt.NDArray[Any]) -> int:
    """Address of the first element."""
    return int(array.ctypes.data)


def _advise(pages: mmap.mmap) -> None:
    # A kernel without transparent huge pages refuses; small ones do.
    with contextlib.suppress(OSError):
        pages.madvise(mmap.MADV_HUGEPAGE)
