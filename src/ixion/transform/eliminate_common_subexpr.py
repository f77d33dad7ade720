"""EliminateCommonSubexpr: equal calls on equal operands become one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from ixion.ir import (
    Attrs,
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    Op,
    Tuple,
    TupleGetItem,
    get_attr_map,
    rewrite,
    structural_hash,
)
from ixion.transform.context import PassContext
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import FunctionPass
from ixion.transform.registry import register_pass

__all__ = ["EliminateCommonSubexpr"]

_STATEFUL = get_attr_map("TOpIsStateful")


@register_pass("EliminateCommonSubexpr")
@dataclass(frozen=True)
class EliminateCommonSubexpr(FunctionPass):
    """Merges calls with the same operator, attributes and operands, and equal tuple fields.

    Operands are the same if identical or equal scalar constants; tuples are compared field by
    field. Calls without operands and stateful operators stay, and whatever ``fskip`` says so of.
    """

    fskip: Callable[[Expr], bool] | None = None
    info = PassInfo(3, "EliminateCommonSubexpr", ["InferType"])

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        return rewrite(func, _Merger(self.fskip).merge)  # type: ignore[return-value]


class _Merger:
    def __init__(self, fskip: Callable[[Expr], bool] | None) -> None:
        self._fskip = fskip
        self._first: dict[Hashable, Expr] = {}

    def merge(self, old: Expr, new: Expr) -> Expr:
        if type(new) is Call:
            op = new.op
            if type(op) is not Op or not new.args or _STATEFUL.get(op, False):
                return new
            key: Hashable = (op, _attrs_key(new.attrs), *map(_operand_key, new.args))
        elif type(new) is TupleGetItem:
            key = (new.tuple_value, new.index)
        else:
            return new
        if self._fskip is not None and self._fskip(new):
            return new
        return self._first.setdefault(key, new)


def _operand_key(expr: Expr) -> Hashable:
    if type(expr) is Constant and not expr.data.ndim:
        return (expr.data.dtype.str, expr.data.tobytes())
    if type(expr) is Tuple:
        return tuple([_field_key(field) for field in expr.fields])
    return expr


def _field_key(expr: Expr) -> Hashable:
    if type(expr) is Constant and not expr.data.ndim:
        return (expr.data.dtype.str, expr.data.tobytes())
    return expr


def _attrs_key(attrs: Attrs | None) -> Hashable:
    if attrs is None:
        return None
    key = (type(attrs), type(attrs)._children(attrs))
    try:
        hash(key)
    except TypeError:
        return (type(attrs), structural_hash(attrs))
    return key
