"""``tvm.relay.op``: operators by name, and the functions that call them."""

from __future__ import annotations

from typing import Any

from ixion.compat.tvm.relay.op import image, nn, op, vision
from ixion.compat.tvm.relay.op._lookup import builder
from ixion.compat.tvm.relay.op.op import get, register_op_attr
from ixion.ir import Op


def __getattr__(name: str) -> Any:
    return builder("", name)


__all__ = ["Op", "get", "image", "nn", "op", "register_op_attr", "vision"]
