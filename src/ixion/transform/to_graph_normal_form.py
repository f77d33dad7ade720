"""ToGraphNormalForm: let bindings become sharing in the graph."""

from __future__ import annotations

from dataclasses import dataclass

from ixion.analysis.binding import let_values, recursive_vars
from ixion.ir import Expr, Function, IRModule, Let, rewrite
from ixion.ir.visitor import post_order
from ixion.transform.context import PassContext
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import FunctionPass
from ixion.transform.registry import register_pass

__all__ = ["ToGraphNormalForm"]


@register_pass("ToGraphNormalForm")
@dataclass(frozen=True)
class ToGraphNormalForm(FunctionPass):
    """Replaces each let variable by its value, which all its uses then share.

    A recursive function keeps a let of its own: ``let f = value; f`` where it was used.
    """

    info = PassInfo(1, "ToGraphNormalForm")

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        bound = let_values(post_order(func))
        if not bound:
            return func
        recursive = recursive_vars(func)
        done: dict[Expr, Expr] = {}

        def inline(old: Expr, new: Expr) -> Expr:
            if isinstance(old, Let):
                new = done[old.body]
            # The body of a let is visited after its value: its variable's uses will find this.
            for var in bound.get(old, ()):
                done[var] = Let(var, new, var) if var in recursive else new
            return new

        return rewrite(func, inline, done)  # type: ignore[return-value]
