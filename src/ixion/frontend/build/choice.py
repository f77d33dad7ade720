"""Elements picked by masks and by order: what both formats need, in terms of operators."""

from __future__ import annotations

from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.frontend.build.movement import reshape, take
from ixion.frontend.emitter import Emitter
from ixion.frontend.term import Term


def compress(emit: Emitter, x: Term, mask: Term, axis: int | None) -> Term:
    """Slices along an axis where a vector of bools holds; no axis flattens x."""
    if mask.known and mask.array is not None:
        if axis is None:
            x, axis = reshape(emit, x, (-1,)), 0
        places = mask.array[: x.shape[axis] if isinstance(x.shape[axis], int) else None]
        return take(emit, x, emit.constant(places.nonzero()[0].astype("int64")), axis)
    return emit.call("compress", x, mask, axis=axis)


def masked(emit: Emitter, x: Term, mask: Term) -> Term:
    """Elements (or slices, for a mask of fewer axes) where the mask holds, in order."""
    rest = x.shape[mask.rank :]
    count = dims.prod(x.shape[: mask.rank])
    flat = reshape(emit, x, (count, *rest))
    return compress(emit, flat, reshape(emit, mask, (count,)), 0)


def top_k(
    emit: Emitter, x: Term, k: Term | Dim, axis: int, largest: bool
) -> tuple[Term, ...]:
    """Values and int64 positions of the k largest or smallest, in order; any k from 0 on."""
    known = k.dims() if isinstance(k, Term) else None
    count = known[0] if known else k
    if isinstance(count, Term) or count == 0:  # Relay's topk takes 0 as "all"
        places = count if isinstance(count, Term) else emit.constant(0, "int64")
        made = emit.call("top_k", x, places, axis=axis, is_ascend=not largest, dtype="int64")
        return emit.items(made)
    both = emit.call(
        "topk", x, k=count, axis=axis, ret_type="both", is_ascend=not largest, dtype="int64"
    )
    return emit.items(both)


def ordered(emit: Emitter, x: Term, axis: int, descending: bool) -> tuple[Term, Term]:
    """Values in order and their int64 positions; equal ones keep theirs."""
    if x.rank == 0:
        return x, emit.constant(0, "int64")
    options = {"axis": axis, "is_ascend": not descending, "dtype": "int64"}
    return emit.call("sort", x, **options), emit.call("argsort", x, **options)
