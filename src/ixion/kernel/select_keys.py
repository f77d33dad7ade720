"""The k smallest of many keys, in order: what topk does when k is much less than the axis."""

from __future__ import annotations

from ixion.kernel.draft import Draft, as_index, loop, named, number
from ixion.kernel.radix import Pairs, digit_bits
from ixion.te.expr import Const, Expr, Var, binary, cast, compare, maximum, minimum, select
from ixion.te.stmt import If, Stmt, seq

# A rest of this many pairs beyond k is sorted rather than looked at again.
SLACK = 64


class Selection:
    """Narrows the pairs of the first half, in order of place, to about the ``k`` smallest keys.

    What is left holds the k smallest and as few others as the last digit looked at lets be told
    apart: everything that equals the k-th key stays, so that sorting it gives the first of them.
    """

    def __init__(self, draft: Draft, pairs: Pairs, k: Expr) -> None:
        self.pairs, self.k = pairs, k
        self.left = draft.cell("left")
        self.kept = draft.cell("kept")
        self.below = draft.cell("below")
        self.digit = draft.cell("digit")
        # The largest key that may stay, down to the last digit that was looked at.
        self.limit = draft.cell("limit", pairs.keys.dtype)

    def narrow(self, count: Expr) -> Stmt:
        """Leaves ``self.left`` pairs of ``count``."""
        first, *rest = self._digits()
        stages = [self._stage(shift, bits) for shift, bits in (first, *rest)]
        return seq(self.left.set(count), self.limit.set(number(0, self.pairs.keys.dtype)), stages)

    def _digits(self) -> list[tuple[int, int]]:
        """Begin and size of the digits from the top."""
        bits = self.pairs.bits
        digit = digit_bits(self.pairs.capacity, bits)
        ends = range(bits, 0, -digit)
        return [(max(end - digit, 0), min(digit, end)) for end in ends]

    def _stage(self, shift: int, bits: int) -> Stmt:
        worth = compare("gt", self.left.value, self.k + SLACK)
        work = seq(
            self.limit.set(self._moved(self.limit.value, bits, "shl")),
            self.pairs.clear(1 << bits),
            self._tally(shift, bits),
            self._threshold(1 << bits),
            self._keep(shift),
        )
        return If(worth, work)

    def _moved(self, key: Expr, by: int, op: str) -> Expr:
        if op == "shl" and by >= self.pairs.bits:
            return Const(0, key.dtype)  # there was no digit before
        return binary(op, key, Const(by, key.dtype)) if by else key

    def _tally(self, shift: int, bits: int) -> Stmt:
        """Counts by digit; keys below the limit's upper digits count as digit 0."""
        last = Const((1 << bits) - 1, self.pairs.keys.dtype)

        def one(i: Var, least: Var) -> Stmt:
            head = self._moved(self.pairs.keys.load(i), shift, "lshr")
            digit = minimum(maximum(head, least) - least, last)
            return named(cast(digit, "int64"), self.pairs.bump)

        return named(self.limit.value, lambda least: loop(
            self.left.value, lambda i: one(i, least)
        ))  # fmt: skip

    def _threshold(self, size: int) -> Stmt:
        """The first digit up to which at least k keys lie becomes the limit's last one."""

        def look(d: Var, count: Var) -> Stmt:
            more = compare("lt", self.below.value, self.k)
            return seq(
                self.digit.set(select(more, d, self.digit.value)),
                self.below.set(select(more, self.below.value + count, self.below.value)),
            )

        scan = loop(size, lambda d: named(
            as_index(self.pairs.table.load(d)), lambda count: look(d, count)
        ))  # fmt: skip
        taken = self.limit.value + cast(self.digit.value, self.pairs.keys.dtype)
        return seq(self.below.set(0), self.digit.set(0), scan, self.limit.set(taken))

    def _keep(self, shift: int) -> Stmt:
        keys, places = self.pairs.keys, self.pairs.places

        def one(i: Var, most: Var) -> Stmt:
            return named(keys.load(i), lambda key: named(places.load(i), lambda place: seq(
                keys.store(self.kept.value, key),
                places.store(self.kept.value, place),
                self.kept.add(_whether(compare("le", self._moved(key, shift, "lshr"), most))),
            )))  # fmt: skip

        walk = named(self.limit.value, lambda most: loop(
            self.left.value, lambda i: one(i, most)
        ))  # fmt: skip
        return seq(self.kept.set(0), walk, self.left.set(self.kept.value))


def _whether(cond: Expr) -> Expr:
    return cast(cond, "int64")


