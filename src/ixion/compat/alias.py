"""Makes a foreign top-level name import one of the packages here."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from ixion.base.errors import IxionError, did_you_mean

KNOWN = ("tvm", "nnvm", "tinyflow", "kuiper")


class _AliasLoader(Loader):
    def __init__(self, real: str) -> None:
        self.real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        # The import system returns whatever stands in sys.modules afterwards: the real module,
        # so there is one object under two names.
        sys.modules[module.__name__] = importlib.import_module(self.real)


class AliasFinder(MetaPathFinder):
    """Finds ``name`` and everything below it as ``target`` and what is below that."""

    def __init__(self, name: str, target: str) -> None:
        self.name = name
        self.target = target

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A spec for names under the alias that have a real module."""
        if fullname != self.name and not fullname.startswith(self.name + "."):
            return None
        real = self.target + fullname[len(self.name) :]
        if real not in sys.modules and importlib.util.find_spec(real) is None:
            return None
        spec = ModuleSpec(fullname, _AliasLoader(real), is_package=True)
        spec.submodule_search_locations = []
        return spec


def install(name: str) -> AliasFinder:
    """Let ``import name`` mean ``ixion.compat.name`` from now on; the finder may be removed again.

    Raises IxionError for a name that has no adapter, or that is imported already from elsewhere.
    """
    target = f"ixion.compat.{name}"
    if name not in KNOWN or importlib.util.find_spec(target) is None:
        raise IxionError(f"there is no adapter for {name!r}", hint=did_you_mean(name, KNOWN))
    loaded = sys.modules.get(name)
    if loaded is not None and loaded is not sys.modules.get(target):
        raise IxionError(f"{name!r} is imported already", where=getattr(loaded, "__file__", None))
    for finder in sys.meta_path:
        if isinstance(finder, AliasFinder) and finder.name == name:
            return finder
    finder = AliasFinder(name, target)
    sys.meta_path.insert(0, finder)
    return finder


__all__ = ["AliasFinder", "install"]
