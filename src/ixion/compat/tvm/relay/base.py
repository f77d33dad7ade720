"""``tvm.relay.base``."""

from __future__ import annotations

from ixion.base.span import SequentialSpan, SourceName, Span
from ixion.ir import Node as RelayNode
from ixion.ir import astext, pretty_print
from ixion.ir.expr import Id

__all__ = ["Id", "RelayNode", "SequentialSpan", "SourceName", "Span", "astext", "pretty_print"]
