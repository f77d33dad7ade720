"""Axis numbers: negative ones, lists, and where a reduction's ``exclude`` turns them around."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ixion.base import dim as dims

if TYPE_CHECKING:
    from ixion.base.dim import Dim
    from ixion.op.define import InferArgs


def checked_axis(args: InferArgs, axis: int, rank: int) -> int:
    """``axis`` counted from the front; raises TypeInferenceError when it is out of range."""
    if not -rank <= axis < rank:
        args.fail("axis is out of range", expected=f"[-{rank}, {rank})", found=axis)
    return axis % rank


def checked_axes(args: InferArgs, axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """As ``checked_axis`` for several, which must differ."""
    out = tuple(checked_axis(args, a, rank) for a in axes)
    if len(set(out)) != len(out):
        args.fail("axes repeat", found=list(axes))
    return out


def reduced_axes(axis: Sequence[int] | None, exclude: bool, rank: int) -> tuple[int, ...]:
    """The axes that a Relay reduction removes, in rising order.

    No list means all axes; with ``exclude`` the listed ones are those that stay.
    """
    if axis is None:
        return tuple(range(rank))
    listed = {a % rank for a in axis} if rank else set()
    if exclude:
        return tuple(a for a in range(rank) if a not in listed)
    return tuple(sorted(listed))


def static_sizes(shape: Iterable[Dim]) -> list[int]:
    """Dims as ints; raises InputError for one that is not a number."""
    return [dims.evaluate(d, {}) for d in shape]


def shape_text(shape: Sequence[Dim]) -> str:
    """``(a, b)`` for messages."""
    return "(" + ", ".join(str(d) for d in shape) + ")"
