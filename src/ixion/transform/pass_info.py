"""What the infrastructure knows about a pass before running it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["PassInfo"]


@dataclass(frozen=True, init=False, repr=False)
class PassInfo:
    """Name, level and requirements of a pass (Relay's ``transform.PassInfo``).

    ``opt_level`` is compared with the context's level by :class:`Sequential` only; ``required``
    names passes that a :class:`Sequential` runs first.
    """

    opt_level: int
    name: str
    required: tuple[str, ...]
    traceable: bool

    def __init__(
        self,
        opt_level: int,
        name: str,
        required: Sequence[str] | None = None,
        traceable: bool = False,
    ) -> None:
        object.__setattr__(self, "opt_level", opt_level)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "required", tuple(required or ()))
        object.__setattr__(self, "traceable", traceable)

    def __repr__(self) -> str:
        required = ", ".join(self.required)
        return (
            f"The meta data of the pass - pass name: {self.name}, "
            f"opt_level: {self.opt_level}, required passes: [{required}]"
        )
