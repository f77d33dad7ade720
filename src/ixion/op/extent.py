"""Dims of types as extents of tensor expressions."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ixion import te
from ixion.base import dim as dims
from ixion.base.errors import IxionError
from ixion.te.expr import Binary, Const, Intrinsic, Size, size
from ixion.te.tensor import Extent

if TYPE_CHECKING:
    from ixion.base.dim import Dim

__all__ = [
    "Extent", "NoLoopsError", "dim_of", "dims_of", "extent", "extents", "index", "same_extent",
    "size_var",
]  # fmt: skip


class NoLoopsError(IxionError, ValueError):
    """A compute that has no loops for these attributes or sizes: the op runs as a host step."""


_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_CALLS = {"max": te.maximum, "min": te.minimum}


def size_var(name: str) -> Size:
    """The one te variable that stands for symbolic dim ``name``."""
    return size(name)


def extent(dim: Dim) -> Extent:
    """A dim as a te extent, one object per expression; raises NoLoopsError for an unknown one."""
    if isinstance(dim, int):
        return dim
    if isinstance(dim, dims.Any):
        raise NoLoopsError("a size that is unknown until run time has no loop extent")
    return _from_text(str(dim))


@lru_cache(maxsize=4096)
def _from_text(text: str) -> te.Expr:
    converted: te.Expr = _convert(ast.parse(text, mode="eval").body)
    return converted


def _convert(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=int(value)):
            return te.const(value, "int64")
        case ast.Name(id=name):
            return size_var(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_convert(operand)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_convert(left), _convert(right))
        case ast.Call(func=ast.Name(id=kind), args=args):
            out = _convert(args[0])
            for one in args[1:]:
                out = _CALLS[kind](out, _convert(one))
            return out
    raise ValueError(f"not a dim: {ast.unparse(node)}")


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
