"""``tvm.tir.expr``: scalars that are Python numbers with a dtype, and symbolic dimensions."""

from __future__ import annotations

import typing

from ixion.base.dim import Any, SymExpr, SymVar
from ixion.base.dtype import normalize

PrimExpr = SymExpr
Number = typing.Union[int, float]  # noqa: UP007 - kept as a value, isinstance-able by name


class IntImm(int):
    """An integer that knows its dtype."""

    dtype: str

    def __new__(cls, dtype: str, value: int, span: object = None) -> IntImm:
        made = super().__new__(cls, int(value))
        made.dtype = normalize(dtype)
        return made

    @property
    def value(self) -> int:
        """The number."""
        return int(self)


class FloatImm(float):
    """A real number that knows its dtype."""

    dtype: str

    def __new__(cls, dtype: str, value: float, span: object = None) -> FloatImm:
        made = super().__new__(cls, value)
        made.dtype = normalize(dtype)
        return made

    @property
    def value(self) -> float:
        """The number."""
        return float(self)


class StringImm(str):
    """A text."""

    __slots__ = ()

    @property
    def value(self) -> str:
        """The text."""
        return str(self)


def const(value: float, dtype: str | None = None, span: object = None) -> Number:
    """A scalar of a dtype; without one, int32, float32 or bool as the value is."""
    if dtype is None:
        kinds = {bool: "bool", int: "int32"}
        dtype = kinds.get(type(value), "float32")
    if dtype.startswith(("int", "uint", "bool")):
        return IntImm(dtype, int(value))
    return FloatImm(dtype, value)


def Var(name: str, dtype: str = "int32", span: object = None) -> SymExpr:
    """A symbolic integer."""
    return SymVar(name)


SizeVar = Var


__all__ = [
    "Any",
    "FloatImm",
    "IntImm",
    "PrimExpr",
    "SizeVar",
    "StringImm",
    "Var",
    "const",
]
