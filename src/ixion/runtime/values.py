"""Values of programs that are no tensors: data types, functions, references."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["Closure", "ConstructorLike", "ConstructorValue", "RefValue"]


class ConstructorLike(Protocol):
    """What made a value: an IR constructor, or a compiled program's record of one."""

    @property
    def name_hint(self) -> str: ...

    @property
    def tag(self) -> int: ...


class RefValue:
    """A mutable cell."""

    __slots__ = ("__weakref__", "value")

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "RefValue(...)"


class ConstructorValue:
    """A value of an algebraic data type: its constructor and its fields.

    ``tag`` is the constructor's: the same for every module that defines the data type alike.
    """

    __slots__ = ("__weakref__", "constructor", "fields", "tag")

    def __init__(self, constructor: ConstructorLike, fields: tuple[Any, ...] = ()) -> None:
        self.constructor = constructor
        self.fields = fields
        self.tag = constructor.tag

    def __repr__(self) -> str:
        # Fields are left out: a list may be a million values deep.
        return f"{self.constructor.name_hint}({', '.join(['...'] * len(self.fields))})"


class Closure:
    """A function with what it sees of its surroundings.

    Opaque outside the executor that made it: what ``func`` and ``frame`` are is its own business.
    """

    __slots__ = ("__weakref__", "frame", "func")

    def __init__(self, func: Any, frame: Any) -> None:
        self.func = func
        self.frame = frame

    def __repr__(self) -> str:
        return "Closure(...)"
