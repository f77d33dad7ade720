"""``tvm.relay.backend.interpreter``: executors and the values they give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ixion.base.errors import InputError, IxionError
from ixion.compat.tvm.error import TVMError
from ixion.compat.tvm.relay.backend.execution import runner
from ixion.compat.tvm.relay.backend.values import (
    ConstructorValue,
    RefValue,
    as_adt,
    to_foreign,
    to_own,
)
from ixion.compat.tvm.relay.infer_type import InferType
from ixion.ir import (
    Constant,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    ScopeBuilder,
    TupleWrapper,
    const,
)

Result = Callable[..., Any]


class Executor:
    """Runs functions and expressions, which may mention what the module defines."""

    def __init__(self, kind: str, mod: IRModule, device: Any, target: Any) -> None:
        self.kind = kind
        self.mod = mod
        self.device = device
        self.target = target

    def evaluate(self, expr: Any = None, binds: Mapping[Any, Any] | None = None) -> Any:
        """A function as a Python function; the value of any other expression.

        Without ``expr``, the module's main. ``binds`` gives free variables their values.
        """
        if isinstance(expr, TupleWrapper):
            expr = expr.astuple()
        if binds:
            expr = _bound(expr, binds)
        if expr is None or isinstance(expr, (Function, GlobalVar)):
            return self._function(expr)
        return self._function(Function([], expr))()

    def _function(self, expr: Function | GlobalVar | None) -> Result:
        module, entry = _entered(self.mod, expr)
        run = runner(self.kind, module, entry)
        function = module[entry]
        constructors = as_adt if self.kind == "vm" else ConstructorValue

        def call(*args: Any, **named: Any) -> Any:
            given = _in_order(function, args, named)
            values = [
                to_own(arg, param.type_annotation, module)
                for arg, param in zip(given, function.params, strict=True)
            ]
            try:
                found = run(values)
            except IxionError as error:
                raise TVMError(_tvm_text(error)) from error
            return to_foreign(found, constructors)

        return call


def _bound(expr: Expr, binds: Mapping[Any, Any]) -> Expr:
    scope = ScopeBuilder()
    for variable, value in binds.items():
        scope.let(variable, value if isinstance(value, Expr) else _as_constant(value))
    scope.ret(expr)
    return scope.get()


def _as_constant(value: Any) -> Constant:
    made: Constant = const(value)
    return made


def _entered(module: IRModule, expr: Function | GlobalVar | None) -> tuple[IRModule, str]:
    """A typed module with the function to run, and its name there."""
    if expr is None or isinstance(expr, GlobalVar):
        return InferType()(module), "main" if expr is None else expr.name_hint
    made = module.clone()
    made["main"] = expr
    return InferType()(made), "main"


def _in_order(func: Function, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """Positional arguments, then the named ones in the order of the parameters."""
    names = [param.name_hint for param in func.params]
    twice = [name for name in names[: len(args)] if name in named]
    missing = [name for name in names[len(args) :] if name not in named]
    if twice or missing or len(args) > len(names):
        raise InputError(
            "the arguments do not fit the function", expected=", ".join(names),
            found=f"{len(args)} by position, and {', '.join(named) or 'none'} by name",
        )  # fmt: skip
    return [*args, *(named[name] for name in names[len(args) :])]


def _tvm_text(error: IxionError) -> str:
    """The error's text with the check that failed in the last line, where TVM programs read it."""
    first, *rest = str(error).split("\n")
    return "\n".join([*(line.strip() for line in rest), first])


__all__ = ["ConstructorValue", "Executor", "RefValue"]
