"""Layout strings such as ``NCHW``, ``HWIO`` or ``NCHW16c``: dims, arrays and indices moved.

A capital letter is an axis; a lower-case letter with a factor before it is the inner block of the
axis of that letter, so ``NCHW16c`` has dims (N, C/16, H, W, 16).  Several blocks of one axis nest
from left to right (``OIHW4i16o4i``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ixion import te
from ixion.base.errors import IxionError
from ixion.op.extent import Extent
from ixion.op.rounding import Array

if TYPE_CHECKING:
    pass

_PART = re.compile(r"(\d*)([A-Za-z])")


@dataclass(frozen=True)
class Layout:
    """``parts``: (letter, factor) per dim; the factor is 0 for a capital (an axis itself)."""

    text: str
    parts: tuple[tuple[str, int], ...]

    @property
    def axes(self) -> str:
        """The capitals in order."""
        return "".join(letter for letter, factor in self.parts if not factor)

    def index(self, letter: str) -> int:
        """Position of an axis among the dims."""
        return [p[0] for p in self.parts].index(letter)

    def factors(self, letter: str) -> tuple[int, ...]:
        """Block factors of axis ``letter``, outermost first."""
        return tuple(f for name, f in self.parts if f and name.upper() == letter)

    def positions(self, letter: str) -> tuple[int, ...]:
        """Dims that axis ``letter`` occupies, outermost first."""
        inner = [i for i, (name, f) in enumerate(self.parts) if f and name.upper() == letter]
        return (self.index(letter), *inner)


@lru_cache(maxsize=512)
def parse(text: str) -> Layout:
    """Raises IxionError for a repeated axis or a block without its axis."""
    parts = tuple((name, int(num or 0)) for num, name in _PART.findall(text))
    capitals = [name for name, factor in parts if not factor]
    blocks = [name for name, factor in parts if factor]
    ok = bool(text) and "".join(f"{f or ''}{name}" for name, f in parts) == text
    ok = ok and all(c.isupper() for c in capitals) and len(set(capitals)) == len(capitals)
    if not ok or any(b.isupper() or b.upper() not in capitals for b in blocks):
        raise IxionError(f"{text!r} is not a layout", hint="for example NCHW, HWIO, NCHW16c")
    return Layout(text, parts)


def _product(values: Sequence[int]) -> int:
    out = 1
    for v in values:
        out *= v
    return out


def to_plain(shape: Sequence[Any], layout: str, plain: str) -> tuple[Any, ...]:
    """Dims or extents in ``layout`` as those of ``plain`` (the same capitals, no blocks)."""
    own = parse(layout)
    return tuple(shape[own.index(a)] * _product(own.factors(a)) for a in plain)


def from_plain(shape: Sequence[Any], plain: str, layout: str) -> tuple[Any, ...]:
    """Dims of ``plain`` as dims of ``layout``; raises IxionError when a block does not divide."""
    own, out = parse(layout), []
    for letter, factor in own.parts:
        dim = shape[plain.index(letter.upper())]
        block = _product(own.factors(letter))
        if not factor and isinstance(dim, int) and dim % block:
            raise IxionError(f"layout {layout}: {letter} = {dim} is not a multiple of {block}")
        out.append(factor or (dim // block if block > 1 else dim))
    return tuple(out)


def convert_shape(shape: Sequence[Any], source: str, target: str) -> tuple[Any, ...]:
    plain = parse(source).axes
    return from_plain(to_plain(shape, source, plain), plain, target)


def array_to_plain(x: Array, layout: str, plain: str) -> Array:
    if layout == plain:
        return x
    own = parse(layout)
    order = [p for a in plain for p in own.positions(a)]
    dims = [int(d) for d in to_plain(x.shape, layout, plain)]
    return x.transpose(order).reshape(dims)


def array_from_plain(x: Array, plain: str, layout: str) -> Array:
    if layout == plain:
        return x
    own = parse(layout)
    split: list[int] = []
    for a, dim in zip(plain, x.shape, strict=True):
        factors = own.factors(a)
        split.extend((dim // _product(factors), *factors))
    order = [p for a in plain for p in own.positions(a)]
    back = [order.index(i) for i in range(len(order))]
    return x.reshape(split).transpose(back)


def convert_array(x: Array, source: str, target: str) -> Array:
    plain = parse(source).axes
    return array_from_plain(array_to_plain(x, source, plain), plain, target)


def blocked_index(plain_index: Sequence[te.Expr], plain: str, layout: str) -> list[te.Expr]:
    """The index into a tensor of ``layout`` of the element at ``plain_index`` of ``plain``."""
    own = parse(layout)
    out: list[Any] = [None] * len(own.parts)
    for a, index in zip(plain, plain_index, strict=True):
        rest = index
        positions, factors = own.positions(a), own.factors(a)
        for position, factor in zip(reversed(positions[1:]), reversed(factors), strict=True):
            out[position], rest = rest % factor, rest // factor
        out[positions[0]] = rest
    return out


def plain_index(blocked: Sequence[te.Expr], layout: str, plain: str) -> list[te.Expr]:
    """Inverse of ``blocked_index``."""
    own, out = parse(layout), []
    for a in plain:
        positions = own.positions(a)
        index = blocked[positions[0]]
        for position, factor in zip(positions[1:], own.factors(a), strict=True):
            index = index * factor + blocked[position]
        out.append(index)
    return out


def reader(tensor: te.Tensor, layout: str, plain: str) -> Callable[..., te.Expr]:
    """A function of an index in ``plain`` order that reads ``tensor``, stored as ``layout``."""
    if layout == plain:
        return tensor
    return lambda *index: tensor(*blocked_index(index, plain, layout))


def compute_as(
    shape: Sequence[Extent], layout: str, plain: str, body: Callable[..., te.Expr], name: str
) -> te.Tensor:
    """``te.compute`` over dims of ``layout`` from a body written in ``plain`` index order."""
    if layout == plain:
        return te.compute(shape, body, name)
    return te.compute(shape, lambda *i: body(*plain_index(i, layout, plain)), name)
