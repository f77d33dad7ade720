"""``tvm.te``: symbolic integers by name."""

from __future__ import annotations

from ixion.base.dim import SymExpr, SymVar


def var(name: str = "tindex", dtype: str = "int32", span: object = None) -> SymExpr:
    """A symbolic integer."""
    return SymVar(name)


size_var = var

__all__ = ["size_var", "var"]
