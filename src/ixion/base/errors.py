"""Every error Ixion raises on purpose.

A user sees the message first, then where it happened, what was expected and found, and a hint.
Each class also derives from the built-in exception a Python caller would try to catch.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate most similar to ``name``; None where none could be meant."""
    names = list(candidates)
    found = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if found:
        return found[0]
    lowered = {candidate.lower(): candidate for candidate in names}
    return lowered.get(name.lower())


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """A hint naming the nearest candidate, or None."""
    best = nearest(name, candidates)
    return None if best is None else f"did you mean {best!r}?"


class IxionError(Exception):
    """Base of all deliberate errors.

    ``where`` is a place (a file, a node name, a span); ``expected`` and ``found`` tell a mismatch.
    """

    def __init__(
        self,
        message: str,
        *,
        where: object = None,
        expected: object = None,
        found: object = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.expected = expected
        self.found = found
        self.hint = hint

    def __str__(self) -> str:
        parts = [self.message]
        for label in ("where", "expected", "found", "hint"):
            value = getattr(self, label)
            if value is not None:
                parts.append(f"  {label}: {value}")
        return "\n".join(parts)

    def __reduce__(self) -> tuple[object, ...]:
        # The default would call the class with the message alone, which not all accept.
        return (_rebuild, (type(self), self.args, self.__dict__))


def _rebuild(
    kind: type[IxionError], args: tuple[object, ...], state: dict[str, object]
) -> IxionError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class ModelFormatError(IxionError, ValueError):
    """A model file that is malformed, truncated or not of the format it claims."""


class UnsupportedOpError(IxionError):
    """Operators of a model that have no import, all at once.

    ``ops`` holds ``(operator, count, places)`` with a few places each.
    """

    def __init__(
        self,
        ops: Sequence[tuple[str, int, Sequence[str]]],
        *,
        where: object = None,
        hint: str | None = None,
    ) -> None:
        self.ops = [(name, count, tuple(places)) for name, count, places in ops]
        total = sum(count for _, count, _ in self.ops)
        lines = [f"{len(self.ops)} unsupported operator(s), {total} node(s) in all:"]
        for name, count, places in self.ops:
            shown = ", ".join(places[:3]) + (", ..." if len(places) > 3 else "")
            lines.append(f"  {name} x{count}" + (f" at {shown}" if shown else ""))
        super().__init__("\n".join(lines), where=where, hint=hint)


class DiagnosticError(IxionError):
    """Text or type diagnostics, rendered with the source line and a caret.

    ``diagnostics`` holds the diagnostic objects that were reported.
    """

    def __init__(
        self,
        message: str,
        *,
        diagnostics: Sequence[object] = (),
        where: object = None,
        expected: object = None,
        found: object = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, where=where, expected=expected, found=found, hint=hint)
        self.diagnostics = tuple(diagnostics)


class TypeInferenceError(DiagnosticError, TypeError):
    """A type relation that cannot hold; the message names both types and the rule."""


class InputError(IxionError, ValueError):
    """An input with a wrong name, rank, shape or dtype."""


class AttributesError(IxionError, TypeError, ValueError):
    """A value that an attribute does not accept."""


class UnknownAttributeError(IxionError, AttributeError):
    """An attribute name that the operator does not have."""


class RegistryError(IxionError, ValueError):
    """A name registered twice, unknown, or given two values of equal rank."""


class PassError(IxionError):
    """A pass that failed, is unknown, or whose result is not well formed."""


class CodegenError(IxionError):
    """A kernel that could not be turned into machine code."""


class KernelError(IxionError, RuntimeError):
    """A fault at run time: which step of the program, which node of the model, which task index."""

    def __init__(
        self,
        message: str,
        *,
        step: int | None = None,
        node: str | None = None,
        index: int | None = None,
        hint: str | None = None,
    ) -> None:
        named = (("step", step), ("node", node), ("index", index))
        place = ", ".join(f"{name} {value}" for name, value in named if value is not None)
        super().__init__(message, where=place or None, hint=hint)
        self.step = step
        self.node = node
        self.index = index


class CacheError(IxionError):
    """A cached object or artifact that is damaged or made for another machine or version."""


class ConfigError(IxionError, ValueError):
    """An unknown option or a value an option does not accept."""
