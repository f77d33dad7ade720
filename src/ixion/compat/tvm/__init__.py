"""``tvm`` as programs written for TVM 0.19's Relay expect it, on Ixion's own objects."""

from __future__ import annotations

from ixion.compat.tvm import _protocol

_protocol.install()

from ixion.compat.tvm import (  # noqa: E402  # noqa: E402
    _ffi,
    contrib,
    error,
    ir,
    nd,
    relay,
    runtime,
    target,
    te,
    testing,
    tir,
    topi,
    transform,
)
from ixion.compat.tvm._ffi import get_global_func, register_func, register_object  # noqa: E402
from ixion.compat.tvm.error import TVMError  # noqa: E402
from ixion.compat.tvm.ir import IRModule  # noqa: E402
from ixion.compat.tvm.nd import cpu, device  # noqa: E402
from ixion.compat.tvm.runtime import DataType, Object  # noqa: E402

__version__ = "0.19.0"

__all__ = [
    "DataType",
    "IRModule",
    "Object",
    "TVMError",
    "_ffi",
    "contrib",
    "cpu",
    "device",
    "error",
    "get_global_func",
    "ir",
    "nd",
    "register_func",
    "register_object",
    "relay",
    "runtime",
    "target",
    "te",
    "testing",
    "tir",
    "topi",
    "transform",
]
