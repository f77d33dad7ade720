"""Elements for which a condition holds, moved together in order: the store of every selection.

A vector's chosen lanes are moved to its front and the whole vector is stored behind what was chosen
before.  That is at most as far as the vector was read, so nothing is written past a buffer of as
many elements as were looked at, and a buffer may be gathered into itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ixion.base.target import Target
from ixion.kernel.draft import Cell, named, number, vectors
from ixion.te.expr import (
    Compressed,
    Expr,
    ExprLike,
    LaneBits,
    Ramp,
    Var,
    broadcast,
    cast,
    compare,
    intrinsic,
    logical_and,
)
from ixion.te.stmt import Buffer, If, Stmt, seq

# Vectors from where on: first lane's number, and how many lanes there are (None: all).
Lanes = Callable[[Var, "Expr | None"], Expr]


@dataclass(frozen=True)
class Gathered:
    """A buffer that takes chosen lanes of ``value``, 32- or 64-bit integers, from ``base`` on."""

    buffer: Buffer
    base: ExprLike
    value: Lanes


def numbers(i: Expr, lanes: int, dtype: str = "int32") -> Expr:
    """``i``, ``i + 1`` and so on."""
    return Ramp(cast(i, dtype), lanes)


def within(mask: Expr, rest: Expr | None) -> Expr:
    """A mask without the lanes from ``rest`` on."""
    if rest is None:
        return mask
    real = compare("lt", Ramp(number(0, "int32"), mask.lanes), _spread(rest, mask.lanes))
    return logical_and(mask, real)


def _spread(rest: Expr, lanes: int) -> Expr:
    return broadcast(cast(rest, "int32"), lanes)


def gather_chosen(
    target: Target, count: ExprLike, lanes: int, found: Cell, mask: Lanes, outs: Sequence[Gathered]
) -> Stmt:
    """Adds what ``mask`` chooses of ``count`` elements to ``outs``; ``found`` counts all so far."""

    def take(i: Var, rest: Expr | None, chosen: Var, bits: Var) -> Stmt:
        def store(out: Gathered) -> Stmt:
            together = Compressed(out.value(i, rest), chosen)
            return out.buffer.store(found.value + out.base, cast(together, out.buffer.dtype), rest)

        return seq(map(store, outs), found.add(intrinsic("popcount", bits)))

    def one(i: Var, rest: Expr | None) -> Stmt:
        def chosen(bits: Var, which: Var) -> Stmt:
            work = take(i, rest, which, bits)
            # Moving lanes together is one instruction there, and many elsewhere.
            return work if target.vector_bits >= 512 else If(compare("ne", bits, 0), work)

        return named(within(mask(i, rest), rest), lambda which: named(
            LaneBits(which), lambda bits: chosen(bits, which)
        ))  # fmt: skip

    return vectors(count, lanes, one)
