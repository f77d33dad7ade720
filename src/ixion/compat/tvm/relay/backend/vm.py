"""``tvm.relay.vm``: programs made for the virtual machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ixion.compat.tvm.relay.parameters import bind_params_by_name
from ixion.compat.tvm.runtime.vm import Executable
from ixion.ir import IRModule


def compile(  # noqa: A001 - TVM's name
    mod: Any, target: Any = None, target_host: Any = None, params: Mapping[str, Any] | None = None
) -> Executable:
    """The executable of a module or function; ``params`` become constants of its main."""
    module = mod.clone() if isinstance(mod, IRModule) else IRModule.from_expr(mod)
    if params:
        module["main"] = bind_params_by_name(module["main"], params)
    return Executable(module)


__all__ = ["Executable", "compile"]
