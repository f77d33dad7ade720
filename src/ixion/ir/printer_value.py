"""Text of scalars and attribute values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ixion.base.dim import Any as AnyDim
from ixion.base.dim import SymExpr
from ixion.base.dtype import from_numpy
from ixion.ir.attrs import Attrs
from ixion.ir.expr import Constant, GlobalVar
from ixion.ir.lexer import KEYWORDS
from ixion.ir.node import Node
from ixion.ir.printer_meta import MetaTable

_INT_SUFFIX = {"int16": "i16", "int32": "", "int64": "i64"}
_FLOAT_SUFFIX = {"float16": "f16", "float32": "f", "float64": "f64"}
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_/]*(?:\.[A-Za-z_][A-Za-z0-9_/]*)*")
_SYMBOL = re.compile(r"[A-Za-z_]\w*")


def float_digits(value: float, short: str) -> str:
    """Decimal digits that read back as ``value``: six where they suffice, else ``short``."""
    if not math.isfinite(value):
        return str(value)
    six = f"{value:g}"
    return six if float(six) == value else short


def scalar_text(constant: Constant) -> str | None:
    """A literal for a scalar constant, or None where it must go to the metadata.

    Only int16/32/64, float16/32/64 and bool have literals; a NaN has none.
    """
    data = constant.data
    if data.shape != ():
        return None
    dtype = from_numpy(data.dtype)
    if dtype == "bool":
        return str(bool(data))
    if dtype in _INT_SUFFIX:
        return f"{int(data)}{_INT_SUFFIX[dtype]}"
    suffix = _FLOAT_SUFFIX.get(dtype)
    if suffix is None or np.isnan(data):
        return None
    value = float(data)
    if math.isinf(value):
        return f"{value}{suffix}"
    six = f"{value:g}"
    exact = bool(np.asarray(six, dtype=data.dtype) == data)
    return f"{six if exact else str(data[()])}{suffix}"


def is_key(name: str) -> bool:
    """Reads as a dotted identifier, so it needs no quotes as an attribute name."""
    return _KEY.fullmatch(name) is not None and KEYWORDS.isdisjoint(name.split("."))


class ValuePrinter:
    """Prints attribute values; what has no literal goes to ``meta``.

    Without ``show_meta`` nested attributes, maps, global variables and symbolic sizes are shown in
    place, for reading only.
    """

    def __init__(self, meta: MetaTable, show_meta: bool) -> None:
        self.meta = meta
        self.show_meta = show_meta

    def dim(self, value: Any) -> str:
        """A dimension of a shape."""
        if type(value) is int:
            return str(value)
        return self.value(value)

    def value(self, value: Any) -> str:
        """Any attribute value."""
        if value is None or isinstance(value, bool):
            return str(value)
        if isinstance(value, str):
            return self._string(value)
        if isinstance(value, (int, np.integer)):
            return str(int(value))
        if isinstance(value, (float, np.floating)):
            return self._float(float(value))
        if isinstance(value, (tuple, list)):
            return f"[{', '.join(map(self.value, value))}]"
        return self._other(value)

    def _other(self, value: Any) -> str:
        if isinstance(value, AnyDim):
            return "?"
        if isinstance(value, SymExpr):
            if not self.show_meta:
                return str(value)
            key = "tir.SizeVar" if _SYMBOL.fullmatch(str(value)) else "tir.PrimExpr"
            return self.meta.reference(key, value)
        if not self.show_meta:
            if isinstance(value, Attrs):
                return f"{{{', '.join(self.generic(value, False))}}}"
            if isinstance(value, Mapping):
                items = (f"{self.value(k)}={self.value(v)}" for k, v in value.items())
                return f"{{{', '.join(items)}}}"
            if isinstance(value, GlobalVar):
                return f"'{value.name_hint}'"
        if isinstance(value, Mapping) and not isinstance(value, Node):
            return self.meta.reference("Map", value)
        return self.meta.reference(getattr(value, "type_key", type(value).__name__), value)

    def _string(self, value: str) -> str:
        if '"' in value or "\n" in value:
            return self.meta.reference("runtime.String", value)
        return f'"{value}"'

    def _float(self, value: float) -> str:
        digits = float_digits(value, repr(value))
        return f"{digits}f" if digits != "nan" else self.meta.reference("FloatImm", value)

    def pair(self, key: str, value: Any) -> str:
        """``key=value``."""
        return f"{key if is_key(key) else self._string(key)}={self.value(value)}"

    def generic(self, attrs: Attrs, with_type_key: bool) -> list[str]:
        """``key=value`` for each field that differs from its default, in field order."""
        texts = [self.pair(name, value) for name, value in attrs.non_default_items()]
        if with_type_key:
            texts.append(f'attrs_type_key="{attrs.type_key}"')
        return texts

    def call_attrs(self, attrs: Attrs | None, op: Node) -> list[str]:
        """What a call of ``op`` prints after its arguments.

        Attributes of a kind that the operator does not declare can be read back only as metadata.
        """
        if attrs is None:
            return []
        if op.type_key == "Op":
            if self.show_meta and attrs.type_key != getattr(op, "attrs_type_key", ""):
                return [self.meta.reference(attrs.type_key, attrs)]
            return self.generic(attrs, False)
        return self.generic(attrs, True)


__all__ = ["ValuePrinter", "float_digits", "is_key", "scalar_text"]
