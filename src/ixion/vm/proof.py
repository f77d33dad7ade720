"""What is known of the sizes a function is called with, and what has to be checked when it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ixion.base import dim as dims
from ixion.base.dim import Dim, SymVar
from ixion.ir import TensorType, TupleType, Type
from ixion.runtime.value_kind import UNKNOWN, TensorKind
from ixion.vm.draft import Value
from ixion.vm.naming import own_name

__all__ = ["checks", "proves", "tensor_kind"]


def proves(given: Type, wanted: Type) -> bool:
    """Whether a tensor argument surely has the sizes of a parameter.

    Names of the model's own (``n``) prove nothing: a call may mean another ``n``. What is no tensor
    is not looked at.
    """
    if isinstance(wanted, TupleType) and isinstance(given, TupleType):
        return all(map(proves, given.fields, wanted.fields))
    if not isinstance(wanted, TensorType) or not isinstance(given, TensorType):
        return True
    return all(
        own_name(want) or (isinstance(want, int) and want == have)
        for have, want in zip(given.shape, wanted.shape, strict=True)
    )


def checks(params: Sequence[Value]) -> list[tuple[Value, TensorKind]]:
    """Parameters whose sizes their types tell: numbers, and names that stand more than once."""
    tensors = [(p, p.kind) for p in params if isinstance(p.kind, TensorType)]
    names = Counter(d.name for _, k in tensors for d in k.shape if isinstance(d, SymVar))
    found = []
    for param, kind in tensors:
        says = any(
            isinstance(d, int) or (isinstance(d, SymVar) and names[d.name] > 1)
            for d in kind.shape
        )
        if says:
            found.append((param, tensor_kind(kind)))
    return found


def tensor_kind(kind: TensorType) -> TensorKind:
    """A type for a check at run time: numbers and the model's names, ``?`` for other sizes."""
    return TensorKind(tuple(map(_size, kind.shape)), kind.dtype)


def _size(dim: Dim) -> int | str:
    if isinstance(dim, int):
        return dim
    return UNKNOWN if isinstance(dim, dims.Any) or own_name(dim) else str(dim)
