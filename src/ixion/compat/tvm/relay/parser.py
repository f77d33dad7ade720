"""``tvm.relay.parser``: parsing with type inference, as TVM does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ixion.compat.tvm.relay.infer_type import InferType
from ixion.ir import (
    Diagnostic,
    DiagnosticContext,
    Expr,
    Function,
    IRModule,
    Op,
    Var,
    post_order_visit,
)
from ixion.ir import parser as _parser
from ixion.transform import Pass, PassContext, module_pass


def parse(
    source: str,
    source_name: str = "from_string",
    init_module: IRModule | None = None,
    init_meta_table: Mapping[str, Sequence[Any]] | None = None,
) -> IRModule:
    """The typed module that a text defines."""
    return _parser.parse(source, source_name, init_module, init_meta_table, infer=InferType())


def fromtext(source: str, source_name: str = "from_string") -> IRModule:
    """The typed module that a text defines."""
    return parse(source, source_name)


def parse_expr(source: str) -> Expr:
    """The expression a text holds, with the types as written."""
    return _parser.parse_expr(source)


def SpanCheck() -> Pass:
    """A pass that raises DiagnosticError where an expression of a module has no span.

    Variables and operators need none.
    """

    def check(module: IRModule, context: PassContext) -> IRModule:
        diagnostics = DiagnosticContext(module)

        def look(node: Expr) -> None:
            if not isinstance(node, (Var, Op, Function)) and node.span is None:
                diagnostics.emit(Diagnostic.error(None, f"a {type(node).__name__} has no span"))

        for _, function in module.functions_items():
            post_order_visit(function, look)
        diagnostics.render()
        return module

    made: Pass = module_pass(check, opt_level=0, name="SpanCheck")
    return made


__all__ = ["SpanCheck", "fromtext", "parse", "parse_expr"]
