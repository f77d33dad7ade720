"""FoldScaleAxis: multiplies per channel move into the weights of convolutions and dense layers.

What remains is arithmetic on constants, which FoldConstant does once.
"""

from __future__ import annotations

from dataclasses import dataclass

from ixion.ir import Function, IRModule
from ixion.transform.context import PassContext
from ixion.transform.fold_constant import FoldConstant
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import FunctionPass, Sequential
from ixion.transform.registry import register_pass
from ixion.transform.scale_backward import fold_scale_backward
from ixion.transform.scale_forward import fold_scale_forward

__all__ = ["BackwardFoldScaleAxis", "FoldScaleAxis", "ForwardFoldScaleAxis"]


@register_pass("BackwardFoldScaleAxis")
@dataclass(frozen=True)
class BackwardFoldScaleAxis(FunctionPass):
    """Moves a multiply after a convolution, through relu, add and bias_add, into its weight."""

    info = PassInfo(3, "BackwardFoldScaleAxis", ["InferType"])

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        return fold_scale_backward(func)


@register_pass("ForwardFoldScaleAxis")
@dataclass(frozen=True)
class ForwardFoldScaleAxis(FunctionPass):
    """Moves a multiply before a convolution, through relu and add, into its weight."""

    info = PassInfo(3, "ForwardFoldScaleAxis", ["InferType"])

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        return fold_scale_forward(func)


@register_pass("FoldScaleAxis")
def FoldScaleAxis() -> Sequential:
    """Both directions, then FoldConstant."""
    passes = [BackwardFoldScaleAxis(), ForwardFoldScaleAxis(), FoldConstant()]
    return Sequential(passes, name="FoldScaleAxis")
