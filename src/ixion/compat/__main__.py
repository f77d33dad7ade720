"""``python -m ixion.compat NAME (-m MODULE | SCRIPT) [ARGUMENT...]``: run a program under an
alias.
"""

from __future__ import annotations

import importlib.util
import runpy
import sys

from ixion.base.errors import IxionError
from ixion.compat.alias import install

_USAGE = "usage: python -m ixion.compat NAME (-m MODULE | SCRIPT) [ARGUMENT...]"


def main(arguments: list[str]) -> int:
    """Install the alias, then run the module or script as if Python had been started with it."""
    if len(arguments) < 2 or (arguments[1] == "-m" and len(arguments) < 3):
        sys.stderr.write(_USAGE + "\n")
        return 2
    try:
        install(arguments[0])
    except IxionError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if arguments[1] == "-m":
        sys.argv = [arguments[2], *_plugins(*arguments[:3]), *arguments[3:]]
        runpy.run_module(arguments[2], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments[1:]
        runpy.run_path(arguments[1], run_name="__main__")
    return 0


def _plugins(name: str, _dash: str, module: str) -> list[str]:
    """Arguments that load an adapter's fixtures, where tests are to run and it has some."""
    plugin = f"{name}.testing.plugin"
    if module != "pytest" or not _exists(f"ixion.compat.{plugin}"):
        return []
    return ["-p", plugin]


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
