"""Text of types and type definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ixion.ir.adt import TypeData
from ixion.ir.printer_value import ValuePrinter
from ixion.ir.trampoline import Step, run
from ixion.ir.types import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeKind,
    TypeVar,
)

_KIND_NAMES = {TypeKind.ShapeVar: "Shape", TypeKind.BaseType: "BaseType"}


def type_param(variable: TypeVar) -> str:
    """A type parameter where it is bound: its name, and its kind unless that is Type."""
    kind = _KIND_NAMES.get(variable.kind)
    return variable.name_hint if kind is None else f"{variable.name_hint}: {kind}"


class TypePrinter:
    """Prints types, each node once."""

    def __init__(self, values: ValuePrinter) -> None:
        self.values = values
        self._memo: dict[int, str] = {}
        self._kept: list[Type] = []

    def text(self, node: Type | None) -> str:
        """The type's text; ``_`` for an unknown one."""
        if node is None:
            return "_"
        found = self._memo.get(id(node))
        if found is None:
            found = self._tensor(node) if isinstance(node, TensorType) else run(self._step(node))
            self._memo[id(node)] = found
            self._kept.append(node)
        return found

    def _tensor(self, node: TensorType) -> str:
        if not node.shape:
            return node.dtype
        return f"Tensor[({', '.join(map(self.values.dim, node.shape))}), {node.dtype}]"

    def _step(self, node: Type | None) -> Step[str]:
        if node is None:
            return "_"
        if isinstance(node, TensorType):
            return self._tensor(node)
        if isinstance(node, IncompleteType):
            return "_"
        printer = _PRINTERS.get(type(node))
        if printer is None:
            return self.values.meta.reference(node.type_key, node)
        return (yield printer(self, node))  # type: ignore[no-any-return]

    def _list(self, nodes: tuple[Type, ...]) -> Step[str]:
        texts = []
        for node in nodes:
            text = yield self._step(node)
            texts.append(text)
        return ", ".join(texts)

    def _tuple(self, node: TupleType) -> Step[str]:
        inner = yield self._list(node.fields)
        return f"({inner}{',' if len(node.fields) == 1 else ''})"

    def _name(self, node: TypeVar | GlobalTypeVar) -> Step[str]:
        yield from ()
        return node.name_hint

    def _call(self, node: TypeCall) -> Step[str]:
        head = yield self._step(node.func)
        return f"{head}[{yield self._list(node.args)}]"

    def _ref(self, node: RefType) -> Step[str]:
        return f"ref({yield self._step(node.value)})"

    def _function(self, node: FuncType) -> Step[str]:
        generics = ", ".join(map(type_param, node.type_params))
        args = yield self._list(node.arg_types)
        result = yield self._step(node.ret_type)
        return f"fn {f'[{generics}]' if generics else ''}({args}) -> {result}"

    def definition(self, node: TypeData) -> str:
        """``type Name[A] { Ctor(T), ... }`` over several lines."""
        variables = ", ".join(map(type_param, node.type_vars))
        lines = [f"type {node.header.name_hint}{f'[{variables}]' if variables else ''} {{"]
        for constructor in node.constructors:
            inputs = ", ".join(map(self.text, constructor.inputs))
            lines.append(f"  {constructor.name_hint}{f'({inputs})' if inputs else ''},")
        return "\n".join([*lines, "}"])


_PRINTERS: dict[type, Callable[[TypePrinter, Any], Step[str]]] = {
    TupleType: TypePrinter._tuple,
    TypeVar: TypePrinter._name,
    GlobalTypeVar: TypePrinter._name,
    TypeCall: TypePrinter._call,
    RefType: TypePrinter._ref,
    FuncType: TypePrinter._function,
}


__all__ = ["TypePrinter", "type_param"]
