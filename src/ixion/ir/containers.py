"""Immutable containers inside nodes: sequences are tuples, mappings are ``Map``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ixion.base.errors import IxionError, did_you_mean


class MissingKeyError(IxionError, KeyError):
    """A key that a Map does not have."""


class Map(Mapping[Any, Any]):
    """An immutable mapping. Keys are strings, or nodes by identity (types by structure)."""

    __slots__ = ("__weakref__", "_entries")

    def __init__(self, entries: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = ()) -> None:
        made = {key: as_value(value) for key, value in dict(entries).items()}
        object.__setattr__(self, "_entries", made)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Map is immutable; use updated(...)")

    def __getitem__(self, key: Any) -> Any:
        try:
            return self._entries[key]  # type: ignore[attr-defined]
        except KeyError:
            hint = did_you_mean(key, filter(_is_text, self)) if isinstance(key, str) else None
            raise MissingKeyError(f"cannot find the key {key!r} in the Map", hint=hint) from None

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key, or the default."""
        return self._entries.get(key, default)  # type: ignore[attr-defined]

    def __contains__(self, key: object) -> bool:
        return key in self._entries  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._entries)  # type: ignore[attr-defined]

    def __len__(self) -> int:
        return len(self._entries)  # type: ignore[attr-defined]

    def updated(self, changes: Mapping[Any, Any]) -> Map:
        """A Map with some entries added or replaced."""
        return Map({**self, **changes})

    def without(self, key: Any) -> Map:
        """A Map that lacks a key, whether or not this one has it."""
        return Map({name: value for name, value in self.items() if name != key})

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Mapping) and dict(self) == dict(other))

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return repr(self._entries)  # type: ignore[attr-defined]

    def __reduce__(self) -> tuple[type[Map], tuple[dict[Any, Any]]]:
        return (Map, (dict(self),))


def _is_text(key: object) -> bool:
    return isinstance(key, str)


def as_value(value: Any) -> Any:
    """A value as nodes hold it: ``Map`` for mappings, tuples for lists, no numpy scalars."""
    kind = type(value)
    if value is None or kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return tuple([as_value(item) for item in value])
    if isinstance(value, Map):
        return value
    if isinstance(value, Mapping):
        return Map(value)
    if kind.__module__ == "numpy" and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return value if hasattr(value, "__array_finalize__") else value.item()
    return value


_PLAIN = frozenset({int, float, str, bool})

__all__ = ["Map", "MissingKeyError", "as_value"]
