"""Kernels written statement by statement: their buffers, private memory and counters.

For operators whose work follows the data (sorting, selecting, scattering) and is no tensor
expression.  Extents are Python ints or int64 expressions alike; scratch sizes are ints.
"""

from __future__ import annotations

from collections.abc import Callable

from ixion.base import dtype as dtypes
from ixion.kernel.schedule import Place
from ixion.te.expr import Const, Expr, ExprLike, Var, cast, minimum, wrap
from ixion.te.stmt import Buffer, For, Kernel, Let, Stmt, Store, seq

# A kernel and where its parameters lie.
Placed = tuple[Kernel, tuple[Place, ...]]
_LINE = 64  # what scratch buffers are aligned to


class Cell:
    """A number that statements change: a register of the kernel.

    ``value`` stands for what it holds where the expression is used, so a statement that needs the
    value of an earlier moment names it with ``named``.
    """

    def __init__(self, name: str, dtype: str = "int64", lanes: int = 1) -> None:
        self.buffer = Buffer(name, dtype, "register", 1, lanes)

    @property
    def value(self) -> Expr:
        return self.buffer.load(0)

    def set(self, value: ExprLike) -> Stmt:
        return Store(self.buffer, wrap(0), wrap(value, self.buffer.dtype))

    def add(self, value: ExprLike) -> Stmt:
        return self.set(self.value + value)


class Draft:
    """Collects what a kernel consists of.

    With ``temps``, a list of sizes in bytes, private memory becomes temporaries: for a kernel of
    one task, which then does not cost memory for every worker.
    """

    def __init__(self, temps: list[int] | None = None) -> None:
        self.temps = temps
        self.params: list[Buffer] = []
        self.places: list[Place] = []
        self.locals: list[Buffer] = []
        self.scratch_bytes = 0

    def param(self, place: Place, dtype: str, name: str) -> Buffer:
        """Memory reached through a slot; what a kernel writes comes first."""
        buffer = Buffer(name, dtype)
        self.params.append(buffer)
        self.places.append(place)
        return buffer

    def output(self, index: int, dtype: str) -> Buffer:
        return self.param(Place("out", index), dtype, f"out{index}")

    def input(self, index: int, dtype: str) -> Buffer:
        return self.param(Place("in", index), dtype, f"in{index}")

    def temp(self, index: int, dtype: str) -> Buffer:
        return self.param(Place("temp", index), dtype, f"temp{index}")

    def scratch(self, name: str, dtype: str, size: int) -> Buffer:
        """Private memory of ``size`` elements; undefined at the start of every task."""
        if self.temps is not None:
            self.temps.append(max(size, 1) * dtypes.itemsize(dtype))
            return self.param(Place("temp", len(self.temps) - 1), dtype, name)
        buffer = Buffer(name, dtype, "scratch", size, offset=self.scratch_bytes)
        nbytes = max(size, 1) * dtypes.itemsize(dtype)
        self.scratch_bytes += -(-nbytes // _LINE) * _LINE
        self.locals.append(buffer)
        return buffer

    def cell(self, name: str, dtype: str = "int64", lanes: int = 1) -> Cell:
        cell = Cell(name, dtype, lanes)
        self.locals.append(cell.buffer)
        return cell

    def kernel(self, name: str, task: Var, tasks: int, body: Stmt) -> Placed:
        made = Kernel(
            name, tuple(self.params), task, max(tasks, 1), body, scratch=self.scratch_bytes,
            locals=tuple(self.locals),
        )  # fmt: skip
        return made, tuple(self.places)


def named(value: Expr, body: Callable[[Var], Stmt], name: str = "v") -> Stmt:
    """``body`` of a value that is computed once, here."""
    var = Var(name, value.dtype, value.lanes)
    return Let(var, value, body(var))


def loop(
    count: ExprLike, body: Callable[[Var], Stmt], start: ExprLike = 0, name: str = "i"
) -> Stmt:
    """``body`` of every number from ``start`` up to ``count``."""
    var = Var(name)
    return For(var, start, count, body(var))


def vectors(
    count: ExprLike, lanes: int, body: Callable[[Var, Expr | None], Stmt], name: str = "i"
) -> Stmt:
    """``body`` of where each vector starts and of its number of lanes, None where it is full."""
    whole, last = Var(name), Var(name)
    full = wrap(count) // lanes * lanes
    rest = For(last, full, count, body(last, wrap(count) - last), step=lanes)
    return seq(For(whole, 0, full, body(whole, None), step=lanes), rest)


def runs(rows: ExprLike, grain: int, body: Callable[[Var], Stmt]) -> tuple[Var, int, Stmt]:
    """Tasks of ``grain`` rows each: the task variable, their number and what one does."""
    task = Var("task")
    last = minimum((task + 1) * grain, wrap(rows))
    tasks = -(-rows // grain) if isinstance(rows, int) else 1
    return task, tasks, loop(last, body, task * grain, "row")


def as_index(value: Expr) -> Expr:
    """A number from memory as an index."""
    return cast(value, "int64")


def number(value: int, dtype: str, lanes: int = 1) -> Const:
    return Const(value, dtype, lanes)
