"""``tvm.runtime``: values outside programs."""

from __future__ import annotations

from typing import Any

from ixion.base.dtype import bits, normalize
from ixion.compat.tvm import nd
from ixion.compat.tvm import nd as ndarray
from ixion.compat.tvm.nd import Device, NDArray
from ixion.compat.tvm.runtime import container
from ixion.compat.tvm.runtime.module import Module, load_module
from ixion.ir import Node as Object
from ixion.ir import as_value, load_json, save_json


class DataType(str):
    """A dtype name with its parts."""

    __slots__ = ()

    def __new__(cls, name: str) -> DataType:
        return super().__new__(cls, normalize(name))

    @property
    def bits(self) -> int:
        """Bits of one element."""
        return bits(str(self))


String = str


def convert(value: Any) -> Any:
    """A value as nodes hold it: lists become tuples, mappings Maps."""
    return as_value(value)


def const(value: Any, dtype: str = "int32", span: Any = None) -> Any:
    """A scalar constant of the loop level."""
    from ixion.compat.tvm.tir.expr import const as tir_const

    return tir_const(value, dtype)


__all__ = [
    "DataType",
    "Device",
    "Module",
    "NDArray",
    "Object",
    "String",
    "const",
    "container",
    "convert",
    "load_json",
    "load_module",
    "nd",
    "ndarray",
    "save_json",
]
