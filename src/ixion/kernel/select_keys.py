"""The k smallest of many keys: what topk does when k is much less than the axis.

The range of keys is cut into bins and the bin found in which the k-th key lies; what lies above is
left out and that bin cut again.  Where there are many keys, the first bins are filled by a sample
of them; a threshold found so is taken if enough keys lie below it, and else found from all.
"""

from __future__ import annotations

from collections.abc import Callable

from ixion.base.target import Target
from ixion.kernel.draft import Draft, as_index, loop, named, number, vectors
from ixion.kernel.gather_chosen import Gathered, Lanes, gather_chosen, numbers, within
from ixion.kernel.radix import Pairs
from ixion.te.expr import (
    Binary,
    Expr,
    HorizontalReduce,
    Var,
    binary,
    broadcast,
    cast,
    compare,
    logical_and,
    logical_or,
    maximum,
    minimum,
    select,
    wrap,
)
from ixion.te.stmt import Buffer, For, If, Stmt, seq

SLACK = 64  # as many pairs beyond k are sorted rather than looked at again
SAMPLE = 1024  # keys that a first threshold is found from
FROM = 8 * SAMPLE  # keys from which on a sample is taken
TABLES = 4  # counts kept apart, so that equal neighbours do not wait for each other


class Selection:
    """Narrows keys to about the ``k`` smallest, in order of place: what equals stays in front."""

    def __init__(self, draft: Draft, target: Target, pairs: Pairs, n: int, k: Expr) -> None:
        self.target, self.pairs, self.n, self.k = target, pairs, n, k
        self.dtype, self.lanes = pairs.keys.dtype, pairs.lanes
        self.bin_bits = min(pairs.bits, 10 if n >= FROM else 8)
        self.table = draft.scratch("bins", "int32", TABLES << self.bin_bits)
        self.least = draft.cell("least", self.dtype, self.lanes)
        self.most = draft.cell("most", self.dtype, self.lanes)
        # Bins cover keys from ``low`` on, each 2^shift of them; ``limit`` is the largest to stay.
        self.low, self.high, self.shift, self.limit = (
            draft.cell(name, self.dtype) for name in ("low", "high", "shift", "limit")
        )
        self.left, self.kept, self.below, self.bin = (
            draft.cell(name) for name in ("left", "kept", "below", "bin")
        )

    def fill(self, key: Callable[[Var, Expr | None], Expr]) -> Stmt:
        """Stores all keys in the first half, and finds the least and largest."""
        zero, ones = (number(v, self.dtype, self.lanes) for v in (0, (1 << 64) - 1))
        every = number(1, "bool", self.lanes)

        def one(i: Var, rest: Expr | None) -> Stmt:
            real = within(every, rest)
            return named(key(i, rest), lambda k: seq(
                self.pairs.keys.store(i, k, rest),
                self.least.set(minimum(self.least.value, select(real, k, ones))),
                self.most.set(maximum(self.most.value, select(real, k, zero))),
            ))  # fmt: skip

        return seq(
            self.least.set(ones), self.most.set(zero), vectors(self.n, self.lanes, one),
            self.low.set(HorizontalReduce("min", self.least.value)),
            self.high.set(HorizontalReduce("max", self.most.value)),
        )  # fmt: skip

    def narrow(self) -> Stmt:
        """Leaves ``left`` pairs in the second half, at least k and seldom many more."""
        stage = If(
            logical_and(
                compare("gt", self.left.value, self.k + SLACK),
                compare("lt", self.low.value, self.high.value),
            ),
            self._again(),
        )
        stages = For(Var("stage"), 0, -(-self.pairs.bits // self.bin_bits), stage)
        different = seq(self._width(), self._first(), stages, self._cut_ties())
        alike = compare("eq", self.low.value, self.high.value)
        return seq(
            self.pairs.half.set(self.pairs.capacity), If(alike, self._front(), different)
        )

    def _key(self, value: int) -> Expr:
        return number(value, self.dtype)

    def _front(self) -> Stmt:
        """All keys are equal: the first k of them."""
        at = self.pairs.capacity
        return seq(self.left.set(self.k), loop(self.k, lambda i: seq(
            self.pairs.places.store(i + at, cast(i, "int32")),
            self.pairs.keys.store(i + at, self.low.value),
        )))  # fmt: skip

    def _width(self) -> Stmt:
        """The smallest shift for which the bins cover all keys."""
        size = self._key(1 << self.bin_bits)

        def wider(_: Var) -> Stmt:
            span = binary("lshr", self.high.value - self.low.value, self.shift.value)
            more = cast(compare("ge", span, size), self.dtype)
            return self.shift.set(self.shift.value + more)

        count = max(self.pairs.bits - self.bin_bits, 0)
        return seq(self.shift.set(self._key(0)), loop(count, wider))

    def _first(self) -> Stmt:
        """The first bins: of a sample if that does, else of all keys."""
        every, step = wrap(self.n), self.n // SAMPLE if self.n >= FROM else 1
        exact = seq(
            self._tally(wrap(0), every, 1), self._threshold(self.k), self._keep(), self._open()
        )
        if step == 1:
            return exact
        share = self.k // step
        wanted = minimum(share + share // 4 + 8, SAMPLE)
        rough = seq(self._tally(wrap(0), every, step), self._threshold(wanted), self._keep())
        # A sample's threshold may lie in a bin above the right one.
        whole = self._covering(self.low.value)
        return seq(rough, If(compare("lt", self.left.value, self.k), exact, whole))

    def _open(self) -> Stmt:
        """What is left undecided lies in the last bin that stays: the next ones cover it."""
        begin = binary("shl", cast(self.bin.value, self.dtype), self.shift.value)
        return self._covering(self.low.value + begin)

    def _covering(self, low: Expr) -> Stmt:
        """Bins over the keys from ``low`` up to the limit."""
        return seq(self.low.set(low), self.high.set(self.limit.value), self._width())

    def _again(self) -> Stmt:
        at = wrap(self.pairs.capacity)
        return seq(
            self._tally(at, self.left.value, 1), self._threshold(self.k), self._keep_again(),
            self._open(),
        )  # fmt: skip

    def _tally(self, base: Expr, count: Expr, step: int) -> Stmt:
        """Counts keys by bin; those below all bins belong to the first."""
        size = 1 << self.bin_bits
        zero = number(0, "int32", self.lanes)
        clear = vectors(TABLES * size, self.lanes, lambda i, rest: self.table.store(i, zero, rest))

        def one(i: Expr, low: Var, shift: Var, table: int) -> Stmt:
            key = self.pairs.keys.load(base + i)
            digit = binary("lshr", maximum(key, low) - low, shift)
            digit = minimum(digit, self._key(size - 1))
            at = cast(digit, "int64") + table * size
            return named(at, lambda a: self.table.store(
                a, self.table.load(a) + number(1, "int32")
            ))  # fmt: skip

        def all_(low: Var, shift: Var) -> Stmt:
            i, last, stride = Var("i"), Var("last"), TABLES * step
            full = count // stride * stride
            several = seq(one(i + t * step, low, shift, t) for t in range(TABLES))
            return seq(
                For(i, 0, full, several, step=stride),
                For(last, full, count, one(last, low, shift, 0), step=step),
            )

        body = named(self.low.value, lambda low: named(
            self.shift.value, lambda shift: all_(low, shift)
        ))  # fmt: skip
        return seq(clear, body)

    def _threshold(self, wanted: Expr) -> Stmt:
        """The last key of the first bin up to which at least ``wanted`` keys lie."""
        size = 1 << self.bin_bits

        def look(d: Var) -> Stmt:
            count = self.table.load(d)
            for t in range(1, TABLES):
                count = count + self.table.load(d + t * size)
            more = compare("lt", self.below.value, wanted)
            return named(as_index(count), lambda c: seq(
                self.bin.set(select(more, d, self.bin.value)),
                self.below.set(select(more, self.below.value + c, self.below.value)),
            ))  # fmt: skip

        last = binary("shl", cast(self.bin.value, self.dtype) + self._key(1), self.shift.value)
        # Past the largest key the sum wraps around; it then is below ``low``.
        end = self.low.value + (last - self._key(1))
        end = select(compare("lt", end, self.low.value), self.high.value, end)
        return seq(
            self.below.set(0), self.bin.set(0), loop(size, look),
            self.limit.set(minimum(end, self.high.value)),
        )  # fmt: skip

    def _keep(self) -> Stmt:
        """All keys up to the limit, with their places, into the second half."""
        at = self.pairs.capacity
        load = self.pairs.keys.load

        def walk(limit: Var) -> Stmt:
            return gather_chosen(
                self.target, self.n, self.lanes, self.kept,
                lambda i, rest: self._low_enough(load(i, self.lanes, 1, rest), limit),
                [
                    Gathered(self.pairs.keys, at, lambda i, rest: load(i, self.lanes, 1, rest)),
                    Gathered(self.pairs.places, at, lambda i, rest: numbers(i, self.lanes)),
                ],
            )  # fmt: skip

        return self._counted(walk)

    def _keep_again(self) -> Stmt:
        """The same within the second half."""
        at, pairs = self.pairs.capacity, self.pairs

        def lanes_of(buffer: Buffer) -> Lanes:
            return lambda i, rest: buffer.load(i + at, self.lanes, 1, rest)

        def walk(limit: Var) -> Stmt:
            return gather_chosen(
                self.target, self.left.value, self.lanes, self.kept,
                lambda i, rest: self._low_enough(lanes_of(pairs.keys)(i, rest), limit),
                [Gathered(b, at, lanes_of(b)) for b in (pairs.keys, pairs.places)],
            )  # fmt: skip

        return self._counted(walk)

    def _low_enough(self, keys: Expr, limit: Var) -> Expr:
        return compare("le", keys, broadcast(limit, self.lanes))

    def _counted(self, walk: Callable[[Var], Stmt]) -> Stmt:
        return seq(
            self.kept.set(0), named(self.limit.value, walk), self.left.set(self.kept.value)
        )

    def _cut_ties(self) -> Stmt:
        """Of very many keys that equal the k-th, those that are not among the first k go."""
        pairs, at = self.pairs, self.pairs.capacity

        def lower(i: Var) -> Stmt:
            less = compare("lt", pairs.keys.load(i + at), self.limit.value)
            return self.below.add(cast(less, "int64"))

        def one(i: Var, place: Var, key: Var) -> Stmt:
            tie = compare("eq", key, self.limit.value)
            stays = logical_or(
                compare("lt", key, self.limit.value), compare("gt", self.bin.value, 0)
            )
            spent = cast(Binary("and", tie, stays), "int64")
            return seq(
                pairs.keys.store(self.kept.value + at, key),
                pairs.places.store(self.kept.value + at, place),
                self.kept.add(cast(stays, "int64")),
                self.bin.set(self.bin.value - spent),
            )

        cut = seq(
            self.below.set(0), loop(self.left.value, lower),
            self.bin.set(self.k - self.below.value),
            self.kept.set(0),
            loop(self.left.value, lambda i: named(pairs.keys.load(i + at), lambda key: named(
                pairs.places.load(i + at), lambda place: one(i, place, key)
            ))),
            self.left.set(self.kept.value),
        )  # fmt: skip
        return If(compare("gt", self.left.value, self.k + SLACK), cut)
