"""``tvm.runtime.container``: values made of values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class ADT(tuple[Any, ...]):  # noqa: SLOT001 - a tuple's subclass can have no named slot
    """A constructor's fields with its tag; a tuple has the tag 0."""

    tag: int

    def __new__(cls, tag: int, fields: Iterable[Any]) -> ADT:
        made = super().__new__(cls, fields)
        made.tag = tag
        return made

    def __repr__(self) -> str:
        return f"ADT({self.tag}, {list(self)})"


def tuple_object(fields: Iterable[Any] = ()) -> ADT:
    """The tuple of the fields."""
    return ADT(0, fields)


__all__ = ["ADT", "tuple_object"]
