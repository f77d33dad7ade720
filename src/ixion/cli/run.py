"""`ixion run`: arrays in, arrays out, and a comparison with expected values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ixion.cli import options
from ixion.cli.screen import Screen, shape_text, table

if TYPE_CHECKING:
    from rich.console import Console

    from ixion.cli.arrays import Array
    from ixion.driver import Executable


@dataclass(frozen=True)
class Checked:
    """One output, and its distance from the expected value where one was given."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    largest_error: float | None = None
    share_of_tolerance: float | None = None
    within: bool | None = None
    reason: str | None = None


def run_model(
    model: Path,
    inputs: Path,
    settings: options.Settings,
    *,
    expect: Path | None = None,
    rtol: float = 1e-3,
    atol: float = 1e-5,
    out: Path | None = None,
    screen: Screen,
) -> list[Checked]:
    """Run `model` on the arrays in `inputs`; write the outputs to `out`; compare with `expect`.

    Everything that can be refused is refused before the model runs, and `out` is written last.
    Raises IxionError or OSError.
    """
    from ixion.cli import arrays

    if out is not None:
        arrays.check_writable(out)
    given = arrays.read_npz(inputs)
    stored = arrays.read_npz(expect) if expect is not None else None
    with screen.working(f"compiling {model.name}"):
        exe = settings.compile(model)
    _check_tensors(exe)
    names = [operand.name for operand in exe.outputs]
    feeds = arrays.pick_inputs(given, [operand.name for operand in exe.inputs], names)
    feeds = {o.name: arrays.typed(feeds[o.name], o.dtype) for o in exe.inputs}
    wanted = arrays.pick(stored, names, "out") if stored is not None else None
    with screen.working(f"running {model.name}"):
        results = exe.run(feeds)
    reports = [_checked(name, results[name], wanted, rtol, atol) for name in names]
    if out is not None:
        arrays.write_npz(out, results)
    return reports


def _check_tensors(exe: Executable) -> None:
    """Arrays are all that a file of arrays holds. Raises InputError for other inputs or outputs."""
    from ixion.base.errors import InputError
    from ixion.runtime.value_kind import ValueSpec

    for operand in (*exe.inputs, *exe.outputs):
        if isinstance(operand, ValueSpec):
            raise InputError(
                f"'{operand.name}' is no array, so an .npz file cannot hold it",
                found=operand.dtype,
                hint="call the model from Python: ixion.compile(model)",
            )


def _checked(
    name: str, got: Array, wanted: dict[str, Array] | None, rtol: float, atol: float
) -> Checked:
    from ixion.cli import arrays

    described = Checked(name, tuple(got.shape), str(got.dtype))
    if wanted is None:
        return described
    want = arrays.typed(wanted[name], str(got.dtype))
    found = arrays.difference(got, want, rtol, atol)
    return replace(
        described,
        largest_error=found.largest,
        share_of_tolerance=found.share,
        within=found.within,
        reason=found.reason,
    )


def draw(console: Console, reports: list[Checked]) -> None:
    compared = any(report.within is not None for report in reports)
    columns = ["output", "type"]
    columns += [">largest error", ">of tolerance", ""] if compared else []
    rows = []
    for report in reports:
        row: list[object] = [report.name, shape_text(report.shape, report.dtype)]
        if report.within is not None:
            row += [f"{report.largest_error:.3g}", f"{report.share_of_tolerance:.3g}"]
            verdict = "within" if report.within else "outside"
            row.append(f"{verdict} ({report.reason})" if report.reason else verdict)
        rows.append(row)
    console.print(table(*columns, rows=rows))


def command(
    model: options.Model,
    inputs: Annotated[Path, typer.Option("--inputs", help="Input arrays, an .npz.")],
    expect: Annotated[Path | None, typer.Option("--expect", help="Expected outputs.")] = None,
    rtol: Annotated[float, typer.Option("--rtol", min=0, help="Relative tolerance.")] = 1e-3,
    atol: Annotated[float, typer.Option("--atol", min=0, help="Absolute tolerance.")] = 1e-5,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Write the outputs here, by name.")
    ] = None,
    threads: options.Threads = None,
    target: options.Target = "native",
    executor: options.ExecutorOption = options.Executor.COMPILED,
    opt_level: options.OptLevel = 3,
    verify: options.Verify = False,
    as_json: options.Json = False,
) -> None:
    """Run a model on the arrays of an .npz file.

    A key is NAME, in:NAME / out:NAME, or in0, in1, ... / out0, ... by position. With --expect each
    output's largest error is printed, and the exit code is 0 only if all are within tolerance.
    """
    screen = Screen(as_json=as_json)
    settings = options.Settings(target, opt_level, threads, executor.value, verify)
    reports = run_model(
        model, inputs, settings, expect=expect, rtol=rtol, atol=atol, out=out, screen=screen
    )
    ok = all(report.within is not False for report in reports)
    document: dict[str, Any] = {"ok": ok, "outputs": [asdict(report) for report in reports]}
    screen.show(document, lambda console: draw(console, reports))
    raise typer.Exit(0 if ok else 1)
