"""``tvm.relay.loops``: loops as recursive functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ixion.ir import Expr, Function, If, Let, Tuple, Var, as_expr, var

Cond = Callable[..., Expr]
Body = Callable[..., Sequence[Any]]


def while_loop(cond: Cond, loop_vars: Sequence[Any], loop_bodies: Body) -> Let:
    """A function of the loop's first values that gives the tuple of its last ones.

    ``cond`` and ``loop_bodies`` see the loop's variables, which have the names and types of
    ``loop_vars``; ``loop_bodies`` gives their next values.
    """
    loop = Var("while_loop")
    fresh = [_variable(i, first) for i, first in enumerate(loop_vars)]
    again = loop(*(as_expr(value) for value in loop_bodies(*fresh)))
    body = If(cond(*fresh), again, Tuple(fresh))
    return Let(loop, Function(fresh, body), loop)


def _variable(position: int, first: Any) -> Var:
    if isinstance(first, Var):
        return var(first.name_hint, first.type_annotation, span=first.span)
    return var(f"arg{position}", as_expr(first).checked_type)


__all__ = ["while_loop"]
