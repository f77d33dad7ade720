"""Where a verb's result goes: tables for people, or one JSON object; errors go to stderr.

A verb returns a report. The screen shows it, so no verb prints. Progress appears only when stderr
is a terminal, and never with `--json`.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ixion.base import config
from ixion.base.errors import (
    InputError,
    IxionError,
    ModelFormatError,
    TypeInferenceError,
    UnsupportedOpError,
    nearest,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Advance = Callable[[], None]


class Screen:
    """Output of one command."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json

    @property
    def console(self) -> Console:
        """Standard output; long lines are not wrapped when nobody's terminal limits them."""
        from rich.console import Console

        width = None if sys.stdout.isatty() else 200
        return Console(highlight=False, width=width, emoji=False)

    @contextmanager
    def working(self, text: str, total: int | None = None) -> Iterator[Advance]:
        """A progress bar while the block runs; the block calls what it is given once a step."""
        if self.as_json or not sys.stderr.isatty() or not config.get("progress"):
            yield lambda: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(text, total=total)
            yield lambda: progress.advance(task)

    def show(self, report: dict[str, Any], draw: Callable[[Console], None]) -> None:
        """Print `report` as JSON, or let `draw` put it on the console."""
        if self.as_json:
            sys.stdout.write(json.dumps(plain(report), allow_nan=False) + "\n")
        else:
            draw(self.console)


def plain(value: Any) -> Any:
    """`value` as JSON can hold it: numbers that JSON lacks become their names."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)


def table(*columns: str, rows: Sequence[Sequence[object]]) -> Table:
    """A light table; a column whose name starts with `>` is right-aligned, all may be nameless."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    titles = [name.lstrip(">") for name in columns]
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=any(titles))
    for name, heading in zip(columns, titles, strict=True):
        grid.add_column(heading, justify="right" if name.startswith(">") else "left")
    for row in rows:
        grid.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    return grid


def shape_text(shape: Sequence[object], dtype: str) -> str:
    """`float32[1, 3, 224, 224]`; a scalar is `float32[]`."""
    return f"{dtype}[{', '.join(map(str, shape))}]"


# What to try where the error itself has no better idea.
_HINTS: tuple[tuple[type[IxionError], str], ...] = (
    (UnsupportedOpError, "a package can define an operator and name it, see CONTRIBUTING.md"),
    (ModelFormatError, "the file may be cut off, damaged or of another kind: export it again"),
    (InputError, "`ixion info MODEL` lists names, shapes and dtypes"),
    (TypeInferenceError, "the file contradicts itself: export it again, with shapes inferred"),
)


def report_error(error: IxionError | OSError) -> None:
    """One clear message with a hint on stderr, without a traceback."""
    text = describe_os_error(error) if isinstance(error, OSError) else describe(error)
    # A diagnostic in program text says already what it is.
    sys.stderr.write(f"error: {text.removeprefix('error: ').rstrip()}\n")


def describe(error: IxionError) -> str:
    """The error's own text, with its class's hint where it has none."""
    hint = next((hint for kind, hint in _HINTS if isinstance(error, kind)), None)
    if error.hint is not None or hint is None:
        return str(error)
    return f"{error}\n  hint: {hint}"


def describe_os_error(error: OSError) -> str:
    """What the system refused, the file, and what to try."""
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        return reason
    hint = _file_hint(error)
    return f"{reason}: {error.filename}" + (f"\n  hint: {hint}" if hint else "")


def _file_hint(error: OSError) -> str | None:
    from pathlib import Path

    if not isinstance(error, FileNotFoundError):
        return "check the path and its permissions"
    path = Path(str(error.filename))
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    close = nearest(path.name, [entry.name for entry in path.parent.iterdir()])
    return f"did you mean {path.parent / close}?" if close else "check the path"
