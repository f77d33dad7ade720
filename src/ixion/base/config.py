"""One table of options, each settable by environment variable, context manager, or call.

Resolution order: the innermost ``override``, then the environment variable ``IXION_<NAME>``, then
the default. Overrides follow the context (threads and tasks), as ``contextvars`` do.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ixion.base.errors import ConfigError, did_you_mean


class Option(NamedTuple):
    """A row of the table. ``kind`` is the type of its values, None aside."""

    name: str
    kind: type
    default: Any
    doc: str

    @property
    def env(self) -> str:
        """The environment variable that sets it."""
        return "IXION_" + self.name.upper()


OPTIONS: dict[str, Option] = {}
_overrides: contextvars.ContextVar[Mapping[str, Any]] = contextvars.ContextVar("ixion_overrides")


def define(name: str, kind: type, default: Any, doc: str) -> None:
    """Enter an option in the table; ConfigError where the name is taken by a different one."""
    option = Option(name, kind, default, doc)
    if OPTIONS.setdefault(name, option) != option:
        raise ConfigError(f"option {name!r} is defined already", found=OPTIONS[name])


define("target", str, "native", "CPU to compile for: native, avx512, avx2, generic, neon")
define("opt_level", int, 3, "how much to optimise, 0 to 3")
define("threads", int, None, "worker threads per run; None: as many as the process may use")
define("executor", str, "compiled", "compiled or reference")
define("verify", bool, False, "evaluate the program after every pass and compare")
define("cache_dir", str, None, "folder of the compile caches; None: the user's cache folder")
define("cache_limit_mb", int, 2048, "size at which the oldest cache entries are removed")
define("cache", bool, True, "use the caches of kernels and compiled models")
define("compile_jobs", int, None, "processes that compile kernels; None: as many as cores")
define("spin_us", int, 50, "microseconds a worker spins for work before it sleeps")
define("shape_cache", int, 16, "compiled shapes kept for a model with symbolic inputs")
define("plan_cache", int, 64, "combinations of sizes whose plans a model keeps")
define("call_depth", int, 1_000_000, "calls a program with control flow may nest")
define("progress", bool, True, "show a progress bar on long work in a terminal")

_WORDS = {"1": True, "true": True, "yes": True, "on": True}
_WORDS |= {"0": False, "false": False, "no": False, "off": False, "": False}


def _as_bool(text: str) -> bool:
    return _WORDS[text.strip().lower()]


_FROM_TEXT: dict[type, Callable[[str], Any]] = {bool: _as_bool}


def _option(name: str) -> Option:
    found = OPTIONS.get(name)
    if found is None:
        raise ConfigError(f"unknown option {name!r}", hint=did_you_mean(name, OPTIONS))
    return found


def _checked(option: Option, value: Any, where: str | None = None) -> Any:
    if value is None and option.default is None:
        return None
    if isinstance(value, str) and option.kind is not str:
        try:
            return _FROM_TEXT.get(option.kind, option.kind)(value)
        except (ValueError, KeyError):
            pass
    elif isinstance(value, option.kind) and (option.kind is bool or not isinstance(value, bool)):
        return value
    elif option.kind is float and type(value) is int:
        return float(value)
    raise ConfigError(
        f"bad value for option {option.name!r}",
        where=where,
        expected=option.kind.__name__,
        found=repr(value),
    )


def get(name: str) -> Any:
    """The value of an option now; ConfigError for an unknown name or a malformed variable."""
    option = _option(name)
    values = _overrides.get({})
    if name in values:
        return values[name]
    text = os.environ.get(option.env)
    if text is None or (text == "" and option.kind is not bool):
        return option.default
    return _checked(option, text, where=f"environment variable {option.env}")


@contextlib.contextmanager
def override(**values: Any) -> Iterator[None]:
    """Set options within a ``with`` block."""
    checked = {name: _checked(_option(name), value) for name, value in values.items()}
    token = _overrides.set({**_overrides.get({}), **checked})
    try:
        yield
    finally:
        _overrides.reset(token)
