"""``tvm._ffi``: the global function table and node registration."""

from __future__ import annotations

from typing import Any

from ixion.compat.tvm._ffi import base
from ixion.ir import get_global_func, register_func, register_node


def register_object(type_key: Any = None) -> Any:
    """Register a node class, as a decorator with or without its type key."""
    if isinstance(type_key, str):
        return register_node(type_key)
    return register_node(type_key.__name__)(type_key)


__all__ = ["base", "get_global_func", "register_func", "register_object"]
