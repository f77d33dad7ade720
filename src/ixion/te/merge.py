"""Several kernels as one that does their work in turn: for steps so small that calling them counts.

Memory that several of them use, said by equal keys, becomes one parameter, so that the code knows
it to be the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from ixion.te.expr import Expr, Load, Var
from ixion.te.stmt import Buffer, Fault, For, If, Kernel, Let, Prefetch, Seq, Stmt, Store, seq

__all__ = ["merged"]


def merged(
    name: str, parts: Sequence[tuple[Kernel, Sequence[Hashable]]]
) -> tuple[Kernel, list[int]]:
    """A kernel of one task that does all tasks of all kernels, in order.

    Each kernel comes with a key for each of its parameters. Also gives, for each parameter of the
    new kernel, the number of the first old one that it stands for, counted over all kernels.
    Tasks and scratch must be numbers.
    """
    shared: dict[tuple[Hashable, str], Buffer] = {}
    first: list[int] = []
    scalars: dict[Var, Expr] = {}
    body: list[Stmt] = []
    local: list[Buffer] = []
    number = 0
    for kernel, keys in parts:
        names: dict[Buffer, Buffer] = {}
        for buffer, key in zip(kernel.params, keys, strict=True):
            if (key, buffer.dtype) not in shared:
                shared[key, buffer.dtype] = Buffer(f"m{len(shared)}", buffer.dtype)
                first.append(number)
            names[buffer] = shared[key, buffer.dtype]
            number += 1
        for buffer in kernel.locals:
            names[buffer] = Buffer(
                buffer.name, buffer.dtype, buffer.scope, buffer.size, buffer.lanes, buffer.offset
            )
            local.append(names[buffer])
        scalars.update(zip(kernel.scalars, kernel.values, strict=True))
        body.append(For(kernel.task, 0, kernel.tasks, _Renamer(names).stmt(kernel.body)))
    scratch = max(kernel.scratch for kernel, _ in parts)  # type: ignore[type-var]
    whole = Kernel(
        name, tuple(shared.values()), Var("all"), 1, seq(body), tuple(scalars), scratch,
        tuple(local), tuple(scalars.values()),
    )  # fmt: skip
    return whole, first


@dataclass(eq=False)
class _Renamer:
    """A loop nest on other buffers. Nests are not deep, so this recurses."""

    names: dict[Buffer, Buffer]
    memo: dict[int, tuple[Expr, Expr]] = field(default_factory=dict)

    def stmt(self, s: Stmt) -> Stmt:
        if isinstance(s, Seq):
            return Seq(tuple(self.stmt(one) for one in s.body))
        if isinstance(s, For):
            body = self.stmt(s.body)
            lo, hi = self.expr(s.lo), self.expr(s.hi)
            return For(s.var, lo, hi, body, unrolled=s.unrolled, step=s.step)
        if isinstance(s, Let):
            return Let(s.var, self.expr(s.value), self.stmt(s.body))
        if isinstance(s, Store):
            count = None if s.count is None else self.expr(s.count)
            return Store(self.names[s.buffer], self.expr(s.index), self.expr(s.value), count)
        if isinstance(s, If):
            orelse = None if s.orelse is None else self.stmt(s.orelse)
            return If(self.expr(s.cond), self.stmt(s.then), orelse)
        if isinstance(s, Prefetch):
            return Prefetch(self.names[s.buffer], self.expr(s.index))
        if isinstance(s, Fault):
            return Fault(s.code, self.expr(s.index))
        raise TypeError(f"te: {type(s).__name__} cannot be renamed")

    def expr(self, e: Expr) -> Expr:
        old = e.children()
        if not old:
            return e
        if id(e) not in self.memo:
            # The old one is kept, so that its id stays its own.
            self.memo[id(e)] = e, self._made(e, [self.expr(child) for child in old])
        return self.memo[id(e)][1]

    def _made(self, e: Expr, new: list[Expr]) -> Expr:
        if isinstance(e, Load):
            count = new[1] if e.count is not None else None
            return Load(self.names[e.buffer], new[0], e.lanes, e.stride, count)
        if all(a is b for a, b in zip(e.children(), new, strict=True)):
            return e
        return e.rebuild(new)
