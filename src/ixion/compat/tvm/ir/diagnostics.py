"""``tvm.ir.diagnostics``."""

from __future__ import annotations

from ixion.ir.diagnostics import (
    Diagnostic,
    DiagnosticContext,
    DiagnosticLevel,
    DiagnosticRenderer,
    get_renderer,
    override_renderer,
)

__all__ = [
    "Diagnostic",
    "DiagnosticContext",
    "DiagnosticLevel",
    "DiagnosticRenderer",
    "get_renderer",
    "override_renderer",
]
