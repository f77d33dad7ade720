"""Types as kinds of values: what a program accepts and gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ixion.base import dim as dims
from ixion.base.errors import CodegenError
from ixion.ir import (
    Constructor,
    FuncType,
    GlobalTypeVar,
    IRModule,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
)
from ixion.runtime.value_kind import (
    UNKNOWN,
    ConstructorSpec,
    DataKind,
    FunctionKind,
    Kind,
    ParameterKind,
    RefKind,
    TensorKind,
    TupleKind,
)

__all__ = ["constructor_specs", "kind_of"]


def kind_of(kind: Type, params: Mapping[int, int] | None = None) -> Kind:
    """The kind of a type; ``params``: numbers of type variables by their identity.

    Raises CodegenError for a type no value has.
    """
    if isinstance(kind, TensorType):
        shape = [UNKNOWN if isinstance(d, dims.Any) else d for d in kind.shape]
        return TensorKind(tuple(d if isinstance(d, int) else str(d) for d in shape), kind.dtype)
    if isinstance(kind, TupleType):
        return TupleKind(tuple(kind_of(field, params) for field in kind.fields))
    if isinstance(kind, RefType):
        return RefKind(kind_of(kind.value, params))
    if isinstance(kind, FuncType):
        return FunctionKind(str(kind))
    if isinstance(kind, TypeVar):
        return ParameterKind((params or {}).get(id(kind), -1))
    if isinstance(kind, TypeCall) and isinstance(kind.func, GlobalTypeVar):
        return DataKind(kind.func.name_hint, tuple(kind_of(arg, params) for arg in kind.args))
    if isinstance(kind, GlobalTypeVar):
        return DataKind(kind.name_hint)
    raise CodegenError(f"no value has the type {kind}")


def constructor_specs(
    module: IRModule, used: Sequence[Constructor], kinds: Sequence[Type]
) -> list[ConstructorSpec]:
    """Records of the constructors in ``used``, in that order, then of all others of the data types
    that these, ``kinds`` and their own fields mention.
    """
    found = {c.tag: _spec(module, c) for c in used}
    pending = {c.belong_to.name_hint for c in used} | data_types(kinds)
    done: set[str] = set()
    while pending:
        name = pending.pop()
        done.add(name)
        for other in module[module.get_global_type_var(name)].constructors:
            found.setdefault(other.tag, _spec(module, other))
            pending |= data_types(other.inputs) - done
    return list(found.values())


def _spec(module: IRModule, constructor: Constructor) -> ConstructorSpec:
    header = constructor.belong_to
    params = {id(var): i for i, var in enumerate(module[header].type_vars)}
    fields = tuple(kind_of(kind, params) for kind in constructor.inputs)
    return ConstructorSpec(constructor.name_hint, constructor.tag, header.name_hint, fields)


def data_types(kinds: Sequence[Type]) -> set[str]:
    """Names of the data types that types mention."""
    found: set[str] = set()
    pending = list(kinds)
    while pending:
        kind = pending.pop()
        if isinstance(kind, GlobalTypeVar):
            found.add(kind.name_hint)
        elif isinstance(kind, TypeCall):
            pending += [kind.func, *kind.args]
        elif isinstance(kind, TupleType):
            pending += kind.fields
        elif isinstance(kind, RefType):
            pending.append(kind.value)
        elif isinstance(kind, FuncType):
            pending += [*kind.arg_types, kind.ret_type]
    return found
