"""PrintIR: show the module as it is at this point of a sequence."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from ixion.ir import IRModule
from ixion.transform.context import PassContext
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import ModulePass
from ixion.transform.registry import register_pass

__all__ = ["PrintIR"]


@register_pass("PrintIR")
@dataclass(frozen=True)
class PrintIR(ModulePass):
    """Writes the module's text to standard error and changes nothing."""

    header: str = ""
    show_meta_data: bool = False
    info = PassInfo(0, "PrintIR")

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        text = mod.astext(show_meta_data=self.show_meta_data)
        sys.stderr.write(f"PrintIR({self.header}):\n{text}\n")
        return mod
