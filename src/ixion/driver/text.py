"""Programs from text."""

from __future__ import annotations

from ixion.ir import IRModule
from ixion.transform.infer_type import InferType


def parse(text: str, source_name: str = "from_string") -> IRModule:
    """A typed module from Relay text; DiagnosticError with line and column where it is wrong."""
    from ixion.ir.parser import parse as parse_text
    from ixion.ir.pattern_typing import set_type_inference

    infer = InferType()
    set_type_inference(infer)
    return parse_text(text, source_name, infer=infer)
