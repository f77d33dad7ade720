"""Class-based visitors of types, as Relay's Python interface has them."""

from __future__ import annotations

from typing import Any

from ixion.ir.adt import TypeData
from ixion.ir.types import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeRelation,
    TypeVar,
)

_TYPE_METHODS: dict[type, str] = {
    TypeVar: "visit_type_var",
    TensorType: "visit_tensor_type",
    IncompleteType: "visit_incomplete_type",
    FuncType: "visit_func_type",
    TypeRelation: "visit_type_relation",
    TupleType: "visit_tuple_type",
    RefType: "visit_ref_type",
    GlobalTypeVar: "visit_global_type_var",
    TypeCall: "visit_type_call",
    TypeData: "visit_type_data",
}


class TypeFunctor:
    """Calls the method of each type's kind. Types are shallow, so the methods may recurse."""

    def visit(self, typ: Type) -> Any:
        """The result for a type."""
        for base in type(typ).__mro__:
            if base in _TYPE_METHODS:
                return getattr(self, _TYPE_METHODS[base])(typ)
        return self.visit_other(typ)

    def visit_other(self, typ: Any) -> Any:
        """Result for a kind without a method of its own; abstract here, as all methods are."""
        raise NotImplementedError(f"{type(self).__name__} does not visit {type(typ).__name__}")

    visit_type_var = visit_tensor_type = visit_incomplete_type = visit_func_type = visit_other
    visit_type_relation = visit_tuple_type = visit_ref_type = visit_other
    visit_global_type_var = visit_type_call = visit_type_data = visit_other


class TypeVisitor(TypeFunctor):
    """Visits every type inside a type."""

    def visit_other(self, typ: Any) -> Any:
        """Visit the types among the fields."""
        for _, value in typ.field_items():
            for item in value if type(value) is tuple else (value,):
                if isinstance(item, Type):
                    self.visit(item)

    visit_type_var = visit_tensor_type = visit_incomplete_type = visit_func_type = visit_other
    visit_type_relation = visit_tuple_type = visit_ref_type = visit_other
    visit_global_type_var = visit_type_call = visit_type_data = visit_other


class TypeMutator(TypeFunctor):
    """Rebuilds a type; the same object where nothing changes."""

    def visit_other(self, typ: Any) -> Any:
        """The type over new inner types."""
        return typ.copy(**{name: self._replaced(value) for name, value in typ.field_items()})

    def _replaced(self, value: Any) -> Any:
        if type(value) is tuple:
            return tuple([self._replaced(item) for item in value])
        return self.visit(value) if isinstance(value, Type) else value

    visit_type_var = visit_tensor_type = visit_incomplete_type = visit_func_type = visit_other
    visit_type_relation = visit_tuple_type = visit_ref_type = visit_other
    visit_global_type_var = visit_type_call = visit_type_data = visit_other
