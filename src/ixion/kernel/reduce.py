"""Reductions, and elementwise work on their results, without a template of their own.

Two ways: lanes along the output (each lane folds its own element, good when neighbours in the
output are neighbours in the input) or lanes along the innermost reduce axis (partial results are
folded across lanes at the end).
"""

from __future__ import annotations

from collections.abc import Sequence

from ixion.kernel.access import Access, Operand, Vectorizer, stride_of
from ixion.kernel.injective import GRAIN, element_space
from ixion.kernel.loops import LoopSpace, affine, decode, loads_of, merge
from ixion.kernel.sizes import as_extent, ceil_div, least, most, product, top
from ixion.te.expr import (
    Compare,
    Const,
    Expr,
    HorizontalReduce,
    Load,
    Ramp,
    Reduce,
    Select,
    Var,
    binary,
    broadcast,
    minimum,
    substitute,
    wrap,
)
from ixion.te.simplify import Ranges
from ixion.te.stmt import Buffer, For, If, Kernel, Let, Stmt, seq, unroll
from ixion.te.tensor import Extent, Tensor

UNROLL = 4


def reductions_of(expr: Expr) -> list[Reduce]:
    """Outermost reductions of an expression DAG."""
    found: dict[int, Reduce] = {}
    visited: set[int] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        if isinstance(node, Reduce):
            found.setdefault(id(node), node)
        else:
            stack.extend(reversed(node.children()))
    return list(found.values())


def identity_of(kind: str, dtype: str, lanes: int) -> Expr:
    """The neutral element of a fold, in every lane."""
    from ixion.te.evaluate import identity

    return Const(identity(kind, dtype).item(), dtype, lanes)


