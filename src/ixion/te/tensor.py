"""Tensor expressions: what each element of a tensor is, said without loops.

An op's compute is written as in TVM's tensor expression language::

    out = te.compute(x.shape, lambda *i: te.maximum(x(*i), te.const(0.0, x.dtype)), name="relu")
    k = te.reduce_axis(3)
    s = te.compute((4,), lambda i: te.sum(x(i, k.var), [k]))

``Tensor.body`` is the element's value in terms of ``Tensor.axes``; a placeholder has no body.
Shapes hold Python ints, or int64 expressions for sizes that are known at run time only.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ixion.te.expr import Const, Expr, ExprLike, Number, Read, Reduce, Var, wrap

Extent = int | Expr
_COUNTER = itertools.count()


class Tensor:
    """A placeholder (``body`` is None) or a computed tensor; compared by identity.

    ``shape``: extents per dim; ``dtype``: Relay dtype name; ``axes``: one int64 variable per dim.
    """

    __slots__ = ("axes", "body", "dtype", "name", "shape")

    def __init__(
        self,
        shape: Sequence[Extent],
        dtype: str,
        name: str,
        axes: tuple[Var, ...] = (),
        body: Expr | None = None,
    ) -> None:
        self.shape = tuple(shape)
        self.dtype, self.name, self.axes, self.body = dtype, name, axes, body

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __call__(self, *indices: ExprLike) -> Expr:
        """The element at ``indices``; raises TypeError when their number is not the rank."""
        if len(indices) != len(self.shape):
            raise TypeError(f"te: {self.name} has rank {self.ndim}, got {len(indices)} indices")
        return Read(self, tuple(wrap(i) for i in indices))

    __getitem__ = None

    def __repr__(self) -> str:
        return f"Tensor({self.name}, {self.shape}, {self.dtype})"


@dataclass(frozen=True, eq=False)
class ReduceAxis:
    """A range ``[0, extent)`` to fold over; ``var`` stands for the position."""

    var: Var
    extent: Extent


def const(value: Number, dtype: str) -> Expr:
    return Const(value, dtype)


def placeholder(shape: Sequence[Extent], dtype: str = "float32", name: str = "x") -> Tensor:
    return Tensor(shape, dtype, name)


def compute(shape: Sequence[Extent], fn: Callable[..., Expr], name: str = "t") -> Tensor:
    """A tensor of ``shape`` whose element at (i, j, ...) is ``fn(i, j, ...)``."""
    axes = tuple(Var(f"i{d}") for d in range(len(shape)))
    body = fn(*axes)
    return Tensor(shape, body.dtype, name, axes, body)


def reduce_axis(extent: Extent, name: str = "r") -> ReduceAxis:
    return ReduceAxis(Var(f"{name}{next(_COUNTER) % 1000}"), extent)


def reduce(kind: str, body: Expr, axes: Sequence[ReduceAxis]) -> Expr:
    """``body`` folded by add, mul, min, max, and, or over ``axes``."""
    return Reduce(kind, tuple((a.var, wrap(a.extent)) for a in axes), body)


def sum(body: Expr, axes: Sequence[ReduceAxis]) -> Expr:  # noqa: A001 - the field's name
    return reduce("add", body, axes)


def max(body: Expr, axes: Sequence[ReduceAxis]) -> Expr:  # noqa: A001 - the field's name
    return reduce("max", body, axes)


def min(body: Expr, axes: Sequence[ReduceAxis]) -> Expr:  # noqa: A001 - the field's name
    return reduce("min", body, axes)
