"""Reshape, Transpose, Concat, Split, Slice, Pad and other data movement."""

from __future__ import annotations

from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.base.errors import ModelFormatError
from ixion.frontend.build import movement
from ixion.frontend.onnx.convert import Site, converts
from ixion.frontend.term import Term, at_most


@converts("Reshape")
def reshape(site: Site) -> Term:
    x = site.input(0)
    wanted = list(site.dims(1, "a shape"))
    if not site.attr("allowzero", 0):
        wanted = [_copied(x, axis) if _is(dim, 0) else dim for axis, dim in enumerate(wanted)]
    return movement.reshape(site.emit, x, wanted)


def _is(dim: Dim, number: int) -> bool:
    return isinstance(dim, int) and dim == number


def _copied(x: Term, axis: int) -> Dim:
    if axis >= x.rank:
        raise ModelFormatError(f"a reshape copies axis {axis}", found=f"rank {x.rank}")
    return x.shape[axis]


@converts("Flatten")
def flatten(site: Site) -> Term:
    x, axis = site.input(0), site.attr("axis", 1)
    return movement.flatten(site.emit, x, axis + x.rank if axis < 0 else axis)


@converts("Squeeze")
def squeeze(site: Site) -> Term:
    x = site.input(0)
    axes = site.axes(1)
    if axes is None:
        axes = movement.single_axes(site.emit, x, range(x.rank))
    return movement.squeeze(site.emit, x, axes)


@converts("Unsqueeze")
def unsqueeze(site: Site) -> Term:
    return movement.expand_dims(site.emit, site.input(0), site.axes(1, []) or [])


@converts("Transpose")
def transpose(site: Site) -> Term:
    x = site.input(0)
    return movement.transpose(site.emit, x, site.attr("perm", list(reversed(range(x.rank)))))


@converts("Concat")
def concat(site: Site) -> Term:
    terms = site.present()
    joined = [term for term in terms if not _is(term.shape[site.attr("axis")], 0)] or terms[:1]
    return movement.concatenate(site.emit, joined, site.attr("axis"))


@converts("Split")
def split(site: Site) -> tuple[Term, ...]:
    x, axis = site.input(0), site.attr("axis", 0)
    if site.has("split"):
        return movement.split_at(site.emit, x, axis, site.attr("split"))
    if site.optional(1) is not None:
        return movement.split_at(site.emit, x, axis, site.dims(1, "sizes"))
    size, count = x.shape[axis], site.attr("num_outputs", len(site.node.outputs))
    part = dims.ceil_div(size, at_most(1 << 16, count, "parts of a split"))
    if isinstance(size, int) and isinstance(part, int):
        sizes = [min(part, max(0, size - part * index)) for index in range(count)]
        return movement.split_at(site.emit, x, axis, sizes)
    rest = dims.add(size, dims.multiply(1 - count, part))
    return movement.split_at(site.emit, x, axis, [*[part] * (count - 1), rest])


@converts("Slice")
def slice_by_attributes(site: Site) -> Term:
    starts, ends = site.attr("starts"), site.attr("ends")
    axes = site.attr("axes", list(range(len(starts))))
    return movement.slices(site.emit, site.input(0), axes, starts, ends)


@converts("Slice", since=10)
def slice_by_inputs(site: Site) -> Term:
    x = site.input(0)
    begins, ends = site.dims(1, "starts"), site.dims(2, "ends")
    axes = site.ints(3, "axes") if site.optional(3) is not None else list(range(len(begins)))
    steps = site.ints(4, "steps") if site.optional(4) is not None else [1] * len(begins)
    if len({len(begins), len(ends), len(axes), len(steps)}) != 1:
        raise ModelFormatError("starts, ends, axes and steps of different lengths")
    return movement.slices(site.emit, x, axes, begins, ends, steps)


@converts("Pad")
def pad_by_attributes(site: Site) -> Term:
    return _padded(site, list(site.attr("pads")), site.attr("value", 0.0))


@converts("Pad", since=11)
def pad_by_inputs(site: Site) -> Term:
    value = site.optional(2)
    fill = 0.0 if value is None else movement.reshape(site.emit, value, ())
    return _padded(site, site.dims(1, "widths"), fill, site.axes(3))


def _padded(
    site: Site, widths: list[Dim], fill: Term | float, axes: list[int] | None = None
) -> Term:
    x = site.input(0)
    chosen = list(range(x.rank)) if axes is None else axes
    if len(widths) != 2 * len(chosen):
        raise ModelFormatError("pads of another length than the axes", found=str(widths))
    pairs: list[tuple[Dim, Dim]] = [(0, 0)] * x.rank
    for index, axis in enumerate(chosen):
        pairs[axis] = (widths[index], widths[len(chosen) + index])
    return movement.pad(site.emit, x, pairs, site.attr("mode", "constant"), fill)


@converts("Expand")
def expand(site: Site) -> Term:
    x = site.input(0)
    wanted = site.dims(1, "a shape")
    rank = max(x.rank, len(wanted))
    own: list[Dim] = [*[1] * (rank - x.rank), *x.shape]
    given: list[Dim] = [*[1] * (rank - len(wanted)), *wanted]
    shape = [a if _is(b, 1) else b for a, b in zip(own, given, strict=True)]
    return movement.broadcast_to(site.emit, x, shape)


@converts("Tile")
def tile(site: Site) -> Term:
    return site.call("tile", site.input(0), reps=tuple(site.dims(1, "repeats")))


@converts("DepthToSpace")
def depth_to_space(site: Site) -> Term:
    block, mode = site.attr("blocksize"), site.attr("mode", "DCR")
    x = site.input(0)
    return site.call("nn.depth_to_space", x, block_size=block, layout="NCHW", mode=mode)


@converts("SpaceToDepth")
def space_to_depth(site: Site) -> Term:
    block = site.attr("blocksize")
    return site.call("nn.space_to_depth", site.input(0), block_size=block, layout="NCHW")


@converts("Trilu")
def trilu(site: Site) -> Term:
    k = site.optional(1)
    offset = site.emit.constant(0, "int32") if k is None else site.call("cast", k, dtype="int32")
    upper = bool(site.attr("upper", 1))
    return site.call("trilu", site.input(0), movement.reshape(site.emit, offset, ()), upper=upper)


@converts("ReverseSequence")
def reverse_sequence(site: Site) -> Term:
    return site.call(
        "reverse_sequence",
        site.input(0),
        site.input(1),
        seq_axis=site.attr("time_axis", 0),
        batch_axis=site.attr("batch_axis", 1),
    )