def generic_reduce(
    name: str, out: Tensor, place: Operand, access: Access, lanes: int, params: tuple[Buffer, ...]
) -> Kernel:
    """A kernel for an element value that holds reductions (none nested in another)."""
    space, value, strides = element_space(out, place, access)
    if not space.vars:
        space, strides = LoopSpace([Var("i")], [1]), [1]
    folds = reductions_of(value)
    builder = _Builder(space, value, folds, place.buffer, lanes)
    task, row = Var("task"), Var("row")
    if builder.along_output():
        inner, rows = builder.output_line(), product(space.extents[:-1])
        outer = list(zip(space.vars[:-1], space.extents[:-1], strict=True))
        body = Let(builder.origin, affine(space.vars[:-1], strides[:-1]), inner)
        work = product((builder.work(), space.extents[-1]))
    else:
        rows = product(space.extents)
        outer = list(zip(space.vars, space.extents, strict=True))
        body = Let(builder.origin, affine(space.vars, strides), builder.fold_line())
        work = builder.work()
    group = least(rows, most(1, as_extent(GRAIN // most(work, 1))))
    loop = For(
        row,
        task * group,
        minimum((task + 1) * group, rows),
        decode(row, outer, body) if outer else body,
    )
    tasks = ceil_div(rows, group)
    return Kernel(name, params, task, tasks, loop, locals=tuple(builder.registers))


class _Builder:
    def __init__(
        self, space: LoopSpace, value: Expr, folds: list[Reduce], out: Buffer, lanes: int
    ) -> None:
        self.space, self.value, self.folds, self.out, self.lanes = space, value, folds, out, lanes
        self.origin = Var("origin")
        self.registers: list[Buffer] = []

    def work(self) -> Extent:
        total: Extent = 0
        for f in self.folds:
            total = total + product(as_extent(e) for _, e in f.axes)
        return as_extent(total)

    def along_output(self) -> bool:
        """Whether lanes go along the innermost output loop."""
        length = self.space.extents[-1]
        if isinstance(length, int) and length < self.lanes // 2:
            return False
        inner, axis = self.space.vars[-1], self.folds[0].axes[-1][0]
        ranges = self.ranges()
        loads = [load for f in self.folds for load in loads_of(f.body)]
        if all(stride_of(x.index, inner, ranges) in (0, 1) for x in loads):
            return True
        return not any(stride_of(x.index, axis, ranges) == 1 for x in loads)

    def ranges(self) -> dict[Var, tuple[int, Extent]]:
        known = self.space.ranges()
        for f in self.folds:
            for v, e in f.axes:
                known[v] = (0, top(as_extent(e)))
        return known

    def register(self, dtype: str, lanes: int, size: int) -> Buffer:
        buffer = Buffer(f"acc{len(self.registers)}", dtype, "register", size, lanes)
        self.registers.append(buffer)
        return buffer

    def output_line(self) -> Stmt:
        inner, i = self.space.vars[-1], Var("i")
        length = self.space.extents[-1]
        if not isinstance(length, int):
            whole = as_extent(length // self.lanes * self.lanes)
            loop = For(i, 0, whole, self._output_piece(inner, i, None), step=self.lanes)
            rest = self._output_piece(inner, wrap(whole), length - whole)
            return seq(loop, If(wrap(whole) < length, rest))
        full = length // self.lanes * self.lanes
        parts: list[Stmt] = []
        if full:
            parts.append(For(i, 0, full, self._output_piece(inner, i, None), step=self.lanes))
        if length > full:
            parts.append(self._output_piece(inner, wrap(full), length - full))
        return seq(*parts)

    def _output_piece(self, inner: Var, at: Expr, count: Extent | None) -> Stmt:
        lane = Var("lane")
        real = count if isinstance(count, int) else self.lanes
        ranges: dict[Var, tuple[int, Extent]] = {**self.ranges(), lane: (0, real - 1)}
        limit = wrap(count) if count is not None else None
        vec = Vectorizer(lane, self.lanes, ranges, limit)
        parts: list[Stmt] = []
        results: dict[int, Expr] = {}
        moved = substitute(self.value, {inner: at + lane})
        for fold in reductions_of(moved):
            axes, body = merged_axes(fold, ranges)
            acc = self.register(fold.dtype, self.lanes, _copies(axes))
            parts.append(self._clear(fold, acc))
            parts.append(_unrolled(axes, body, acc, fold.kind, vec))
            results[id(fold)] = _together(fold.kind, acc)
        value = vec.expr(_replace(moved, results))
        parts.append(self.out.store(self.origin + at, value, limit))
        return seq(*parts)

    def fold_line(self) -> Stmt:
        """One output element, lanes along each fold's innermost axis."""
        parts: list[Stmt] = []
        results: dict[int, Expr] = {}
        for fold in self.folds:
            extent = as_extent(fold.axes[-1][1])
            short = isinstance(extent, int) and extent // self.lanes < UNROLL
            acc = self.register(fold.dtype, self.lanes, 1 if short else UNROLL)
            parts.append(self._clear(fold, acc))
            parts.append(self._fold(fold, acc))
            results[id(fold)] = HorizontalReduce(fold.kind, _together(fold.kind, acc))
        parts.append(self.out.store(self.origin, _replace(self.value, results)))
        return seq(*parts)

    def _fold(self, fold: Reduce, acc: Buffer) -> Stmt:
        axis, extent = fold.axes[-1][0], as_extent(fold.axes[-1][1])
        i, u = Var("k"), Var("u")
        parts: list[Stmt] = []
        step = acc.size * self.lanes
        if not isinstance(extent, int):
            return _loops(fold.axes[:-1], self._open_fold(fold, acc, axis, extent, step))
        full = extent // self.lanes * self.lanes
        wide = full // step * step
        if wide:
            piece = self._fold_piece(fold, acc, u, axis, i + u * self.lanes, None)
            parts.append(For(i, 0, wide, unroll(u, acc.size, piece), step=step))
        for number, at in enumerate(range(wide, full, self.lanes)):
            parts.append(self._fold_piece(fold, acc, wrap(number), axis, wrap(at), None))
        if extent > full:
            parts.append(self._fold_piece(fold, acc, wrap(0), axis, wrap(full), extent - full))
        return _loops(fold.axes[:-1], seq(*parts)) if parts else seq()

    def _open_fold(
        self, fold: Reduce, acc: Buffer, axis: Var, extent: Expr, step: int
    ) -> Stmt:
        """The fold over an axis whose length is known at run time only."""
        i, u = Var("k"), Var("u")
        full, wide = Var("full"), Var("wide")
        body = self._fold_piece(fold, acc, u, axis, i + u * self.lanes, None)
        single = self._fold_piece(fold, acc, wrap(0), axis, i, None)
        rest = self._fold_piece(fold, acc, wrap(0), axis, full, extent - full)
        loops = seq(
            For(i, 0, wide, unroll(u, acc.size, body), step=step),
            For(i, wide, full, single, step=self.lanes),
            If(full < extent, rest),
        )
        named = Let(wide, extent // step * step, loops)
        return Let(full, extent // self.lanes * self.lanes, named)

    def _fold_piece(
        self, fold: Reduce, acc: Buffer, number: Expr, axis: Var, at: Expr, count: Extent | None
    ) -> Stmt:
        lane = Var("lane")
        real = count if isinstance(count, int) else self.lanes
        ranges: dict[Var, tuple[int, Extent]] = {**self.ranges(), lane: (0, real - 1)}
        limit = wrap(count) if count is not None else None
        body = substitute(fold.body, {axis: at + lane})
        vector = Vectorizer(lane, self.lanes, ranges, limit).expr(body)
        if count is not None:
            inside = Compare("lt", Ramp(wrap(0), self.lanes), broadcast(wrap(count), self.lanes))
            vector = Select(inside, vector, identity_of(fold.kind, fold.dtype, self.lanes))
        return acc.store(number, binary(fold.kind, acc.load(number), vector))

    def _clear(self, fold: Reduce, acc: Buffer) -> Stmt:
        start = identity_of(fold.kind, fold.dtype, self.lanes)
        return seq(*(acc.store(i, start) for i in range(acc.size)))


def merged_axes(fold: Reduce, ranges: Ranges) -> tuple[list[tuple[Var, Extent]], Expr]:
    """The axes with neighbours joined that every load walks as one, and the body for them."""
    axes = [(v, as_extent(e)) for v, e in fold.axes]
    space = LoopSpace([v for v, _ in axes], [n for _, n in axes])
    loads = loads_of(fold.body)
    affine_only = all(stride_of(x.index, v, ranges) is not None for x in loads for v in space.vars)
    if not affine_only or any(isinstance(n, int) and n < 2 for n in space.extents):
        return axes, fold.body
    joined, body, _ = merge(space, fold.body, [0] * len(axes), ranges=ranges)
    return list(zip(joined.vars, joined.extents, strict=True)), body


def _copies(axes: Sequence[tuple[Var, Extent]]) -> int:
    """Accumulators in turn: an addition takes longer than the time to the next one."""
    extent = axes[-1][1]
    return 1 if isinstance(extent, int) and extent < UNROLL else UNROLL


def _unrolled(
    axes: Sequence[tuple[Var, Extent]], body: Expr, acc: Buffer, kind: str, vec: Vectorizer
) -> Stmt:
    """All steps of a fold, those along the last axis on different accumulators."""
    (axis, extent), k, u = axes[-1], Var("k"), Var("u")
    full = as_extent(extent // acc.size * acc.size)
    vec.ranges |= {k: (0, top(extent)), u: (0, acc.size - 1)}

    def step(at: Expr, number: Expr) -> Stmt:
        value = vec.expr(substitute(body, {axis: at}))
        return acc.store(number, binary(kind, acc.load(number), value))

    parts: list[Stmt] = []
    if not isinstance(full, int) or full:
        parts.append(For(k, 0, full, unroll(u, acc.size, step(k + u, u)), step=acc.size))
    if isinstance(extent, int) and isinstance(full, int):
        parts += [step(wrap(full + i), wrap(i)) for i in range(extent - full)]
    else:
        parts.append(For(k, full, extent, step(k, wrap(0))))
    return _loops([(v, wrap(n)) for v, n in axes[:-1]], seq(*parts))


def _together(kind: str, acc: Buffer) -> Expr:
    total = acc.load(0)
    for i in range(1, acc.size):
        total = binary(kind, total, acc.load(i))
    return total


def _loops(axes: Sequence[tuple[Var, Expr]], body: Stmt) -> Stmt:
    for v, extent in reversed(axes):
        body = For(v, 0, extent, body)
    return body


def _replace(expr: Expr, results: dict[int, Expr]) -> Expr:
    if id(expr) in results:
        return results[id(expr)]
    if isinstance(expr, Load) or not expr.children():
        return expr
    new = expr.rebuild([_replace(c, results) for c in expr.children()])
    results[id(expr)] = new
    return new
