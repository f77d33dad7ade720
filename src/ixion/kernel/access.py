"""From tensor expressions to loads: inlining, addressing and vectorising.

A kernel knows where each tensor that it reads lives (``Operand``).  Elements of computed tensors
are inlined, every remaining read becomes a scalar load at a simplified flat offset, and a whole
expression is then widened over one *lane* variable: unit stride becomes a vector load, stride 0 a
broadcast, any other constant stride a strided load, and anything else lane-by-lane loads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ixion.kernel.cheaper import cheaper
from ixion.kernel.layout import PLAIN, Layout
from ixion.kernel.sizes import as_extent, ceil_div, top
from ixion.te.expr import (
    INDEX,
    Binary,
    Broadcast,
    Cast,
    Checked,
    Const,
    Expr,
    Lanes,
    Load,
    Ramp,
    Read,
    Reduce,
    Shuffle,
    Var,
    broadcast,
    maximum,
    minimum,
    substitute,
    walk,
    wrap,
)
from ixion.te.simplify import Ranges, bounds, linear, simplify
from ixion.te.stmt import Buffer
from ixion.te.symbolic import coefficient, never_negative
from ixion.te.tensor import Extent, Tensor

SMALL_FLOATS = frozenset(("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"))
Given = Callable[[tuple[Expr, ...]], Expr]


@dataclass(frozen=True, eq=False)
class Operand:
    """A tensor in memory: its flat buffer and its layout."""

    buffer: Buffer
    layout: Layout = PLAIN


@dataclass(eq=False)
class Access:
    """Where the tensors of one kernel are: in memory, or ``given`` as values (accumulators)."""

    operands: dict[Tensor, Operand] = field(default_factory=dict)
    given: dict[Tensor, Given] = field(default_factory=dict)
    # Tensors whose elements are those of another expression of the same index.
    redirect: dict[Tensor, Given] = field(default_factory=dict)
    # A lane variable, where its block starts, and the extent that counted lanes stay below.
    limits: dict[Var, tuple[Expr, Extent]] = field(default_factory=dict)

    def element(self, tensor: Tensor, index: Sequence[Expr], ranges: Ranges) -> Expr:
        """One element with every computed tensor inlined and every read a scalar load."""
        return _Inliner(self, ranges).read(tensor, tuple(index))


class _Inliner:
    """Expands reads under known variable ranges; equal reads give the same object."""

    def __init__(self, access: Access, ranges: Ranges) -> None:
        self.access, self.ranges = access, dict(ranges)
        self.done: dict[object, Expr] = {}

    def read(self, tensor: Tensor, index: tuple[Expr, ...]) -> Expr:
        index = tuple(simplify(i, self.ranges) for i in index)
        key = (tensor, tuple(_key(i) for i in index))
        if key not in self.done:
            self.done[key] = self._read(tensor, index)
        return self.done[key]

    def _read(self, tensor: Tensor, index: tuple[Expr, ...]) -> Expr:
        if tensor in self.access.given:
            return self.access.given[tensor](index)
        if tensor in self.access.redirect:
            return self.expr(self.access.redirect[tensor](index))
        if tensor in self.access.operands:
            return self._load(tensor, index)
        if tensor.body is None:
            raise KeyError(f"kernel: no operand for {tensor.name}")
        value = self.expr(substitute(tensor.body, dict(zip(tensor.axes, index, strict=True))))
        if tensor.dtype in SMALL_FLOATS:  # computed wider, but every op's result is rounded
            return Cast(Cast(value, "float32"), tensor.dtype)
        return value

    def _load(self, tensor: Tensor, index: tuple[Expr, ...]) -> Expr:
        operand = self.access.operands[tensor]
        shape = [_extent(n) for n in tensor.shape]
        extents = padded_shape(shape, operand.layout)
        inside = [self.clamped(i, n) for i, n in zip(index, extents, strict=True)]
        offset = simplify(operand.layout.offset(shape, inside), self.ranges)
        return Load(operand.buffer, offset)

    def clamped(self, index: Expr, extent: Extent) -> Expr:
        """``index``, kept inside [0, extent) where the ranges do not prove it is."""
        index = self.expr(index)
        lo, hi = bounds(index, self.ranges)
        for lane, (start, end) in self.access.limits.items():
            if isinstance(extent, int) and isinstance(end, int):
                below = end <= extent
            else:
                below = self._reaches(wrap(extent) - end)
            if below and _key(index) == _key(simplify(start + lane, self.ranges)):
                return index  # lanes at or past ``end`` are never loaded
        low, high = lo is not None and lo >= 0, False
        if isinstance(extent, int) and hi is not None:
            high = hi < extent
        elif not isinstance(extent, int) or lo is None or hi is None:
            low, high = low or self._reaches(index), self._reaches(wrap(extent) - 1 - index)
        if not (low and high) and _is_data(index) and not _is_nothing(extent):
            return Checked(index, extent)
        if not low:
            index = maximum(index, 0)
        if not high:
            index = minimum(index, top(extent) if isinstance(extent, int) else extent - 1)
            index = index if isinstance(extent, int) else maximum(index, 0)
        return index

    def _reaches(self, expr: Expr) -> bool:
        """Whether an expression is never below 0."""
        return never_negative(linear(expr, self.ranges), self.ranges)

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Read):
            return self.read(expr.tensor, tuple(self.expr(i) for i in expr.indices))
        if isinstance(expr, Reduce):
            for v, extent in expr.axes:
                self.ranges[v] = (0, top(_extent(extent)))
            return Reduce(expr.kind, expr.axes, self.expr(expr.body))
        if isinstance(expr, (Const, Var)):
            return expr
        key = ("expr", id(expr))
        if key not in self.done:
            children = [self.expr(c) for c in expr.children()]
            same = all(a is b for a, b in zip(children, expr.children(), strict=True))
            new = cheaper(expr if same else expr.rebuild(children))
            self.done[key] = simplify(new, self.ranges) if _decidable(new) else new
            self.done[("keep", id(expr))] = expr  # ids stay unique while the object lives
        return self.done[key]


def _is_data(index: Expr) -> bool:
    """Whether an index comes from memory: then nothing but a check can keep it inside."""
    return any(isinstance(node, Load) for node in walk(index))


def _is_nothing(extent: Extent) -> bool:
    return isinstance(extent, int) and extent == 0


def padded_shape(shape: Sequence[Extent], layout: Layout) -> list[Extent]:
    """Extents that may be addressed: a blocked axis up to the end of its last block."""
    dims = list(shape)
    if layout.axis is not None:
        dims[layout.axis] = ceil_div(dims[layout.axis], layout.block) * layout.block
    return dims


def _decidable(expr: Expr) -> bool:
    """Whether simplification may prune it: conditions on indices and selects on constants."""
    from ixion.te.expr import Compare, Select

    if isinstance(expr, Compare):
        return expr.a.dtype == INDEX
    if isinstance(expr, Select):
        return isinstance(expr.cond, Const)
    return isinstance(expr, Binary) and expr.dtype == "bool"


def _key(expr: Expr) -> object:
    from ixion.te.simplify import atom_key

    return atom_key(expr)


def _extent(extent: Extent) -> Extent:
    """An int where the extent is one."""
    return extent if isinstance(extent, int) else as_extent(extent)


def depends(expr: Expr, var: Var, memo: dict[int, bool] | None = None) -> bool:
    """Whether ``var`` occurs in ``expr``."""
    memo = {} if memo is None else memo
    if expr is var:
        return True
    if id(expr) not in memo:
        memo[id(expr)] = any(depends(c, var, memo) for c in expr.children())
    return memo[id(expr)]


def stride_of(index: Expr, var: Var, ranges: Ranges) -> int | None:
    """How far ``index`` moves when ``var`` grows by 1; None when that is not one constant."""
    form = linear(index, ranges)
    stride = 0
    for atom, factor in form.terms.values():
        if atom is var:
            stride = factor
        elif depends(atom, var):
            return None
    return stride


def slope_of(index: Expr, var: Var, ranges: Ranges) -> Extent | None:
    """As ``stride_of``, where the distance may depend on sizes."""
    slope, _ = coefficient(linear(index, ranges), var)
    return None if slope is None else as_extent(slope.expr())


class Vectorizer:
    """Widens scalar expressions over ``lane`` in [0, width); ``count`` lanes are real."""

    def __init__(self, lane: Var, width: int, ranges: Ranges, count: Expr | None = None) -> None:
        self.lane, self.width, self.count = lane, width, count
        self.ranges = dict(ranges)
        self.done: dict[int, Expr] = {}
        self.keep: list[Expr] = []
        self.uses: dict[int, bool] = {}
        self.wide: dict[int, bool] = {}

    def expr(self, expr: Expr) -> Expr:
        """The vector of ``width`` lanes; sharing in the argument is kept."""
        if id(expr) not in self.done:
            self.done[id(expr)] = self._expr(expr)
            self.keep.append(expr)
        return self.done[id(expr)]

    def _expr(self, expr: Expr) -> Expr:
        if isinstance(expr, (Load, Shuffle)) and expr.lanes > 1:
            return expr  # a value that is already in registers
        if expr is self.lane:
            return Ramp(wrap(0), self.width)
        if not depends(expr, self.lane, self.uses) and not _has_vector(expr, self.width, self.wide):
            return broadcast(expr, self.width)
        if isinstance(expr, Load):
            return self._load(expr)
        if isinstance(expr, Broadcast):  # beside a vector already in registers
            return self.expr(expr.a)
        return expr.rebuild([self.expr(c) for c in expr.children()])

    def _load(self, load: Load) -> Expr:
        stride = stride_of(load.index, self.lane, self.ranges)
        if stride is None:
            return Lanes(tuple(self._one(load, i) for i in range(self.width)))
        start = simplify(substitute(load.index, {self.lane: wrap(0)}), self.ranges)
        if stride == 0:
            return Broadcast(Load(load.buffer, start), self.width)
        return Load(load.buffer, start, self.width, stride, self.count)

    def _one(self, load: Load, i: int) -> Expr:
        lane: Expr = wrap(i)
        if self.count is not None:  # lanes past the end repeat the last real one
            lane = minimum(wrap(i), self.count - 1)
        index = substitute(load.index, {self.lane: lane})
        return Load(load.buffer, simplify(index, self.ranges))


def _has_vector(expr: Expr, width: int, memo: dict[int, bool]) -> bool:
    if isinstance(expr, (Load, Shuffle)):
        return expr.lanes > 1
    if id(expr) not in memo:
        memo[id(expr)] = any(_has_vector(c, width, memo) for c in expr.children())
    return memo[id(expr)]


def swap(expr: Expr, old: Expr, new: Expr, memo: dict[int, Expr] | None = None) -> Expr:
    """``expr`` with one object replaced, sharing kept."""
    if expr is old:
        return new
    memo = {} if memo is None else memo
    if id(expr) not in memo:
        children = expr.children()
        mapped = [swap(c, old, new, memo) for c in children]
        same = all(a is b for a, b in zip(children, mapped, strict=True))
        memo[id(expr)] = expr if same else expr.rebuild(mapped)
    return memo[id(expr)]
