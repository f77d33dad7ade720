"""How close a computed value must be to the reference: exact, a few ulp, or an error sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ixion.base import dtype as dtypes
from ixion.op.rounding import Array, epsilon, ulp, wide

Scale = Callable[[Any, tuple[Array, ...], Any], Any]


@dataclass(frozen=True)
class Exact:
    """Every bit equal (any NaN equals any NaN): integers, data movement, comparisons."""


@dataclass(frozen=True)
class Ulp:
    """At most ``ulps`` units in the last place of the reference's value: elementwise math."""

    ulps: float = 1.0


@dataclass(frozen=True)
class Accumulation:
    """At most ``factor`` * eps * S, where S is a sum of magnitudes: reductions.

    ``scale(attrs, inputs, out_type)`` gives S per output element in float64 (a tuple where the op
    has several outputs); when it is None, S is the reference of the inputs' absolute values, which
    is right for sums of products.
    """

    factor: float = 8.0
    scale: Scale | None = None


Compare = Exact | Ulp | Accumulation


def mismatch(compare: Compare, got: Array, want: Array, scale: Array | None = None) -> str | None:
    """Why ``got`` is not acceptable for ``want``, or None when it is.

    Shapes and dtypes must agree.  ``scale``: S of ``Accumulation``, in the shape of ``want``.
    """
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    name = dtypes.from_numpy(want.dtype)
    if not dtypes.is_float(name):
        return _worst(got == want, got, want)
    a, b = wide(got), wide(want)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        near = same | (np.abs(a - b) <= allowed_error(compare, b, name, scale))
    return _worst(near, a, b)


def allowed_error(compare: Compare, want: Array, dtype: str, scale: Array | None) -> Array:
    """The largest accepted absolute error per element; ``want`` is float64."""
    if isinstance(compare, Exact):
        return np.zeros_like(want)
    if isinstance(compare, Ulp):
        return compare.ulps * ulp(want, dtype)
    size = np.abs(want) if scale is None else scale
    return np.asarray(compare.factor * epsilon(dtype) * size + ulp(want, dtype))


def _worst(near: Array, got: Array, want: Array) -> str | None:
    if np.all(near):
        return None
    bad = np.argwhere(~np.asarray(near))
    at = tuple(int(i) for i in bad[0])
    return f"{len(bad)} of {want.size} differ, first at {at}: {got[at]!r} instead of {want[at]!r}"
