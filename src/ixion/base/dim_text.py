"""Dims as text that reads well and reads back."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import cast

from ixion.base.dim import (
    BUILD,
    Any,
    Dim,
    Monomial,
    SymExpr,
    SymVar,
    Terms,
    add,
    build,
    floordiv,
    mod,
    multiply,
    order,
    plain_text,
    terms_of,
)


def readable(terms: Terms) -> str:
    """Text with ``x - k * (x // k)`` shown as ``x % k``."""
    shown: list[str] = []
    for monomial in list(terms):
        factor = terms.get(monomial, 0)
        split = _as_mod(monomial, factor)
        if split is None:
            continue
        inner, divisor, times = split
        rest = add(build(terms), multiply(-times, mod(inner, divisor)))
        smaller = terms_of(cast("int | SymExpr", rest))
        if len(smaller) < len(terms):
            terms = smaller
            scale = "" if times == 1 else f"{times}*"
            left = str(inner) if str(inner).isidentifier() else f"({inner})"
            shown.append(f"{scale}({left} % {divisor})")
    if not shown:
        return plain_text(sorted(terms.items(), key=order))
    rest_text = plain_text(sorted(terms.items(), key=order)) if terms else ""
    return " + ".join([*shown, rest_text] if rest_text else shown)


def _as_mod(monomial: Monomial, factor: int) -> tuple[Dim, int, int] | None:
    """(x, k, times) for a term ``-times * k * (x // k)``."""
    if factor >= 0 or len(monomial) != 1 or monomial[0][1] != 1:
        return None
    atom = monomial[0][0]
    if atom.kind != "floordiv" or not isinstance(atom.args[1], int) or factor % atom.args[1]:
        return None
    return atom.dims()[0], atom.args[1], -factor // atom.args[1]


_OPERATORS: dict[type[ast.operator], Callable[[Dim, Dim], Dim]] = {
    ast.Add: add,
    ast.Sub: lambda a, b: add(a, multiply(-1, b)),
    ast.Mult: multiply,
    ast.FloorDiv: floordiv,
    ast.Mod: mod,
}


def parse(text: str) -> Dim:
    """The dim a text denotes: names, integers, ``? + - * // %``, ``max(...)`` and ``min(...)``.

    ``parse(str(dim)) == dim``. Raises ValueError for anything else.
    """
    if text.strip() == "?":
        return Any()
    if len(text) > 10_000:
        raise ValueError("a symbolic dimension of more than 10,000 characters")
    try:
        return _from_ast(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"not a dimension: {text!r}") from error


def _from_ast(node: ast.expr) -> Dim:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.Name(id=name):
            return SymVar(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return multiply(-1, _from_ast(operand))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_from_ast(left), _from_ast(right))
        case ast.Call(func=ast.Name(id="max" | "min" as kind), args=args, keywords=[]) if args:
            return BUILD[kind](*(_from_ast(arg) for arg in args))
    raise ValueError(f"not a dimension: {ast.unparse(node)!r}")
