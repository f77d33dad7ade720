"""Building nested lets and ifs statement by statement.

sb = ScopeBuilder()
y = sb.let("y", x + x)
with sb.if_scope(cond):
    sb.ret(y)
with sb.else_scope():
    sb.ret(x)
body = sb.get()
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from typing import Any

from ixion.ir.expr import Expr, If, Let, Var, as_expr, var
from ixion.ir.types import IncompleteType, Type


class _Scope:
    """The bindings of one block, and what it returns."""

    def __init__(self) -> None:
        self.bindings: list[tuple[Var, Expr]] = []
        self.result: Expr | None = None
        # The condition and first branch of an if that waits for its else.
        self.waiting: tuple[Expr, Expr] | None = None

    def close(self) -> Expr:
        """The block as an expression."""
        if self.waiting is not None:
            raise RuntimeError("an if scope must be followed by an else scope")
        if self.result is None:
            raise RuntimeError("ret is not called in this scope")
        body = self.result
        for variable, value in reversed(self.bindings):
            body = Let(variable, value, body)
        return body


class ScopeBuilder:
    """Collects bindings; ``get`` gives the expression. Misuse raises RuntimeError."""

    def __init__(self) -> None:
        self._scopes = [_Scope()]

    def let(self, variable: Var | str | tuple[Any, ...], value: Any) -> Var:
        """Bind a value to a variable, a name, or a (name, type); the variable is returned."""
        if isinstance(variable, (tuple, list)):
            if len(variable) > 2:
                raise ValueError("expected a variable as (name, type)")
            variable = var(*variable)
        elif isinstance(variable, str):
            variable = var(variable)
        self._scopes[-1].bindings.append((variable, as_expr(value)))
        return variable

    @contextlib.contextmanager
    def if_scope(self, cond: Expr) -> Iterator[None]:
        """The block of the first branch; an ``else_scope`` must follow."""
        branch = yield from self._block()
        outer = self._scopes[-1]
        if outer.result is not None or outer.waiting is not None:
            raise RuntimeError("the scope has returned before this if scope")
        outer.waiting = (cond, branch)

    @contextlib.contextmanager
    def else_scope(self) -> Iterator[None]:
        """The block of the second branch."""
        branch = yield from self._block()
        outer = self._scopes[-1]
        if outer.waiting is None:
            raise RuntimeError("an else scope must follow an if scope")
        (cond, first), outer.waiting = outer.waiting, None
        outer.result = If(cond, first, branch)

    def _block(self) -> Generator[None, None, Any]:
        self._scopes.append(_Scope())
        done = False
        try:
            yield
            done = True
        finally:
            scope = self._scopes.pop()
        return scope.close() if done else None

    def ret(self, value: Any) -> None:
        """What the block returns; once per block."""
        scope = self._scopes[-1]
        if scope.result is not None or scope.waiting is not None:
            raise RuntimeError("ret value is already set in this scope")
        scope.result = as_expr(value)

    def type_of(self, expr: Expr) -> Type | None:
        """A type for use in annotations: a variable's own, or a hole that inference will fill."""
        if isinstance(expr, Var):
            return expr.type_annotation
        hole = IncompleteType()
        self.let(var("unify", hole), expr)
        return hole

    def get(self) -> Expr:
        """The whole expression, outside of all inner blocks."""
        if len(self._scopes) != 1:
            raise RuntimeError("can only call get at the outermost scope")
        return self._scopes[0].close()


__all__ = ["ScopeBuilder"]
