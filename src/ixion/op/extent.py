"""Dims of types as extents of tensor expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ixion import te
from ixion.base import dim as dims
from ixion.base.errors import IxionError
from ixion.te.expr import Binary, Const, Intrinsic, Size, size
from ixion.te.tensor import Extent

if TYPE_CHECKING:
    from ixion.base.dim import Dim, SymExpr

__all__ = [
    "Extent", "NoLoopsError", "dim_of", "dims_of", "extent", "extents", "index", "same_extent",
    "size_var",
]  # fmt: skip


class NoLoopsError(IxionError, ValueError):
    """A compute that has no loops for these attributes or sizes: the op runs as a host step."""


def size_var(name: str) -> Size:
    """The one te variable that stands for symbolic dim ``name``."""
    return size(name)


def extent(dim: Dim) -> Extent:
    """A dim as a te extent, one object per expression; raises NoLoopsError for an unknown one."""
    if isinstance(dim, int):
        return dim
    if isinstance(dim, dims.Any):
        raise NoLoopsError("a size that is unknown until run time has no loop extent")
    found = _MADE.get(dim)
    if found is None:
        found = _MADE[dim] = _converted(dim)
    return found


# Names of dims come from model files, and a program has few of them.
_MADE: dict[Dim, te.Expr] = {}


def _converted(dim: SymExpr) -> te.Expr:
    total: Extent | None = None
    for monomial, factor in dims.terms_of(dim).items():
        part: Extent = 1
        for atom, power in monomial:
            for _ in range(power):
                part = _atom(atom) if is_one(part) else part * _atom(atom)
        part = part if factor == 1 else part * factor
        total = part if total is None else total + part
    return index(0 if total is None else total)


def _atom(atom: dims.Atom) -> te.Expr:
    if atom.kind == "var":
        return size_var(str(atom.args[0]))
    first, *rest = (index(extent(part)) for part in atom.dims())
    for other in rest:
        first = _ATOMS[atom.kind](first, other)
    return first


_ATOMS: dict[str, Callable[[te.Expr, te.Expr], te.Expr]] = {
    "floordiv": lambda a, b: a // b, "max": te.maximum, "min": te.minimum,
}  # fmt: skip


_BACK: dict[str, Callable[[Dim, Dim], Dim]] = {
    "add": dims.add,
    "sub": lambda a, b: dims.add(a, dims.multiply(-1, b)),
    "mul": dims.multiply,
    "floordiv": dims.floordiv,
    "floormod": dims.mod,
    "max": dims.maximum,
    "min": dims.minimum,
}


def dim_of(value: Extent) -> Dim:
    """The dim that ``extent`` made an expression of: computes reckon with dims, whose form is
    normal, where expressions of sizes would only grow. NoLoopsError for another expression.
    """
    match value:
        case int():
            return value
        case Const(value=int(number)):
            return number
        case te.Var(name=name):
            return dims.SymVar(name)
        case Intrinsic(name="neg", args=(inner,)):
            return dims.multiply(-1, dim_of(inner))
        case Binary(op=op, a=a, b=b) if op in _BACK:
            return _BACK[op](dim_of(a), dim_of(b))
    raise NoLoopsError(f"{value} is no size")


def dims_of(shape: Iterable[Extent]) -> tuple[Dim, ...]:
    """A te shape as dims."""
    return tuple(dim_of(size) for size in shape)


def extents(out_type: Any) -> tuple[Extent, ...]:
    """The te shape of a tensor type."""
    return tuple(extent(d) for d in out_type.shape)


def index(value: Extent) -> te.Expr:
    """An extent as an int64 expression."""
    return value if isinstance(value, te.Expr) else te.const(value, "int64")


def same_extent(a: Extent, b: Extent) -> bool:
    """Whether two extents are written alike, so equal at run time."""
    return a is b or (isinstance(a, int) == isinstance(b, int) and str(a) == str(b))


def is_one(value: Extent) -> bool:
    return isinstance(value, int) and value == 1


def product(values: Iterable[Extent]) -> Extent:
    out: Extent = 1
    for v in values:
        out = v if is_one(out) else out * v
    return out
