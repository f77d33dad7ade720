"""Making calls of operators from Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from ixion.base.errors import RegistryError
from ixion.ir.expr import Call, Constant, Expr, Tuple
from ixion.ir.op import Op


def call(name: str, *args: Expr, span: Any = None, **attrs: Any) -> Call:
    """A call of operator ``name`` with validated attributes.

    Raises RegistryError for an unknown operator or attributes given to an op that has none, and
    AttributeError (naming the nearest) for an unknown attribute.
    """
    op = Op.get(name)
    made = None
    if op.attrs_type is not None:
        made = op.attrs_type(**attrs)
    elif attrs:
        raise RegistryError(f"{name} takes no attributes", found=", ".join(attrs))
    return Call(op, args, made, span=span)


def unary_builder(name: str) -> Callable[[Expr], Call]:
    """The Relay-style function of one argument that calls ``name``."""

    def build(data: Expr) -> Call:
        return call(name, data)

    return cast("Callable[[Expr], Call]", _named(build, name))


def binary_builder(name: str) -> Callable[[Expr, Expr], Call]:
    """The Relay-style function of two arguments that calls ``name``."""

    def build(lhs: Expr, rhs: Expr) -> Call:
        return call(name, lhs, rhs)

    return cast("Callable[[Expr, Expr], Call]", _named(build, name))


def _named(build: Any, name: str) -> Any:
    build.__name__ = build.__qualname__ = name.rsplit(".", 1)[-1]
    build.__doc__ = f"A call of operator ``{name}``."
    return build


def as_tuple_expr(data: Expr | Sequence[Expr]) -> Expr:
    """A list of expressions as a Tuple; an expression (a tuple already) as it is."""
    return Tuple(tuple(data)) if isinstance(data, (list, tuple)) else data  # type: ignore[return-value]


def known_ints(value: Any) -> Any:
    """A constant expression or numpy array as a list of ints; anything else unchanged.

    Builders use it where Relay accepts an attribute as a number, a list or an expression.
    """
    if isinstance(value, Constant):
        value = value.data
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return value


def per_axis(value: Any, rank: int) -> tuple[Any, ...]:
    """An int as one value per spatial axis; a sequence as a tuple."""
    if isinstance(value, (list, tuple)) or (
        hasattr(value, "__iter__") and not isinstance(value, Expr)
    ):
        return tuple(value)
    return (value,) * rank


def two_sided(padding: Any, rank: int) -> tuple[Any, ...]:
    """Padding of 1, ``rank`` or 2 * ``rank`` values as befores then afters.

    Raises ValueError for any other number.
    """
    pad = per_axis(padding, 1)
    if len(pad) == 1:
        return pad * (2 * rank)
    if len(pad) == rank:
        return pad + pad
    if len(pad) == 2 * rank:
        return pad
    raise ValueError(f"padding takes 1, {rank} or {2 * rank} values, got {len(pad)}")
