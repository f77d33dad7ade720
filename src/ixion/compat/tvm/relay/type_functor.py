"""``tvm.relay.type_functor``."""

from __future__ import annotations

from ixion.ir import TypeFunctor, TypeMutator, TypeVisitor

__all__ = ["TypeFunctor", "TypeMutator", "TypeVisitor"]
