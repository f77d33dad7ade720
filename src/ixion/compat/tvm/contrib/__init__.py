"""``tvm.contrib``: what surrounds programs."""

from __future__ import annotations

from ixion.compat.tvm.contrib import utils

__all__ = ["utils"]
