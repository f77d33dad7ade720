"""The command line's frame: the verbs, the version, and what an error looks like.

Exit codes: 0 done, 1 a comparison failed, 2 the request or a file was wrong, 130 interrupted.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ixion.base.errors import IxionError
from ixion.cli import bench, demo, info, profile, run
from ixion.cli import print as print_verb
from ixion.cli.screen import report_error

app = typer.Typer(
    name="ixion",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A deep-learning compiler and inference engine: model files in, native code out.",
)
app.command("run")(run.command)
app.command("info")(info.command)
app.command("print")(print_verb.command)
app.command("bench")(bench.command)
app.command("profile")(profile.command)
app.command("demo")(demo.command)


def _version(asked: bool) -> None:
    if asked:
        from ixion import __version__

        typer.echo(f"ixion {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit the process."""
    try:
        app(arguments)
    except (IxionError, OSError) as error:
        report_error(error)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
