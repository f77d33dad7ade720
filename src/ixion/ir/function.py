"""Functions, and the attributes that functions carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from ixion.base.span import Span
from ixion.ir.attrs import Attrs, DictAttrs, as_dict_attrs
from ixion.ir.expr import (
    Call,
    Constant,
    Expr,
    ExprWithOp,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
    as_expr,
)
from ixion.ir.node import field, register_node
from ixion.ir.types import Type, TypeVar


class BaseFunc(Expr):
    """Base of everything a module may hold under a global name."""

    __slots__ = ()
    attrs: ClassVar[Any]

    def get_attr(self, name: str, default: Any = None) -> Any:
        """The value of an attribute, or the default."""
        return default if self.attrs is None else self.attrs.get(name, default)

    def with_attr(self, name: str | Mapping[str, Any], value: Any = None) -> Self:
        """A copy with one attribute set, or several given as a mapping."""
        return self.with_attrs(name if isinstance(name, Mapping) else {name: value})

    def with_attrs(self, values: Mapping[str, Any] | DictAttrs) -> Self:
        """A copy with attributes added or replaced."""
        old = {} if self.attrs is None else dict(self.attrs.items())
        return self.copy(attrs=DictAttrs({**old, **dict(values.items())}))

    def without_attr(self, name: str) -> Self:
        """A copy that lacks an attribute; the function itself where it has none of that name."""
        if self.attrs is None or name not in self.attrs:
            return self
        return self.copy(attrs=as_dict_attrs(self.attrs.entries.without(name)))


@register_node("relay.Function", graph=True)
class Function(BaseFunc, ExprWithOp):
    """A function: parameters, body, and optionally the result type, type parameters, attributes."""

    params: tuple[Var, ...] = field(binds=True)
    body: Expr = field(convert=as_expr)
    ret_type: Type | None = field(default=None)
    type_params: tuple[TypeVar, ...] = field(default=(), binds=True)
    attrs: DictAttrs | None = field(default=None, convert=as_dict_attrs)  # type: ignore[misc]
    span: Span | None = field(default=None, compare=False)
    _compare_order = ("params", "type_params", "ret_type", "attrs", "body")


def _with_fields(node: Any, virtual_device: Any, span: Span | None, changes: dict[str, Any]) -> Any:
    given = {name: value for name, value in changes.items() if value is not None}
    if span is not None:
        given["span"] = span
    made = node.copy(**given)
    return made if virtual_device is None else made.with_virtual_device(virtual_device)


def FunctionWithFields(
    function: Function,
    params: Any = None,
    body: Expr | None = None,
    ret_type: Type | None = None,
    ty_params: Any = None,
    attrs: Any = None,
    virtual_device: Any = None,
    span: Span | None = None,
) -> Function:
    """The function with some fields replaced; the same object where nothing changes."""
    changes = {"params": params, "body": body, "ret_type": ret_type, "type_params": ty_params}
    return _with_fields(function, virtual_device, span, {**changes, "attrs": attrs})  # type: ignore[no-any-return]


def CallWithFields(
    call: Call,
    op: Expr | None = None,
    args: Any = None,
    attrs: Attrs | None = None,
    type_args: Any = None,
    virtual_device: Any = None,
    span: Span | None = None,
) -> Call:
    """The call with some fields replaced; the same object where nothing changes."""
    changes = {"op": op, "args": args, "attrs": attrs, "type_args": type_args}
    return _with_fields(call, virtual_device, span, changes)  # type: ignore[no-any-return]


def ConstantWithFields(
    constant: Constant, data: Any = None, virtual_device: Any = None, span: Span | None = None
) -> Constant:
    """The constant with some fields replaced; the same object where nothing changes."""
    return _with_fields(constant, virtual_device, span, {"data": data})  # type: ignore[no-any-return]


def IfWithFields(
    if_expr: If,
    cond: Expr | None = None,
    true_branch: Expr | None = None,
    false_branch: Expr | None = None,
    virtual_device: Any = None,
    span: Span | None = None,
) -> If:
    """The choice with some fields replaced; the same object where nothing changes."""
    changes = {"cond": cond, "true_branch": true_branch, "false_branch": false_branch}
    return _with_fields(if_expr, virtual_device, span, changes)  # type: ignore[no-any-return]


def LetWithFields(
    let: Let,
    variable: Var | None = None,
    value: Expr | None = None,
    body: Expr | None = None,
    virtual_device: Any = None,
    span: Span | None = None,
) -> Let:
    """The binding with some fields replaced; the same object where nothing changes."""
    changes = {"var": variable, "value": value, "body": body}
    return _with_fields(let, virtual_device, span, changes)  # type: ignore[no-any-return]


def RefCreateWithFields(
    ref_create: RefCreate,
    value: Expr | None = None,
    virtual_device: Any = None,
    span: Span | None = None,
) -> RefCreate:
    """The reference with some fields replaced; the same object where nothing changes."""
    return _with_fields(ref_create, virtual_device, span, {"value": value})  # type: ignore[no-any-return]


def RefReadWithFields(
    ref_read: RefRead,
    ref: Expr | None = None,
    virtual_device: Any = None,
    span: Span | None = None,
) -> RefRead:
    """The read with some fields replaced; the same object where nothing changes."""
    return _with_fields(ref_read, virtual_device, span, {"ref": ref})  # type: ignore[no-any-return]


def RefWriteWithFields(
    ref_write: RefWrite,
    ref: Expr | None = None,
    value: Expr | None = None,
    virtual_device: Any = None,
    span: Span | None = None,
) -> RefWrite:
    """The write with some fields replaced; the same object where nothing changes."""
    return _with_fields(ref_write, virtual_device, span, {"ref": ref, "value": value})  # type: ignore[no-any-return]


def TupleWithFields(
    tup: Tuple, fields: Any = None, virtual_device: Any = None, span: Span | None = None
) -> Tuple:
    """The tuple with some fields replaced; the same object where nothing changes."""
    return _with_fields(tup, virtual_device, span, {"fields": fields})  # type: ignore[no-any-return]


def TupleGetItemWithFields(
    tuple_get_item: TupleGetItem,
    tuple_value: Expr | None = None,
    index: int | None = None,
    virtual_device: Any = None,
    span: Span | None = None,
) -> TupleGetItem:
    """The projection with some fields replaced; the same object where nothing changes."""
    changes = {"tuple_value": tuple_value, "index": index}
    return _with_fields(tuple_get_item, virtual_device, span, changes)  # type: ignore[no-any-return]


def VarWithFields(
    variable: Var,
    vid: Any = None,
    type_annotation: Type | None = None,
    virtual_device: Any = None,
    span: Span | None = None,
) -> Var:
    """The variable with some fields replaced; the same object where nothing changes."""
    changes = {"vid": vid, "type_annotation": type_annotation}
    return _with_fields(variable, virtual_device, span, changes)  # type: ignore[no-any-return]
