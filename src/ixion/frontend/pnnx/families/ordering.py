"""Order and what depends on it: topk, sort, argsort, unique, nonzero, non-maximum suppression.

What the converter has no form for stays an aten operator, its arguments in the schema's order.
"""

from __future__ import annotations

from typing import Any

from ixion.frontend.build import choice
from ixion.frontend.build.movement import reshape, transpose
from ixion.frontend.pnnx.arithmetic import number
from ixion.frontend.pnnx.convert import Site, converts
from ixion.frontend.pnnx.promote import Item
from ixion.frontend.term import Term


def _arguments(site: Site, *named: tuple[str, Any]) -> list[Any]:
    """Arguments after the input by name, or by place for an aten operator; else their defaults."""
    if not site.op.kind.startswith("aten::"):
        return [site.arg(name, default) for name, default in named]
    given = [site.items[name] for name in site.op.inputs[1:]]
    found = [given[i] if i < len(given) else default for i, (_, default) in enumerate(named)]
    return [d if f is None else f for f, (_, d) in zip(found, named, strict=True)]


def _axis(item: Item, rank: int) -> int:
    return int(number(item, -1)) % max(rank, 1)


@converts("torch.topk", "aten::topk")
def top_k(site: Site) -> tuple[Term, ...]:
    x = site.x
    k, axis, largest = _arguments(site, ("k", None), ("dim", -1), ("largest", True))
    return choice.top_k(site.emit, x, k, _axis(axis, x.rank), bool(largest))


def _in_order(site: Site) -> tuple[Term, Term]:
    x = site.x
    named: list[tuple[str, Any]] = [("dim", -1), ("descending", False)]
    if site.op.kind.startswith("aten::") and len(site.op.inputs) == 4:
        named.insert(0, ("stable", None))
    axis, descending = _arguments(site, *named)[-2:]
    return choice.ordered(site.emit, x, _axis(axis, x.rank), bool(descending))


@converts("torch.sort", "aten::sort")
def sort(site: Site) -> tuple[Term, Term]:
    return _in_order(site)


@converts("torch.argsort", "aten::argsort")
def argsort(site: Site) -> Term:
    return _in_order(site)[1]


@converts("torch.nonzero", "aten::nonzero")
def nonzero(site: Site) -> Term:
    """One row of positions per element."""
    return transpose(site.emit, site.call("nonzero", site.x), (1, 0))


@converts("torch.unique", "aten::_unique2", "aten::unique_dim")
def unique(site: Site) -> Term | list[Term]:
    """Values, then which one each element is and how often each is, as far as they are asked for.

    torch sorts always, and to it no NaN equals another.
    """
    named: list[tuple[str, Any]] = [
        ("sorted", True), ("return_inverse", False), ("return_counts", False)
    ]  # fmt: skip
    if site.op.kind != "aten::_unique2":
        named.insert(0, ("dim", None))
    *axis, _, inverse, counts = _arguments(site, *named)
    along = axis[0] if axis else None
    parts = site.emit.items(
        site.call("unique_slices", site.x, axis=along, sorted=True, nan_equal=False)
    )
    wanted = site.op.kind.startswith("aten::")
    places = parts[2] if along is not None else _shaped(site, parts[2])
    chosen = [parts[0], *([places] if inverse or wanted else ()),
              *([parts[3]] if counts or wanted else ())]  # fmt: skip
    return chosen[0] if len(chosen) == 1 else chosen


def _shaped(site: Site, inverse: Term) -> Term:
    """Where each element is among the distinct values, in the input's shape."""
    return reshape(site.emit, inverse, site.x.shape)


@converts("torchvision.ops.nms", "torchvision::nms")
def non_max_suppression(site: Site) -> Term:
    given: list[Item] = [*site.positional, None, None, None]
    names = ("boxes", "scores", "iou_threshold")
    boxes, scores, overlap = (site.arg(n, d) for n, d in zip(names, given, strict=False))
    return site.call(
        "vision.keep_boxes", site.term(boxes), site.term(scores),
        iou_threshold=float(number(overlap, 0.5)),
    )  # fmt: skip
