"""``tvm.ir.expr``."""

from __future__ import annotations

from ixion.compat.tvm.tir.expr import PrimExpr
from ixion.ir import BaseFunc, GlobalVar, RelayExpr

BaseExpr = RelayExpr

__all__ = ["BaseExpr", "BaseFunc", "GlobalVar", "PrimExpr", "RelayExpr"]
