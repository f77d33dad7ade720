"""Constants from number tokens."""

from __future__ import annotations

import numpy as np

from ixion.ir.expr import Constant
from ixion.ir.lexer import parse_float, parse_int
from ixion.ir.parser_cursor import Cursor

_INT_WIDTHS = (16, 32, 64)
_FLOAT_WIDTHS = (16, 32, 64)


def int_constant(cursor: Cursor) -> Constant:
    """The integer token just taken as a scalar; 32 bits where it has no width and fits, else 64."""
    at = cursor.position - 1
    value, width = parse_int(cursor.texts[at])
    if width is None:
        width = 32 if -(2**31) <= value < 2**31 else 64
    if width not in _INT_WIDTHS:
        cursor.fail(f"integer literals have 16, 32 or 64 bits, not {width}", at=at)
    if not -(2 ** (width - 1)) <= value < 2 ** (width - 1):
        cursor.complain(f"{value} does not fit in int{width}", at=at)
        value = 0
    return Constant(np.array(value, dtype=f"int{width}"), span=cursor.span(at))


def float_constant(cursor: Cursor) -> Constant:
    """The float token just taken as a scalar of its width."""
    at = cursor.position - 1
    value, width = parse_float(cursor.texts[at])
    if width not in _FLOAT_WIDTHS:
        cursor.fail(f"float literals have 16, 32 or 64 bits, not {width}", at=at)
    # In double precision, as Relay does: 65505f16 is out of range although it would round to 65504.
    written_inf = "inff" in cursor.texts[at]
    if not written_inf and abs(value) > float(np.finfo(f"float{width}").max):
        cursor.complain(f"{cursor.texts[at]} does not fit in float{width}", at=at)
        value = 0.0
    return Constant(np.array(value, dtype=f"float{width}"), span=cursor.span(at))


def bool_constant(cursor: Cursor, value: bool) -> Constant:
    """The bool token just taken as a scalar."""
    return Constant(np.array(value), span=cursor.span(cursor.position - 1))


__all__ = ["bool_constant", "float_constant", "int_constant"]
