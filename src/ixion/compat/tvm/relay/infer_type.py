"""Type inference that reports as TVM does: through the diagnostics, as a DiagnosticError."""

from __future__ import annotations

from dataclasses import dataclass

from ixion import transform
from ixion.base.errors import TypeInferenceError
from ixion.ir import Diagnostic, DiagnosticContext, IRModule
from ixion.transform import PassContext


@dataclass(frozen=True)
class InferType(transform.InferType):  # type: ignore[misc]
    """Ixion's pass; the renderer in force sees what does not fit before the error is raised."""

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The typed module; raises DiagnosticError."""
        try:
            return super().transform_module(mod, ctx)  # type: ignore[no-any-return]
        except TypeInferenceError as error:
            diagnostics = DiagnosticContext(mod)
            diagnostics.emit(Diagnostic.error(None, str(error)))
            diagnostics.render()
            raise


__all__ = ["InferType"]
