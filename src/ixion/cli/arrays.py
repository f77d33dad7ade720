"""Arrays in `.npz` files: which array belongs to which input or output, and how two differ.

A key is `NAME`, `in:NAME` or `out:NAME`, or `in0, in1, ...` / `out0, ...` by position; one file may
hold inputs and expected outputs together.
"""

from __future__ import annotations

import os
import re
import tempfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ixion.base.errors import InputError, nearest

Array = np.ndarray[Any, Any]
Side = Literal["in", "out"]

# What zipfile and numpy raise on damage; RuntimeError is an encrypted entry, and as the base of
# NotImplementedError also a compression method that zipfile does not know.
_BROKEN = (zipfile.BadZipFile, zlib.error, ValueError, EOFError, KeyError, RuntimeError)


def read_npz(path: Path) -> dict[str, Array]:
    """Every array of a `.npz`. Raises InputError for another kind of file or a damaged one."""
    try:
        # An open file, so that a missing one is reported by its name.
        with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
            names = [entry.removesuffix(".npy") for entry in archive.namelist()]
            return {name: _member(archive, f"{name}.npy") for name in names}
    except _BROKEN as error:
        message = f"not a readable .npz file: {error}"
        hint = "write it with numpy.savez(path, name=array)"
        raise InputError(message, where=path, hint=hint) from error


def _member(archive: zipfile.ZipFile, name: str) -> Array:
    with archive.open(name) as stream:
        return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))


def pick(arrays: Mapping[str, Array], names: Sequence[str], side: Side) -> dict[str, Array]:
    """The array for each of `names`, by name or by position.

    Raises InputError that lists every name without an array.
    """
    chosen: dict[str, Array] = {}
    missing = []
    for position, name in enumerate(names):
        key = _key(arrays, name, position, side)
        if key is None:
            missing.append(name)
        else:
            chosen[name] = arrays[key]
    if missing:
        raise _missing(missing, arrays, side)
    return chosen


def pick_inputs(
    arrays: Mapping[str, Array], names: Sequence[str], outputs: Sequence[str]
) -> dict[str, Array]:
    """`pick` for inputs, refusing an array that belongs to no input and to no output."""
    chosen = pick(arrays, names, "in")
    used = {_key(arrays, name, position, "in") for position, name in enumerate(names)}
    for key in arrays:
        if key not in used and key not in outputs and not re.match(r"out:|out\d+$", key):
            close = nearest(key, names)
            raise InputError(
                f"the array {key!r} belongs to no input",
                expected=", ".join(names),
                found=", ".join(arrays),
                hint=f"did you mean {close!r}?" if close else "leave it out",
            )
    return chosen


def _key(arrays: Mapping[str, Array], name: str, position: int, side: Side) -> str | None:
    keys = (f"{side}:{name}", name, f"{side}{position}")
    return next((key for key in keys if key in arrays), None)


def _missing(missing: Sequence[str], arrays: Mapping[str, Array], side: Side) -> InputError:
    what = "input" if side == "in" else "expected output"
    close = nearest(missing[0], list(arrays))
    return InputError(
        f"no array for {what} {', '.join(map(repr, missing))}",
        expected=f"a key NAME, {side}:NAME or {side}0, {side}1, ... by position",
        found=", ".join(arrays) or "an empty file",
        hint=f"rename {close!r} to {missing[0]!r}" if close else f"add {missing[0]!r} to the file",
    )


def typed(array: Array, dtype: str) -> Array:
    """`array` in the element type that numpy's file format cannot name.

    bfloat16 and the 8-bit floats are stored as raw bytes of their width; everything else is
    returned as it is.
    """
    if array.dtype.kind != "V":
        return array
    from ixion.base.dtype import to_numpy

    declared = to_numpy(dtype)
    return array.view(declared) if declared.itemsize == array.dtype.itemsize else array


@dataclass(frozen=True)
class Difference:
    """How far an output is from the expected one."""

    largest: float
    """Largest absolute error; infinite where one is not a number and the other is."""
    share: float
    """Largest error as a share of what is allowed there; at most 1 when within."""
    within: bool
    reason: str | None = None


def difference(got: Array, want: Array, rtol: float, atol: float) -> Difference:
    """Compare by |got - want| <= atol + rtol * |want|, two NaN and equal infinities being equal.

    Another dtype is mentioned in `reason`; it decides nothing, since files often hold wider values
    than the model gives.
    """
    if got.shape != want.shape:
        reason = f"shape {got.shape}, expected {want.shape}"
        return Difference(np.inf, np.inf, within=False, reason=reason)
    if got.size == 0:
        return Difference(0.0, 0.0, within=True)
    a, b = _wide(got), _wide(want)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(all="ignore"):
        error = np.where(same, 0.0, np.abs(a - b))
        allowed = atol + rtol * np.abs(b)
        share = np.where(error == 0, 0.0, error / allowed)
    error = np.where(np.isnan(error), np.inf, error)
    share = np.where(np.isnan(share), np.inf, share)
    largest = float(share.max())
    remark = None if got.dtype == want.dtype else f"{got.dtype}, expected {want.dtype}"
    return Difference(float(error.max()), largest, within=largest <= 1, reason=remark)


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def check_writable(path: Path) -> None:
    """Raise before the work is done, not after it, if `path` cannot be written."""
    if path.is_dir():
        raise IsADirectoryError(21, "Is a directory", str(path))
    if not os.access(path.parent, os.W_OK):
        kind = PermissionError if path.parent.is_dir() else FileNotFoundError
        raise kind(13 if path.parent.is_dir() else 2, "Cannot write there", str(path))


def write_npz(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write all of `arrays` or leave `path` as it was."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
            for name, array in arrays.items():
                # Not numpy.savez: an output may have the name of one of its parameters.
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, np.asarray(array), allow_pickle=False)
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
