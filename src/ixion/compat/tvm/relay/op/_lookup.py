"""Finds the function that calls an operator.

Ixion's builders have Relay's names and signatures; an operator that has none is called with its inputs first and its
attributes after them, in the order they are declared.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import ixion.op
from ixion.ir import Call, Expr
from ixion.ir.op import OP_TABLE, Op


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
    """The function ``tvm.relay.op.[space.]name``; AttributeError where there is neither it nor an op."""
    if name.startswith("__"):
        raise AttributeError(name)
    found = getattr(_namespace(space), name, None)
    if callable(found):
        return found
    op = OP_TABLE.get(f"{space}.{name}" if space else name)
    if op is None:
        raise AttributeError(f"tvm.relay.op has no {space + '.' if space else ''}{name}")
    return _generic(op)


def _generic(op: Op) -> Callable[..., Call]:
    def build(*args: Any, **attrs: Any) -> Call:
        inputs = []
        rest = list(args)
        while rest and isinstance(rest[0], Expr):
            inputs.append(rest.pop(0))
        names = () if op.attrs_type is None else op.attrs_type._field_map
        return ixion.op.call(op.name, *inputs, **dict(zip(names, rest, strict=False)), **attrs)

    build.__name__ = build.__qualname__ = op.name
    return build


__all__ = ["builder"]
