"""``tvm.relay.backend``: running programs."""

from __future__ import annotations

from ixion.compat.tvm.relay.backend import execution, interpreter, te_compiler, values, vm

__all__ = ["execution", "interpreter", "te_compiler", "values", "vm"]
