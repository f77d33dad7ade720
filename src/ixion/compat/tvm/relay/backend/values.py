"""Values as TVM programs hold them, and as Ixion computes with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ixion import analysis
from ixion.base.dtype import to_numpy
from ixion.compat.tvm.nd import NDArray
from ixion.compat.tvm.runtime.container import ADT, tuple_object
from ixion.ir import Constant, Constructor, IRModule, TensorType, TupleType, Type


class ConstructorValue:
    """A value of a data type: the constructor, its tag and the fields."""

    def __init__(self, tag: int, fields: Sequence[Any], constructor: Constructor) -> None:
        self.tag = tag
        self.fields = tuple(fields)
        self.constructor = constructor

    def __repr__(self) -> str:
        # Fields may nest as deep as a list is long.
        return f"{self.constructor.name_hint} with {len(self.fields)} field(s)"


class RefValue:
    """A mutable cell."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _children(value: Any) -> Sequence[Any] | None:
    """What a foreign or own value is made of; None for a leaf."""
    if isinstance(value, (tuple, list)):
        return value
    if isinstance(value, (ConstructorValue, analysis.ConstructorValue)):
        return value.fields
    return (value.value,) if isinstance(value, (RefValue, analysis.RefValue)) else None


def _mapped(root: Any, make: Callable[[Any, list[Any] | None], Any]) -> Any:
    """A value made anew from its leaves up; lists may be as deep as they like."""
    pending: list[tuple[Any, bool]] = [(root, False)]
    done: list[Any] = []
    while pending:
        value, ready = pending.pop()
        children = _children(value)
        if children is None:
            done.append(make(value, None))
        elif not ready:
            pending.append((value, True))
            pending.extend((child, False) for child in reversed(children))
        else:
            start = len(done) - len(children)
            parts = done[start:]
            del done[start:]
            done.append(make(value, parts))
    return done[0]


def to_own(value: Any, kind: Type | None, module: IRModule) -> Any:
    """A foreign argument as a value of Ixion.

    ``kind`` is the parameter's type where one is declared: plain Python numbers take its dtype.
    """

    def make(item: Any, parts: list[Any] | None) -> Any:
        if isinstance(item, ConstructorValue):
            return analysis.ConstructorValue(item.constructor, tuple(parts or ()))
        if isinstance(item, RefValue):
            return analysis.RefValue((parts or [None])[0])
        if isinstance(item, ADT) and item.tag:
            return analysis.ConstructorValue(module.get_constructor(item.tag), tuple(parts or ()))
        return _leaf(item) if parts is None else tuple(parts)

    return _typed(_mapped(value, make), kind)


def _leaf(item: Any) -> Any:
    if isinstance(item, Constant):
        item = item.data
    return np.asarray(item) if isinstance(item, (np.ndarray, np.generic)) else item


def _typed(value: Any, kind: Type | None) -> Any:
    """Python numbers as arrays: of the declared dtype, else int32, float32 or bool."""
    if isinstance(value, tuple):
        fields = kind.fields if isinstance(kind, TupleType) else (None,) * len(value)
        if len(fields) != len(value):
            return value
        return tuple(_typed(item, field) for item, field in zip(value, fields, strict=True))
    if not isinstance(value, (bool, int, float)):
        return value
    usual = {bool: "bool", int: "int32", float: "float32"}[type(value)]
    dtype = kind.dtype if isinstance(kind, TensorType) else usual
    if np.can_cast(to_numpy(usual), to_numpy(dtype), "same_kind"):
        return np.asarray(value, to_numpy(dtype))
    return np.asarray(value, to_numpy(usual))


def to_foreign(value: Any, constructors: Callable[[int, Sequence[Any], Constructor], Any]) -> Any:
    """A value of Ixion as TVM programs expect it.

    ``constructors`` makes the value of a data type from tag, fields and constructor.
    """

    def make(item: Any, parts: list[Any] | None) -> Any:
        if isinstance(item, analysis.ConstructorValue):
            return constructors(item.constructor.tag, parts or (), item.constructor)
        if isinstance(item, analysis.RefValue):
            return RefValue((parts or [None])[0])
        if parts is not None:
            return tuple_object(parts)
        return np.asarray(item).view(NDArray) if isinstance(item, np.ndarray) else item

    return _mapped(value, make)


def as_adt(tag: int, fields: Sequence[Any], constructor: Constructor) -> ADT:
    """The virtual machine's form of a data type's value."""
    return ADT(tag, fields)


__all__ = ["ConstructorValue", "RefValue", "as_adt", "to_foreign", "to_own"]
