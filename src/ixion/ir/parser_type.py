"""Grammar of types, shapes and type parameters."""

from __future__ import annotations

import re
from typing import Any, cast

from ixion.base.dim import Any as AnyDim
from ixion.ir.lexer import GLOBAL, IDENT, INT, META, parse_int
from ixion.ir.parser_cursor import Cursor
from ixion.ir.trampoline import Step, run
from ixion.ir.types import (
    FuncType,
    GlobalTypeVar,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeKind,
    TypeVar,
)

_DTYPE = re.compile(
    r"(?:u?int|b?float|complex)\d+(?:_e\d+m\d+\w*)?(?:x\d+)?|bool(?:x\d+)?|float|int|uint|handle"
    r"|e\d+m\d+_float8"
)
_KINDS = {"Type": TypeKind.Type, "Shape": TypeKind.ShapeVar, "BaseType": TypeKind.BaseType}


def parse_type(cursor: Cursor) -> Type | None:
    """Parse one type; None for ``_``, the type that inference is to find."""
    return run(type_step(cursor))


def type_step(cursor: Cursor) -> Step[Type | None]:
    """Generator form of ``parse_type``."""
    start = cursor.position
    kind = cursor.kind
    if kind == IDENT:
        name = cursor.expect(IDENT)
        if name == "Tensor" and cursor.kind == "[":
            return tensor_type(cursor)
        if _DTYPE.fullmatch(name):
            return _tensor(cursor, (), name)
        return (yield _named(cursor, name))  # type: ignore[no-any-return]
    if kind == "(":
        return TupleType((yield type_list(cursor, "(", ")")))
    if cursor.accept("fn"):
        return (yield _function(cursor))  # type: ignore[no-any-return]
    if cursor.accept("_"):
        return None
    if cursor.accept("ref"):
        cursor.expect("(")
        value = yield type_step(cursor)
        cursor.expect(")")
        return RefType(value)
    if kind == META:
        return _meta_type(cursor, start)
    cursor.fail(f"expected a type, found {cursor.found()}", _type_hint(kind))


def _type_hint(kind: str) -> str | None:
    return "`@` and `%` name values; type names stand alone" if kind == GLOBAL else None


def _meta_type(cursor: Cursor, start: int) -> Type:
    node = cursor.meta_node()
    if not isinstance(node, Type):
        cursor.fail("this metadata entry is not a type", at=start)
    return node


def _tensor(cursor: Cursor, shape: tuple[Any, ...], dtype: str) -> Type:
    """A tensor type, shared between equal ones of a text."""
    key = (*shape, dtype)
    try:
        found = cursor.tensor_types.get(key)
    except TypeError:
        return TensorType(shape, dtype)
    if found is None:
        found = cursor.tensor_types[key] = TensorType(shape, dtype)
    return found


def tensor_type(cursor: Cursor) -> Type:
    """What follows ``Tensor``: ``[(dim, ...), dtype]``."""
    cursor.expect("[")
    shape = parse_shape(cursor)
    cursor.expect(",")
    at = cursor.position
    dtype = cursor.expect(IDENT)
    if not _DTYPE.fullmatch(dtype):
        cursor.fail(f"`{dtype}` is not an element type", at=at)
    cursor.expect("]")
    return _tensor(cursor, shape, dtype)


def parse_shape(cursor: Cursor) -> tuple[Any, ...]:
    """``(dim, ...)``: integers, ``?`` for an unknown extent, or meta references."""
    cursor.expect("(")
    dims: list[Any] = []
    while not cursor.accept(")"):
        if cursor.accept("?"):
            dims.append(AnyDim())
        elif cursor.kind == META:
            dims.append(cursor.meta_node())
        else:
            dims.append(parse_int(cursor.expect(INT))[0])
        if cursor.kind != ")":
            cursor.expect(",")
    return tuple(dims)


def type_list(cursor: Cursor, left: str, right: str) -> Step[tuple[Type | None, ...]]:
    """Comma separated types between two brackets; a comma may follow the last."""
    cursor.expect(left)
    types = []
    while not cursor.accept(right):
        types.append((yield type_step(cursor)))
        if cursor.kind != right:
            cursor.expect(",")
    return tuple(types)


def _named(cursor: Cursor, name: str) -> Step[Type]:
    head = cursor.type_name(name)
    args: tuple[Type, ...] = ()
    if cursor.kind == "[":
        args = yield type_list(cursor, "[", "]")
    if args or isinstance(head, GlobalTypeVar):
        return TypeCall(head, args)
    return head


def type_params(cursor: Cursor) -> tuple[TypeVar, ...]:
    """``[A, B: Shape]`` if it is next, bound in the current type scope."""
    params = []
    if cursor.accept("["):
        while not cursor.accept("]"):
            name = cursor.expect(IDENT)
            kind = TypeKind.Type
            if cursor.accept(":"):
                at = cursor.position
                word = cursor.expect(IDENT)
                if word not in _KINDS:
                    cursor.fail(f"unknown kind `{word}`", f"one of {', '.join(_KINDS)}", at)
                kind = _KINDS[word]
            params.append(TypeVar(name, kind))
            cursor.type_vars.bind(name, params[-1])
            if cursor.kind != "]":
                cursor.expect(",")
    return tuple(params)


def _function(cursor: Cursor) -> Step[Type]:
    mark = cursor.type_vars.mark()
    params = type_params(cursor)
    args = cast("tuple[Type, ...]", (yield type_list(cursor, "(", ")")))
    cursor.expect("->")
    result = yield type_step(cursor)
    cursor.type_vars.leave(mark)
    return FuncType(args, result, params, ())


__all__ = ["parse_shape", "parse_type", "tensor_type", "type_list", "type_params", "type_step"]
