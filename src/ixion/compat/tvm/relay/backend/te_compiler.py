"""``tvm.relay.backend.te_compiler``: the compiler's memory."""

from __future__ import annotations


class TECompiler:
    """Kernels that are made already. Ixion keeps them on disk by content, so nothing is stale."""

    def clear(self) -> None:
        """Forget nothing: an entry is found by what it was made from."""


_COMPILER = TECompiler()


def get() -> TECompiler:
    """The one there is."""
    return _COMPILER


__all__ = ["TECompiler", "get"]
