"""``tvm.relay.build_module``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ixion.base.errors import InputError, did_you_mean
from ixion.compat.tvm.nd import Device, cpu
from ixion.compat.tvm.relay.backend.execution import KINDS
from ixion.compat.tvm.relay.backend.interpreter import Executor
from ixion.compat.tvm.relay.parameters import bind_params_by_name
from ixion.ir import IRModule


def create_executor(
    kind: str = "debug",
    mod: IRModule | None = None,
    device: Device | None = None,
    target: Any = "llvm",
    params: Mapping[str, Any] | None = None,
) -> Executor:
    """What runs programs: ``debug``, ``vm``, ``graph`` or ``aot``.

    ``params`` become constants of the module's main. InputError for another kind.
    """
    if kind not in KINDS:
        raise InputError(
            f"unknown execution strategy: {kind}", expected=", ".join(KINDS),
            hint=did_you_mean(kind, KINDS),
        )  # fmt: skip
    module = IRModule() if mod is None else mod
    if params is not None:
        module = module.clone()
        module["main"] = bind_params_by_name(module["main"], params)
    return Executor(kind, module, cpu() if device is None else device, target)


__all__ = ["bind_params_by_name", "create_executor"]
