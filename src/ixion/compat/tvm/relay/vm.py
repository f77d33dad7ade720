"""``tvm.relay.vm``."""

from __future__ import annotations

from ixion.compat.tvm.relay.backend.vm import Executable, compile  # noqa: A004 - TVM's name

__all__ = ["Executable", "compile"]
