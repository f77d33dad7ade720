"""Named global functions, and nodes that refer to one by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from ixion.base.errors import RegistryError, did_you_mean
from ixion.ir.node import Node, field, register_node

GLOBAL_FUNCS: dict[str, Callable[..., Any]] = {}
_F = TypeVar("_F", bound=Callable[..., Any])


@overload
def register_func(
    name: str, f: None = None, override: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
@overload
def register_func(name: str, f: _F, override: bool = False) -> _F: ...
@overload
def register_func(name: Callable[..., Any]) -> Callable[..., Any]: ...
def register_func(name: Any, f: Any = None, override: bool = False) -> Any:
    """Enter a function in the global table, directly or as a decorator.

    Raises RegistryError where the name is taken, unless ``override``.
    """
    if callable(name):
        return register_func(name.__name__, name)

    def enter(func: _F) -> _F:
        if name in GLOBAL_FUNCS and not override:
            raise RegistryError(f"global function {name!r} is registered already")
        GLOBAL_FUNCS[name] = func
        return func

    return enter if f is None else enter(f)


def get_global_func(name: str, allow_missing: bool = False) -> Callable[..., Any] | None:
    """The function of that name; None or RegistryError where there is none."""
    found = GLOBAL_FUNCS.get(name)
    if found is None and not allow_missing:
        raise RegistryError(f"no global function {name!r}", hint=did_you_mean(name, GLOBAL_FUNCS))
    return found


@register_node("EnvFunc")
class EnvFunc(Node):
    """A global function by name; it serialises and compares by that name."""

    name: str = field()

    @staticmethod
    def get(name: str) -> EnvFunc:
        """A node for a global function, which may be registered later."""
        return EnvFunc(name)

    @property
    def func(self) -> Callable[..., Any]:
        """The function itself; RegistryError where it is not registered."""
        found = get_global_func(self.name)
        assert found is not None
        return found

    def __call__(self, *args: Any) -> Any:
        return self.func(*args)

    def _json_repr(self) -> str:
        return self.name

    @classmethod
    def _from_json_repr(cls, text: str) -> EnvFunc:
        return cls(text)


__all__ = ["GLOBAL_FUNCS", "EnvFunc", "get_global_func", "register_func"]
