"""What type inference took for granted about symbolic sizes: checked when the sizes are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ixion.base import dim as dims
from ixion.base.dim import Dim, SymExpr
from ixion.base.errors import InputError
from ixion.base.span import Span

__all__ = ["Guard"]


def _joins(left: int, right: int) -> bool:
    return left == right or (1 in (left, right) and 0 not in (left, right))


_HOLDS: dict[str, Callable[[int, int], bool]] = {
    "equal": lambda left, right: left == right,
    "broadcast": _joins,
    "expand": lambda left, right: left in (1, right),
    "at most": lambda left, right: left <= right,
    "differ": lambda left, right: left != right,
}


@dataclass(frozen=True)
class Guard:
    """A relation between two sizes that holds for some symbol values only.

    ``kind``: ``equal``; ``broadcast``, equal or one of them 1 (and then the other not 0);
    ``expand``, equal or ``left`` 1; ``at most``, ``left <= right``; ``differ``, not equal. ``what``
    is the rule that needs it, ``op`` the operator, ``span`` its place in the model. What only some
    runs reach, in a branch or a function, is not ``certain`` to matter.
    """

    kind: str
    left: Dim
    right: Dim
    what: str = field(compare=False)
    op: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False)
    certain: bool = True

    def symbols(self) -> frozenset[str]:
        """Names of the symbols that decide it."""
        return dims.free_vars(self.left) | dims.free_vars(self.right)

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether it is so for these symbol values; InputError names a symbol without one."""
        left, right = dims.evaluate(self.left, values), dims.evaluate(self.right, values)
        return _HOLDS[self.kind](left, right)

    def failure(self, values: Mapping[str, int]) -> InputError:
        """The error for symbol values that do not fit: it names the sizes and the operator."""
        sizes = ", ".join(f"{name} = {values[name]}" for name in sorted(self.symbols()))
        return InputError(
            f"the model cannot run with {sizes}: {self.what}",
            where=self.place() or None,
            expected=f"{self.left} {_WORDS[self.kind]} {self.right}",
            found=f"{_shown(self.left, values)} and {_shown(self.right, values)}",
        )

    def place(self) -> str:
        """The operator and where in the model it is."""
        return f"{self.op} at {self.span}" if self.span is not None else self.op

    def check(self, values: Mapping[str, int]) -> None:
        """Raises ``failure`` unless it holds."""
        if not self.holds(values):
            raise self.failure(values)

    def plain(self) -> tuple[object, ...]:
        """It as a tuple of texts and dims, for a module's attributes; see ``of``."""
        place = "" if self.span is None else str(self.span)
        return (self.kind, self.left, self.right, self.what, self.op, place, self.certain)

    @classmethod
    def of(cls, plain: tuple[Any, ...]) -> Guard:
        """What ``plain`` was made of; its span is the place alone."""
        kind, left, right, what, op, place, certain = plain
        return cls(kind, left, right, what, op, Span(place) if place else None, bool(certain))

    def __str__(self) -> str:
        return f"{self.left} {_WORDS[self.kind]} {self.right} ({self.op}: {self.what})"


_WORDS = {
    "equal": "=", "broadcast": "broadcasts with", "expand": "expands to", "at most": "<=",
    "differ": "is not",
}  # fmt: skip


def _shown(dim: Dim, values: Mapping[str, int]) -> str:
    number = dims.evaluate(dim, values)
    return f"{dim} = {number}" if isinstance(dim, SymExpr) else str(number)
