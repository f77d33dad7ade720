"""What kernels and steps can do besides plain operators.

A function of tensors whose control flow becomes branches and loops of the step table is called like
an operator, and runs in the segment of its neighbours. An operator whose results are sized by data
is a segment of its own where their bounds are known.
"""

from __future__ import annotations

from collections.abc import Sequence

from ixion.base.errors import IxionError
from ixion.ir import Call, Constant, Expr, Function, GlobalVar, IRModule, TensorType, TupleType, Var
from ixion.op.bounds import is_bounded
from ixion.transform.context import PassContext
from ixion.transform.remove_unused_functions import RemoveUnusedFunctions, called_globals
from ixion.vm.draft import Value
from ixion.vm.prepare import becomes_steps

__all__ = ["NativeFunctions", "bounded_call"]


class NativeFunctions:
    """The functions of a typed module that OutlineControl turns into steps altogether."""

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self._known: dict[str, bool] = {"main": False}

    def runs(self, call: Call) -> bool:
        """Whether a call is one of such a function, its argument sizes being known."""
        if not isinstance(call.op, GlobalVar) or call.op.name_hint not in self.module:
            return False
        kinds = [call.checked_type, *(arg.checked_type for arg in call.args)]
        return all(map(_is_known, kinds)) and self._is_native(call.op.name_hint)

    def _is_native(self, name: str) -> bool:
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = self._becomes_steps(name)
        return found

    def _becomes_steps(self, name: str) -> bool:
        function = self.module[name]
        if not isinstance(function, Function) or function.type_params or self._reaches_main(name):
            return False
        if not all(_is_known(p.checked_type) for p in function.params):
            return False
        try:
            return becomes_steps(self.module, name)
        except IxionError:
            return False

    def _reaches_main(self, name: str) -> bool:
        """A segment has a main of its own, so what it calls may not call the program's."""
        seen, pending = {name}, [name]
        while pending:
            function = self.module[pending.pop()]
            called = called_globals(function) if isinstance(function, Function) else []
            pending += [n for n in called if n in self.module and n not in seen]
            seen.update(called)
        return "main" in seen

    def around(self, function: Function) -> IRModule:
        """A module whose main is a segment's function, with the functions that it calls."""
        if not called_globals(function):
            return IRModule.from_expr(function)
        module = self.module.clone()
        module.update_func(module.get_global_var("main"), function)
        return RemoveUnusedFunctions().transform_module(module, PassContext.current())


def _is_known(kind: object) -> bool:
    """A tensor, or a flat tuple of tensors, whose sizes are numbers."""
    if isinstance(kind, TupleType):
        return all(isinstance(f, TensorType) and _is_known(f) for f in kind.fields)
    return isinstance(kind, TensorType) and all(isinstance(d, int) for d in kind.shape)


def bounded_call(call: Call, args: Sequence[Value | tuple[Value, ...]]) -> Call | None:
    """The call of an operator with bounds on typed variables and constants; None where its
    argument sizes are not known, or it has no bounds.
    """
    if not is_bounded(call) or any(isinstance(a, tuple) for a in args):
        return None
    made: list[Expr] = []
    for number, value in enumerate(args):
        assert isinstance(value, Value)
        if not _is_known(value.kind):
            return None
        made.append(_typed(value.data or Var(f"x{number}", value.kind), value))
    if not any(isinstance(a, Var) for a in made):
        return None
    bounded = Call(call.op, made, call.attrs, span=call.span)
    bounded._set_checked_type(call.checked_type)
    return bounded


def _typed(expr: Constant | Var, value: Value) -> Expr:
    if expr.checked_type_or_none is None:
        expr._set_checked_type(value.kind)
    return expr
