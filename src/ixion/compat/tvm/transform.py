"""``tvm.transform`` and ``tvm.ir.transform``: the pass infrastructure."""

from __future__ import annotations

from ixion.compat.tvm.relay.infer_type import InferType
from ixion.ir.pattern_typing import set_type_inference
from ixion.transform import (
    FunctionPass,
    ModulePass,
    Pass,
    PassContext,
    PassInfo,
    PrintIR,
    Sequential,
    module_pass,
)

set_type_inference(InferType())

__all__ = [
    "FunctionPass",
    "ModulePass",
    "Pass",
    "PassContext",
    "PassInfo",
    "PrintIR",
    "Sequential",
    "module_pass",
]
