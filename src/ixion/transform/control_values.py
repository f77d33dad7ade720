"""What OutlineControl computes with: values that lie in regions, functions known by name, tuples.

A *region* is a function under construction. Its parent is the region that will run it; a value of
an ancestor that is used in it becomes a parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ixion.base.dtype import to_numpy
from ixion.ir import (
    Constant,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    IRModule,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    free_vars,
)
from ixion.op.sizes import sizes
from ixion.op.value import as_objects, is_concrete, is_settled
from ixion.transform.infer_type import infer_expr
from ixion.transform.type_inferencer import TypeInferencer

if TYPE_CHECKING:
    from ixion.transform.control_scopes import Activation

__all__ = ["Held", "Known", "LeftAlone", "Region", "Value", "flat", "like", "type_of"]


class LeftAlone(Exception):
    """Why a program's control flow does not become steps: a sentence, and where."""

    def __init__(self, reason: str, where: Expr | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.where = None if where is None else where.span


@dataclass(frozen=True, eq=False)
class Held:
    """A tensor: its expression, and the region it is computed in (constants: in any)."""

    expr: Expr
    region: Region | None


@dataclass(frozen=True, eq=False)
class Known:
    """A function value that is known now, with the activation it was made in."""

    func: Expr
    made_in: Activation | None = None


Value = Any  # Held, Known, or a tuple of values


def flat(value: Value) -> list[Value]:
    """The tensors and functions of nested tuples, in order."""
    found, stack = [], [value]
    while stack:
        top = stack.pop()
        if isinstance(top, tuple):
            stack.extend(reversed(top))
        else:
            found.append(top)
    return found


def like(value: Value, leaves: Iterable[Value]) -> Value:
    """``leaves`` in the nested tuples of ``value``."""
    source = iter(leaves)
    open_: list[tuple[Sequence[Value], list[Value]]] = [((value,), [])]
    while True:
        parts, made = open_[-1]
        if len(made) < len(parts):
            part = parts[len(made)]
            if isinstance(part, tuple):
                open_.append((part, []))
            else:
                made.append(next(source))
            continue
        open_.pop()
        if not open_:
            return made[0]
        open_[-1][1].append(tuple(made))


def constant_bool(value: Value) -> bool | None:
    """A condition that is known now."""
    known = isinstance(value, Held) and isinstance(value.expr, Constant)
    return bool(value.expr.data) if known else None


def constant(value: bool) -> Held:
    """A condition that is known now, as a tensor."""
    return Held(Constant(np.asarray(value)), None)


def held(expr: Expr, region: Region) -> Value:
    """An expression's value: fields one by one where it is a tuple."""
    kind = type_of(expr)
    if not isinstance(kind, TupleType):
        return Held(expr, region)
    return tuple(held(TupleGetItem(expr, i, expr.span), region) for i in range(len(kind.fields)))


def type_of(expr: Expr) -> Type:
    """The type of an expression whose variables and regions have theirs."""
    return infer_expr(expr).checked_type


def tensor_of(expr: Expr, what: str) -> TensorType:
    """The type of a value that lives between steps; LeftAlone where its size depends on data."""
    kind = type_of(expr)
    if not isinstance(kind, TensorType):
        raise LeftAlone(f"{what} is no tensor but {kind}", expr)
    if not all(_is_sized(dim) for dim in kind.shape):
        raise LeftAlone(f"the size of {what} depends on data: {kind}", expr)
    return kind


def _is_sized(dim: object) -> bool:
    from ixion.base import dim as dims

    return not isinstance(dim, dims.Any)


@dataclass(eq=False)
class Region:
    """A function under construction; ``captured`` has its parameter for each value from outside.

    ``rounds``: the region around the loop whose head or body this is.
    """

    parent: Region | None
    rounds: Region | None = None
    captured: dict[Expr, tuple[Var, Held]] = field(default_factory=dict)

    def use(self, value: Held) -> Expr:
        """The expression of a value in this region."""
        if value.region is self or isinstance(value.expr, Constant):
            return value.expr
        if value.expr not in self.captured:
            known = _sizes_in(value.expr)
            if known is not None:
                return known
            kind = tensor_of(value.expr, "a value that a region needs")
            self.captured[value.expr] = (typed_var(f"k{len(self.captured)}", kind), value)
        return self.captured[value.expr][0]

    def needed(self, results: Sequence[Expr]) -> dict[Expr, tuple[Var, Held]]:
        """What of the captured values results depend on."""
        used = set(free_vars(Tuple(tuple(results))))
        return {key: pair for key, pair in self.captured.items() if pair[0] in used}


def typed_var(name: str, kind: Type) -> Var:
    made = Var(name, kind)
    made._set_checked_type(kind)
    return made


def _sizes_in(expr: Expr) -> Expr | None:
    """A small integer tensor whose value follows from sizes, so that types inside may use it."""
    kind = type_of(expr)
    if not isinstance(kind, TensorType) or not kind.dtype.startswith(("int", "uint")):
        return None
    inferencer = TypeInferencer(IRModule())
    inferencer.infer(expr)
    value = inferencer.values.get(expr)
    if value is None or not is_settled(value):
        return None
    array = as_objects(value)
    if is_concrete(array):
        return Constant(array.astype(to_numpy(kind.dtype)))
    return sizes(array, kind.dtype)


class RegionNames:
    """Makes the global functions of closed regions, under names of their own."""

    def __init__(self, prefix: str, taken: Callable[[str], bool]) -> None:
        self.functions: dict[GlobalVar, Function] = {}
        self._prefix = prefix
        self._taken = taken
        self._count = 0

    def close(self, what: str, params: Sequence[Var], results: Sequence[Expr]) -> GlobalVar:
        """A region as a function of ``params`` that gives the tuple of ``results``."""
        kinds = TupleType([type_of(result) for result in results])
        name = self._name(what)
        var = GlobalVar(name, FuncType([type_of(param) for param in params], kinds))
        self.functions[var] = Function(tuple(params), Tuple(tuple(results)), kinds)
        return var

    def _name(self, what: str) -> str:
        while True:
            name = f"{self._prefix}_{what}{self._count}"
            self._count += 1
            if not self._taken(name):
                return name
