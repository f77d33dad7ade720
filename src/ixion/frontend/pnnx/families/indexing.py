"""Tensor.index, gather, scatter, slice assignment, arange."""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.base.errors import ModelFormatError
from ixion.frontend.build.choice import compress, masked
from ixion.frontend.build.movement import (
    broadcast_to,
    reshape,
    slices,
    take,
    transpose,
    wrapped,
)
from ixion.frontend.pnnx.arithmetic import evaluate
from ixion.frontend.pnnx.convert import Site, converts
from ixion.frontend.pnnx.expression import parse
from ixion.frontend.pnnx.families.slicing import Cut
from ixion.frontend.pnnx.promote import Item, as_term, cast, promoted, torch_dtype
from ixion.frontend.term import Term, at_most, static

_AXES = tuple[int, Term]


@converts("Tensor.index")
def index(site: Site) -> Term:
    """As torch's advanced indexing: lists broadcast together; adjacent ones stay where they are."""
    x = site.x
    stated = site.arg("expr")
    if isinstance(stated, str):
        stated = evaluate(site.emit, parse(stated, site.place), site.positional)
    entries = stated if isinstance(stated, list) else [stated]
    only = _only_mask(entries)
    if only is not None and only[0] == 0:
        return masked(site.emit, x, only[1])
    if only is not None and only[1].rank == 1:
        return compress(site.emit, x, only[1], only[0])
    return indexed(site, x, _expanded(site, entries))


@converts("torch.masked_select")
def masked_select(site: Site) -> Term:
    x, mask = site.x, site.operand("mask")
    whole = site.call("broadcast_to", mask, shape=x.shape) if mask.shape != x.shape else mask
    return masked(site.emit, x, whole)


def _only_mask(entries: list[Item]) -> tuple[int, Term] | None:
    """The axis and mask of an index that is one mask computed at run time, after whole axes."""
    *whole, last = entries
    if isinstance(last, Term) and last.dtype == "bool" and not last.known:
        return (len(whole), last) if all(one is None for one in whole) else None
    return None


def _expanded(site: Site, entries: list[Item]) -> list[Term | None]:
    """An index per axis; a bool list of n axes becomes n lists of places."""
    made: list[Term | None] = []
    for entry in entries:
        if entry is None:
            made.append(None)
            continue
        term = entry if isinstance(entry, Term) else _listed(site, entry)
        if term.dtype != "bool":
            made.append(term)
            continue
        if not term.known or term.array is None:
            site.unsupported("with a mask computed at run time")
        made.extend(site.emit.constant(places, "int64") for places in np.nonzero(term.array))
    return made


def _listed(site: Site, entry: Item) -> Term:
    values = np.asarray(entry)
    if values.dtype.kind not in "bi":
        raise ModelFormatError("an index that is no integer", found=repr(entry))
    return site.emit.constant(values, "bool" if values.dtype.kind == "b" else "int64")


def indexed(site: Site, x: Term, indices: list[Term | None]) -> Term:
    """The elements that indices of several axes name together."""
    chosen = [(axis, term) for axis, term in enumerate(indices) if term is not None]
    if len(indices) > x.rank:
        raise ModelFormatError(f"{len(indices)} indices for rank {x.rank}")
    if not chosen:
        return x
    if len(chosen) == 1:
        return take(site.emit, x, chosen[0][1], chosen[0][0])
    axes = [axis for axis, _ in chosen]
    rest = [axis for axis in range(x.rank) if axis not in axes]
    moved = transpose(site.emit, x, [*axes, *rest])
    sizes = [x.shape[axis] for axis in axes]
    flat = reshape(site.emit, moved, (dims.prod(sizes), *(x.shape[axis] for axis in rest)))
    places = _flat_places(site, [term for _, term in chosen], sizes)
    out = site.call("take", flat, places, axis=0, mode="fast")
    if axes != list(range(axes[0], axes[0] + len(axes))) or axes[0] == 0:
        return out
    # Adjacent indices leave their axes in place of the first of them.
    front = list(range(places.rank, places.rank + axes[0]))
    back = list(range(places.rank + axes[0], out.rank))
    return transpose(site.emit, out, [*front, *range(places.rank), *back])


