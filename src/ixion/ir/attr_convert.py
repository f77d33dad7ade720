"""Conversion of attribute values by annotation: ints, floats, tuples, optional values, dims."""

from __future__ import annotations

import ast
import operator
import types
import typing
from collections.abc import Callable
from typing import Any, TypeAlias, Union

from ixion.base.dim import Any as AnyDim
from ixion.base.dim import SymExpr
from ixion.base.dtype import normalize
from ixion.ir.containers import Map, as_value

Converter: TypeAlias = Callable[[Any], Any]


def converter_for(hint: Any) -> Converter:
    """The function that makes a value fit ``hint``, or raises TypeError or ValueError."""
    if hint in _BASIC:
        return _BASIC[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Union or origin is types.UnionType:
        return _union(args)
    if origin is tuple:
        return _tuple(args)
    if origin is typing.Literal:
        return _literal(args)
    if hint is Map or origin in (dict, Map) or hint is dict:
        return Map
    return as_value


def _to_int(value: Any) -> int:
    if type(value) is int:
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool):
        return int(value)
    return operator.index(value)


def _to_float(value: Any) -> float:
    if isinstance(value, str):
        raise TypeError("a text is not a number")
    return float(value)


def _to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) or value not in (0, 1):
        raise TypeError("not a truth value")
    return bool(value)


def _to_str(value: Any) -> str:
    if type(value) is str:
        return value
    if isinstance(value, str):
        return str(value)
    # A dtype may come as numpy's object or Python's class.
    return normalize(value)


def _to_dim(value: Any) -> Any:
    return value if isinstance(value, (AnyDim, SymExpr)) else _to_int(value)


_BASIC: dict[Any, Converter] = {
    int: _to_int,
    float: _to_float,
    bool: _to_bool,
    str: _to_str,
    Any: as_value,
    AnyDim: _to_dim,
    SymExpr: _to_dim,
}
_NONE = type(None)


def _union(args: tuple[Any, ...]) -> Converter:
    members = [arg for arg in args if arg is not _NONE]
    if AnyDim in members or SymExpr in members:
        rest = [arg for arg in members if arg not in (AnyDim, SymExpr, int)]
        tries = [_to_dim, *(converter_for(arg) for arg in rest)]
    else:
        tries = [converter_for(arg) for arg in members]
    optional = _NONE in args
    if len(tries) == 1:
        only = tries[0]
        return (lambda value: None if value is None else only(value)) if optional else only

    def convert(value: Any) -> Any:
        if value is None and optional:
            return None
        exact = [converter_for(arg) for arg in members if arg is type(value)]
        for attempt in (*exact, *tries):
            try:
                return attempt(value)
            except (TypeError, ValueError):
                continue
        raise TypeError(f"{value!r} fits none of the allowed types")

    return convert


def _tuple(args: tuple[Any, ...]) -> Converter:
    if len(args) == 2 and args[1] is Ellipsis:
        item = converter_for(args[0])
        return lambda value: tuple([item(part) for part in _parts(value)])
    items = [converter_for(arg) for arg in args]

    def convert(value: Any) -> tuple[Any, ...]:
        parts = tuple(_parts(value))
        if len(parts) != len(items):
            raise ValueError(f"expected {len(items)} values, found {len(parts)}")
        return tuple([item(part) for item, part in zip(items, parts, strict=True)])

    return convert


def _parts(value: Any) -> Any:
    if isinstance(value, str):
        raise TypeError("a text is not a sequence")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return (value,)
    return value


def _literal(args: tuple[Any, ...]) -> Converter:
    def convert(value: Any) -> Any:
        if value not in args:
            raise ValueError(f"expected one of {', '.join(map(repr, args))}")
        return value

    return convert


def from_text(text: str, hint: str) -> Any:
    """A Python value from the text NNVM and PNNX store for an attribute annotated ``hint``."""
    stripped = text.strip()
    if "str" in hint and "tuple" not in hint:
        return None if stripped == "None" and "None" in hint else text
    if stripped in _CONSTANTS:
        return _CONSTANTS[stripped]
    try:
        return ast.literal_eval(stripped)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        pass
    try:
        return float(stripped)
    except ValueError:
        words = stripped.strip("()[]")
        return tuple(word.strip().strip("'\"") for word in words.split(",") if word.strip())


_CONSTANTS = {"None": None, "True": True, "true": True, "False": False, "false": False, "": ()}
