"""Grammar of ``match`` and its patterns."""

from __future__ import annotations

from ixion.base.errors import nearest
from ixion.ir.adt import (
    Clause,
    Constructor,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
)
from ixion.ir.expr import Expr, Var
from ixion.ir.lexer import IDENT, LOCAL
from ixion.ir.parser_cursor import Cursor
from ixion.ir.parser_expr import atom_step, expr_step
from ixion.ir.parser_type import type_step
from ixion.ir.trampoline import Step


def match_step(cursor: Cursor) -> Step[Expr]:
    """``match (data) { pattern => expr, ... }``; ``match?`` need not cover every case."""
    start = cursor.position
    complete = cursor.expect(cursor.kind) == "match"
    data = yield atom_step(cursor)
    cursor.expect("{")
    clauses = []
    while not cursor.accept("}"):
        clauses.append((yield _clause(cursor)))
        if cursor.kind != "}":
            cursor.expect(",")
    return Match(data, tuple(clauses), complete, span=cursor.span(start))


def _clause(cursor: Cursor) -> Step[Clause]:
    names, graph = cursor.locals.mark(), cursor.graph.mark()
    pattern = yield pattern_step(cursor)
    cursor.expect("=>")
    value = yield expr_step(cursor)
    cursor.locals.leave(names)
    cursor.graph.leave(graph)
    return Clause(pattern, value)


def pattern_step(cursor: Cursor) -> Step[Pattern]:
    """``_``, ``%name``, ``Ctor(pattern, ...)`` or a tuple of patterns."""
    at = cursor.position
    kind = cursor.kind
    if cursor.accept("_"):
        return PatternWildcard()
    if kind == LOCAL:
        name = cursor.expect(LOCAL)
        annotation = (yield type_step(cursor)) if cursor.accept(":") else None
        variable = Var(name, annotation, span=cursor.span_at(at))
        cursor.locals.bind(name, variable)
        return PatternVar(variable)
    if kind == IDENT:
        constructor = _constructor(cursor)
        fields = (yield _patterns(cursor)) if cursor.kind == "(" else ()
        return PatternConstructor(constructor, fields)
    if kind == "(":
        return PatternTuple((yield _patterns(cursor)))
    cursor.fail(f"expected a pattern, found {cursor.found()}")


def _constructor(cursor: Cursor) -> Constructor:
    at = cursor.position
    name = cursor.expect(IDENT)
    found = cursor.constructors.get(name)
    if found is None:
        best = nearest(name, cursor.constructors)
        hint = f"did you mean `{best}`?" if best else f"write `%{name}` to bind a variable"
        cursor.fail(f"there is no constructor `{name}`", hint, at)
    return found


def _patterns(cursor: Cursor) -> Step[tuple[Pattern, ...]]:
    cursor.expect("(")
    patterns = []
    while not cursor.accept(")"):
        patterns.append((yield pattern_step(cursor)))
        if cursor.kind != ")":
            cursor.expect(",")
    return tuple(patterns)


__all__ = ["match_step", "pattern_step"]
