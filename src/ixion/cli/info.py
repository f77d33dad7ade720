"""`ixion info`: what a model is and what compiling it plans, without running it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ixion.base.errors import UnsupportedOpError
from ixion.cli import options
from ixion.cli.screen import Screen, shape_text, table

if TYPE_CHECKING:
    from rich.console import Console

    from ixion.ir import IRModule
    from ixion.runtime.program import Program


@dataclass(frozen=True)
class Operand:
    """A graph input or output; a dimension that is no fixed number is text."""

    name: str
    shape: tuple[int | str, ...]
    dtype: str


@dataclass(frozen=True)
class Information:
    """What `info` found; the last three fields are None where nothing was compiled.

    `flops` counts two per multiply-add and one per element of any other operator's result; a size
    that is not fixed counts as 1.
    """

    inputs: list[Operand]
    outputs: list[Operand]
    operators: dict[str, int]
    parameters: int
    parameter_bytes: int
    macs: int
    flops: int
    planned_bytes: int | None
    steps: int | None
    host_steps: list[str] | None


def inspect(model: Path, settings: options.Settings, *, screen: Screen) -> Information:
    """Load and compile `model`. Raises UnsupportedOpError naming all such operators at once."""
    from ixion import driver
    from ixion.analysis import cost_of, list_op_freqs
    from ixion.transform import InferType

    with screen.working(f"compiling {model.name}"):
        module = InferType()(driver.load(model))
        exe = settings.compile(module)
    cost = cost_of(module)
    program = exe.program
    return Information(
        inputs=[Operand(o.name, _dims(o.shape), o.dtype) for o in exe.inputs],
        outputs=[Operand(o.name, _dims(o.shape), o.dtype) for o in exe.outputs],
        operators=dict(Counter(list_op_freqs(module)).most_common()),
        parameters=parameter_count(module),
        parameter_bytes=cost.weights,
        macs=cost.macs,
        flops=cost.flops,
        planned_bytes=None if program is None else program.arena_size,
        steps=None if program is None else len(program.steps),
        host_steps=None if program is None else host_steps(program),
    )


def host_steps(program: Program) -> list[str]:
    """Operators that Python does, in program order."""
    return [program.hosts[step.host].op for step in program.steps if step.kind == "host"]


def parameter_count(module: IRModule) -> int:
    """Elements of all constants, each counted once."""
    from ixion.ir import Constant, post_order

    nodes = (node for function in module.functions.values() for node in post_order(function))
    return sum(node.data.size for node in nodes if isinstance(node, Constant))


def _dims(shape: Sequence[object]) -> tuple[int | str, ...]:
    return tuple(dim if isinstance(dim, int) else str(dim) for dim in shape)


def draw(console: Console, found: Information) -> None:
    operands = [("input", o) for o in found.inputs] + [("output", o) for o in found.outputs]
    rows = [(side, o.name, shape_text(o.shape, o.dtype)) for side, o in operands]
    console.print(table("", "name", "type", rows=rows))
    console.print(table("operator", ">calls", rows=list(found.operators.items())))
    console.print(table("", ">", rows=_figures(found)))


def _figures(found: Information) -> list[tuple[str, str]]:
    figures = [
        ("parameters", f"{found.parameters:,}"),
        ("parameter bytes", f"{found.parameter_bytes:,}"),
        ("multiply-adds", f"{found.macs:,}"),
        ("FLOPs", f"{found.flops:,}"),
    ]
    if found.planned_bytes is not None:
        figures.append(("planned memory, bytes", f"{found.planned_bytes:,}"))
    if found.steps is not None:
        figures.append(("steps", f"{found.steps:,}"))
    if found.host_steps is not None:
        figures.append(("host steps", ", ".join(found.host_steps) or "none"))
    return figures


def draw_unsupported(console: Console, error: UnsupportedOpError) -> None:
    rows = [(name, count, ", ".join(places[:3])) for name, count, places in error.ops]
    console.print(table("unsupported operator", ">nodes", "where", rows=rows))


def command(
    model: options.Model,
    target: options.Target = "native",
    executor: options.ExecutorOption = options.Executor.COMPILED,
    opt_level: options.OptLevel = 3,
    as_json: options.Json = False,
) -> None:
    """Show a model's inputs, outputs, operators, size, work and plan.

    Operators without an import are listed all at once, and the exit code is 2.
    """
    screen = Screen(as_json=as_json)
    settings = options.Settings(target, opt_level, executor=executor.value)
    try:
        found = inspect(model, settings, screen=screen)
    except UnsupportedOpError as error:
        unsupported = error
        screen.show(
            {"unsupported": [{"operator": n, "count": c, "places": p} for n, c, p in error.ops]},
            lambda console: draw_unsupported(console, unsupported),
        )
        raise
    document = asdict(found) | {"unsupported": []}
    screen.show(document, lambda console: draw(console, found))
