"""Places inside a node, as ``<root>.body.args[0]``."""

from __future__ import annotations

from typing import Any, NamedTuple


class ObjectPath:
    """A path from a root node; each step extends its parent, so long paths share beginnings."""

    __slots__ = ("_parent", "_step", "depth")

    def __init__(
        self, parent: ObjectPath | None = None, step: tuple[str, Any] = ("", None)
    ) -> None:
        self._parent = parent
        self._step = step
        self.depth: int = 1 if parent is None else parent.depth + 1

    @staticmethod
    def root(name: str | None = None) -> ObjectPath:
        """The path of the root itself, with a name of its own if given."""
        return ObjectPath(None, ("root", name))

    @property
    def parent(self) -> ObjectPath | None:
        """The path one step shorter; None for a root."""
        return self._parent

    def attr(self, name: str | None) -> ObjectPath:
        """A field; None for an attribute that the other side does not have."""
        return ObjectPath(self, ("attr", name))

    def array_index(self, index: int) -> ObjectPath:
        """An element of a sequence."""
        return ObjectPath(self, ("index", index))

    def missing_array_element(self, index: int) -> ObjectPath:
        """Where the other side has an element and this one has not."""
        return ObjectPath(self, ("no_index", index))

    def map_value(self, key: Any) -> ObjectPath:
        """The value of a key."""
        return ObjectPath(self, ("key", key))

    def missing_map_entry(self) -> ObjectPath:
        """Where the other side has an entry and this one has not."""
        return ObjectPath(self, ("no_key", None))

    def _steps(self) -> list[tuple[str, Any]]:
        steps = []
        path: ObjectPath | None = self
        while path is not None:
            steps.append(path._step)
            path = path._parent
        return steps[::-1]

    def is_prefix_of(self, other: ObjectPath) -> bool:
        """``other`` is this path or goes on from it."""
        mine, theirs = self._steps(), other._steps()
        return theirs[: len(mine)] == mine

    def __len__(self) -> int:
        return self.depth

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectPath) and self._steps() == other._steps()

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return "".join(map(_step_text, self._steps()))

    __repr__ = __str__


def _step_text(step: tuple[str, Any]) -> str:
    kind, value = step
    if kind == "root":
        return "<root>" if value is None else str(value)
    if kind == "attr":
        return ".<unknown attribute>" if value is None else f".{value}"
    if kind == "index":
        return f"[{value}]"
    if kind == "no_index":
        return f"[<missing element #{value}>]"
    if kind == "no_key":
        return "[<missing entry>]"
    hint = getattr(value, "name_hint", None)
    return (
        f'["{value}"]'
        if isinstance(value, str)
        else f"[{value!r}]"
        if hint is None
        else f"[{hint}]"
    )


class ObjectPathPair(NamedTuple):
    """The same difference seen from both sides."""

    lhs_path: ObjectPath
    rhs_path: ObjectPath


__all__ = ["ObjectPath", "ObjectPathPair"]
