"""The texts of ``std/``: where they are, and how a module takes one in."""

from __future__ import annotations

import functools
from importlib import resources

from ixion.compat.tvm.relay.infer_type import InferType
from ixion.ir import IRModule
from ixion.ir.parser import parse


@functools.cache
def _text(name: str) -> str:
    return (resources.files("ixion.compat.tvm") / "std" / name).read_text(encoding="utf-8")


def import_from_std(module: IRModule, file_name: str) -> None:
    """Add the definitions of a library file to a module, and infer its types."""
    parsed = parse(_text(file_name), file_name, init_module=module)
    module.update(InferType()(parsed))


__all__ = ["import_from_std"]
