"""Stable sorting and selection of unsigned keys with their places, in linear time.

Sorting goes digit by digit from the least significant one (Knuth, The Art of Computer Programming,
volume 3, 5.2.5); selection from the most significant one, and only what the threshold's digit
leaves open is looked at again.  No comparison depends on the data, so there is no worst case, and
no store leaves its buffer: where a key goes follows from counts of the same keys.
"""

from __future__ import annotations

from dataclasses import dataclass

from ixion.kernel.draft import Cell, Draft, as_index, loop, named, number, vectors
from ixion.kernel.sort_key import digit_of
from ixion.te.expr import Expr, ExprLike, Var, compare, wrap
from ixion.te.stmt import Buffer, If, Stmt, seq

# Elements from which on a table of 2^11 counts pays.
WIDE = 8192


def digit_bits(n: int, bits: int) -> int:
    """Bits of a digit for about ``n`` keys of ``bits`` bits."""
    return min(bits, 11 if n >= WIDE and bits > 16 else 8)


@dataclass(frozen=True)
class Pairs:
    """Keys and their places in two halves of a buffer each; ``half`` is 0 or ``capacity``.

    Keys of ``bits`` bits are kept in 32 or 64; ``lanes`` fit a vector of them.
    """

    keys: Buffer
    places: Buffer
    half: Cell
    total: Cell
    capacity: int
    bits: int
    digit: int
    table: Buffer
    lanes: int

    @classmethod
    def of(cls, draft: Draft, capacity: int, bits: int, lanes: int, expected: int) -> Pairs:
        """Memory for ``capacity`` pairs, of which about ``expected`` are to be sorted."""
        digit = digit_bits(expected, bits)
        table = -(-bits // digit) << digit
        return cls(
            draft.scratch("keys", "uint64" if bits > 32 else "uint32", 2 * capacity),
            draft.scratch("places", "int32", 2 * capacity),
            draft.cell("half"), draft.cell("total", "int32"), capacity, bits, digit,
            draft.scratch("table", "int32", table), lanes,
        )  # fmt: skip

    @property
    def shifts(self) -> list[int]:
        """Where each digit begins, the least significant first."""
        return list(range(0, self.bits, self.digit))

    def place(self, at: ExprLike) -> Expr:
        """The place at position ``at`` of the half that counts."""
        return as_index(self.places.load(self.half.value + at))

    def key(self, at: ExprLike) -> Expr:
        return self.keys.load(self.half.value + at)

    def clear(self, size: int) -> Stmt:
        zero = number(0, "int32", self.lanes)
        return vectors(size, self.lanes, lambda i, rest: self.table.store(i, zero, rest))

    def bump(self, at: Expr) -> Stmt:
        return self.table.store(at, self.table.load(at) + number(1, "int32"))


def sort(pairs: Pairs, count: Expr) -> Stmt:
    """The first ``count`` pairs in rising order of keys, equal ones as before.

    ``pairs.half`` says which half they are in, before and after.
    """
    size = 1 << pairs.digit

    def tally(i: Var) -> Stmt:
        return named(pairs.key(i), lambda key: seq(
            pairs.bump(digit_of(key, shift, pairs.digit) + row * size)
            for row, shift in enumerate(pairs.shifts)
        ))  # fmt: skip

    passes = seq(_pass(pairs, count, row, shift) for row, shift in enumerate(pairs.shifts))
    work = seq(pairs.clear(size * len(pairs.shifts)), loop(count, tally), passes)
    return If(count > 1, work)


def _pass(pairs: Pairs, count: Expr, row: int, shift: int) -> Stmt:
    """One digit; nothing to do where all keys have the same."""
    base = row << pairs.digit
    first = digit_of(pairs.key(0), shift, pairs.digit) + base
    differ = compare("ne", as_index(pairs.table.load(first)), count)
    return If(differ, seq(_starts(pairs, base), _distribute(pairs, count, base, shift)))


def _starts(pairs: Pairs, base: int) -> Stmt:
    """Counts become the position of the first key with each digit."""
    total, table = pairs.total, pairs.table
    advance = loop(1 << pairs.digit, lambda d: named(table.load(d + base), lambda n: seq(
        table.store(d + base, total.value), total.add(n)
    )))  # fmt: skip
    return seq(total.set(0), advance)


def _distribute(pairs: Pairs, count: Expr, base: int, shift: int) -> Stmt:
    def move(i: Var, source: Var, target: Var) -> Stmt:
        return named(pairs.keys.load(source + i), lambda key: named(
            digit_of(key, shift, pairs.digit) + base, lambda slot: named(
                pairs.table.load(slot), lambda at: seq(
                    pairs.table.store(slot, at + number(1, "int32")),
                    pairs.keys.store(target + as_index(at), key),
                    pairs.places.store(target + as_index(at), pairs.places.load(source + i)),
                ))))  # fmt: skip

    def both(source: Var) -> Stmt:
        return named(wrap(pairs.capacity) - source, lambda target: seq(
            loop(count, lambda i: move(i, source, target)), pairs.half.set(target)
        ))  # fmt: skip

    return named(pairs.half.value, both)
