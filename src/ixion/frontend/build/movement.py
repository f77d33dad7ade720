"""Reshape, slice, pad, take: data movement with exact foreign semantics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.base.errors import ModelFormatError
from ixion.frontend.emitter import Emitter, Number
from ixion.frontend.term import Array, Term, at_most, static
from ixion.ir import Call, Constant, Expr, Op
from ixion.op.slice import FAR

#: A slice bound beyond any size.
_FAR = 1 << 62
_BLOCK = 256
_MOST_PARTS = 1 << 16


def reshape(emit: Emitter, x: Term, shape: Sequence[Dim]) -> Term:
    """`x` with a new shape of known dims, one of which may be -1; x itself if that changes nothing.

    Symbolic dims are written in Relay's codes: 0 where a dim stays in place, one -1 for another.
    ModelFormatError if the sizes cannot agree.
    """
    wanted = _inferred(x, list(shape))
    if len(wanted) == x.rank and all(dims.same(a, b) for a, b in zip(wanted, x.shape, strict=True)):
        return x
    codes: list[Dim] = []
    inferred = 0
    for axis, dim in enumerate(wanted):
        if isinstance(dim, int):
            codes.append(dim)
        elif axis < x.rank and dims.same(dim, x.shape[axis]):
            codes.append(0)
        else:
            inferred += 1
            codes.append(-1)
    # A literal 0 (an empty tensor) would read as "copy" in Relay's codes.
    literal = inferred > 1 or any(dim == 0 for dim in wanted)
    return emit.call(
        "reshape", x, newshape=tuple(wanted if literal else codes), allowzero=literal
    )


def _inferred(x: Term, shape: list[Dim]) -> list[Dim]:
    if shape.count(-1) != 1:
        return shape
    at = next(i for i, dim in enumerate(shape) if isinstance(dim, int) and dim == -1)
    rest = dims.prod(shape[:at] + shape[at + 1 :])
    total = dims.prod(x.shape)
    if isinstance(rest, int) and isinstance(total, int) and (rest == 0 or total % rest):
        raise ModelFormatError(
            "a reshape to another number of elements", expected=str(x.shape), found=str(shape)
        )
    shape[at] = dims.floordiv(total, rest)
    return shape


def flatten(emit: Emitter, x: Term, axis: int) -> Term:
    """Two dims: the product before `axis` and the product from it on."""
    if axis == 1 and x.rank >= 2:
        return x if x.rank == 2 else emit.call("nn.batch_flatten", x)
    return reshape(emit, x, (dims.prod(x.shape[:axis]), dims.prod(x.shape[axis:])))


def transpose(emit: Emitter, x: Term, axes: Sequence[int]) -> Term:
    """Axes in a new order; a known array is transposed at once, whatever its size."""
    order = tuple(axis % max(x.rank, 1) for axis in axes)
    if order == tuple(range(x.rank)):
        return x
    if x.known:
        return _turned(emit, x, order)
    return emit.call("transpose", x, axes=order)


def _turned(emit: Emitter, x: Term, order: tuple[int, ...]) -> Term:
    if x.turned is not None:
        # A weight that the model transposes back and forth is never copied twice.
        base, first = x.turned
        return transpose(emit, base, [first[axis] for axis in order])
    shape = x.static()
    made = x.derived(lambda array: _transposed(array, order), tuple(shape[axis] for axis in order))
    made.turned = (x, order)
    return made


def _transposed(array: Array, order: tuple[int, ...]) -> Array:
    """A copy in a new order of axes; large matrices in blocks that fit the cache."""
    turned = array.transpose(order)
    if array.ndim != 2 or min(array.shape) < _BLOCK:
        return np.ascontiguousarray(turned)
    out: Array = np.empty_like(turned, order="C")
    height, width = turned.shape
    for row in range(0, height, _BLOCK):
        for column in range(0, width, _BLOCK):
            block = (slice(row, row + _BLOCK), slice(column, column + _BLOCK))
            out[block] = turned[block]
    return out


def swap_last(emit: Emitter, x: Term) -> Term:
    """The last two axes exchanged."""
    axes = list(range(x.rank))
    axes[-2:] = axes[-1], axes[-2]
    return transpose(emit, x, axes)


def expand_dims(emit: Emitter, x: Term, axes: Sequence[int]) -> Term:
    """New axes of size 1 at the places they have in the result."""
    for axis in sorted(axis % (x.rank + len(axes)) for axis in axes):
        x = emit.call("expand_dims", x, axis=axis, num_newaxis=1)
    return x


def squeeze(emit: Emitter, x: Term, axes: Sequence[int]) -> Term:
    """`x` without the given axes, which have size 1."""
    if not axes:
        return x
    return emit.call("squeeze", x, axis=tuple(sorted(axis % x.rank for axis in axes)))


def single_axes(emit: Emitter, x: Term, axes: Iterable[int]) -> list[int]:
    """Those of `axes` that have size 1; an open one is assumed to have another size."""
    found = []
    for axis in axes:
        size = x.shape[axis]
        if isinstance(size, int):
            found += [axis] if size == 1 else []
        else:
            emit.assume("differ", size, 1, "an axis of size 1 would be dropped", "squeeze")
    return found


def slices(
    emit: Emitter,
    x: Term,
    axes: Sequence[int],
    begins: Sequence[Dim],
    ends: Sequence[Dim],
    steps: Sequence[int] | None = None,
) -> Term:
    """As numpy's `x[begin:end:step]` along `axes`; x itself if nothing is cut.

    Symbolic bounds are taken to lie within the axis, which the type relation guards.
    """
    strides = list(steps or [1] * len(axes))
    chosen: list[tuple[int, Dim, Dim, int]] = []
    for axis, first, last, step in zip(axes, begins, ends, strides, strict=True):
        if step == 0:
            raise ModelFormatError("a slice with step 0")
        begin, end = _bounds(x.shape[axis], first, last, step)
        if not _is_whole(x.shape[axis], begin, end, step):
            chosen.append((axis % x.rank, begin, end, step))
    if not chosen:
        return x
    chosen.sort(key=lambda one: one[0])
    columns = tuple(zip(*chosen, strict=True))
    made = _cut(emit, x, *columns)
    if x.known and not made.known:
        made.cut = (x, columns)
    return made


def _cut(emit: Emitter, x: Term, axes: Any, begin: Any, end: Any, strides: Any) -> Term:
    bounds = {"begin": begin, "end": end, "strides": strides, "axes": axes}
    return emit.call("strided_slice", x, slice_mode="end", **bounds)


def _is_whole(size: Dim, begin: Dim, end: Dim, step: int) -> bool:
    if step != 1 or not (isinstance(begin, int) and begin == 0):
        return False
    beyond = isinstance(end, int) and end >= (size if isinstance(size, int) else FAR)
    return beyond or bool(dims.same(size, end))


def _bounds(size: Dim, begin: Dim, end: Dim, step: int) -> tuple[Dim, Dim]:
    """Bounds as numbers that need no clamping where all are known; "before the first" is one less
    than -size.
    """
    if not (isinstance(size, int) and isinstance(begin, int) and isinstance(end, int)):
        return begin, end
    first, last, _ = slice(begin, end, step).indices(size)
    if step > 0:
        return first, max(first, last)
    if last >= first:
        return 0, 0
    return first, (last if last >= 0 else -size - 1)


def select(emit: Emitter, x: Term, axis: int, index: int) -> Term:
    """`x` at one index of an axis, the axis removed; ModelFormatError if it is out of range."""
    size = x.shape[axis]
    if isinstance(size, int) and not -size <= index < size:
        raise ModelFormatError(f"index {index} is outside the axis of size {size}")
    end = index + 1 if index != -1 else _FAR
    return squeeze(emit, slices(emit, x, [axis], [index], [end]), [axis])


def narrow(emit: Emitter, x: Term, axis: int, start: Dim, stop: Dim) -> Term:
    """`x[start:stop]` along one axis."""
    return slices(emit, x, [axis], [start], [stop])


def split_at(emit: Emitter, x: Term, axis: int, sizes: Sequence[Dim]) -> tuple[Term, ...]:
    """Parts of given sizes along an axis, in order; ModelFormatError if they do not add up."""
    axis %= x.rank
    at_most(_MOST_PARTS, len(sizes), "parts of a split")
    ends = list(accumulate(sizes, dims.add))
    if dims.same(ends[-1], x.shape[axis]) is False:
        raise ModelFormatError(
            "a split into parts that do not add up", expected=x.shape[axis], found=str(list(sizes))
        )
    if len(sizes) == 1:
        return (x,)
    cuts: Any = tuple(end for end in ends[:-1] if isinstance(end, int))
    if len(cuts) != len(sizes) - 1 or not isinstance(x.shape[axis], int):
        what = "the parts of a split do not add up"
        emit.assume("equal", x.shape[axis], ends[-1], what, "split")
        return tuple(narrow(emit, x, axis, a, b) for a, b in pairwise([0, *ends]))
    if len(set(sizes)) == 1:
        cuts = len(sizes)
    return emit.items(emit.call("split", x, indices_or_sections=cuts, axis=axis))


def even_parts(total: int, size: int) -> list[int]:
    """Parts of `size` and a smaller last one that add up to `total`."""
    if size < 1:
        raise ModelFormatError("a split into parts of no size")
    at_most(_MOST_PARTS, -(-total // size), "parts of a split")
    return [min(size, total - start) for start in range(0, total, size)]


def concatenate(emit: Emitter, terms: Sequence[Term], axis: int) -> Term:
    """Terms joined along an axis."""
    if len(terms) == 1:
        return terms[0]
    return emit.call("concatenate", list(terms), axis=axis % terms[0].rank)


def broadcast_to(emit: Emitter, x: Term, shape: Sequence[Dim]) -> Term:
    """`x` repeated to `shape`; x itself if it has that shape."""
    if tuple(shape) == x.shape:
        return x
    return emit.call("broadcast_to", x, shape=tuple(shape))


def pad(
    emit: Emitter,
    x: Term,
    widths: Sequence[tuple[Dim, Dim]],
    mode: str = "constant",
    value: Term | Number = 0.0,
) -> Term:
    """`x` grown by (before, after) of each axis; a negative width crops.

    A symbolic width is taken to grow, except that constant padding may crop by it as well.

    `mode`: constant, reflect, edge, or wrap (the other end of the axis).
    """
    for axis, (before, after) in enumerate(widths):
        front, back = (n if isinstance(n, int) and n < 0 else 0 for n in (before, after))
        if front or back:
            x = slices(emit, x, [axis], [-front], [back or _FAR])
    grown = [(_grown(before), _grown(after)) for before, after in widths]
    if not any(before or after for before, after in grown):
        return x
    if mode == "wrap":
        return _wrap(emit, x, grown)
    fill = value if isinstance(value, Term) else emit.constant(value, x.dtype)
    return emit.call("nn.pad", x, fill, pad_width=tuple(grown), pad_mode=mode)


def _grown(width: Dim) -> Dim:
    return max(width, 0) if isinstance(width, int) else width


def _wrap(emit: Emitter, x: Term, widths: Sequence[tuple[Dim, Dim]]) -> Term:
    for axis, (first, last) in enumerate(widths):
        before, after = static(first), static(last)
        if not (before or after):
            continue
        size = static(x.shape[axis])
        if max(before, after) > size:
            raise ModelFormatError("a circular pad wider than the axis")
        parts = [narrow(emit, x, axis, size - before, size)] if before else []
        parts.append(x)
        if after:
            parts.append(narrow(emit, x, axis, 0, after))
        x = concatenate(emit, parts, axis)
    return x


def take(emit: Emitter, x: Term, indices: Term, axis: int) -> Term:
    """As numpy's `x.take(indices, axis)`: an index may be negative, counted from the end.

    The shape is that of x with the axis replaced by the shape of the indices.
    """
    axis %= x.rank
    if indices.cut is not None and x.known:
        # A part of a known table: the table is picked from once, whatever the part's size.
        whole, (first, *names) = indices.cut
        return _cut(emit, take(emit, x, whole, axis), [axis + a for a in first], *names)
    place = indices.ints() if indices.size == 1 else None
    if place is not None and not isinstance(x.shape[axis], int):
        # One place on an axis of symbolic size: a slice, whose bounds are guarded.
        return _one_place(emit, x, axis, place[0], indices.rank)
    return emit.call("take", x, wrapped(emit, indices, x.shape[axis]), axis=axis, mode="fast")


def _one_place(emit: Emitter, x: Term, axis: int, place: int, rank: int) -> Term:
    shape = x.shape
    picked = select(emit, x, axis, place)
    return reshape(emit, picked, (*shape[:axis], *[1] * rank, *shape[axis + 1 :]))


def wrapped(emit: Emitter, indices: Term, size: Dim) -> Term:
    """Indices with negative ones counted from the end of an axis of `size`.

    ModelFormatError if a known index is outside the axis.
    """
    if indices.dtype.startswith("uint"):
        return indices
    known = indices.array if indices.known else None
    if known is None and _never_negative(indices.expr):
        return indices
    if known is not None and isinstance(size, int):
        if known.size and not (-size <= int(known.min()) and int(known.max()) < size):
            raise ModelFormatError(f"an index is outside the axis of size {size}")
        return Term.constant(np.where(known < 0, known + size, known).astype(known.dtype))
    if known is not None and known.size and int(known.min()) >= 0:
        return indices
    if isinstance(size, dims.Any):
        raise ModelFormatError(
            "negative indices into an axis of unknown size",
            hint="give the input's shape: load(path, shapes={name: shape})",
        )
    negative = emit.call("less", indices, 0)
    whole = emit.sizes(size, indices.dtype)
    return emit.call("where", negative, emit.call("add", indices, whole), indices)


_MOVES = frozenset(("strided_slice", "reshape", "expand_dims", "squeeze", "transpose", "cast"))
_RISING = frozenset(("add", "multiply"))


def _never_negative(expr: Expr) -> bool:
    """Whether positions that were counted, and not read from data, can be seen to be so."""
    pending, left = [expr], 64
    while pending and left:
        one, left = pending.pop(), left - 1
        if isinstance(one, Constant):
            small = one.data.size <= _MOST_PARTS and one.data.dtype.kind in "iub"
            if not small or (one.data.size and one.data.min() < 0):
                return False
        elif not isinstance(one, Call) or not isinstance(one.op, Op):
            return False
        elif one.op.name in _MOVES:
            pending.append(one.args[0])
        elif one.op.name in _RISING:
            pending.extend(one.args)
        elif not _counts_up(one.op.name, one.attrs):
            return False
    return not pending


def _counts_up(name: str, attrs: Any) -> bool:
    if name == "sizes":
        first: Sequence[Dim] = attrs.values
    elif name == "iota" and attrs.step > 0:
        first = (attrs.start,)
    else:
        return False
    bounds = [dims.lower_bound(dim) for dim in first]
    return all(bound is not None and bound >= 0 for bound in bounds)


def count(shape: Sequence[Dim]) -> int:
    """Number of elements of a static shape."""
    return math.prod(static(dim) for dim in shape)
