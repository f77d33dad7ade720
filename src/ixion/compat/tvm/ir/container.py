"""``tvm.ir.container``."""

from __future__ import annotations

from typing import Any

from ixion.ir import Map

Array = tuple[Any, ...]

__all__ = ["Array", "Map"]
