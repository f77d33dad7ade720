"""``tvm.topi``: what of the operator library Relay's programs and tests name."""

from __future__ import annotations

from ixion.compat.tvm.topi import testing

__all__ = ["testing"]
