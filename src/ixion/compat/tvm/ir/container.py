"""``tvm.ir.container``."""

from __future__ import annotations

from ixion.ir import Map

Array = tuple

__all__ = ["Array", "Map"]
