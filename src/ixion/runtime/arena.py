"""Aligned memory of our own: anonymous private pages, huge ones asked for where it pays."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import sys
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

_HUGE_PAGE = 2 << 20
_HUGE_FROM = 2 * _HUGE_PAGE
_PAGE = mmap.PAGESIZE
_ADVICE = getattr(mmap, "MADV_HUGEPAGE", None)


def _described(array: npt.NDArray[Any]) -> int:
    return int(array.ctypes.data)


def _read(array: npt.NDArray[Any]) -> int:
    """The `data` member of numpy's array struct, the first after Python's own part.

    Asking numpy takes seven times as long, a microsecond for each large input and output of a run.
    """
    return ctypes.c_void_p.from_address(id(array) + object.__basicsize__).value or 0


def _is_readable() -> bool:
    """Whether this interpreter keeps objects where `_read` looks for them."""
    if sys.implementation.name != "cpython":
        return False
    probe = np.zeros(8, np.uint8)
    return all(_read(part) == _described(part) for part in (probe, probe[3:]))


#: Address of an array's first element.
address_of = _read if _is_readable() else _described


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


def empty_tensor(shape: Sequence[int], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """An array like numpy's `empty`; a large one has pages of its own, aligned as `allocate` says.

    Such memory goes back to the system when it is freed, and a constant may stay in it.
    """
    kind = np.dtype(dtype)
    size = prod(shape) * kind.itemsize
    if size < _HUGE_FROM or kind.hasobject:
        return np.empty(shape, kind)
    return np.ndarray(shape, kind, allocate(size))


def give_back() -> None:
    """Returns freed heap pages to the system, where the C library can.

    The heap keeps what is freed below its top; after large tensors that is most of it.
    """
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def keep_forever(array: npt.NDArray[Any]) -> None:
    """Never free an array's memory, not even when the interpreter ends: a thread may be in it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(array))


def _advise(pages: mmap.mmap) -> None:
    # A kernel without transparent huge pages refuses; small ones do.
    with contextlib.suppress(OSError):
        pages.madvise(mmap.MADV_HUGEPAGE)
