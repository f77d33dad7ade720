"""Relay's text form of expressions, types and modules.

What ``astext`` prints, ``parse`` reads back to a structurally equal program. Printing never
recurses in Python over the depth of a program and takes time linear in the length of the text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ixion.ir.adt import Pattern, TypeData
from ixion.ir.expr import Constant, Expr
from ixion.ir.function import Function
from ixion.ir.lexer import MODULE_ATTRS, SEMVER
from ixion.ir.module import IRModule
from ixion.ir.node import Node, plain_repr
from ixion.ir.printer_expr import ExprPrinter, quoted_name
from ixion.ir.printer_meta import MetaTable
from ixion.ir.printer_type import TypePrinter
from ixion.ir.printer_value import ValuePrinter
from ixion.ir.types import Type

_OMITTED = "/* The metadata is left out; astext(show_meta_data=True) prints it. */"


def astext(
    node: Any,
    show_meta_data: bool = True,
    annotate: Callable[[Expr], str] | None = None,
    constants: MetaTable | None = None,
) -> str:
    """The text of a module, expression, type or pattern, with the version line.

    With ``show_meta_data`` what has no syntax (constants that are no scalars, symbolic dimensions,
    foreign attributes) follows as JSON in a ``#[metadata]`` section, so the text stands alone.
    ``constants`` keeps the constants by reference instead: they are entered in the table, the text
    names them, and ``parse(text, init_meta_table=table)`` finds the same nodes, so a round trip
    costs nothing per weight byte. ``annotate(expr)`` replaces the type and span comment after an
    expression.
    """
    return f'#[version = "{SEMVER}"]\n' + _Printer(show_meta_data, annotate, constants).text(node)


def pretty_print(node: Any) -> str:
    """The text of ``node`` for reading: no version, no metadata section."""
    return _Printer(False, None, None).text(node)


class _Printer:
    def __init__(
        self,
        show_meta: bool,
        annotate: Callable[[Expr], str] | None,
        constants: MetaTable | None,
    ) -> None:
        self.meta = MetaTable()
        self.show_meta = show_meta
        self.values = ValuePrinter(self.meta, show_meta)
        self.types = TypePrinter(self.values)
        side = None if constants is None else _by_reference(constants)
        self.exprs = ExprPrinter(self.values, self.types, annotate, side)

    def text(self, node: Any) -> str:
        body = self._node(node)
        if not self.meta:
            return body
        if not self.show_meta:
            return body if isinstance(node, Type) else f"{body}\n{_OMITTED}\n"
        return f"{body}\n#[metadata]\n{self.meta.to_json()}"

    def _node(self, node: Any) -> str:
        if isinstance(node, IRModule):
            return self._module(node)
        if isinstance(node, TypeData):
            return self.types.definition(node)
        if isinstance(node, Expr):
            return self.exprs.root(node)
        if isinstance(node, Type):
            return self.types.text(node)
        if isinstance(node, Pattern):
            return self.exprs.match_pattern(node)
        if isinstance(node, Node):
            # Kinds that print themselves (dataflow patterns) override repr.
            own = type(node).__repr__ is not Node.__repr__
            return repr(node) if own else plain_repr(node)
        return self.values.value(node)

    def _module(self, module: IRModule) -> str:
        parts = [
            self.types.definition(data) + "\n"
            for _, data in sorted(module.type_definitions.items(), key=_by_name)
        ]
        for variable, function in sorted(module.functions.items(), key=_by_name):
            prefix = f"def @{quoted_name(variable.name_hint)}"
            if isinstance(function, Function):
                parts.append(self.exprs.definition(prefix, function) + "\n")
            else:
                parts.append(f"{prefix} = {self.meta.reference(function.type_key, function)}\n")
        if self.show_meta and module.attrs:
            self.meta.reference(MODULE_ATTRS, module.attrs)
        return "\n".join(parts)


def _by_name(item: tuple[Any, Any]) -> str:
    return str(item[0].name_hint)


def _by_reference(table: MetaTable) -> Callable[[Constant], str]:
    def enter(constant: Constant) -> str:
        return table.reference(constant.type_key, constant)

    return enter


__all__ = ["MetaTable", "astext", "pretty_print"]
