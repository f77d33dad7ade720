"""What runs a program: one place that says which executor's name means which of Ixion's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ixion import analysis
from ixion.base.errors import InputError
from ixion.ir import IRModule, TensorType, TupleType, Type

Run = Callable[[Sequence[Any]], Any]

KINDS = ("debug", "vm", "graph", "aot")


def runner(kind: str, module: IRModule, entry: str) -> Run:
    """What computes function ``entry`` of a typed module from values of Ixion.

    ``graph`` and ``aot`` compile, and take programs of static tensors alone; ``vm`` compiles every
    program; ``debug`` evaluates it by the operators' references.
    """
    if kind in ("graph", "aot"):
        return _compiled(module, entry)
    if kind == "vm":
        return _machine(module, entry)
    return lambda args: analysis.evaluate(module[entry], args, module)


def _machine(module: IRModule, entry: str) -> Run:
    """Any program: segments compiled, control flow and what data sizes around them."""
    from ixion.driver.compilation import compile as compile_model
    from ixion.driver.machine import MachineExecutable

    alone = module.clone()
    alone["main"] = module[entry]
    model = compile_model(alone)
    if isinstance(model, MachineExecutable):
        return lambda args: model.call(*args)
    kind = module[entry].body.checked_type

    def run(args: Sequence[Any]) -> Any:
        return _packed(kind, iter(model.run_flat(list(_flat(args)))))

    return run


def _compiled(module: IRModule, entry: str) -> Run:
    from ixion.driver.compilation import compile as compile_model

    function = module[entry]
    _require_static(function.ret_type)
    alone = module.clone()
    alone["main"] = function
    model = compile_model(alone)

    def run(args: Sequence[Any]) -> Any:
        results = iter(model.run_flat(list(_flat(args))))
        return _packed(function.ret_type, results)

    return run


def _require_static(kind: Type) -> None:
    for part in kind.fields if isinstance(kind, TupleType) else (kind,):
        if isinstance(part, TupleType):
            _require_static(part)
        elif not isinstance(part, TensorType) or not all(isinstance(d, int) for d in part.shape):
            raise InputError(
                "this executor takes static tensors only", found=str(part),
                hint='the executor "vm" takes every program',
            )  # fmt: skip


def _flat(args: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    pending = list(reversed(args))
    while pending:
        arg = pending.pop()
        if isinstance(arg, tuple):
            pending.extend(reversed(arg))
        else:
            found.append(np.asarray(arg))
    return found


def _packed(kind: Type, results: Any) -> Any:
    if isinstance(kind, TupleType):
        return tuple(_packed(field, results) for field in kind.fields)
    return next(results)


__all__ = ["KINDS", "Run", "runner"]
