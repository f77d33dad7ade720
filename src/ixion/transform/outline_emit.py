"""Values as expressions of a region, and calls made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ixion.ir import Call, Expr, Function, GlobalVar, Tuple, TupleType
from ixion.op import control
from ixion.transform.control_values import Held, Known, LeftAlone, Region, Value, flat, held, like

__all__ = ["applied", "expression", "is_opaque", "opaque"]


def expression(value: Value, region: Region) -> Expr:
    """A value as an expression of a region."""
    leaves = flat(value)
    for leaf in leaves:
        if not isinstance(leaf, Held):
            raise LeftAlone("a function is the value of an expression", leaf.func)
    return _packed(like(value, [region.use(leaf) for leaf in leaves]))


def _packed(value: Any) -> Expr:
    """Nested Python tuples of expressions as tuple expressions."""
    done: dict[int, Expr] = {}
    stack = [value]
    while stack:
        top = stack[-1]
        inner = [p for p in top if isinstance(p, tuple)] if isinstance(top, tuple) else []
        todo = [p for p in inner if id(p) not in done]
        if todo:
            stack.extend(todo)
            continue
        stack.pop()
        if isinstance(top, tuple):
            done[id(top)] = Tuple([done[id(p)] if isinstance(p, tuple) else p for p in top])
    return done[id(value)] if isinstance(value, tuple) else value


def applied(call: Call, given: Sequence[Value], region: Region) -> Value:
    """An operator's call on values; the call itself where they are what it had."""
    args = tuple(_argument(value, region) for value in given)
    old = [_same_tuple(a, b) for a, b in zip(args, call.args, strict=True)]
    if all(old):
        made = call
    else:
        made = Call(call.op, args, call.attrs, span=call.span)
    if isinstance(call.checked_type_or_none, TupleType) or control.is_control(call):
        return held(made, region)
    return Held(made, region)


def _same_tuple(new: Expr, old: Expr) -> bool:
    if isinstance(new, Tuple) and isinstance(old, Tuple):
        return len(new.fields) == len(old.fields) and all(
            a is b for a, b in zip(new.fields, old.fields, strict=True)
        )
    return new is old


def _argument(value: Value, region: Region) -> Expr:
    if isinstance(value, Known) and isinstance(value.func, GlobalVar):
        return value.func  # a region of a program that was outlined before
    return expression(value, region)


def opaque(call: Call, func: Function, args: Sequence[Value], region: Region) -> Value:
    made = Call(func, [expression(arg, region) for arg in args], span=call.span)
    return held(made, region)


def is_opaque(func: Function) -> bool:
    attrs = func.attrs
    return attrs is not None and any(attrs.get(key) for key in ("Primitive", "Compiler", "Extern"))
