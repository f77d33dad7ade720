"""OutlineControl: control flow becomes calls that run regions, functions of plain dataflow."""

from __future__ import annotations

from dataclasses import dataclass

from ixion.ir import (
    Call,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    Op,
    RefCreate,
    RefRead,
    RefWrite,
    free_vars,
)
from ixion.ir.trampoline import run
from ixion.ir.visitor import post_order
from ixion.transform.context import PassContext
from ixion.transform.control_values import LeftAlone
from ixion.transform.outliner import Outliner
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import ModulePass
from ixion.transform.registry import register_pass
from ixion.transform.remove_unused_functions import RemoveUnusedFunctions

__all__ = ["LeftAlone", "OutlineControl", "has_control", "outline_part", "why_left_alone"]


@register_pass("OutlineControl")
@dataclass(frozen=True)
class OutlineControl(ModulePass):
    """Turns the first-order control flow of ``entry`` into ``control`` operators over regions.

    Lets, Ifs, calls of functions and functions that call themselves in tail position become
    dataflow with calls of ``control.branch``, ``control.loop`` and ``control.repeat``; functions
    that nothing mentions any more go. A program with anything else (closures that data chooses,
    data types, references, other recursion, state that changes its size) stays as it is:
    ``has_control`` tells, ``why_left_alone`` says why.
    """

    entry: str = "main"
    info = PassInfo(0, "OutlineControl", ["InferType"])

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        if self.entry not in mod or not has_control(mod, self.entry):
            return mod
        try:
            return _outlined(mod, self.entry)
        except LeftAlone:
            return mod


def why_left_alone(mod: IRModule, entry: str = "main") -> LeftAlone | None:
    """Why OutlineControl would leave a typed module as it is; None where it would not."""
    try:
        if has_control(mod, entry):
            _outlined(mod, entry)
    except LeftAlone as reason:
        return reason
    return None


def outline_part(
    mod: IRModule, part: Expr, prefix: str
) -> tuple[Expr, dict[GlobalVar, Function]]:
    """A typed expression of a larger program as dataflow, and the regions that it runs.

    Its free variables stay; ``prefix`` begins the names of the regions, which are not yet in
    ``mod``. For programs that cannot be outlined as a whole. Raises LeftAlone as OutlineControl
    would.
    """
    outliner = Outliner(mod, prefix)
    func = run(outliner.function(Function(free_vars(part), part)))
    return func.body, outliner.names.functions


def has_control(mod: IRModule, entry: str = "main") -> bool:
    """Whether a function has anything but dataflow and calls of operators and kernels."""
    func = mod[entry]
    if not isinstance(func, Function):
        return False
    return any(_is_control(node) for node in post_order(func.body))


def _is_control(node: object) -> bool:
    if isinstance(node, (If, Let, Match, RefCreate, RefRead, RefWrite)):
        return True
    if not isinstance(node, Call) or isinstance(node.op, Op):
        return False
    func = node.op
    return not (isinstance(func, Function) and func.attrs is not None and len(func.attrs) > 0)


def _outlined(mod: IRModule, entry: str) -> IRModule:
    outliner = Outliner(mod, entry)
    func = run(outliner.function(mod[entry]))
    result = mod.clone()
    var: GlobalVar
    for var, region in outliner.names.functions.items():
        result.update_func(var, region)
    result.update_func(mod.get_global_var(entry), func)
    return RemoveUnusedFunctions((entry,)).transform_module(result, PassContext.current())
