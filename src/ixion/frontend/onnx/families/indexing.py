"""Gather, scatter, one-hot, top-k, unique, compress, non-maximum suppression."""

from __future__ import annotations

from ixion.base.dim import Dim
from ixion.frontend.build import choice
from ixion.frontend.build.movement import expand_dims, reshape, take, transpose, wrapped
from ixion.frontend.onnx.convert import Site, converts
from ixion.frontend.term import Term, static

_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


@converts("Gather")
def gather(site: Site) -> Term:
    return take(site.emit, site.input(0), site.input(1), site.attr("axis", 0))


@converts("GatherElements")
def gather_elements(site: Site) -> Term:
    x, indices = site.input(0), site.input(1)
    axis = site.attr("axis", 0) % x.rank
    return site.call("gather", x, wrapped(site.emit, indices, x.shape[axis]), axis=axis)


def _coordinates_first(site: Site, x: Term, indices: Term, batch: int = 0) -> Term:
    """ONNX keeps a coordinate's parts in the last axis, Relay in the first."""
    depth = static(indices.shape[-1])
    sizes = site.emit.sizes(x.shape[batch : batch + depth], indices.dtype)
    negative = site.call("less", indices, 0)
    indices = site.call("where", negative, site.call("add", indices, sizes), indices)
    last = indices.rank - 1
    return transpose(site.emit, indices, (last, *range(last)))


@converts("GatherND")
def gather_nd(site: Site) -> Term:
    x, indices = site.input(0), site.input(1)
    batch = site.attr("batch_dims", 0)
    first = _coordinates_first(site, x, indices, batch)
    depth = static(indices.shape[-1])
    return site.call("gather_nd", x, first, batch_dims=batch, index_rank=depth)


@converts("ScatterND")
def scatter_nd(site: Site) -> Term:
    x, indices, updates = site.input(0), site.input(1), site.input(2)
    mode = _REDUCTIONS[site.attr("reduction", "none")]
    return site.call("scatter_nd", x, _coordinates_first(site, x, indices), updates, mode=mode)


@converts("Scatter", "ScatterElements")
def scatter_elements(site: Site) -> Term:
    x, indices, updates = site.input(0), site.input(1), site.input(2)
    axis = site.attr("axis", 0) % x.rank
    return site.call(
        "scatter_elements",
        x,
        wrapped(site.emit, indices, x.shape[axis]),
        updates,
        axis=axis,
        reduction=_REDUCTIONS[site.attr("reduction", "none")],
    )


@converts("OneHot")
def one_hot(site: Site) -> Term:
    indices, values = site.input(0), site.input(2)
    depth = site.dims(1, "a depth")[0]
    off, on = (
        reshape(site.emit, take(site.emit, values, site.emit.constant([i], "int64"), 0), ())
        for i in (0, 1)
    )
    whole = (
        indices
        if indices.dtype in ("int32", "int64")
        else site.call("cast", indices, dtype="int64")
    )
    inside = (
        wrapped(site.emit, whole, depth)
        if not whole.known
        else site.call("where", site.call("less", whole, 0), _raised(site, whole, depth), whole)
    )
    axis = site.attr("axis", -1)
    return site.call("one_hot", inside, on, off, depth=depth, axis=axis, dtype=values.dtype)


def _raised(site: Site, indices: Term, size: Dim) -> Term:
    return site.call("add", indices, site.emit.sizes(size, indices.dtype))


@converts("TopK")
def top_k(site: Site) -> tuple[Term, ...]:
    k = int(site.attr("k")) if site.has("k") else site.input(1)
    return choice.top_k(
        site.emit, site.input(0), k, site.attr("axis", -1), bool(site.attr("largest", 1))
    )


@converts("NonZero")
def non_zero(site: Site) -> Term:
    return site.call("nonzero", site.input(0))


@converts("Unique")
def unique(site: Site) -> tuple[Term, ...]:
    """Distinct values, where each first is, which one each element is, and how often each is."""
    x, axis = site.input(0), site.attr("axis", None)
    made = site.call("unique_slices", x, axis=axis, sorted=bool(site.attr("sorted", 1)))
    return site.emit.items(made)


@converts("Compress")
def compress(site: Site) -> Term:
    return choice.compress(site.emit, site.input(0), site.input(1), site.attr("axis", None))


@converts("NonMaxSuppression")
def non_max_suppression(site: Site) -> Term:
    """Without a limit no box is chosen; without a score threshold any score will do."""
    most, overlap, score = (site.optional(i) for i in (2, 3, 4))
    zero = site.emit.constant(0.0, "float32")
    return site.call(
        "vision.select_boxes",
        site.input(0),
        site.input(1),
        site.emit.constant(0, "int64") if most is None else most,
        zero if overlap is None else overlap,
        zero if score is None else score,
        center_point_box=bool(site.attr("center_point_box", 0)),
        limited=score is not None,
    )


@converts("ArrayFeatureExtractor", domain="ai.onnx.ml")
def feature_extractor(site: Site) -> Term:
    x = site.input(0)
    picked = take(site.emit, x, reshape(site.emit, site.input(1), (-1,)), -1)
    return picked if x.rank > 1 else expand_dims(site.emit, picked, [0])
