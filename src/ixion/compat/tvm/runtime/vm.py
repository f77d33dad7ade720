"""``tvm.runtime.vm``: programs of functions, kept as code and run."""

from __future__ import annotations

import hashlib
from typing import Any

from ixion.base.errors import InputError, ModelFormatError
from ixion.compat.tvm.relay.backend.interpreter import Executor
from ixion.compat.tvm.runtime.module import Module
from ixion.ir import (
    Call,
    Function,
    IRModule,
    Op,
    load_json,
    post_order_visit,
    pretty_print,
    save_json,
)
from ixion.transform import FuseOps, InferType


class Executable:
    """A typed program of one or more functions."""

    def __init__(self, module: IRModule) -> None:
        self.module = InferType()(module)

    @property
    def globals(self) -> list[str]:
        """The names of the functions."""
        return [var.name_hint for var, _ in self.module.functions_items()]

    @property
    def primitive_ops(self) -> list[str]:
        """What the kernels of the program are called by, from the operators each one fuses."""
        found: dict[str, None] = {}

        def look(node: Any) -> None:
            if isinstance(node, Function) and node.get_attr("Primitive"):
                found["vm_mod_fused_" + "_".join(_operators(node))] = None

        for _, function in FuseOps(fuse_opt_level=2)(self.module).functions_items():
            post_order_visit(function, look)
        return list(found)

    @property
    def bytecode(self) -> str:
        """The functions as text: name and parameters, then the body."""
        parts = []
        for var, function in self.module.functions_items():
            params = ", ".join(param.name_hint for param in function.params)
            parts.append(f"{var.name_hint}({params}):\n{pretty_print(function)}\n")
        return "\n".join(parts)

    def save(self) -> tuple[bytearray, Module]:
        """The program as code that ``load_exec`` reads, and the library that belongs to it."""
        code = save_json(self.module).encode()
        return bytearray(code), Module(hashlib.sha256(code).hexdigest())

    @staticmethod
    def load_exec(bytecode: Any, lib: Module) -> Executable:
        """The program that was saved; ModelFormatError where code and library do not belong
        together.
        """
        code = bytes(bytecode)
        if hashlib.sha256(code).hexdigest() != lib.digest:
            raise ModelFormatError("the code is not that of the library's program")
        module = load_json(code.decode())
        if not isinstance(module, IRModule):
            raise ModelFormatError("the code holds no program", found=type(module).__name__)
        return Executable(module)


def _operators(function: Function) -> list[str]:
    names: list[str] = []

    def look(node: Any) -> None:
        if isinstance(node, Call) and isinstance(node.op, Op):
            names.append(node.op.name.replace(".", "_"))

    post_order_visit(function, look)
    return names


class VirtualMachine:
    """Runs the functions of an executable."""

    def __init__(self, exe: Executable, device: Any = None, memory_cfg: Any = None) -> None:
        self.exe = exe
        self._executor = Executor("vm", exe.module, device, "llvm")
        self._functions: dict[str, Any] = {}
        self._inputs: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {}

    def invoke(self, func_name: str, *args: Any, **named: Any) -> Any:
        """The result of a function; InputError for a name that no function has."""
        if func_name not in self._functions:
            if func_name not in self.exe.module:
                raise InputError(
                    f"the program has no function {func_name}", expected=", ".join(self.exe.globals)
                )
            variable = self.exe.module.get_global_var(func_name)
            self._functions[func_name] = self._executor.evaluate(variable)
        return self._functions[func_name](*args, **named)

    def set_input(self, func_name: str, *args: Any, **named: Any) -> None:
        """Keep the arguments for a run of the function that is given none."""
        self._inputs[func_name] = (args, named)

    def run(self, *args: Any, **named: Any) -> Any:
        """The result of ``main``."""
        if not args and not named:
            args, named = self._inputs.get("main", ((), {}))
        return self.invoke("main", *args, **named)


__all__ = ["Executable", "VirtualMachine"]
