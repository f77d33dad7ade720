"""``tvm.target``: target names. Every target that means a CPU compiles for this one."""

from __future__ import annotations

from typing import Any


class TargetKind(str):
    """What a target is called."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The same as text."""
        return str(self)


class Target:
    """A target by its description, such as ``llvm -mcpu=core-avx2``."""

    def __init__(self, target: Any = "llvm", host: Any = None) -> None:
        if isinstance(target, dict):
            target = target.get("kind", "llvm")
        self.text = str(target)
        self.kind = TargetKind(self.text.split()[0])
        self.host = None if host is None else Target(host)

    @property
    def keys(self) -> tuple[str, ...]:
        """What the target is, from special to general."""
        return ("cpu",) if self.kind in ("llvm", "c") else (self.kind, "gpu")

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *problem: object) -> None:
        return None

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


__all__ = ["Target", "TargetKind"]
