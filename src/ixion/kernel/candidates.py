"""Boxes that a suppression looks at: those whose score counts, best first."""

from __future__ import annotations

from collections.abc import Callable

from ixion.base.target import Target
from ixion.kernel.draft import Draft, vectors
from ixion.kernel.gather_chosen import Gathered, gather_chosen, numbers
from ixion.kernel.greedy import working
from ixion.kernel.radix import Pairs, sort
from ixion.kernel.sort_key import bits_of, key_of
from ixion.te.expr import Bitcast, Expr, ExprLike, cast, wrap
from ixion.te.stmt import Buffer, Stmt, seq

SORTED = 1024  # boxes of a class that sorting is made for


class Candidates:
    """Memory for the places of ``n`` scores of dtype ``kind``, by falling score."""

    def __init__(self, draft: Draft, target: Target, n: int, kind: str) -> None:
        self.target, self.n, self.kind = target, n, kind
        bits = bits_of(kind)
        wide = "uint64" if bits > 32 else "uint32"
        self.lanes = min(target.lanes(wide), target.lanes("float32"))
        self.pairs = Pairs.of(draft, max(n, 1), bits, self.lanes, min(n, SORTED))
        self.found = draft.cell("found")

    def value(self, raw: Expr) -> Expr:
        """Scores from their bits, in the dtype in which they are compared."""
        return cast(Bitcast(raw, self.kind), working(self.kind))

    @property
    def count(self) -> Expr:
        return self.found.value

    def place(self, i: ExprLike) -> Expr:
        """Which box comes ``i``-th."""
        return self.pairs.place(i)

    def collect(
        self, scores: Buffer, begin: Expr, counts: Callable[[Expr], Expr | None],
        step: int = 1, n: Expr | None = None,
    ) -> Stmt:  # fmt: skip
        """Sorts the scores at ``begin``, ``begin + step`` and so on that count.

        ``scores`` holds bits; ``counts`` says whether a vector of scores counts, None if all do.
        """
        lanes, pairs, count = self.lanes, self.pairs, wrap(self.n) if n is None else n

        def raw(i: Expr, rest: Expr | None) -> Expr:
            return scores.load(begin + i * step, lanes, step, rest)

        def keys(i: Expr, rest: Expr | None) -> Expr:
            return cast(key_of(raw(i, rest), self.kind, True), pairs.keys.dtype)

        all_count = vectors(count, lanes, lambda i, rest: seq(
            pairs.keys.store(i, keys(i, rest), rest),
            pairs.places.store(i, numbers(i, lanes), rest),
        ))  # fmt: skip
        probe = counts(self.value(raw(wrap(0), None)))
        if probe is None:
            work = seq(all_count, self.found.set(count))
        else:
            work = seq(self.found.set(0), gather_chosen(
                self.target, count, lanes, self.found,
                lambda i, rest: _known(counts(self.value(raw(i, rest)))),
                [
                    Gathered(pairs.keys, 0, keys),
                    Gathered(pairs.places, 0, lambda i, rest: numbers(i, lanes)),
                ],
            ))  # fmt: skip
        return seq(pairs.half.set(0), work, sort(pairs, self.found.value))


def _known(mask: Expr | None) -> Expr:
    assert mask is not None
    return mask

