"""Options that several verbs share, as typer annotations, and the compile settings they make."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ixion.driver import Executable


class Executor(StrEnum):
    """Who runs the program: native code, or each operator's numpy reference."""

    COMPILED = "compiled"
    REFERENCE = "reference"


class Form(StrEnum):
    """File formats of the embedded model."""

    ONNX = "onnx"
    PNNX = "pnnx"


def existing(path: Path) -> Path:
    """`path`, if there is such a file; else FileNotFoundError or IsADirectoryError naming it."""
    with path.open("rb"):
        return path


Model = Annotated[
    Path,
    typer.Argument(
        callback=existing,
        metavar="MODEL",
        help="A model: .onnx, .pnnx.param (its .bin beside it) or .relay text.",
        show_default=False,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, help="Threads; default: all that the process may use."),
]
Target = Annotated[str, typer.Option("--target", help="native, avx512, avx2, neon or generic.")]
OptLevel = Annotated[
    int, typer.Option("--opt-level", min=0, max=3, help="Passes above this level stay out.")
]
ExecutorOption = Annotated[
    Executor, typer.Option("--executor", help="compiled, or reference for the numpy oracle.")
]
Verify = Annotated[
    bool, typer.Option("--verify", help="Evaluate the program after every pass and compare.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]


@dataclass(frozen=True)
class Settings:
    """What `ixion.compile` is told."""

    target: str = "native"
    opt_level: int = 3
    threads: int | None = None
    executor: str = "compiled"
    verify: bool = False

    def compile(self, model: Path | Any) -> Executable:
        """Compile `model`, a path or a module already loaded. Raises IxionError."""
        from ixion import driver

        return driver.compile(
            model,
            target=self.target,
            opt_level=self.opt_level,
            threads=self.threads,
            executor=self.executor,
            verify=self.verify,
        )
