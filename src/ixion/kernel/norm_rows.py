"""Which row of a normalised tensor each row of an output is made of, through moves between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ixion.kernel.access import Access, Operand, depends, slope_of
from ixion.kernel.loops import loads_of
from ixion.kernel.sizes import as_extent, top
from ixion.te.expr import Const, Expr, Var
from ixion.te.stmt import Buffer
from ixion.te.tensor import Extent, Tensor

Index = tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class Norm:
    """What is normalised along its last axis, and how; a parameter that is None has no effect."""

    source: Tensor
    gamma: Tensor | None
    beta: Tensor | None
    epsilon: float
    result: Tensor


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of an output along ``axis``, each made of one row of the norm's result.

    ``others`` are variables for the other dims; the row's indices are ``lead``, in terms of them.
    ``strides`` says how far apart neighbours of a row lie in each operand, were it plain.
    """

    axis: int
    others: tuple[Var, ...]
    lead: Index
    strides: dict[Tensor, list[Extent | None]]


def rows_of(norm: Norm, out: Tensor, inputs: Sequence[Tensor]) -> Rows | None:
    """The rows of ``out`` along its last or second axis; None where they are not whole rows."""
    for axis in dict.fromkeys((out.ndim - 1, min(1, out.ndim - 1))):
        found = _along(norm, out, inputs, axis)
        if found is not None:
            return found
    return None


def _along(norm: Norm, out: Tensor, inputs: Sequence[Tensor], axis: int) -> Rows | None:
    index = [Var(f"r{d}") for d in range(out.ndim)]
    column = index[axis]
    buffers = {t: Buffer(t.name, t.dtype) for t in inputs}
    seen: list[Index] = []

    def note(at: Index) -> Expr:
        seen.append(at)
        return Const(0, "float32")

    access = Access({t: Operand(b) for t, b in buffers.items()}, {norm.result: note})
    ranges = {v: (0, top(as_extent(n))) for v, n in zip(index, out.shape, strict=True)}
    value = access.element(out, index, ranges)
    if len(seen) != 1 or seen[0][-1] is not column or any(depends(e, column) for e in seen[0][:-1]):
        return None
    loads = loads_of(value) + loads_of(access.element(norm.source, seen[0], ranges))
    strides: dict[Tensor, list[Extent | None]] = {}
    for tensor, buffer in buffers.items():
        strides[tensor] = [slope_of(x.index, column, ranges) for x in loads if x.buffer is buffer]
    others = tuple(v for v in index if v is not column)
    return Rows(axis, others, seen[0][:-1], strides)
