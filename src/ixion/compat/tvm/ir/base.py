"""``tvm.ir.base``."""

from __future__ import annotations

from ixion.base.span import SequentialSpan, SourceName, Span
from ixion.ir import (
    EnvFunc,
    Node,
    assert_structural_equal,
    get_first_structural_mismatch,
    load_json,
    save_json,
    structural_equal,
    structural_hash,
)

__all__ = [
    "EnvFunc", "Node", "SequentialSpan", "SourceName", "Span", "assert_structural_equal",
    "get_first_structural_mismatch", "load_json", "save_json", "structural_equal",
    "structural_hash",
]  # fmt: skip