def _flat_places(site: Site, terms: list[Term], sizes: list[Dim]) -> Term:
    total: Term | None = None
    for term, size in zip(terms, sizes, strict=True):
        place = cast(site.emit, wrapped(site.emit, term, size), "int64")
        if total is None:
            total = place
        else:
            scaled = site.call("multiply", total, site.emit.sizes(size))
            total = site.call("add", scaled, place)
    assert total is not None
    return total


@converts("torch.index_select")
def index_select(site: Site) -> Term:
    x, places = site.x, site.operand("index")
    return take(site.emit, x, places, site.axis("dim", x.rank))


@converts("torch.gather")
def gather(site: Site) -> Term:
    x, places = site.x, site.operand("index")
    axis = site.axis("dim", x.rank)
    if places.shape[:axis] + places.shape[axis + 1 :] != x.shape[:axis] + x.shape[axis + 1 :]:
        others = [one for one in range(x.rank) if one != axis]
        ends = [places.shape[one] for one in others]
        x = slices(site.emit, x, others, [0] * len(others), ends)
    return site.call("gather", x, places, axis=axis)


@converts("torch.scatter_add", "torch.scatter")
def scatter(site: Site) -> Term:
    x, places, source = site.x, site.operand("index"), site.arg("src")
    values = as_term(site.emit, source, x.dtype)
    if values.rank != places.rank:
        values = broadcast_to(site.emit, values, places.shape)
    if values.shape != places.shape:
        starts = [0] * x.rank
        values = slices(site.emit, values, list(range(x.rank)), starts, places.shape)
    reduction = "add" if site.op.kind == "torch.scatter_add" else "update"
    axis = site.axis("dim", x.rank)
    return site.call("scatter_elements", x, places, values, axis=axis, reduction=reduction)


@converts("Tensor.slice_copy")
def slice_copy(site: Site) -> Term:
    target, source = site.tensor("self"), site.arg("src", None)
    if target is None or source is None:
        raise ModelFormatError(
            "a slice assignment whose source the converter lost",
            hint="write the model with torch.where or masked_fill, and convert it again",
        )
    return assigned(
        site, target, as_term(site.emit, source, target.dtype), Cut.read(site, target.rank)
    )


@converts("torch.slice_scatter", "torch.select_scatter")
def slice_scatter(site: Site) -> Term:
    target, source = site.x, site.operand("src")
    if site.op.kind == "torch.select_scatter":
        axis, place = site.axis("dim", target.rank), site.ints("index")[0]
        return assigned(site, target, source, Cut(selected=[(axis, place)]))
    return assigned(site, target, source, Cut.read(site, target.rank))


def assigned(site: Site, target: Term, source: Term, cut: Cut) -> Term:
    """`target` with the cut replaced by `source`, as one `where` of gathered source cells.

    Each cell of an axis knows the source cell it takes, and whether it is in the cut.
    """
    rows = [*cut.ranges, *((axis, index, 0, 0) for axis, index in cut.selected)]
    mask: Any = np.ones((1,) * target.rank, bool)
    shape = _source_shape(target, cut)
    value = broadcast_to(site.emit, source, shape)
    for axis in sorted(axis for axis, _ in cut.selected):
        value = site.call("expand_dims", value, axis=axis, num_newaxis=1)
    for axis, start, stop, step in rows:
        size, begin, end = static(target.shape[axis]), static(start), static(stop)
        chosen = np.zeros(size, bool)
        places = np.arange(size)[slice(begin, end, step)] if step else np.array([begin % size])
        chosen[places] = True
        origin = np.zeros(size, np.int64)
        origin[places] = np.arange(len(places))
        if not len(places):
            return target
        value = take(site.emit, value, site.emit.constant(origin), axis)
        mask = mask & chosen.reshape([-1 if a == axis else 1 for a in range(target.rank)])
    return site.call("where", site.emit.constant(mask), value, target)


def _source_shape(target: Term, cut: Cut) -> list[Any]:
    sizes: list[Any] = list(target.shape)
    for axis, begin, end, step in cut.ranges:
        places = slice(static(begin), static(end), step)
        sizes[axis] = len(range(static(target.shape[axis]))[places])
    dropped = {axis for axis, _ in cut.selected}
    return [size for axis, size in enumerate(sizes) if axis not in dropped]


