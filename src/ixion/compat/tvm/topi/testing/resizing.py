"""Pictures and volumes in other sizes: one axis after the other, as weights of its positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def _places(size: int, target: int, mode: str) -> Array:
    """Where on an axis of ``size`` each of ``target`` positions lies."""
    at = np.arange(target, dtype=np.float64)
    if mode == "align_corners":
        return at * (size - 1) / (target - 1) if target > 1 else at * 0
    if mode == "half_pixel":
        return (at + 0.5) * size / target - 0.5
    if mode == "asymmetric":
        return at * size / target
    raise ValueError(f"unknown coordinate transformation {mode!r}")


def _cubic(t: Array, alpha: float) -> list[Array]:
    # Keys' kernel at distances 1 + t, t, 1 - t and 2 - t.
    def inner(x: Array) -> Array:
        return np.asarray((alpha + 2) * x**3 - (alpha + 3) * x**2 + 1)

    def outer(x: Array) -> Array:
        return np.asarray(alpha * (x**3 - 5 * x**2 + 8 * x - 4))

    return [outer(1 + t), inner(t), inner(1 - t), outer(2 - t)]


def _weights(size: int, target: int, method: str, mode: str) -> Array:
    """(target, size): what each position takes from each element; edges repeat outwards."""
    places = _places(size, target, mode)
    base = np.floor(places).astype(int)
    rest = places - base
    taps: list[tuple[int, Array]]
    if method == "nearest_neighbor":
        if mode == "align_corners":
            base = np.floor(places + 0.5).astype(int)
        taps = [(0, np.ones(target))]
    elif method == "linear":
        taps = [(0, 1 - rest), (1, rest)]
    elif method == "cubic":
        taps = list(zip(range(-1, 3), _cubic(rest, -0.5), strict=True))
    else:
        raise ValueError(f"unknown method {method!r}")
    out = np.zeros((target, size))
    for offset, weight in taps:
        np.add.at(out, (np.arange(target), np.clip(base + offset, 0, size - 1)), weight)
    return out


def _resize(
    data: Array, scale: Sequence[float], axes: Sequence[int], method: str, mode: str
) -> Array:
    out = data.astype(np.float64)
    for axis, factor in zip(axes, scale, strict=True):
        size = data.shape[axis]
        weights = _weights(size, round(size * factor), method, mode)
        out = np.moveaxis(np.tensordot(weights, out, (1, axis)), 0, axis)
    return out.astype(data.dtype)


def _sized(layout: str, letters: str) -> list[int]:
    return [layout.index(letter) for letter in letters]


def resize1d_python(
    data: Array, scale: Sequence[float], layout: str = "NCW",
    method: str = "nearest_neighbor", coordinate_transformation_mode: str = "align_corners",
) -> Array:  # fmt: skip
    """Resize the axis W."""
    return _resize(data, scale, _sized(layout, "W"), method, coordinate_transformation_mode)


def resize2d_python(
    data: Array, scale: Sequence[float], layout: str = "NCHW",
    method: str = "nearest_neighbor", coordinate_transformation_mode: str = "align_corners",
) -> Array:  # fmt: skip
    """Resize the axes H and W."""
    return _resize(data, scale, _sized(layout, "HW"), method, coordinate_transformation_mode)


def resize3d_python(
    data: Array, scale: Sequence[float], layout: str = "NCDHW",
    method: str = "nearest_neighbor", coordinate_transformation_mode: str = "align_corners",
) -> Array:  # fmt: skip
    """Resize the axes D, H and W."""
    return _resize(data, scale, _sized(layout, "DHW"), method, coordinate_transformation_mode)
