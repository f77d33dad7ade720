"""Unary natural numbers as programs."""

from __future__ import annotations

from ixion.compat.tvm.relay.prelude import Prelude
from ixion.ir import Call, Expr


def make_nat_expr(prelude: Prelude, n: int) -> Expr:
    """The number ``n`` as ``succ`` applied to ``zero``; ValueError for a negative one."""
    if n < 0:
        raise ValueError(f"{n} is not a natural number")
    _, zero, succ = prelude.mod.get_type("nat")
    made: Expr = Call(zero, ())
    for _ in range(n):
        made = Call(succ, (made,))
    return made


__all__ = ["make_nat_expr"]
