"""``tvm.relay.op.op``: the registry."""

from __future__ import annotations

import ixion.op  # noqa: F401 - fills the registry
from ixion.ir import Op
from ixion.ir.op import register_op_attr

get = Op.get

__all__ = ["Op", "get", "register_op_attr"]
