"""Reshape, permute, slice, split, join, pad and repeat."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from ixion.base import dim as dims
from ixion.base.errors import ModelFormatError
from ixion.frontend.build import movement
from ixion.frontend.pnnx.convert import Site, bound, converts
from ixion.frontend.pnnx.promote import Item, as_term, promoted
from ixion.frontend.pnnx.value import NO_LIMIT
from ixion.frontend.term import Term, static

PAD_MODES = {
    "zeros": "constant", "constant": "constant", "reflect": "reflect", "replicate": "edge",
    "circular": "wrap",
}  # fmt: skip


@converts("Tensor.reshape", "Tensor.view", "torch.reshape")
def reshape(site: Site) -> Term:
    return movement.reshape(site.emit, site.x, site.dims("shape", []))


@converts("Tensor.reshape_as")
def reshape_as(site: Site) -> Term:
    other = site.tensor("other")
    assert other is not None
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
    return movement.squeeze(site.emit, x, [axis for axis in chosen if _is(x.shape[axis], 1)])


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


def _parts(site: Site, axis: int, sizes: list[int]) -> Any:
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
    total = static(x.shape[axis])
    if isinstance(stated, int):
        if stated < 1:
            raise ModelFormatError("a split into parts of no size")
        sizes = [min(stated, total - start) for start in range(0, total, stated)]
    else:
        sizes = list(site.ints("split_size_or_sections"))
    return _parts(site, axis, sizes)


@converts("torch.chunk")
def chunk(site: Site) -> Any:
    x = _main(site)
    axis = site.axis("dim", x.rank, 0)
    total = static(x.shape[axis])
    size = max(1, -(-total // int(site.arg("chunks"))))
    return _parts(site, axis, [min(size, total - start) for start in range(0, total, size)])


@converts("torch.tensor_split")
def tensor_split(site: Site) -> Any:
    x = _main(site)
    axis = site.axis("dim", x.rank, 0)
    total = static(x.shape[axis])
    if site.arg("indices", None) is not None:
        edges = [slice(index).indices(total)[1] for index in site.ints("indices")]
    else:
        sections = int(site.arg("sections"))
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
    count = static(x.shape[axis])
    parts = movement.split_at(site.emit, x, axis, [1] * count) if count else ()
    made = [movement.squeeze(site.emit, part, [axis]) for part in parts]
    return made[0] if len(site.op.outputs) == 1 and len(made) == 1 else made


@converts("torch.narrow")
def narrow(site: Site) -> Term:
    x = site.x
    axis = site.axis("dim", x.rank)
    (start,), (length,) = site.ints("start"), site.ints("length")
    start = start + static(x.shape[axis]) if start < 0 else start
    return movement.narrow(site.emit, x, axis, start, start + length)


@converts("Tensor.select", "torch.select")
def select(site: Site) -> Term:
    x = site.x
    return movement.select(site.emit, x, site.axis("dim", x.rank), site.ints("index")[0])


class Cut:
    """What a slice line says: (axis, begin, end, step) of each range, and selected axes.

    In the fused form an axis is selected where `selects` is not the number for "no limit".
    """

    def __init__(self, site: Site, rank: int) -> None:
        self.ranges: list[tuple[int, int, int, int]] = []
        self.selected: list[tuple[int, int]] = []
        if site.arg("dims", None) is None:
            self._add(site, rank, site.arg("dim", 0), None, "start", "end", "step", 0)
            return
        for place, axis in enumerate(site.ints("dims")):
            chosen = _entry(site, "selects", place, NO_LIMIT)
            if chosen is not None and not _is(chosen, NO_LIMIT):
                self.selected.append((axis % rank, static(chosen)))
            else:
                self._add(site, rank, axis, place, "starts", "ends", "steps", place)

    def _add(self, site: Site, rank: int, axis: Any, place: int | None, *names: Any) -> None:
        start, end, step = (
            site.arg(name, None) if place is None else _entry(site, name, place, None)
            for name in names[:3]
        )
        begin = 0 if start is None else static(_plain(start))
        stop = bound(_plain(end))
        self.ranges.append(
            (int(axis) % rank, begin, static(stop), 1 if step is None else static(_plain(step)))
        )


def _plain(item: Item) -> Item:
    if isinstance(item, Term):
        known = item.dims()
        return known[0] if known else item
    return item


def _entry(site: Site, name: str, place: int, default: Item) -> Item:
    found = site.arg(name, None)
    if found is None:
        return default
    values = found if isinstance(found, (list, tuple)) else [found]
    return _plain(values[place])


def cut(site: Site, x: Term) -> Term:
    """The part of x that the line's slice names; selected axes go last, and are dropped."""
    made = Cut(site, x.rank)
    if made.ranges:
        axes, begins, ends, steps = (list(column) for column in zip(*made.ranges, strict=True))
        x = movement.slices(site.emit, x, axes, begins, ends, steps)
    for axis, index in sorted(made.selected, reverse=True):
        x = movement.select(site.emit, x, axis, index)
    return x


