"""``tvm.script``: scalars of a dtype, as tests write them."""

from __future__ import annotations

from ixion.compat.tvm.script import tir

__all__ = ["tir"]
