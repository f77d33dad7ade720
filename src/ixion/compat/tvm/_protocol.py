"""Where Relay's object protocol differs from Ixion's in ways that programs see.

Installed once, when the adapter is imported: a constant's data is an ``NDArray`` (``.numpy()``),
and what a module lists is a Map whose items can be indexed.
"""

from __future__ import annotations

from typing import Any

from ixion.compat.tvm.nd import NDArray
from ixion.ir import Constant, IRModule, Map


class ItemMap(Map):
    """A Map whose keys, values and items are lists."""

    __slots__ = ()

    def items(self) -> Any:
        """(key, value) pairs."""
        return [(key, self[key]) for key in self]

    def keys(self) -> Any:
        """The keys."""
        return list(self)

    def values(self) -> Any:
        """The values."""
        return [self[key] for key in self]


class _DataField:
    """A slot that shows its array as ``NDArray``."""

    def __init__(self, slot: Any) -> None:
        self.slot = slot

    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self
        return self.slot.__get__(owner, kind).view(NDArray)

    def __set__(self, owner: Any, value: Any) -> None:
        self.slot.__set__(owner, value)


def _listed(original: Any) -> property:
    return property(lambda self: ItemMap(original.fget(self)), doc=original.__doc__)


def install() -> None:
    """Put the differences in place; a second call does nothing."""
    slot = Constant.__dict__["data"]
    if isinstance(slot, _DataField):
        return
    type.__setattr__(Constant, "data", _DataField(slot))
    for name in ("functions", "type_definitions"):
        type.__setattr__(IRModule, name, _listed(IRModule.__dict__[name]))
    type.__setattr__(IRModule, "import_from_std", _import_from_std)
    type.__setattr__(IRModule, "_add", _add)


def _import_from_std(module: IRModule, file_to_import: str) -> None:
    from ixion.compat.tvm.relay.std_library import import_from_std

    import_from_std(module, file_to_import)


def _add(module: IRModule, name: Any, value: Any, update: bool = False) -> None:
    module[name] = value


__all__ = ["ItemMap", "install"]
