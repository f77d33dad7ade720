"""Raw aten operators that the converter leaves: arguments in the order of their schema."""

from __future__ import annotations

from typing import Any

from ixion.frontend.pnnx.arithmetic import apply
from ixion.frontend.pnnx.convert import Site, converts
from ixion.frontend.pnnx.families.elementwise import clamped, scaled_sum
from ixion.frontend.pnnx.promote import Item


def _arguments(site: Site, count: int) -> list[Any]:
    found = [site.items[name] for name in site.op.inputs]
    return found[:count] + [None] * max(0, count - len(found))


@converts("aten::add", "aten::sub", "aten::add_", "aten::sub_")
def add(site: Site) -> Item:
    a, b, alpha = _arguments(site, 3)
    name = site.op.kind.removeprefix("aten::").rstrip("_")
    return scaled_sum(site, name, a, b, 1 if alpha is None else alpha)


@converts("aten::mul", "aten::mul_", "aten::div", "aten::div_", "aten::pow", "aten::remainder")
def multiply(site: Site) -> Item:
    name = site.op.kind.removeprefix("aten::").rstrip("_")
    a, b = _arguments(site, 2)
    return apply(site.emit, name, (a, b))


@converts("aten::clamp_min")
def clamp_min(site: Site) -> Item:
    x, low = _arguments(site, 2)
    return clamped(site, x, low, None)


@converts("aten::clamp_max")
def clamp_max(site: Site) -> Item:
    x, high = _arguments(site, 2)
    return clamped(site, x, None, high)


@converts("aten::lerp")
def lerp(site: Site) -> Item:
    a, b, weight = _arguments(site, 3)
    gap = apply(site.emit, "sub", (b, a))
    return apply(site.emit, "add", (a, apply(site.emit, "mul", (gap, weight))))


@converts("aten::addcmul", "aten::addcdiv")
def add_scaled(site: Site) -> Item:
    x, a, b, value = _arguments(site, 4)
    inner = apply(site.emit, "mul" if site.op.kind.endswith("mul") else "div", (a, b))
    return scaled_sum(site, "add", x, inner, 1 if value is None else value)


@converts("aten::Bool", "aten::Int", "aten::Float")
def number(site: Site) -> Item:
    (item,) = _arguments(site, 1)
    return item


@converts("aten::size")
def size(site: Site) -> Item:
    x, axis = _arguments(site, 2)
    return apply(site.emit, "size", (x,) if axis is None else (x, axis))
