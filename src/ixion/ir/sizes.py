"""Symbolic sizes in types and attributes: which there are, and numbers in their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, TypeVar

from ixion.base import dim as dims
from ixion.base.dim import Dim, SymExpr
from ixion.base.errors import InputError
from ixion.ir.attrs import Attrs
from ixion.ir.types import FuncType, TensorType, TupleType, Type

__all__ = ["attrs_symbols", "bound_attrs", "bound_type", "match_sizes", "type_symbols"]

_A = TypeVar("_A", bound=Attrs)


def type_symbols(kind: Type | None) -> frozenset[str]:
    """Names of the symbols in the sizes of a type."""
    return _names(dim for tensor in _tensors(kind) for dim in tensor.shape)


def attrs_symbols(attrs: Attrs | None) -> frozenset[str]:
    """Names of the symbols in the values of attributes."""
    return frozenset() if attrs is None else _names(_leaves([v for _, v in attrs.items()]))


def _names(values: Iterable[Any]) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for value in values:
        if isinstance(value, SymExpr):
            found |= value.free_vars()
    return found


def _tensors(kind: Type | None) -> Iterator[TensorType]:
    pending = [kind]
    while pending:
        one = pending.pop()
        if isinstance(one, TensorType):
            yield one
        elif isinstance(one, TupleType):
            pending.extend(one.fields)
        elif isinstance(one, FuncType):
            pending.extend((*one.arg_types, one.ret_type))


def _leaves(value: Any) -> Iterator[Any]:
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, (tuple, list)):
            pending.extend(one)
        else:
            yield one


def bound_type(kind: Type, values: Mapping[str, Dim]) -> Type:
    """A tensor, tuple or function type with symbols replaced; itself if it has none of them."""
    if isinstance(kind, TensorType):
        if dims.is_static(kind.shape):
            return kind
        shape = tuple(dims.substitute(dim, values) for dim in kind.shape)
        return kind if shape == kind.shape else TensorType(shape, kind.dtype)
    if isinstance(kind, TupleType):
        fields = tuple(bound_type(field, values) for field in kind.fields)
        return kind if all(map(_is, fields, kind.fields)) else TupleType(fields)
    if isinstance(kind, FuncType) and type_symbols(kind):
        args = tuple(bound_type(arg, values) for arg in kind.arg_types)
        result = bound_type(kind.ret_type, values)
        return FuncType(args, result, kind.type_params, kind.type_constraints)
    return kind


def _is(a: object, b: object) -> bool:
    return a is b


def bound_attrs(attrs: _A, values: Mapping[str, Dim]) -> _A:
    """Attributes with symbols replaced; themselves if they have none."""
    if not attrs_symbols(attrs):
        return attrs
    return attrs.copy(**{name: _bound(value, values) for name, value in attrs.items()})


def _bound(value: Any, values: Mapping[str, Dim]) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(_bound(part, values) for part in value)
    return dims.substitute(value, values) if isinstance(value, SymExpr) else value


def match_sizes(
    shape: Sequence[Dim], sizes: Sequence[int], values: MutableMapping[str, int]
) -> None:
    """Adds to ``values`` the symbols that a tensor's real sizes tell: where ``shape`` has them
    alone, or times a number and plus one.

    Raises InputError where a symbol would have two values.
    """
    for dim, size in zip(shape, sizes, strict=True):
        found = dims.solved(dim, size)
        if found is not None and values.setdefault(*found) != found[1]:
            name = found[0]
            raise InputError(f"the size {name!r} would be {values[name]} and {found[1]}")
