"""Ixion: a deep-learning compiler and inference engine in pure Python.

``ixion.compile(model)`` gives an executable, ``ixion.load(path)`` a program to look at.  Rooms load
when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ixion.base.errors import IxionError
    from ixion.base.target import Target
    from ixion.driver import Executable, compile, load
    from ixion.ir import IRModule

__all__ = [
    "Executable",
    "IRModule",
    "IxionError",
    "Target",
    "__version__",
    "compile",
    "load",
    "parse",
]

_HOMES = {
    "compile": "ixion.driver",
    "load": "ixion.driver",
    "Executable": "ixion.driver",
    "IRModule": "ixion.ir",
    "IxionError": "ixion.base.errors",
    "Target": "ixion.base.target",
    "parse": "ixion.driver.text",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from ixion.base.version import VERSION

        return VERSION
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'ixion' has no attribute {name!r}")
