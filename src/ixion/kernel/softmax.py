"""Softmax and log-softmax along a contiguous axis: three passes over a row that stays in cache.

The row's maximum is subtracted first, so that no exponential overflows; a row of -inf gives NaN,
as the definition does.  Source: the usual stable form, e.g. Goodfellow et al., Deep Learning, 4.1.
"""

from __future__ import annotations

from ixion.codegen.vmath_exp import reduced, scaled_normal, tail
from ixion.kernel.reduce import identity_of
from ixion.kernel.sizes import as_extent, ceil_div, least, most
from ixion.te.expr import (
    Compare,
    Const,
    Expr,
    HorizontalReduce,
    Ramp,
    Select,
    Var,
    binary,
    broadcast,
    compare,
    intrinsic,
    minimum,
    wrap,
)
from ixion.te.stmt import Buffer, For, If, Kernel, Let, Stmt, seq
from ixion.te.tensor import Extent

GRAIN = 2048
LEAST = -87.3  # above it exponentials are normal numbers


def weight(x: Expr) -> Expr:
    """``e^x`` for ``x <= 0``, 0 where that is below 1.2e-38; NaN stays NaN.

    Denormal results would cost far more than the rest, for every masked element, and be nothing
    next to the 1 that is in every sum.
    """
    if x.dtype != "float32":
        return intrinsic("exp", x)
    low = broadcast(Const(LEAST, x.dtype), x.lanes)
    r, word = reduced(Select(compare("lt", x, low), low, x))
    value = scaled_normal(tail(r) + 1.0, word)
    return Select(compare("lt", x, low), Const(0, x.dtype, x.lanes), value)


def softmax_kernel(
    name: str, rows: Extent, length: Extent, source: Buffer, out: Buffer, lanes: int, log: bool
) -> Kernel:
    """``rows`` independent rows of ``length`` neighbouring elements."""
    builder = _Softmax(length, source, out, lanes, log)
    task, row = Var("task"), Var("row")
    group = least(rows, most(1, as_extent(GRAIN // most(length, 1))))
    loop = For(row, task * group, minimum((task + 1) * group, rows), builder.row(row))
    tasks = ceil_div(rows, group)
    return Kernel(name, (out, source), task, tasks, loop, locals=builder.registers)


class _Softmax:
    def __init__(self, length: Extent, source: Buffer, out: Buffer, lanes: int, log: bool) -> None:
        self.length, self.source, self.out, self.log = length, source, out, log
        self.lanes = lanes
        self.top = Buffer("top", source.dtype, "register", 1, lanes)
        self.total = Buffer("total", source.dtype, "register", 1, lanes)
        self.registers = (self.top, self.total)

    def row(self, row: Var) -> Stmt:
        base, m, s = Var("base"), Var("m", self.source.dtype), Var("s", self.source.dtype)
        last = self._log_pass(base, m, s) if self.log else self._scale_pass(base, s)
        sums = seq(self._clear(self.total, "add"), self._sum_pass(base, m))
        tail = Let(s, HorizontalReduce("add", self.total.load(0)), last)
        after = Let(m, HorizontalReduce("max", self.top.load(0)), seq(sums, tail))
        first = seq(self._clear(self.top, "max"), self._max_pass(base), after)
        return Let(base, row * self.length, first)

    def _clear(self, acc: Buffer, kind: str) -> Stmt:
        return acc.store(0, identity_of(kind, acc.dtype, self.lanes))

    def _each(self, piece: object) -> Stmt:
        """Whole vectors in a loop, then the short rest."""
        i = Var("i")
        if not isinstance(self.length, int):
            return self._each_open(piece, self.length)
        full = self.length // self.lanes * self.lanes
        parts: list[Stmt] = []
        if full:
            parts.append(For(i, 0, full, piece(i, None), step=self.lanes))  # type: ignore[operator]
        if self.length > full:
            parts.append(piece(wrap(full), self.length - full))  # type: ignore[operator]
        return seq(*parts)

    def _each_open(self, piece: object, length: Expr) -> Stmt:
        """The same for a length known at run time only."""
        i, full = Var("i"), Var("full")
        whole = For(i, 0, full, piece(i, None), step=self.lanes)  # type: ignore[operator]
        rest = If(full < length, piece(full, length - full))  # type: ignore[operator]
        return Let(full, length // self.lanes * self.lanes, seq(whole, rest))

    def _load(self, buffer: Buffer, at: Expr, count: Extent | None) -> Expr:
        return buffer.load(at, self.lanes, count=None if count is None else wrap(count))

    def _kept(self, value: Expr, count: Extent | None, kind: str) -> Expr:
        if count is None:
            return value
        inside = Compare("lt", Ramp(wrap(0), self.lanes), broadcast(wrap(count), self.lanes))
        return Select(inside, value, identity_of(kind, value.dtype, self.lanes))

    def _max_pass(self, base: Var) -> Stmt:
        def piece(at: Expr, count: Extent | None) -> Stmt:
            x = self._kept(self._load(self.source, base + at, count), count, "max")
            return self.top.store(0, binary("max", self.top.load(0), x))

        return self._each(piece)

    def _sum_pass(self, base: Var, m: Var) -> Stmt:
        def piece(at: Expr, count: Extent | None) -> Stmt:
            x = self._load(self.source, base + at, count)
            d, e = Var("d", x.dtype, self.lanes), Var("e", x.dtype, self.lanes)
            keep = self._kept(e, count, "add")
            add = self.total.store(0, binary("add", self.total.load(0), keep))
            limit = None if count is None else wrap(count)
            save = () if self.log else (self.out.store(base + at, e, limit),)
            return Let(d, binary("sub", x, m), Let(e, weight(d), seq(add, *save)))

        return self._each(piece)

    def _scale_pass(self, base: Var, s: Var) -> Stmt:
        def piece(at: Expr, count: Extent | None) -> Stmt:
            x = self._load(self.out, base + at, count)
            limit = None if count is None else wrap(count)
            return self.out.store(base + at, binary("div", x, s), limit)

        return self._each(piece)

    def _log_pass(self, base: Var, m: Var, s: Var) -> Stmt:
        shift = Var("shift", m.dtype)

        def piece(at: Expr, count: Extent | None) -> Stmt:
            x = self._load(self.source, base + at, count)
            limit = None if count is None else wrap(count)
            return self.out.store(base + at, binary("sub", binary("sub", x, m), shift), limit)

        return Let(shift, intrinsic("log", s), self._each(piece))
