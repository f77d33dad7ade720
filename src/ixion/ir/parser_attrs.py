"""Grammar of attributes: ``key=value`` lists of calls and functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from ixion.base.errors import DiagnosticError, IxionError
from ixion.ir.attrs import Attrs
from ixion.ir.expr import Expr
from ixion.ir.lexer import FLOAT, IDENT, INT, META, STRING, parse_float, parse_int
from ixion.ir.node import make_node
from ixion.ir.parser_cursor import Cursor
from ixion.ir.trampoline import Step

_MAX_DEPTH = 64
_WORDS: dict[str, Any] = {"None": None, "nullptr": None}


class AttributeDiagnosticError(DiagnosticError, AttributeError):
    """A call attribute that the operator does not have, or whose value it does not accept."""


def attrs_ahead(cursor: Cursor) -> bool:
    """True where the next tokens read ``name =`` or ``dotted.name =``."""
    distance = 0
    while cursor.ahead(distance) == IDENT:
        following = cursor.ahead(distance + 1)
        if following == "=":
            return True
        if following != ".":
            return False
        distance += 2
    return cursor.ahead(0) == STRING and cursor.ahead(1) == "="


def dotted_name(cursor: Cursor) -> str:
    """``a.b.c`` as one string."""
    parts = [cursor.expect(IDENT)]
    while cursor.kind == "." and cursor.ahead(1) == IDENT:
        cursor.position += 1
        parts.append(cursor.expect(IDENT))
    return ".".join(parts) if len(parts) > 1 else parts[0]


def attrs_step(cursor: Cursor, until: str) -> Step[dict[str, Any]]:
    """``key=value, ...`` up to the bracket ``until``, which is not taken."""
    found: dict[str, Any] = {}
    while cursor.kind != until:
        at = cursor.position
        key = cursor.expect(STRING) if cursor.kind == STRING else dotted_name(cursor)
        cursor.expect("=")
        if key in found:
            cursor.fail(f"attribute `{key}` is given twice", at=at)
        found[key] = yield _value(cursor, 0)
        if cursor.kind != until:
            cursor.expect(",")
    return found


def _value(cursor: Cursor, depth: int) -> Step[Any]:
    kind = cursor.kind
    text = cursor.texts[cursor.position]
    if kind == INT:
        cursor.position += 1
        return parse_int(text)[0]
    if kind == FLOAT:
        cursor.position += 1
        return parse_float(text)[0]
    if kind in ("True", "False"):
        cursor.position += 1
        return kind == "True"
    if kind == STRING:
        cursor.position += 1
        return text
    if kind == META:
        return cursor.meta_node()
    if kind == "[":
        return (yield _sequence(cursor, "]", depth))
    if kind == "(":
        values = yield _sequence(cursor, ")", depth)
        lone = len(values) == 1 and cursor.kinds[cursor.position - 2] != ","
        return values[0] if lone else values
    if kind == IDENT and text in _WORDS:
        cursor.position += 1
        return _WORDS[text]
    from ixion.ir.parser_expr import atom_step

    return (yield atom_step(cursor))


def _sequence(cursor: Cursor, right: str, depth: int) -> Step[tuple[Any, ...]]:
    if depth == _MAX_DEPTH:
        cursor.fail(f"attribute values are nested at most {_MAX_DEPTH} deep")
    cursor.position += 1
    values: list[Any] = []
    while not cursor.accept(right):
        values.append((yield _value(cursor, depth + 1)))
        if cursor.kind != right:
            cursor.expect(",")
    return tuple(values)


def call_attrs(cursor: Cursor, op: Expr, raw: dict[str, Any], at: int) -> Attrs:
    """The attributes node of a call of ``op`` from what was written (from token ``at`` on).

    A call of an operator uses the operator's own kind of attributes, any other call the kind named
    by ``attrs_type_key``.
    """
    key = op_attrs_key(op) or raw.pop("attrs_type_key", None)
    if not key:
        cursor.fail(
            "cannot tell which kind of attributes this call has",
            'name it, as in attrs_type_key="relay.attrs.Conv2DAttrs"',
            at,
        )
    raw.pop("attrs_type_key", None)
    return build_attrs(cursor, str(key), raw, at)


def build_attrs(cursor: Cursor, key: str, raw: Mapping[str, Any], at: int) -> Attrs:
    """An attributes node of kind ``key``, with every mistake reported at token ``at``."""
    try:
        return make_node(key, **raw)  # type: ignore[return-value]
    except AttributeError as error:
        _refuse(cursor, error, at, AttributeDiagnosticError)
    except (IxionError, TypeError, ValueError) as error:
        _refuse(cursor, error, at, DiagnosticError)


def _refuse(cursor: Cursor, error: Exception, at: int, kind: type[DiagnosticError]) -> NoReturn:
    try:
        cursor.fail(str(error), at=at)
    except DiagnosticError as rendered:
        raise kind(rendered.message, diagnostics=rendered.diagnostics) from error


def op_attrs_key(op: Expr) -> str:
    """The type key of an operator's attributes, empty for other callees."""
    return getattr(op, "attrs_type_key", None) or "" if op.type_key == "Op" else ""


__all__ = [
    "AttributeDiagnosticError",
    "attrs_ahead",
    "attrs_step",
    "build_attrs",
    "call_attrs",
    "dotted_name",
    "op_attrs_key",
]
