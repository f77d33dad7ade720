"""What an engine must do to be measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class Unavailable(Exception):
    """An engine cannot take a network; the message is the reason shown in tables."""


class Engine(ABC):
    """One network in one engine, FP32, with `threads` threads.

    The order of calls is `prepare`, `imports`, `load`, `bind`, then `run` many times. `packages`
    are the distributions it needs, the first being the engine's own.
    """

    packages: ClassVar[tuple[str, ...]] = ()
    #: Whose measured peak its efficiency refers to.
    target: ClassVar[str] = "native"

    def __init__(self, threads: int) -> None:
        self.threads = threads

    @classmethod
    def prepare(cls, model: Path, work: Path) -> str:
        """Convert `model` to the engine's own format, if it has one, and keep that in `work`.

        Not part of loading: a user of such an engine does it once. Returns what was made, for
        people. Raises Unavailable.
        """
        return ""

    @classmethod
    def missing(cls) -> str | None:
        """Why the engine cannot run here, or None."""
        absent = [name for name in cls.packages if find_spec(name.replace("-", "_")) is None]
        return f"not installed: {', '.join(absent)}" if absent else None

    @classmethod
    def version(cls) -> str:
        """Version of the engine's own distribution."""
        try:
            return version(cls.packages[0]) if cls.packages else ""
        except PackageNotFoundError:
            return "unknown"

    @abstractmethod
    def imports(self) -> None:
        """Import everything that loading and running need."""

    @abstractmethod
    def load(self, model: Path, work: Path) -> None:
        """Make `model`, an ONNX file, ready to run; `work` has what `prepare` made of it.

        Raises Unavailable.
        """

    @abstractmethod
    def bind(self, feeds: Mapping[str, Array]) -> None:
        """Take the inputs of all runs to come, in the model's order."""

    @abstractmethod
    def run(self) -> object:
        """One run from inputs to outputs: what is timed."""

    @abstractmethod
    def outputs(self) -> Mapping[str, Array] | Sequence[Array]:
        """Outputs of one run, by name or in the model's order."""
