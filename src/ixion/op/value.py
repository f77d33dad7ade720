"""Symbolic values of small integer tensors, carried by type inference.

A value is a numpy array of ints, or an array of dtype object whose elements are dims (ints,
``Any`` or symbolic expressions); for a tuple, a tuple of values; None when unknown.  A nested
tuple of dims is accepted as input too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion.base.dim import SymExpr

Array = np.ndarray[Any, Any]
Value = Any


def as_objects(value: Value) -> Array:
    """A tensor's value as an object array of Python ints, bools and dims."""
    if isinstance(value, np.ndarray):
        return value if value.dtype == object else value.astype(object)
    return _from_nested(value)


def _from_nested(value: Value) -> Array:
    dims: list[int] = []
    probe = value
    while isinstance(probe, (tuple, list)):
        dims.append(len(probe))
        if not probe:
            break
        probe = probe[0]
    out = np.empty(dims, dtype=object)
    for at in np.ndindex(*dims):
        one = value
        for i in at:
            one = one[i]
        out[at] = one
    return out


def is_concrete(value: Array) -> bool:
    """Whether every element is a plain number."""
    return all(isinstance(v, (bool, int, np.integer)) for v in value.ravel())


def is_settled(value: Value) -> bool:
    """Whether every element is a number or a symbolic size, and none is unknown."""
    kinds = (bool, int, np.integer, np.bool_, SymExpr)
    return isinstance(value, np.ndarray) and (
        value.dtype != object or all(isinstance(v, kinds) for v in value.ravel())
    )


def settle(value: Value) -> Value:
    """An object array of ints as int64 (bools as bool); tuples element by element."""
    if value is None:
        return None
    if isinstance(value, tuple):
        return tuple(settle(v) for v in value)
    array = np.asarray(value)
    if array.dtype != object:
        return array
    if array.size and all(isinstance(v, (bool, np.bool_)) for v in array.ravel()):
        return array.astype(bool)
    if not is_concrete(array):
        return array
    return array.astype(np.int64)
