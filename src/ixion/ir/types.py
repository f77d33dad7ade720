"""Types of expressions.

Unlike other nodes, types compare with ``==`` by structure, as in Relay, and hash accordingly; type
variables are equal only to themselves. ``same_as`` is identity.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.base.dtype import normalize
from ixion.base.span import Span
from ixion.ir.attrs import Attrs
from ixion.ir.env import EnvFunc
from ixion.ir.node import Node, field, register_node


class TypeKind(IntEnum):
    """Kinds of type variables and types, with Relay's numbers."""

    Type = 0
    ShapeVar = 1
    BaseType = 2
    Constraint = 4
    AdtHandle = 5
    TypeData = 6


def _as_kind(value: int) -> TypeKind:
    return TypeKind(value)


class Type(Node):
    """Base of all types."""

    __slots__ = ("_type_hash",)
    _type_hash: int

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return False
        from ixion.ir.equal import structural_equal

        return structural_equal(self, other)

    def __hash__(self) -> int:
        try:
            return self._type_hash
        except AttributeError:
            from ixion.ir.hash import structural_hash

            value = structural_hash(self)
            self._put("_type_hash", value)
            return value


def _as_shape(shape: Iterable[Any]) -> tuple[Dim, ...]:
    if type(shape) is tuple:
        for extent in shape:
            if type(extent) is not int:
                break
        else:
            return shape
    if isinstance(shape, (int, dims.Any, dims.SymExpr)):
        return (shape,)
    return tuple([dims.as_dim(extent) for extent in shape])


@register_node("relay.TensorType")
class TensorType(Type):
    """A dense array: ``shape`` (ints, ``Any`` or symbolic) and element ``dtype``."""

    shape: tuple[Dim, ...] = field(convert=_as_shape)
    dtype: str = field(default="float32", convert=normalize)
    span: Span | None = field(default=None, compare=False)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not TensorType:
            return False
        return self.dtype == other.dtype and self.shape == other.shape

    __hash__ = Type.__hash__

    @property
    def concrete_shape(self) -> tuple[int, ...]:
        """The shape as ints; ValueError where a dim is not one."""
        if not dims.is_static(self.shape):
            raise ValueError(f"the shape {self.shape} is not concrete")
        return self.shape

    @property
    def ndim(self) -> int:
        """Number of dims."""
        return len(self.shape)


@register_node("TupleType")
class TupleType(Type):
    """A tuple of types."""

    fields: tuple[Type, ...] = field(default=())
    span: Span | None = field(default=None, compare=False)


@register_node("TypeVar")
class TypeVar(Type):
    """A type parameter."""

    name_hint: str = field(compare=False)
    kind: TypeKind = field(default=TypeKind.Type, convert=_as_kind, stored="int")
    span: Span | None = field(default=None, compare=False)

    def __call__(self, *args: Type) -> TypeCall:
        return TypeCall(self, args)


@register_node("GlobalTypeVar")
class GlobalTypeVar(Type):
    """The name of an algebraic data type."""

    name_hint: str = field()
    kind: TypeKind = field(default=TypeKind.AdtHandle, convert=_as_kind, stored="int")
    span: Span | None = field(default=None, compare=False)

    def __call__(self, *args: Type) -> TypeCall:
        return TypeCall(self, args)


@register_node("TypeCall")
class TypeCall(Type):
    """An algebraic data type applied to type arguments."""

    func: Type = field()
    args: tuple[Type, ...] = field(default=())
    span: Span | None = field(default=None, compare=False)


class TypeConstraint(Type):
    """Base of constraints in function types."""

    __slots__ = ()


@register_node("TypeRelation")
class TypeRelation(TypeConstraint):
    """A named relation that must hold between argument types; the last is the result."""

    func: EnvFunc = field()
    args: tuple[Type, ...] = field()
    num_inputs: int = field()
    attrs: Attrs | None = field(default=None)
    span: Span | None = field(default=None, compare=False)


@register_node("FuncType")
class FuncType(Type):
    """The type of a function."""

    arg_types: tuple[Type, ...] = field()
    ret_type: Type = field()
    type_params: tuple[TypeVar, ...] = field(default=(), binds=True)
    type_constraints: tuple[TypeConstraint, ...] = field(default=())
    span: Span | None = field(default=None, compare=False)
    _compare_order = ("type_params", "arg_types", "ret_type", "type_constraints")


@register_node("relay.RefType")
class RefType(Type):
    """A mutable reference to a value of a type."""

    value: Type = field()
    span: Span | None = field(default=None, compare=False)


RelayRefType = RefType


@register_node("IncompleteType")
class IncompleteType(Type):
    """A hole that type inference fills; equal only to itself."""

    kind: TypeKind = field(default=TypeKind.Type, convert=_as_kind, stored="int")
    span: Span | None = field(default=None, compare=False)


for _variable in (TypeVar, GlobalTypeVar, IncompleteType):
    _variable._graph = _variable._free_var = True


@register_node("PrimType")
class PrimType(Type):
    """A scalar type of the loop level."""

    dtype: str = field(convert=normalize)


def _as_scope(scope: str) -> str:
    return "global" if scope == "" else scope


@register_node("PointerType")
class PointerType(Type):
    """A pointer to elements in a memory scope; the empty scope is ``global``."""

    element_type: Type = field()
    storage_scope: str = field(default="global", convert=_as_scope)


@register_node("relay.TensorAffineType", graph=True)
class TensorAffineType(Node):
    """How a tensor is quantised: scale and zero point expressions, dtype, channel axis."""

    scale: Node = field()
    zero_point: Node = field()
    dtype: str = field(convert=normalize)
    axis: int = field(default=-1)


@register_node("relay.TupleAffineType", graph=True)
class TupleAffineType(Node):
    """How each field of a tuple is quantised."""

    types: tuple[TensorAffineType, ...] = field()


Any_ = dims.Any


def is_dynamic(of: Type) -> bool:
    """A dim of the type is unknown or symbolic; tuples and function types are searched."""
    pending: list[Type] = [of]
    while pending:
        found = pending.pop()
        if isinstance(found, TensorType):
            if not dims.is_static(found.shape):
                return True
        elif isinstance(found, TupleType):
            pending.extend(found.fields)
        elif isinstance(found, FuncType):
            pending.extend((*found.arg_types, found.ret_type))
        elif isinstance(found, RefType):
            pending.append(found.value)
    return False


def scalar_type(dtype: str) -> TensorType:
    """The type of a 0-d tensor."""
    return TensorType((), dtype)


def ShapeVar(name: str) -> TypeVar:
    """A type variable that stands for a shape."""
    return TypeVar(name, TypeKind.ShapeVar)


__all__ = [
    "FuncType",
    "GlobalTypeVar",
    "IncompleteType",
    "PointerType",
    "PrimType",
    "RefType",
    "RelayRefType",
    "ShapeVar",
    "TensorAffineType",
    "TensorType",
    "TupleAffineType",
    "TupleType",
    "Type",
    "TypeCall",
    "TypeConstraint",
    "TypeKind",
    "TypeRelation",
    "TypeVar",
    "is_dynamic",
    "scalar_type",
]
