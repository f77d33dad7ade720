"""``tvm.relay.parser``: parsing with type inference, as TVM does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ixion.ir import Expr, IRModule
from ixion.ir import parser as _parser
from ixion.transform import InferType


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


__all__ = ["fromtext", "parse", "parse_expr"]
