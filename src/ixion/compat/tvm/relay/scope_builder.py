"""``tvm.relay.scope_builder``."""

from __future__ import annotations

from ixion.ir import ScopeBuilder

__all__ = ["ScopeBuilder"]
