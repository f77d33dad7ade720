"""``tvm.ir.base``."""

from __future__ import annotations

from ixion.base.span import SequentialSpan, SourceName, Span
from ixion.compat.tvm.ir.structural import (
    assert_structural_equal,
    get_first_structural_mismatch,
    structural_equal,
    structural_hash,
)
from ixion.ir import EnvFunc, Node, load_json, save_json

__all__ = [
    "EnvFunc", "Node", "SequentialSpan", "SourceName", "Span", "assert_structural_equal",
    "get_first_structural_mismatch", "load_json", "save_json", "structural_equal",
    "structural_hash",
]  # fmt: skip