@converts("Tensor.fill", "Tensor.copy")
def fill(site: Site) -> Term:
    if site.op.kind == "Tensor.copy":
        target, source = site.operand("self"), site.operand("src")
        return broadcast_to(site.emit, cast(site.emit, source, target.dtype), target.shape)
    x = site.x
    return broadcast_to(site.emit, as_term(site.emit, site.arg("value"), x.dtype), x.shape)


@converts("torch.arange")
def arange(site: Site) -> Term:
    bounds = (site.arg("start", 0), site.arg("end"), site.arg("step", 1))
    values = [_known(site, item) for item in bounds]
    stated = site.arg("dtype", None)
    whole = not any(isinstance(value, float) for value in values)
    dtype = torch_dtype(str(stated)) if stated else ("int64" if whole else "float32")
    start, end, step = values
    return site.emit.arange(start, end, step, dtype)


def _known(site: Site, item: Item) -> float | Dim:
    if not isinstance(item, Term):
        return item  # type: ignore[no-any-return]  # a number or a size
    if item.known and item.array is not None:
        number: int | float = item.array.reshape(-1)[0].item()
        return number
    sizes = item.dims()
    if not sizes:
        site.unsupported("with bounds computed at run time")
    return sizes[0]


@converts("torch.zeros_like", "torch.ones_like", "torch.empty_like", "torch.full_like")
def filled_like(site: Site) -> Term:
    x = site.x
    name = site.op.kind.removeprefix("torch.").removesuffix("_like")
    value = site.arg("fill_value") if name == "full" else (1 if name == "ones" else 0)
    dtype = site.arg("dtype", None)
    kind = torch_dtype(str(dtype)) if dtype else x.dtype
    return broadcast_to(site.emit, as_term(site.emit, value, kind), x.shape)


@converts(
    "torch.zeros", "torch.ones", "torch.empty", "torch.full",
    "Tensor.new_zeros", "Tensor.new_ones", "Tensor.new_empty", "Tensor.new_full",
)  # fmt: skip
def filled(site: Site) -> Term:
    name = site.op.kind.rpartition(".")[2].removeprefix("new_")
    value = site.arg("fill_value") if name == "full" else (1 if name == "ones" else 0)
    dtype = site.arg("dtype", None)
    kind = torch_dtype(str(dtype)) if dtype else None
    if kind is None and site.op.kind.startswith("Tensor."):
        kind = site.x.dtype
    if kind is None and name != "full":
        kind = "float32"
    return broadcast_to(site.emit, as_term(site.emit, value, kind), site.dims("size"))


@converts("torch.diag")
def diagonal(site: Site) -> Term:
    """The k-th diagonal of a matrix, or a matrix with a vector on it."""
    x, k = site.x, site.ints("diagonal", None, 0)[0]
    if x.rank == 2:
        rows, columns = x.static()
        line = np.diagonal(np.arange(rows * columns).reshape(rows, columns), k)
        flat = reshape(site.emit, x, (rows * columns,))
        return take(site.emit, flat, site.emit.constant(line, "int64"), 0)
    size = at_most(1 << 12, static(x.shape[0]) + abs(k), "rows of a diagonal matrix")
    places = np.clip(np.arange(size) - max(0, -k), 0, static(x.shape[0]) - 1)
    column = reshape(site.emit, take(site.emit, x, site.emit.constant(places), 0), (size, 1))
    mask = site.emit.constant(np.eye(size, k=k, dtype=bool))
    return site.call("where", mask, column, site.emit.constant(0, x.dtype))


@converts("torch.cross")
def cross(site: Site) -> Term:
    a, b = promoted(site.emit, [site.x, site.arg("other")])
    if site.arg("dim", None) is None:
        # torch's default is the first axis of size 3.
        axis = [isinstance(dim, int) and dim == 3 for dim in a.shape].index(True)
    else:
        axis = site.axis("dim", a.rank)
    ahead, behind = site.emit.constant([1, 2, 0], "int64"), site.emit.constant([2, 0, 1], "int64")
    left = site.call("multiply", take(site.emit, a, ahead, axis), take(site.emit, b, behind, axis))
    right = site.call("multiply", take(site.emit, a, behind, axis), take(site.emit, b, ahead, axis))
    return site.call("subtract", left, right)
