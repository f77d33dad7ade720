"""Watching passes: callbacks around every pass of a context."""

from __future__ import annotations

import functools
import inspect
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ixion.ir import IRModule
    from ixion.transform.pass_info import PassInfo

__all__ = [
    "PassInstrument",
    "PassPrintingInstrument",
    "PassTimingInstrument",
    "PrintAfterAll",
    "PrintBeforeAll",
    "pass_instrument",
]


class PassInstrument:
    """Callbacks around passes; override those that are wanted.

    ``should_run`` may veto a pass by returning False; it is not asked for passes the context
    requires.
    """

    def enter_pass_ctx(self) -> None:
        """The context is about to be entered."""

    def exit_pass_ctx(self) -> None:
        """The context has been left."""

    def should_run(self, mod: IRModule, info: PassInfo) -> bool | None:
        """Whether the pass may run; None means yes."""
        return None

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """The pass is about to run on ``mod``."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """The pass gave back ``mod``."""

    def asks_to_run(self, mod: IRModule, info: PassInfo) -> bool:
        answer = self.should_run(mod, info)
        return answer is None or bool(answer)


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")


def _wrapped(cls: type) -> type[PassInstrument]:
    if issubclass(cls, PassInstrument):
        return cls

    class Wrapped(cls, PassInstrument):  # type: ignore[misc]  # cls is only known at run time
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)

    functools.update_wrapper(vars(Wrapped)["__init__"], vars(cls).get("__init__", object.__init__))
    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(Wrapped, name, getattr(cls, name))
    return Wrapped


def pass_instrument(
    pi_cls: type | None = None,
) -> type[PassInstrument] | Callable[[type], type[PassInstrument]]:
    """Class decorator: any class with some of the callbacks becomes an instrument."""

    def decorate(cls: type) -> type[PassInstrument]:
        if not inspect.isclass(cls):
            raise TypeError("pi_cls must be a class")
        return _wrapped(cls)

    return decorate if pi_cls is None else decorate(pi_cls)


@dataclass
class _Profile:
    name: str
    seconds: float = 0.0
    children: list[_Profile] = field(default_factory=list)

    def lines(self, depth: int, total: float) -> Iterable[str]:
        inner = sum(child.seconds for child in self.children)
        share = 100.0 * self.seconds / total if total else 0.0
        yield (
            f"{'    ' * depth}{self.name}: {self.seconds * 1e6:.0f}us "
            f"[{(self.seconds - inner) * 1e6:.0f}us] ({share:.2f}%)"
        )
        for child in self.children:
            yield from child.lines(depth + 1, total)


class PassTimingInstrument(PassInstrument):
    """Wall time of every pass, nested as the passes were."""

    def __init__(self) -> None:
        self._open: list[tuple[_Profile, float]] = []
        self._roots: list[_Profile] = []

    def enter_pass_ctx(self) -> None:
        self._clear()

    def exit_pass_ctx(self) -> None:
        self._clear()

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._open.append((_Profile(info.name), time.perf_counter()))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        # A pass that raised never came back here: drop its frame, and those inside it.
        while self._open and self._open[-1][0].name != info.name:
            self._open.pop()
        if not self._open:
            return
        profile, started = self._open.pop()
        profile.seconds = time.perf_counter() - started
        (self._open[-1][0].children if self._open else self._roots).append(profile)

    def seconds(self) -> list[tuple[str, float]]:
        """Outermost passes in order with their total time."""
        return [(profile.name, profile.seconds) for profile in self._roots]

    def render(self) -> str:
        """One line a pass: total and own microseconds, share of the whole."""
        total = sum(root.seconds for root in self._roots)
        lines = [line for root in self._roots for line in root.lines(0, total)]
        return "\n".join(lines)

    def _clear(self) -> None:
        self._open.clear()
        self._roots.clear()


class PassPrintingInstrument(PassInstrument):
    """Prints the module before and after the named passes."""

    def __init__(
        self, print_before_pass_names: Iterable[str], print_after_pass_names: Iterable[str]
    ) -> None:
        self.print_before_pass_names = tuple(print_before_pass_names)
        self.print_after_pass_names = tuple(print_after_pass_names)

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if info.name in self.print_before_pass_names:
            _write(f"Print IR before: {info.name}\n{mod}\n\n")

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        if info.name in self.print_after_pass_names:
            _write(f"Print IR after: {info.name}\n{mod}\n\n")


class PrintAfterAll(PassInstrument):
    """Prints the module after every pass."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        _write(f"After Running Pass: {info}\n{mod}")


class PrintBeforeAll(PassInstrument):
    """Prints the module before every pass."""

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        _write(f"Before Running Pass: {info}\n{mod}")
