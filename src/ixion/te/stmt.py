"""Loop nests: what a kernel does, over flat buffers.

A kernel is a list of *tasks* (independent units of work) and one body that does task ``task``.
Buffers are flat arrays of one dtype in a scope:

``global``    memory reached through a slot of the step (inputs, outputs, weights, arena)
``scratch``   memory private to a worker, at a byte offset of its scratch block
``register``  a small array of vectors indexed by constants after unrolling; becomes registers
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from ixion.te.expr import Const, Expr, ExprLike, Load, Var, wrap


class Buffer:
    """A flat array. ``size`` counts elements (vectors of ``lanes`` for registers).

    Of scratch, size and offset may be expressions over sizes.
    """

    __slots__ = ("dtype", "lanes", "name", "offset", "scope", "size")

    def __init__(
        self,
        name: str,
        dtype: str,
        scope: str = "global",
        size: int | Expr = 0,
        lanes: int = 1,
        offset: int | Expr = 0,
    ) -> None:
        self.name, self.dtype, self.scope = name, dtype, scope
        # Numbers but in scratch of kernels whose sizes are known at run time only.
        self.size, self.offset = cast("int", size), cast("int", offset)
        self.lanes = lanes

    def load(
        self, index: ExprLike, lanes: int = 1, stride: int = 1, count: Expr | None = None
    ) -> Expr:
        width = self.lanes if self.scope == "register" else lanes
        return Load(self, wrap(index), width, stride, count)

    def store(self, index: ExprLike, value: Expr, count: Expr | None = None) -> Stmt:
        return Store(self, wrap(index), value, count)

    def __repr__(self) -> str:
        return f"{self.name}: {self.scope} {self.dtype}"


class Stmt:
    """Base of all statements."""

    __slots__ = ()


class Seq(Stmt):
    __slots__ = ("body",)

    def __init__(self, body: tuple[Stmt, ...]) -> None:
        self.body = body


class For(Stmt):
    """``var`` from ``lo`` up to but without ``hi`` by ``step``.

    ``unrolled`` loops have constant bounds and are expanded before code is made.
    """

    __slots__ = ("body", "hi", "lo", "step", "unrolled", "var")

    def __init__(
        self,
        var: Var,
        lo: ExprLike,
        hi: ExprLike,
        body: Stmt,
        *,
        unrolled: bool = False,
        step: int = 1,
    ) -> None:
        self.var, self.lo, self.hi, self.body = var, wrap(lo), wrap(hi), body
        self.unrolled, self.step = unrolled, step


class Let(Stmt):
    """``value`` computed once and named for ``body``; the way to keep addresses out of loops."""

    __slots__ = ("body", "value", "var")

    def __init__(self, var: Var, value: Expr, body: Stmt) -> None:
        self.var, self.value, self.body = var, value, body


class Store(Stmt):
    """A scalar or a contiguous vector into a buffer from element ``index`` on.

    With ``count`` only the first ``count`` lanes are written and no byte outside them is touched.
    """

    __slots__ = ("buffer", "count", "index", "value")

    def __init__(self, buffer: Buffer, index: Expr, value: Expr, count: Expr | None = None) -> None:
        self.buffer, self.index, self.value, self.count = buffer, index, value, count


class If(Stmt):
    """``closed`` says that what a side stores in registers is not read after the statement."""

    __slots__ = ("closed", "cond", "orelse", "then")

    def __init__(
        self, cond: Expr, then: Stmt, orelse: Stmt | None = None, *, closed: bool = False
    ) -> None:
        self.cond, self.then, self.orelse, self.closed = cond, then, orelse, closed


class Prefetch(Stmt):
    """A hint that the line of element ``index`` will be read soon; no effect on any value.

    Nothing is read: the element may lie past the end of the buffer.
    """

    __slots__ = ("buffer", "index")

    def __init__(self, buffer: Buffer, index: Expr) -> None:
        self.buffer, self.index = buffer, index


class Fault(Stmt):
    """Ends the kernel with a nonzero code and records ``index`` (a data-dependent value)."""

    __slots__ = ("code", "index")

    def __init__(self, code: int, index: Expr) -> None:
        self.code, self.index = code, index


@dataclass(eq=False)
class Kernel:
    """A compiled unit: ``params[i]`` is reached through slot ``i``, then come ``scalars``.

    ``tasks`` counts independent units; ``body`` does unit ``task``.  ``scratch`` is in bytes.
    Both, and ``values``, which says what each scalar is, may be expressions over sizes.  With
    ``when`` the kernel is only run where that expression lies between the two numbers.
    """

    name: str
    params: tuple[Buffer, ...]
    task: Var
    tasks: int | Expr
    body: Stmt
    scalars: tuple[Var, ...] = ()
    scratch: int | Expr = 0
    locals: tuple[Buffer, ...] = field(default=())
    values: tuple[Expr, ...] = ()
    when: tuple[Expr, int, int] | None = None


def seq(*stmts: Stmt | Iterable[Stmt]) -> Stmt:
    """Statements one after another; nested sequences are flattened."""
    flat: list[Stmt] = []
    for s in stmts:
        for one in (s,) if isinstance(s, Stmt) else s:
            flat.extend(one.body if isinstance(one, Seq) else (one,))
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def unroll(var: Var, extent: int, body: Stmt) -> Stmt:
    return For(var, Const(0, "int64"), Const(extent, "int64"), body, unrolled=True)
