"""A pass made of one pattern and its replacement."""

from __future__ import annotations

from ixion.ir import Expr, Function, IRModule
from ixion.ir.pattern import DFPatternCallback, is_op, rewrite, wildcard
from ixion.transform import PassContext, function_pass, register_pass


class DoubleNegative(DFPatternCallback):
    """-(-x) is x."""

    def __init__(self) -> None:
        super().__init__()
        self.x = wildcard()
        self.pattern = is_op("negative")(is_op("negative")(self.x))

    def callback(self, pre: Expr, post: Expr, node_map) -> Expr:
        return node_map[self.x][0]


@register_pass("extra.DropDoubleNegative")
@function_pass(opt_level=1, name="extra.DropDoubleNegative")
class DropDoubleNegative:
    """Replaces -(-x) by x everywhere."""

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        return rewrite(DoubleNegative(), func)
