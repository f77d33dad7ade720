"""`ixion info`: what a model is and what compiling it plans, without running it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    """What `info` found; the last four fields are None where a shape is not fixed."""

    inputs: list[Operand]
    outputs: list[Operand]
    operators: dict[str, int]
    parameters: int
    parameter_bytes: int
    macs: int | None
    planned_bytes: int | None
    steps: int | None
    host_steps: list[str] | None

    @property
    def flops(self) -> int | None:
        """Two per multiply-add; elementwise work is not counted."""
        return None if self.macs is None else 2 * self.macs


def inspect(model: Path, settings: options.Settings, *, screen: Screen) -> Information:
    """Load and compile `model`. Raises UnsupportedOpError naming all such operators at once."""
    from ixion import driver

    with screen.working(f"compiling {model.name}"):
        module = driver.load(model)
        exe = settings.compile(module)
    operators, parameters, size = census(module)
    program = exe.program
    return Information(
        inputs=[Operand(o.name, _dims(o.shape), o.dtype) for o in exe.inputs],
        outputs=[Operand(o.name, _dims(o.shape), o.dtype) for o in exe.outputs],
        operators=operators,
        parameters=parameters,
        parameter_bytes=size,
        macs=multiply_adds(module),
        planned_bytes=None if program is None else program.arena_size,
        steps=None if program is None else len(program.steps),
        host_steps=None if program is None else host_steps(program),
    )


def host_steps(program: Program) -> list[str]:
    """Operators that Python does, in program order."""
    return [program.hosts[step.host].op for step in program.steps if step.kind == "host"]


def _dims(shape: Any) -> tuple[int | str, ...]:
    return tuple(dim if isinstance(dim, int) else str(dim) for dim in shape)


def census(module: IRModule) -> tuple[dict[str, int], int, int]:
    """Calls per operator, most frequent first; elements and bytes of all constants."""
    from ixion.ir import Call, Constant, Op, post_order_visit

    counts: Counter[str] = Counter()
    elements, size = 0, 0

    def visit(expr: Any) -> None:
        nonlocal elements, size
        if isinstance(expr, Call) and isinstance(expr.op, Op):
            counts[expr.op.name] += 1
        elif isinstance(expr, Constant):
            elements += expr.data.size
            size += expr.data.nbytes

    for function in module.functions.values():
        post_order_visit(function, visit)
    return dict(counts.most_common()), elements, size


def multiply_adds(module: IRModule) -> int | None:
    """Multiply-adds of one run by each operator's own count; None where shapes are not fixed."""
    from ixion.ir import Call, Op, post_order_visit
    from ixion.transform import InferType

    total = 0
    unknown = False

    def visit(expr: Any) -> None:
        nonlocal total, unknown
        if not isinstance(expr, Call) or not isinstance(expr.op, Op):
            return
        count = expr.op.get_attr("FMacCount")
        if count is None:
            return
        macs = count(expr.attrs, tuple(a.checked_type for a in expr.args), expr.checked_type)
        if isinstance(macs, int):
            total += macs
        else:
            unknown = True

    typed = InferType()(module)
    for function in typed.functions.values():
        post_order_visit(function, visit)
    return None if unknown else total


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
        ("FLOPs", "depends on the input" if found.flops is None else f"{found.flops:,}"),
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
    document = asdict(found) | {"flops": found.flops, "unsupported": []}
    screen.show(document, lambda console: draw(console, found))
