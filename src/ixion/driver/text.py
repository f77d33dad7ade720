"""Programs from text."""

from __future__ import annotations

from ixion.ir import IRModule
from ixion.transform.infer_type import InferType


def parse(text: str, source_name: str = "from_string") -> IRModule:
    """A typed module from Relay text; DiagnosticError with line and column where it is wrong."""
    from ixion.ir.parser import parse as parse_text

    return InferType()(parse_text(text, source_name))
