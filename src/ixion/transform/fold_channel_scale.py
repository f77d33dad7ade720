"""FoldChannelScale: what FoldScaleAxis does, for more kinds of convolution.

Relay folds a scale into full and depthwise convolutions in two and three dimensions. The same holds
for grouped ones (each filter makes one output channel whatever the groups), in one dimension, and
for transposed convolutions without groups.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from ixion.ir import Call, Expr, Function, IRModule
from ixion.op import layout as layouts
from ixion.transform.context import PassContext
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import FunctionPass
from ixion.transform.registry import register_pass
from ixion.transform.scale_backward import (
    RELAY_RULES,
    BackwardRule,
    Messages,
    Transformer,
    fold_scale_backward,
    scale_weight,
)
from ixion.transform.scale_message import ScaleMessage

__all__ = ["FoldChannelScale"]


@register_pass("FoldChannelScale")
@dataclass(frozen=True)
class FoldChannelScale(FunctionPass):
    """Moves a multiply after any convolution, through relu, add and bias_add, into its weight.

    What remains is arithmetic on constants for FoldConstant.
    """

    info = PassInfo(3, "FoldChannelScale", ["InferType"])

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        return fold_scale_backward(func, _RULES)


def _axes(conv: Call) -> tuple[int, int] | None:
    """The channel axis of the result and that of the weight's filters, in plain layouts."""
    attrs: Any = conv.attrs
    out = layouts.parse(attrs.out_layout or attrs.data_layout).positions("C")
    weight = layouts.parse(attrs.kernel_layout).positions("O")
    return (out[0], weight[0]) if len(out) == len(weight) == 1 else None


def _prepare(conv: Call, args: Messages) -> ScaleMessage | None:
    axes = _axes(conv)
    return None if axes is None else ScaleMessage((axes[0],))


def _prepare_transposed(conv: Call, args: Messages) -> ScaleMessage | None:
    attrs: Any = conv.attrs
    return _prepare(conv, args) if attrs.groups == 1 else None


def _scale(
    to: Transformer, conv: Call, message: ScaleMessage, scale: Expr
) -> Generator[Any, Any, Expr]:
    axes = _axes(conv)
    assert axes is not None
    yield from ()
    return scale_weight(to, conv, scale, (axes[1],))


_RULES: dict[str, BackwardRule] = {
    **RELAY_RULES,
    **{f"nn.conv{n}d": BackwardRule(_prepare, _scale) for n in (1, 2, 3)},
    **{f"nn.conv{n}d_transpose": BackwardRule(_prepare_transposed, _scale) for n in (1, 2, 3)},
}
