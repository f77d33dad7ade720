"""``tvm.relay.op.vision``."""

from __future__ import annotations

from typing import Any

from ixion.compat.tvm.relay.op._lookup import builder


def __getattr__(name: str) -> Any:
    return builder("vision", name)
