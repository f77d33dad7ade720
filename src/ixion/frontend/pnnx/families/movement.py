"""Reshape, permute, slice, split, join, pad and repeat."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.base.errors import ModelFormatError
from ixion.frontend.build import movement
from ixion.frontend.pnnx.convert import Site, converts
from ixion.frontend.pnnx.promote import Item, promoted
from ixion.frontend.term import Term, at_most, static


@converts("Tensor.reshape", "Tensor.view", "torch.reshape")
def reshape(site: Site) -> Term:
    return movement.reshape(site.emit, site.x, site.dims("shape", []))


@converts("Tensor.reshape_as")
def reshape_as(site: Site) -> Term:
    other = site.operand("other")
    return movement.reshape(site.emit, site.x, other.shape)


@converts("torch.flatten", "nn.Flatten")
def flatten(site: Site) -> Term:
    x = site.x
    if x.rank == 0:
        return movement.reshape(site.emit, x, (1,))
    default = 1 if site.op.kind == "nn.Flatten" else 0
    first, last = site.axis("start_dim", x.rank, default), site.axis("end_dim", x.rank, -1)
    if first == 1 and last == x.rank - 1 and x.rank > 2:
        return site.call("nn.batch_flatten", x)
    middle = dims.prod(x.shape[first : last + 1])
    return movement.reshape(site.emit, x, (*x.shape[:first], middle, *x.shape[last + 1 :]))


@converts("Tensor.unflatten", "nn.Unflatten")
def unflatten(site: Site) -> Term:
    x = site.x
    axis = site.axis("dim", x.rank)
    sizes = site.dims("sizes")
    if -1 in sizes:
        rest = dims.prod([size for size in sizes if not _is(size, -1)])
        sizes = [dims.floordiv(x.shape[axis], rest) if _is(s, -1) else s for s in sizes]
    return movement.reshape(site.emit, x, (*x.shape[:axis], *sizes, *x.shape[axis + 1 :]))


def _is(dim: Item, number: int) -> bool:
    return isinstance(dim, int) and dim == number


@converts("Tensor.permute", "torch.permute")
def permute(site: Site) -> Term:
    return movement.transpose(site.emit, site.x, site.ints("dims"))


@converts("torch.transpose")
def transpose(site: Site) -> Term:
    x = site.x
    axes = list(range(x.rank))
    first, second = site.axis("dim0", x.rank), site.axis("dim1", x.rank)
    axes[first], axes[second] = axes[second], axes[first]
    return movement.transpose(site.emit, x, axes)


@converts("torch.t", "aten::mT")
def transpose_last(site: Site) -> Term:
    return site.x if site.x.rank < 2 else movement.swap_last(site.emit, site.x)


@converts("torch.squeeze")
def squeeze(site: Site) -> Term:
    x = site.x
    stated = site.arg("dim", None)
    chosen = range(x.rank) if stated is None else [a % x.rank for a in site.ints("dim")]
    return movement.squeeze(site.emit, x, movement.single_axes(site.emit, x, chosen))


@converts("torch.unsqueeze")
def unsqueeze(site: Site) -> Term:
    return movement.expand_dims(site.emit, site.x, [int(site.arg("dim"))])


@converts("torch.cat", "aten::cat")
def concatenate(site: Site) -> Term:
    terms = promoted(site.emit, _tensors(site))
    if not terms:
        raise ModelFormatError("torch.cat of nothing")
    axis = site.axis("dim", terms[0].rank, 0)
    # torch skips the legacy empty tensor of shape (0).
    filled = [term for term in terms if not (term.rank == 1 and _is(term.shape[0], 0))]
    return movement.concatenate(site.emit, filled or terms, axis)


def _tensors(site: Site) -> list[Item]:
    """All operands in order, lists opened."""
    flat: list[Item] = []
    for name in site.op.inputs:
        item = site.items[name]
        flat.extend(item if isinstance(item, (list, tuple)) else [item])
    return flat


@converts("torch.stack")
def stack(site: Site) -> Term:
    terms = promoted(site.emit, _tensors(site))
    axis = int(site.arg("dim", 0))
    raised = [movement.expand_dims(site.emit, term, [axis]) for term in terms]
    return movement.concatenate(site.emit, raised, axis % (terms[0].rank + 1))


def _parts(site: Site, axis: int, sizes: Sequence[Dim]) -> Any:
    made = movement.split_at(site.emit, _main(site), axis, sizes)
    if len(site.op.outputs) == 1:
        return made[0] if len(made) == 1 else list(made)
    return made


def _main(site: Site) -> Term:
    return site.tensor("tensor") or site.x


@converts("torch.split")
def split(site: Site) -> Any:
    x = _main(site)
    axis = site.axis("dim", x.rank, 0)
    stated = site.arg("split_size_or_sections")
    if isinstance(stated, int):
        return _parts(site, axis, _even(site, x.shape[axis], stated))
    return _parts(site, axis, site.dims("split_size_or_sections"))


def _even(site: Site, total: Dim, size: Dim) -> Sequence[Dim]:
    """Parts of one size and a smaller last one, as many as there are outputs if `total` is open."""
    if isinstance(total, int) and isinstance(size, int):
        return movement.even_parts(total, size)
    count = len(site.op.outputs)
    if count < 2:
        static(total)
    whole = [size] * (count - 1)
    return [*whole, dims.add(total, dims.multiply(1 - count, size))]


@converts("torch.chunk")
def chunk(site: Site) -> Any:
    x = _main(site)
    axis = site.axis("dim", x.rank, 0)
    total = x.shape[axis]
    size = dims.maximum(dims.ceil_div(total, max(1, int(site.arg("chunks")))), 1)
    return _parts(site, axis, _even(site, total, size))


@converts("torch.tensor_split")
def tensor_split(site: Site) -> Any:
    x = _main(site)
    axis = site.axis("dim", x.rank, 0)
    total = static(x.shape[axis])
    if site.arg("indices", None) is not None:
        edges = [slice(index).indices(total)[1] for index in site.ints("indices")]
    else:
        sections = at_most(1 << 16, int(site.arg("sections")), "parts of a split")
        small, larger = divmod(total, sections)
        edges = [small * i + min(i, larger) for i in range(1, sections)]
    bounds = [0, *edges, total]
    sizes = [max(0, stop - start) for start, stop in pairwise(bounds)]
    if sum(sizes) == total and all(sizes):
        return _parts(site, axis, sizes)
    return [movement.narrow(site.emit, x, axis, a, max(a, b)) for a, b in pairwise(bounds)]


@converts("torch.unbind")
def unbind(site: Site) -> Any:
    x = site.x
    axis = site.axis("dim", x.rank, 0)
    count = at_most(1 << 16, static(x.shape[axis]), "parts of a split")
    parts = movement.split_at(site.emit, x, axis, [1] * count) if count else ()
    made = [movement.squeeze(site.emit, part, [axis]) for part in parts]
    return made[0] if len(site.op.outputs) == 1 and len(made) == 1 else made


@converts("Tensor.expand")
def expand(site: Site) -> Term:
    x, wanted = site.x, site.dims("sizes")
    own: list[Any] = [*[1] * (len(wanted) - x.rank), *x.shape]
    shape = [a if _is(b, -1) else b for a, b in zip(own, wanted, strict=True)]
    return movement.broadcast_to(site.emit, x, shape)


@converts("Tensor.expand_as")
def expand_as(site: Site) -> Term:
    other = site.operand("other")
    return movement.broadcast_to(site.emit, site.x, other.shape)


@converts("Tensor.repeat", "torch.tile")
def repeat(site: Site) -> Term:
    name = "sizes" if site.arg("sizes", None) is not None else "dims"
    x, reps = site.x, site.dims(name)
    if all(_is(count, 1) for count in reps) and len(reps) <= x.rank:
        return x
    return site.call("tile", x, reps=tuple(reps))


@converts("torch.repeat_interleave")
def repeat_interleave(site: Site) -> Term:
    x = site.x
    axis = site.arg("dim", None)
    if axis is None:
        x, axis = movement.reshape(site.emit, x, (-1,)), 0
    axis = int(axis) % x.rank
    repeats = site.ints("repeats")
    if len(repeats) == 1:
        return site.call("repeat", x, repeats=repeats[0], axis=axis)
    at_most(1 << 24, sum(repeats), "repeated elements")
    places = np.repeat(np.arange(static(x.shape[axis])), repeats)
    return movement.take(site.emit, x, site.emit.constant(places, "int64"), axis)


@converts("torch.flip")
def flip(site: Site) -> Term:
    x = site.x
    for axis in site.ints("dims"):
        x = site.call("reverse", x, axis=axis % x.rank)
    return x


@converts("torch.roll")
def roll(site: Site) -> Term:
    x = site.x
    shifts, axes = site.ints("shifts"), site.arg("dims", None)
    if axes is None:
        flat = movement.reshape(site.emit, x, (-1,))
        return movement.reshape(site.emit, _rolled(site, flat, 0, shifts[0]), x.shape)
    for axis, shift in zip(site.ints("dims"), shifts, strict=True):
        x = _rolled(site, x, axis % x.rank, shift)
    return x


def _rolled(site: Site, x: Term, axis: int, shift: int) -> Term:
    size = x.shape[axis]
    if isinstance(size, int):
        shift = shift % size if size else 0
    if not shift:
        return x
    at = dims.add(size, -shift) if shift > 0 else -shift
    first = movement.narrow(site.emit, x, axis, at, size)
    return movement.concatenate(
        site.emit, [first, movement.narrow(site.emit, x, axis, 0, at)], axis
    )


@converts("nn.PixelShuffle", "F.pixel_shuffle")
def pixel_shuffle(site: Site) -> Term:
    factor = int(site.arg("upscale_factor"))
    x = _planes(site)
    out = site.call("nn.depth_to_space", x, block_size=factor, layout="NCHW", mode="CRD")
    return movement.reshape(site.emit, out, (*site.x.shape[:-3], *out.shape[1:]))


@converts("nn.PixelUnshuffle", "F.pixel_unshuffle")
def pixel_unshuffle(site: Site) -> Term:
    """(.., C, H, W) to (.., C * f * f, H / f, W / f), the channel varying slowest."""
    f = int(site.arg("downscale_factor"))
    x = _planes(site)
    n, c, h, w = x.shape
    high, wide = dims.floordiv(h, f), dims.floordiv(w, f)
    cells = movement.reshape(site.emit, x, (n, c, high, f, wide, f))
    cells = movement.transpose(site.emit, cells, (0, 1, 3, 5, 2, 4))
    shape = (*site.x.shape[:-3], dims.multiply(c, f * f), high, wide)
    return movement.reshape(site.emit, cells, shape)


def _planes(site: Site) -> Term:
    """The input with its leading axes joined: (N, C, H, W)."""
    x = site.x
    if x.rank < 3:
        raise ModelFormatError(f"{site.op.kind} of a tensor of rank {x.rank}")
    return movement.reshape(site.emit, x, (dims.prod(x.shape[:-3]), *x.shape[-3:]))
