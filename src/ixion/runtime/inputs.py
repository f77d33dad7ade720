"""Values handed to a run: what is accepted, and errors that say what was expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ixion.base import dtype as dtypes
from ixion.base.errors import InputError, nearest
from ixion.runtime.arena import address_of
from ixion.runtime.program import TensorSpec

Array = npt.NDArray[Any]


def in_order(values: Mapping[str, object], specs: Sequence[TensorSpec]) -> list[object]:
    """Values by name in the order of `specs`.

    Raises InputError for a missing or unknown name, with the nearest right one.
    """
    names = [spec.name for spec in specs]
    if values.keys() == set(names):
        return [values[name] for name in names]
    for name in values:
        if name not in names:
            raise _unknown_name(name, [other for other in names if other not in values] or names)
    missing = next(name for name in names if name not in values)
    raise InputError(f"input '{missing}' is missing", expected=_listed(names))


def check_count(values: Sequence[object], specs: Sequence[TensorSpec]) -> None:
    """Raise InputError unless there are as many values as inputs."""
    if len(values) != len(specs):
        names = _listed([spec.name for spec in specs])
        expected = f"{len(specs)} inputs: {names}"
        raise InputError("wrong number of inputs", expected=expected, found=len(values))


def fitting(value: object, spec: TensorSpec) -> Array:
    """`value` as a numpy array of exactly the spec's shape and dtype. Raises InputError."""
    array = as_array(value, spec)
    check_array(array, spec)
    return array


def check_array(array: Array, spec: TensorSpec) -> None:
    """Raise InputError unless the array has the spec's dtype, rank and shape (any strides)."""
    check_dtype(array, spec)
    if array.ndim != len(spec.shape):
        raise _mismatch("rank", spec, array)
    if array.shape != spec.shape:
        raise _mismatch("shape", spec, array)


def check_dtype(array: Array, spec: TensorSpec) -> None:
    """Raise InputError unless the array has the spec's dtype."""
    if array.dtype != dtypes.to_numpy(spec.dtype):
        raise _mismatch("dtype", spec, array)


def as_array(value: object, spec: TensorSpec) -> Array:
    """`value`, a numpy array or scalar or anything with `__dlpack__`, as a numpy array.

    Raises InputError, naming the input, for anything else and for memory numpy can't read.
    """
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    if not hasattr(value, "__dlpack__"):
        raise InputError(
            f"input '{spec.name}' is not an array",
            expected=f"a numpy array or an object with __dlpack__, {spec}",
            found=type(value).__name__,
        )
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(
            f"input '{spec.name}' can't be read through __dlpack__: {error}",
            expected=str(spec),
            found=type(value).__name__,
            hint="convert it to a numpy array in host memory",
        ) from error


def usable_in_place(array: Array) -> bool:
    """Whether kernels can work on the array where it lies: dense and 16-byte aligned."""
    return bool(array.flags.c_contiguous) and address_of(array) % 16 == 0


def _mismatch(what: str, spec: TensorSpec, array: Array) -> InputError:
    found = f"{_dtype_name(array)}{list(array.shape)}"
    expected = f"{spec.dtype}{list(spec.shape)}"
    return InputError(f"input '{spec.name}' has the wrong {what}", expected=expected, found=found)


def _dtype_name(array: Array) -> str:
    """Numpy's own name where it says more, as for a foreign byte order."""
    return str(array.dtype)


def _unknown_name(name: str, names: Sequence[str]) -> InputError:
    near = nearest(name, names)
    hint = f"did you mean '{near}'?" if near else None
    return InputError("unknown input name", expected=_listed(names), found=repr(name), hint=hint)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names) or "none"
