"""Finds the function that calls an operator.

Ixion's builders have Relay's names and signatures; an operator that has none is called with its
inputs first and its attributes after them, in the order they are declared.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import ixion.op
from ixion.ir import Expr, Tuple, TupleWrapper
from ixion.ir.op import OP_TABLE, Op
from ixion.op.call import call


@functools.cache
def _namespace(space: str) -> ModuleType | None:
    if not space:
        return ixion.op
    found = getattr(ixion.op, space, None)
    if isinstance(found, ModuleType):
        return found
    try:
        return importlib.import_module(f"ixion.op.{space}")
    except ModuleNotFoundError:
        return None


def builder(space: str, name: str) -> Any:
    """The function ``tvm.relay.op.[space.]name``; AttributeError where there is neither it nor an
    op.
    """
    if name.startswith("__"):
        raise AttributeError(name)
    found = getattr(_namespace(space), name, None)
    if callable(found):
        return found
    op = OP_TABLE.get(f"{space}.{name}" if space else name)
    if op is None:
        raise AttributeError(f"tvm.relay.op has no {space + '.' if space else ''}{name}")
    return _generic(op)


def _is_expr(value: Any) -> bool:
    return isinstance(value, (Expr, TupleWrapper))


def _is_exprs(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(map(_is_expr, value))


def _generic(op: Op) -> Callable[..., Any]:
    def build(*args: Any, **attrs: Any) -> Any:
        inputs = []
        rest = list(args)
        while rest and (_is_expr(rest[0]) or _is_exprs(rest[0])):
            first = rest.pop(0)
            inputs.append(Tuple(tuple(first)) if isinstance(first, (list, tuple)) else first)
        names = () if op.attrs_type is None else op.attrs_type._field_map
        made = call(op.name, *inputs, **dict(zip(names, rest, strict=False)), **attrs)
        outputs = op.num_outputs(made.attrs) if callable(op.num_outputs) else op.num_outputs
        return TupleWrapper(made, outputs) if outputs > 1 else made

    build.__name__ = build.__qualname__ = op.name
    return build


__all__ = ["builder"]