@converts("Tensor.slice")
def slice_(site: Site) -> Term:
    return cut(site, site.x)


@converts("Tensor.expand")
def expand(site: Site) -> Term:
    x, wanted = site.x, site.dims("sizes")
    own: list[Any] = [*[1] * (len(wanted) - x.rank), *x.shape]
    shape = [a if _is(b, -1) else b for a, b in zip(own, wanted, strict=True)]
    return movement.broadcast_to(site.emit, x, shape)


@converts("Tensor.expand_as")
def expand_as(site: Site) -> Term:
    other = site.tensor("other")
    assert other is not None
    return movement.broadcast_to(site.emit, site.x, other.shape)


@converts("Tensor.repeat", "torch.tile")
def repeat(site: Site) -> Term:
    name = "sizes" if site.arg("sizes", None) is not None else "dims"
    x, reps = site.x, site.ints(name)
    if math.prod(reps) == 1 and len(reps) <= x.rank:
        return x
    return site.call("tile", x, reps=reps)


@converts("torch.repeat_interleave")
def repeat_interleave(site: Site) -> Term:
    x = site.x
    if isinstance(site.arg("repeats"), Term):
        return site.unsupported("with repeats as a tensor")
    axis = site.arg("dim", None)
    if axis is None:
        x, axis = movement.reshape(site.emit, x, (-1,)), 0
    return site.call("repeat", x, repeats=site.ints("repeats")[0], axis=int(axis) % x.rank)


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
    size = static(x.shape[axis])
    at = -shift % size if size else 0
    if not at:
        return x
    first = movement.narrow(site.emit, x, axis, at, size)
    return movement.concatenate(
        site.emit, [first, movement.narrow(site.emit, x, axis, 0, at)], axis
    )


@converts("F.pad")
def pad(site: Site) -> Term:
    value = site.arg("value", None)
    return _padded(site, site.ints("pad"), str(site.arg("mode", "constant")), value)


@converts(
    "nn.ConstantPad1d", "nn.ConstantPad2d", "nn.ConstantPad3d", "nn.ZeroPad1d", "nn.ZeroPad2d",
    "nn.ZeroPad3d",
)  # fmt: skip
def constant_pad(site: Site) -> Term:
    return _padded(site, _module_widths(site), "constant", site.arg("value", 0.0))


@converts("nn.ReflectionPad1d", "nn.ReflectionPad2d", "nn.ReflectionPad3d")
def reflection_pad(site: Site) -> Term:
    return _padded(site, _module_widths(site), "reflect", None)


@converts("nn.ReplicationPad1d", "nn.ReplicationPad2d", "nn.ReplicationPad3d")
def replication_pad(site: Site) -> Term:
    return _padded(site, _module_widths(site), "replicate", None)


@converts("nn.CircularPad1d", "nn.CircularPad2d", "nn.CircularPad3d")
def circular_pad(site: Site) -> Term:
    return _padded(site, _module_widths(site), "circular", None)


def _module_widths(site: Site) -> tuple[int, ...]:
    return site.ints("padding", 2 * int(site.op.kind[-2]))


def _padded(site: Site, widths: tuple[int, ...], mode: str, value: Item) -> Term:
    """Widths as torch lists them: from the last axis backwards, two an axis."""
    x = site.x
    if len(widths) % 2 or len(widths) > 2 * x.rank:
        raise ModelFormatError(f"{len(widths)} pad widths for rank {x.rank}")
    pairs = [(0, 0)] * x.rank
    for place in range(len(widths) // 2):
        pairs[x.rank - 1 - place] = (widths[2 * place], widths[2 * place + 1])
    fill = as_term(site.emit, 0 if value is None else value, x.dtype)
    return movement.pad(site.emit, x, pairs, PAD_MODES[mode], fill)


@converts("nn.PixelShuffle", "F.pixel_shuffle")
def pixel_shuffle(site: Site) -> Term:
    factor = int(site.arg("upscale_factor"))
    x, added = _four(site)
    out = site.call("nn.depth_to_space", x, block_size=factor, layout="NCHW", mode="CRD")
    return movement.squeeze(site.emit, out, [0]) if added else out


@converts("nn.PixelUnshuffle", "F.pixel_unshuffle")
def pixel_unshuffle(site: Site) -> Term:
    """(N, C, H, W) to (N, C * f * f, H / f, W / f), the channel varying slowest."""
    f = int(site.arg("downscale_factor"))
    x, added = _four(site)
    n, c, h, w = x.shape
    high, wide = dims.floordiv(h, f), dims.floordiv(w, f)
    cells = movement.reshape(site.emit, x, (n, c, high, f, wide, f))
    cells = movement.transpose(site.emit, cells, (0, 1, 3, 5, 2, 4))
    out = movement.reshape(site.emit, cells, (n, dims.multiply(c, f * f), high, wide))
    return movement.squeeze(site.emit, out, [0]) if added else out


def _four(site: Site) -> tuple[Term, bool]:
    if site.x.rank == 3:
        return movement.expand_dims(site.emit, site.x, [0]), True
    return site.x, False
