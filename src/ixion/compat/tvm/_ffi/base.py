"""``tvm._ffi.base``."""

from __future__ import annotations

from ixion.compat.tvm.error import TVMError

string_types = (str,)


def py_str(text: bytes) -> str:
    """Bytes as text."""
    return text.decode("utf-8")


__all__ = ["TVMError", "py_str", "string_types"]
