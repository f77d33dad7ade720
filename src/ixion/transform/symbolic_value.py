"""Values of small integer tensors during type inference: exporters compute shapes as tensors.

A value is asked for only when a type relation looks at it, so operators that do not care cost
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ixion.ir import Call, Constant, Expr, Tuple, TupleGetItem, TupleType, Type, Var
from ixion.op.define import is_followed

__all__ = ["ArgumentValues", "ValueTable"]


def _trackable(kind: Type | None) -> bool:
    if isinstance(kind, TupleType):
        return all(_trackable(field) for field in kind.fields)
    return is_followed(kind)


class ValueTable:
    """Known values by expression. ``infer`` runs a call's type relation and returns its value."""

    def __init__(self, type_of: Callable[[Expr], Type | None], infer: Callable[[Call], Any]):
        self._type_of = type_of
        self._infer = infer
        self._known: dict[Expr, Any] = {}
        self._bound: dict[Expr, Expr] = {}

    def bind(self, var: Var, value: Expr) -> None:
        """A let variable has its value's value."""
        self._bound[var] = value

    def set(self, expr: Expr, value: Any) -> None:
        self._known[expr] = value

    def get(self, expr: Expr) -> Any:
        """The value of ``expr``, or None. Works through chains of any length."""
        if expr in self._known:
            return self._known[expr]
        stack = [expr]
        while stack:
            top = stack[-1]
            if top in self._known:
                stack.pop()
                continue
            missing = [part for part in self._needs(top) if part not in self._known]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            self.set(top, self._compute(top))
        return self._known[expr]

    def _needs(self, expr: Expr) -> Sequence[Expr]:
        if not _trackable(self._type_of(expr)):
            return ()
        if isinstance(expr, Call):
            return expr.args
        if isinstance(expr, Tuple):
            return expr.fields
        if isinstance(expr, TupleGetItem):
            return (expr.tuple_value,)
        if isinstance(expr, Var) and expr in self._bound:
            return (self._bound[expr],)
        return ()

    def _compute(self, expr: Expr) -> Any:
        if not _trackable(self._type_of(expr)):
            return None
        if isinstance(expr, Constant):
            return expr.data
        if isinstance(expr, Call):
            return self._infer(expr)
        if isinstance(expr, Tuple):
            fields = tuple(self.get(field) for field in expr.fields)
            return None if any(field is None for field in fields) else fields
        if isinstance(expr, TupleGetItem):
            whole = self.get(expr.tuple_value)
            return None if whole is None else whole[expr.index]
        if isinstance(expr, Var) and expr in self._bound:
            return self.get(self._bound[expr])
        return None


class ArgumentValues(Sequence[Any]):
    """The values of a call's arguments, each found when it is looked at."""

    __slots__ = ("_args", "_table")

    def __init__(self, table: ValueTable, args: Sequence[Expr]) -> None:
        self._table = table
        self._args = args

    def __len__(self) -> int:
        return len(self._args)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self._table.get(arg) for arg in self._args[index])
        return self._table.get(self._args[index])

    def __iter__(self) -> Iterator[Any]:
        return (self._table.get(arg) for arg in self._args)
