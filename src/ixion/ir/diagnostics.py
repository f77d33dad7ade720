"""Diagnostics: messages that point into a text, with its line and a caret.

A ``DiagnosticContext`` collects them, so that one run of the parser or of a pass can report
several; ``render`` raises ``DiagnosticError`` where any of them is an error. The class names, the
levels and the renderer hook are Relay's.
"""

from __future__ import annotations

import bisect
import enum
from collections.abc import Callable, Mapping
from typing import NoReturn

from ixion.base.errors import DiagnosticError
from ixion.base.span import SequentialSpan, SourceName, Span


class DiagnosticLevel(enum.IntEnum):
    """How grave a diagnostic is. BUG and ERROR make ``render`` raise."""

    BUG = 10
    ERROR = 20
    WARNING = 30
    NOTE = 40
    HELP = 50


class Diagnostic:
    """One message about the place ``span``."""

    __slots__ = ("level", "message", "span")

    def __init__(self, level: int, span: Span | None, message: str) -> None:
        self.level = DiagnosticLevel(level)
        self.span = span
        self.message = message

    @classmethod
    def error(cls, span: Span | None, message: str) -> Diagnostic:
        """A diagnostic of level ERROR."""
        return cls(DiagnosticLevel.ERROR, span, message)

    @classmethod
    def help(cls, span: Span | None, message: str) -> Diagnostic:
        """A diagnostic of level HELP: what the user could do about the error before it."""
        return cls(DiagnosticLevel.HELP, span, message)

    def __repr__(self) -> str:
        return f"Diagnostic({self.level.name}, {self.span}, {self.message!r})"


class SourceText:
    """A named text with a line table, for turning offsets into spans and spans into excerpts."""

    __slots__ = ("name", "starts", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name = SourceName(name)
        self.text = text
        starts = [0]
        at = text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = text.find("\n", at + 1)
        self.starts = starts

    def span(self, start: int, end: int) -> Span:
        """The span of ``text[start:end]``; lines and columns count from 1."""
        starts = self.starts
        first = bisect.bisect_right(starts, start)
        if first == len(starts) or end <= starts[first]:
            last = first
        else:
            last = bisect.bisect_right(starts, end)
        return Span(
            self.name, first, last, start - starts[first - 1] + 1, end - starts[last - 1] + 1
        )

    def line(self, number: int) -> str | None:
        """Line ``number`` (from 1) without its end, or None where the text has no such line."""
        if not 1 <= number <= len(self.starts):
            return None
        start = self.starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start:] if end < 0 else self.text[start:end]


_MAX_LINE = 160


def _excerpt(line: str, column: int, width: int) -> tuple[str, int, int]:
    """A window of a long line around ``column``: the window, its column and the caret's width."""
    line = line.replace("\t", " ")
    start = 0 if column <= _MAX_LINE // 2 else column - _MAX_LINE // 2
    window = line[start : start + _MAX_LINE]
    return window, column - start, max(1, min(width, len(window) - (column - start) + 1))


def render_one(diagnostic: Diagnostic, sources: dict[str, SourceText | str]) -> str:
    """The text of one diagnostic: level, message, place, source line and caret."""
    lines = [f"{diagnostic.level.name.lower()}: {diagnostic.message}"]
    span = diagnostic.span
    if isinstance(span, SequentialSpan) and span.spans:
        span = span.spans[0]
    if span is None or span.source_name is None:
        return lines[0]
    lines.append(f" --> {span.source_name.name}:{span.line}:{span.column}")
    source = sources.get(span.source_name.name)
    if isinstance(source, str):
        source = sources[span.source_name.name] = SourceText(span.source_name.name, source)
    line = source.line(span.line) if source is not None else None
    if line is not None:
        wide = span.end_column - span.column if span.end_line == span.line else len(line)
        text, column, width = _excerpt(line, span.column, wide)
        margin = " " * len(str(span.line))
        lines.append(f"{margin} |")
        lines.append(f"{span.line} | {text}")
        lines.append(f"{margin} | {' ' * (column - 1)}{'^' * width}")
    return "\n".join(lines)


class DiagnosticRenderer:
    """Turns what a context collected into output by calling ``render_func(context)``."""

    def __init__(self, render_func: Callable[[DiagnosticContext], object]) -> None:
        self.render_func = render_func

    def render(self, context: DiagnosticContext) -> object:
        """Whatever the wrapped function returns."""
        return self.render_func(context)


_override: Callable[[DiagnosticContext], object] | None = None


def override_renderer(render_func: Callable[[DiagnosticContext], object] | None) -> None:
    """Let ``render_func`` see every context before it raises; None returns to the default."""
    global _override
    _override = render_func


def get_renderer() -> DiagnosticRenderer:
    """The renderer in force: the override, or one that does nothing (the error carries the
    text).
    """
    return DiagnosticRenderer(_override if _override is not None else lambda context: None)


class DiagnosticContext:
    """Collects diagnostics about ``module`` and the given sources.

    ``sources`` maps a source name to its text; texts that the module remembers are found too.
    """

    def __init__(
        self,
        module: object = None,
        renderer: DiagnosticRenderer | None = None,
        sources: Mapping[str, SourceText | str] | None = None,
    ) -> None:
        self.module = module
        self.renderer = renderer if renderer is not None else get_renderer()
        self.sources: dict[str, SourceText | str] = dict(sources or {})
        self.diagnostics: list[Diagnostic] = []
        known = getattr(module, "source_map", None)
        if isinstance(known, dict):
            for name, text in known.items():
                self.sources.setdefault(str(name), text)

    def emit(self, diagnostic: Diagnostic) -> None:
        """Record a diagnostic and go on."""
        self.diagnostics.append(diagnostic)

    def emit_fatal(self, diagnostic: Diagnostic, hint: str | None = None) -> NoReturn:
        """Record a diagnostic (and a hint about it), then render and raise ``DiagnosticError``."""
        self.emit(diagnostic)
        if hint is not None:
            self.emit(Diagnostic.help(None, hint))
        self.render()
        raise DiagnosticError(self.text(), diagnostics=self.diagnostics)

    def text(self) -> str:
        """All collected diagnostics as one text."""
        return "\n".join(render_one(item, self.sources) for item in self.diagnostics)

    def render(self) -> None:
        """Show what was collected; raises ``DiagnosticError`` where an error is among it."""
        if not self.diagnostics:
            return
        self.renderer.render(self)
        if any(item.level <= DiagnosticLevel.ERROR for item in self.diagnostics):
            raise DiagnosticError(self.text(), diagnostics=self.diagnostics)


__all__ = [
    "Diagnostic",
    "DiagnosticContext",
    "DiagnosticLevel",
    "DiagnosticRenderer",
    "SourceText",
    "get_renderer",
    "override_renderer",
]
