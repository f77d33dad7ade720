"""Algebraic data types: constructors, patterns, match."""

from __future__ import annotations

from typing import Any, ClassVar

from ixion.base.span import Span
from ixion.ir.expr import Call, Expr, ExprWithOp, Var, as_expr
from ixion.ir.node import Node, field, register_node
from ixion.ir.types import GlobalTypeVar, Type, TypeVar


@register_node("relay.Constructor")
class Constructor(Expr):
    """A constructor of a data type; calling it makes a Call.

    ``tag`` is -1 until a module registers the type.
    """

    __slots__ = ("_tag",)
    _tag: int
    _stored_slots: ClassVar[dict[str, tuple[str, str]]] = {
        **Expr._stored_slots,
        "tag": ("_tag", "int"),
    }

    name_hint: str = field()
    inputs: tuple[Type, ...] = field()
    belong_to: GlobalTypeVar = field(compare=False)
    span: Span | None = field(default=None, compare=False)

    @property
    def tag(self) -> int:
        """The number a module gave it."""
        return getattr(self, "_tag", -1)

    def __call__(self, *args: Any) -> Call:
        return Call(self, args)


@register_node("relay.TypeData")
class TypeData(Type):
    """The definition of a data type."""

    header: GlobalTypeVar = field(binds=True)
    type_vars: tuple[TypeVar, ...] = field(binds=True)
    constructors: tuple[Constructor, ...] = field()
    span: Span | None = field(default=None, compare=False)


class Pattern(Node):
    """Base of match patterns."""

    __slots__ = ()


@register_node("relay.PatternWildcard")
class PatternWildcard(Pattern):
    """Matches anything."""

    span: Span | None = field(default=None, compare=False)


@register_node("relay.PatternVar")
class PatternVar(Pattern):
    """Matches anything and binds it."""

    var: Var = field(binds=True)
    span: Span | None = field(default=None, compare=False)


@register_node("relay.PatternConstructor")
class PatternConstructor(Pattern):
    """Matches what a constructor made."""

    constructor: Constructor = field()
    patterns: tuple[Pattern, ...] = field(default=())
    span: Span | None = field(default=None, compare=False)


@register_node("relay.PatternTuple")
class PatternTuple(Pattern):
    """Matches a tuple."""

    patterns: tuple[Pattern, ...] = field(default=())
    span: Span | None = field(default=None, compare=False)


@register_node("relay.Clause")
class Clause(Node):
    """One case of a match."""

    lhs: Pattern = field()
    rhs: Expr = field(convert=as_expr)


@register_node("relay.Match", graph=True)
class Match(ExprWithOp):
    """A choice by pattern. ``complete`` asks that the clauses cover every value."""

    data: Expr = field(convert=as_expr)
    clauses: tuple[Clause, ...] = field()
    complete: bool = field(default=True)
    span: Span | None = field(default=None, compare=False)


def pattern_vars(pattern: Pattern) -> list[Var]:
    """The variables a pattern binds, left to right."""
    found: list[Var] = []
    pending: list[Pattern] = [pattern]
    while pending:
        part = pending.pop()
        if isinstance(part, PatternVar):
            found.append(part.var)
        elif isinstance(part, (PatternConstructor, PatternTuple)):
            pending.extend(reversed(part.patterns))
    return found


__all__ = [
    "Clause",
    "Constructor",
    "Match",
    "Pattern",
    "PatternConstructor",
    "PatternTuple",
    "PatternVar",
    "PatternWildcard",
    "TypeData",
    "pattern_vars",
]
