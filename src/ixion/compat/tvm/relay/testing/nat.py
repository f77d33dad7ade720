"""Unary natural numbers as programs and as values."""

from __future__ import annotations

from ixion.compat.tvm.relay.backend.values import ConstructorValue
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


def make_nat_value(prelude: Prelude, n: int) -> ConstructorValue:
    """The number ``n`` as a value; ValueError for a negative one."""
    if n < 0:
        raise ValueError(f"{n} is not a natural number")
    _, zero, succ = prelude.mod.get_type("nat")
    made = ConstructorValue(zero.tag, [], zero)
    for _ in range(n):
        made = ConstructorValue(succ.tag, [made], succ)
    return made


def count(prelude: Prelude, n: ConstructorValue) -> int:
    """The number a value stands for; TypeError for a value of another type."""
    _, zero, succ = prelude.mod.get_type("nat")
    found = 0
    while isinstance(n, ConstructorValue) and n.tag == succ.tag:
        found, n = found + 1, n.fields[0]
    if not isinstance(n, ConstructorValue) or n.tag != zero.tag:
        raise TypeError(f"{n} is not a natural number")
    return found


__all__ = ["count", "make_nat_expr", "make_nat_value"]
