"""``tvm.relay.expr_functor``."""

from __future__ import annotations

from ixion.ir import ExprFunctor, ExprMutator, ExprVisitor

__all__ = ["ExprFunctor", "ExprMutator", "ExprVisitor"]
