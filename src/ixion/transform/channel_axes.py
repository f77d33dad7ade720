"""Per-channel vectors against tensors: bringing one to the axes of the other and back."""

from __future__ import annotations

from collections.abc import Sequence

from ixion.base.dim import Dim
from ixion.ir import Expr, TensorType
from ixion.op.call import call

__all__ = ["expand_to_axes", "matched_to_axes"]


def expand_to_axes(vector: Expr, shape: Sequence[Dim], axes: Sequence[int]) -> Expr | None:
    """``vector``, whose dims are ``axes`` of ``shape``, so that it broadcasts over ``shape``.

    One axis gives an expand_dims (or nothing for the last axis), several a reshape; None if a
    reshape would need a size that is not known.
    """
    if len(axes) == 1:
        trailing = len(shape) - axes[0] - 1
        if trailing == 0:
            return vector
        return call("expand_dims", vector, axis=1, num_newaxis=trailing)
    newshape = [dim if i in axes else 1 for i, dim in enumerate(shape)]
    if not all(isinstance(dim, int) for dim in newshape):
        return None
    return call("reshape", vector, newshape=newshape)


def matched_to_axes(
    data: TensorType, other: TensorType, axes: Sequence[int], value: Expr | None = None
) -> tuple[bool, Expr | None]:
    """Whether ``other`` broadcasts over ``data`` along ``axes`` alone, and ``value`` cut to them.

    It must have the sizes of ``data`` along ``axes`` and 1 elsewhere. With a ``value`` (an
    expression of type ``other``) a scalar is repeated along the axes, and dims of size 1 are
    squeezed out. After Relay's MatchBroadcastToLeftAxes.
    """
    base = len(data.shape) - len(other.shape)
    if base < 0:
        return False, None
    if not other.shape and value is not None and axes:
        known = all(isinstance(data.shape[axis], int) for axis in axes)
        return known, _repeated(value, data, axes) if known else None
    squeezed = []
    for i, dim in enumerate(data.shape):
        if i in axes:
            if i < base or dim != other.shape[i - base]:
                return False, None
        elif i >= base:
            if other.shape[i - base] != 1:
                return False, None
            squeezed.append(i - base)
    if value is not None and squeezed:
        value = call("squeeze", value, axis=squeezed)
    return True, value


def _repeated(value: Expr, data: TensorType, axes: Sequence[int]) -> Expr:
    value = call("expand_dims", value, axis=0, num_newaxis=len(axes))
    for i, axis in enumerate(axes):
        value = call("repeat", value, repeats=data.shape[axis], axis=i)
    return value
