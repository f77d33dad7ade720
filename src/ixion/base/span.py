"""Source spans: the place in a model file or a program text that a node came from."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import ClassVar


class SourceName:
    """The name of a source; equal names are one object."""

    __slots__ = ("__weakref__", "name")
    _interned: ClassVar[weakref.WeakValueDictionary[str, SourceName]] = (
        weakref.WeakValueDictionary()
    )
    name: str

    def __new__(cls, name: str) -> SourceName:
        found = cls._interned.get(name)
        if found is None:
            found = object.__new__(cls)
            found.name = name
            found = cls._interned.setdefault(name, found)
        return found

    def __repr__(self) -> str:
        return f"SourceName({self.name!r})"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[type[SourceName], tuple[str]]:
        return (SourceName, (self.name,))

    def __deepcopy__(self, memo: object) -> SourceName:
        return self


class Span:
    """A region of one source. Lines and columns count from 1 in texts; binary models have 0.

    ``source_name`` may be None, a string, or a ``SourceName``. Spans compare by value, and no
    expression compares its span.
    """

    __slots__ = ("__weakref__", "column", "end_column", "end_line", "line", "source_name")

    def __init__(
        self,
        source_name: SourceName | str | None,
        line: int = 0,
        end_line: int = 0,
        column: int = 0,
        end_column: int = 0,
    ) -> None:
        self.source_name = SourceName(source_name) if isinstance(source_name, str) else source_name
        self.line = line
        self.end_line = end_line
        self.column = column
        self.end_column = end_column

    def merge(self, other: Span) -> Span:
        """The smallest span that covers both; ValueError where they lie in different sources."""
        if self.source_name is not other.source_name:
            raise ValueError(f"cannot merge spans of {self.source_name} and {other.source_name}")
        start = min((self.line, self.column), (other.line, other.column))
        end = max((self.end_line, self.end_column), (other.end_line, other.end_column))
        return Span(self.source_name, start[0], end[0], start[1], end[1])

    def same_as(self, other: object) -> bool:
        """Identity."""
        return self is other

    def _key(self) -> tuple[object, ...]:
        return (self.source_name, self.line, self.end_line, self.column, self.end_column)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        name = None if self.source_name is None else self.source_name.name
        return f"Span({name!r}, {self.line}, {self.end_line}, {self.column}, {self.end_column})"

    def __str__(self) -> str:
        name = "" if self.source_name is None else self.source_name.name
        return f"{name}:{self.line}:{self.column}" if self.line else name


class SequentialSpan(Span):
    """Several places, for a node that a pass made out of several; nested ones are flattened.

    Its own line and column fields are those of the first place.
    """

    __slots__ = ("spans",)

    def __init__(self, spans: Sequence[Span]) -> None:
        flat: list[Span] = []
        for span in spans:
            flat.extend(span.spans if isinstance(span, SequentialSpan) else (span,))
        first = flat[0] if flat else Span(None)
        super().__init__(
            first.source_name, first.line, first.end_line, first.column, first.end_column
        )
        self.spans: tuple[Span, ...] = tuple(flat)

    def _key(self) -> tuple[object, ...]:
        return self.spans

    def __repr__(self) -> str:
        return f"SequentialSpan({list(self.spans)!r})"

    def __str__(self) -> str:
        return ", ".join(str(span) for span in self.spans)


__all__ = ["SequentialSpan", "SourceName", "Span"]
