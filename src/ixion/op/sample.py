"""Generated calls of an op: what the registry-driven sweep, and any fuzzer, draws from.

A sampler is a function of a ``Draw``, a source of choices.  Tests back it by hypothesis, so a
failing call shrinks; ``RandomDraw`` backs it by a seeded generator where hypothesis is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from ixion.base import dtype as dtypes
from ixion.op.rounding import Array, narrow

T = TypeVar("T")
Shape = tuple[int, ...]
FLOATS = ("float32", "float32", "float64", "float16")
INTS = ("int32", "int64", "int8", "uint8")


class Draw(Protocol):
    """A source of choices, all derived from integers in a closed range."""

    def integer(self, low: int, high: int) -> int: ...


class RandomDraw:
    """Choices from numpy's PCG64 seeded with ``seed``."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def integer(self, low: int, high: int) -> int:
        return int(self._rng.integers(low, high, endpoint=True))


@dataclass(frozen=True)
class Sample:
    """One call: arrays in argument order (a nested tuple where the op takes a tuple)."""

    args: tuple[Any, ...]
    attrs: dict[str, Any] = field(default_factory=dict)

    def flat(self) -> tuple[Array, ...]:
        """The arrays with tuples opened, as references and computes take them."""
        out: list[Array] = []
        for a in self.args:
            out.extend(a if isinstance(a, tuple) else (a,))
        return tuple(out)


Sampler = Callable[[Draw], Sample]


def choice(draw: Draw, options: Sequence[T]) -> T:
    return options[draw.integer(0, len(options) - 1)]


def flag(draw: Draw) -> bool:
    return draw.integer(0, 1) == 1


def shape(draw: Draw, low_rank: int = 1, high_rank: int = 4, low: int = 1, high: int = 5) -> Shape:
    return tuple(draw.integer(low, high) for _ in range(draw.integer(low_rank, high_rank)))


def array(
    draw: Draw, dims: Sequence[int], dtype: str = "float32", low: float = -3, high: float = 3
) -> Array:
    """Uniform values in [low, high) (integers inclusive) from one drawn seed."""
    rng = np.random.default_rng(draw.integer(0, 1 << 16))
    dims = tuple(dims)
    if dtypes.is_bool(dtype):
        return rng.integers(0, 2, dims).astype(bool)
    if dtypes.is_integer(dtype):
        floor = max(int(low), 0) if not dtypes.is_signed(dtype) else int(low)
        return rng.integers(floor, int(high) + 1, dims).astype(dtypes.to_numpy(dtype))
    return narrow(rng.uniform(low, high, dims), dtype)


def broadcastable(draw: Draw, to: Shape) -> Shape:
    """A shape that numpy broadcasts to ``to``: some dims become 1, leading ones may go."""
    dims = tuple(1 if draw.integer(0, 3) == 0 else d for d in to)
    return dims[draw.integer(0, len(dims)) :] if draw.integer(0, 2) == 0 else dims


def axis(draw: Draw, rank: int) -> int:
    """An axis of a tensor of ``rank``, negative half of the time."""
    return draw.integer(-rank, rank - 1)


def axes(draw: Draw, rank: int, at_least: int = 0) -> tuple[int, ...]:
    """Distinct axes in rising order, at least ``at_least`` of them."""
    picked = [i for i in range(rank) if flag(draw)]
    for i in range(rank):
        if len(picked) >= at_least:
            break
        if i not in picked:
            picked.append(i)
    return tuple(sorted(picked))


def unary_sampler(
    low: float = -3, high: float = 3, types: Sequence[str] = FLOATS, **attrs: Any
) -> Sampler:
    """Calls of one argument with values in [low, high)."""

    def draw_call(draw: Draw) -> Sample:
        return Sample((array(draw, shape(draw, 0), choice(draw, types), low, high),), dict(attrs))

    return draw_call


def binary_sampler(
    low: float = -3, high: float = 3, types: Sequence[str] = (*FLOATS, *INTS)
) -> Sampler:
    """Calls of two broadcasting arguments of one dtype."""

    def draw_call(draw: Draw) -> Sample:
        dtype, full = choice(draw, types), shape(draw, 0)
        pair = [broadcastable(draw, full), full]
        if flag(draw):
            pair.reverse()
        return Sample(tuple(array(draw, s, dtype, low, high) for s in pair))

    return draw_call
