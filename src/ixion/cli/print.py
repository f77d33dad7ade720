"""`ixion print`: the program as text at any stage of its way to machine code."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ixion.cli import options
from ixion.cli.screen import Screen


class Stage(StrEnum):
    """How far down the program is shown."""

    IR = "ir"
    KERNELS = "kernels"
    PLAN = "plan"
    LOOPS = "loops"
    LLVM = "llvm"
    ASM = "asm"


def print_model(
    model: Path,
    settings: options.Settings,
    *,
    after: str | None = None,
    stage: str = "ir",
    screen: Screen,
) -> str:
    """The text of `model` at `stage`, the IR as it stands after the pass `after`.

    Raises IxionError, for an unknown pass too.
    """
    from ixion import driver

    with screen.working(f"compiling {model.name}"):
        return driver.stages(
            model, target=settings.target, opt_level=settings.opt_level, after=after, stage=stage
        )


def command(
    model: options.Model,
    after: Annotated[
        str | None, typer.Option("--after", metavar="PASS", help="The IR after this pass.")
    ] = None,
    stage: Annotated[Stage, typer.Option("--stage", help="What to print.")] = Stage.IR,
    target: options.Target = "native",
    opt_level: options.OptLevel = 3,
    as_json: options.Json = False,
) -> None:
    """Print a model as IR, kernels, plan, loops, LLVM text or assembly."""
    screen = Screen(as_json=as_json)
    settings = options.Settings(target, opt_level)
    text = print_model(model, settings, after=after, stage=stage.value, screen=screen)
    report = {"stage": stage.value, "after": after, "text": text}
    screen.show(report, lambda _: write_text(text))


def write_text(text: str) -> None:
    """The text itself, without a terminal's wrapping: it must parse again."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
