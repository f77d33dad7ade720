"""``tvm.relay.function``."""

from __future__ import annotations

from ixion.ir import BaseFunc, Function, FunctionWithFields

__all__ = ["BaseFunc", "Function", "FunctionWithFields"]
