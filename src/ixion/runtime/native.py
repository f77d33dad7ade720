"""The machine code the runtime itself needs, and the way to load a program's.

The runtime does not compile, and links only what its own linker understands. Whoever can (the
driver) installs two functions once: one that links object files, one that gives the sequencer's.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ixion.base.errors import ConfigError
from ixion.runtime.linker import UnlinkableError, link


class LoadedCode(Protocol):
    """Linked object files; addresses are valid while this is referenced."""

    def address(self, symbol: str) -> int:
        """Entry address of `symbol`."""
        ...

    def keep_forever(self) -> None:
        """Never unload."""
        ...


Loader = Callable[[Sequence[bytes]], LoadedCode]


@dataclass(frozen=True)
class Sequencer:
    """Entry points of the sequencer, as ctypes functions of one address each."""

    run: Any
    run_profiled: Any
    worker: Any


_LOCK = threading.Lock()
_INSTALLED: list[tuple[Loader, Callable[[], bytes]]] = []
_SEQUENCERS: list[Sequencer] = []


def install(loader: Loader, sequencer_object: Callable[[], bytes]) -> None:
    """Say how object files are linked and where the sequencer's comes from.

    `sequencer_object` is called at most once, when the first program is bound. A second `install`
    replaces the functions, not a sequencer in use.
    """
    with _LOCK:
        _INSTALLED[:] = [(loader, sequencer_object)]


def installed() -> bool:
    """Whether `install` was called."""
    return bool(_INSTALLED)


def load(objects: Sequence[bytes]) -> LoadedCode:
    """Link object files as one library; by the installed loader only where it takes LLVM.

    Raises CodegenError for files that cannot be linked, ConfigError when a loader is needed and
    nothing is installed.
    """
    try:
        return link(objects)
    except UnlinkableError:
        return _current()[0](objects)


def sequencer() -> Sequencer:
    """The process's sequencer, loaded at the first call. Raises ConfigError as `load` does."""
    if not _SEQUENCERS:
        sequencer_object = _current()[1]
        with _LOCK:
            if not _SEQUENCERS:
                _SEQUENCERS.append(_bind(load([sequencer_object()])))
    return _SEQUENCERS[0]


def _current() -> tuple[Loader, Callable[[], bytes]]:
    if not _INSTALLED:
        raise ConfigError(
            "the runtime has no way to load machine code",
            hint="import ixion, or call ixion.runtime.native.install",
        )
    return _INSTALLED[0]


def _bind(code: LoadedCode) -> Sequencer:
    """Worker threads stay inside this code until the process ends, so it is never unloaded."""
    code.keep_forever()
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
    names = ("ix_run", "ix_run_profiled", "ix_worker")
    return Sequencer(*(kind(code.address(name)) for name in names))
