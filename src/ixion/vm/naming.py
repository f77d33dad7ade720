"""Types with a name for every size that is not known.

``Any`` says nothing: not even that the result of ``relu(x)`` is as long as ``x``. So every open
size of a parameter, call or reference gets a name of its own while a function is compiled, and the
operators' type relations carry the names on. An operator whose result still has an unknown size
makes it from data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ixion.base import dim as dims
from ixion.base.dim import Dim, SymExpr, SymVar
from ixion.base.errors import IxionError
from ixion.ir import Call, Op, TensorType, TupleType, Type
from ixion.ir.op import get_attr_map
from ixion.op.define import VALUE_LIMIT, InferArgs, Inferred

__all__ = ["Found", "Names", "has_unknown", "infer_named", "is_tensors", "own_name", "plain_names"]

_FINFER = get_attr_map("FInfer")
_STATEFUL = get_attr_map("TOpIsStateful")
_PREFIX = "_"


class Names:
    """Fresh names; ``_3`` is none that a model's own text could have meant."""

    def __init__(self) -> None:
        self._count = 0

    def fresh(self) -> SymVar:
        self._count += 1
        return SymVar(f"{_PREFIX}{self._count}")

    def named(self, kind: Type) -> Type:
        """The type with a fresh name for each unknown size of its tensors."""
        if isinstance(kind, TensorType):
            if not has_unknown(kind):
                return kind
            shape = [self.fresh() if isinstance(d, dims.Any) else d for d in kind.shape]
            return TensorType(shape, kind.dtype)
        if isinstance(kind, TupleType) and has_unknown(kind):
            return TupleType([self.named(field) for field in kind.fields])
        return kind


def own_name(dim: Dim) -> bool:
    """Whether a size is a name that ``Names`` made."""
    return isinstance(dim, SymVar) and dim.name.startswith(_PREFIX)


def has_unknown(kind: Type) -> bool:
    """Whether a size of a tensor, or of a tensor in a tuple, is ``Any``."""
    if isinstance(kind, TensorType):
        return any(isinstance(d, dims.Any) for d in kind.shape)
    return isinstance(kind, TupleType) and any(map(has_unknown, kind.fields))


def is_tensors(kind: Type) -> bool:
    """A tensor or a tuple of tensors: what an operator of a segment may give."""
    if isinstance(kind, TupleType):
        return all(isinstance(field, TensorType) for field in kind.fields)
    return isinstance(kind, TensorType)


@dataclass(frozen=True)
class Found:
    """An operator call's type by names; the value of a small integer result where it is known.

    ``by_value``: the type follows from the value of an argument, not from sizes alone.
    """

    kind: Type
    value: Any = None
    by_value: bool = False


def infer_named(call: Call, kinds: Sequence[Type], values: Sequence[Any]) -> Found | None:
    """The type of an operator call for named argument types, None where data decides a size.

    ``values``: symbolic values of arguments, None where unknown.
    """
    op = call.op
    infer = _FINFER.get(op)
    if infer is None or _STATEFUL.get(op, False):
        return None
    nothing = (None,) * len(kinds)
    found = _attempt(call, kinds, nothing)
    by_value = found is None
    if (by_value or (found is not None and found.value is None and _small(found.type))) and any(
        value is not None for value in values
    ):
        found = _attempt(call, kinds, values) or found
    return None if found is None else Found(found.type, found.value, by_value)


def _attempt(call: Call, kinds: Sequence[Type], values: Sequence[Any]) -> Inferred | None:
    assert isinstance(call.op, Op)
    try:
        found = _FINFER[call.op](InferArgs(call.op.name, tuple(kinds), call.attrs, tuple(values)))
    except IxionError:  # sizes that contradict each other show when it runs
        return None
    found = Inferred(found) if isinstance(found, Type) else found
    if found is None or has_unknown(found.type) or not is_tensors(found.type):
        return None
    return found


def _small(kind: Type) -> bool:
    """Whether a tensor may be a shape, whose value is worth following."""
    if isinstance(kind, TupleType):
        return all(map(_small, kind.fields))
    if not isinstance(kind, TensorType) or not kind.dtype.startswith(("int", "uint", "bool")):
        return False
    size = dims.prod(kind.shape)
    return isinstance(size, int) and size <= VALUE_LIMIT


def constant_value(data: np.ndarray[Any, Any]) -> Any:
    """The value of a constant, if it may be a shape."""
    return data if data.dtype.kind in "iub" and data.size <= VALUE_LIMIT else None


def plain_names(kinds: Sequence[TensorType]) -> tuple[list[TensorType], Mapping[str, Dim]]:
    """Tensor types as the parameters of a function of their own, and what names became.

    A name that is a size stays one: a model's keeps it, others are called ``s0, s1, ...`` in
    order, so that equal functions are equal. An expression over such names stays, to be checked;
    any other gets a name too, the same where it is the same, for a caller cannot solve it.
    """
    sizes = dict.fromkeys(d for k in kinds for d in k.shape if isinstance(d, SymExpr))
    bare = {d.name: d for d in sizes if isinstance(d, SymVar)}
    numbers = _Numbers(set(bare))
    renamed: dict[str, Dim] = {
        name: numbers.next() if own_name(d) else d for name, d in bare.items()
    }
    mapping = {
        d: dims.substitute(d, renamed) if dims.free_vars(d) <= bare.keys() else numbers.next()
        for d in sizes
    }
    found = [
        TensorType([mapping[d] if isinstance(d, SymExpr) else d for d in k.shape], k.dtype)
        for k in kinds
    ]
    return found, renamed


class _Numbers:
    """The names ``s0, s1, ...`` that a model does not use itself."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._count = 0

    def next(self) -> SymVar:
        while f"s{self._count}" in self._taken:
            self._count += 1
        self._count += 1
        return SymVar(f"s{self._count - 1}")
