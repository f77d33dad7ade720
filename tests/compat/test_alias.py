"""Running programs under a foreign name."""

import subprocess
import sys
from pathlib import Path

import pytest

from ixion.base.errors import IxionError
from ixion.compat import install
from ixion.compat.__main__ import main

SOURCES = Path(__file__).parents[2] / "src"
PROGRAMS = Path(__file__).parent / "programs"


def run(*arguments):
    command = [sys.executable, "-m", "ixion.compat", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=SOURCES, check=False, timeout=300
    )


@pytest.mark.parametrize("program", ["check_tvm.py", "check_executors.py"])
def test_programs_written_for_tvm(program):
    done = run("tvm", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null",
               "--noconftest", PROGRAMS / program)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_script_sees_its_arguments(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, tvm\nfrom tvm.relay import expr\nimport ixion.compat.tvm as ours\n"
        "assert tvm is ours and __name__ == '__main__'\nprint(sys.argv[1], expr.Var.__name__)\n"
    )
    done = run("tvm", script, "hello")
    assert done.stdout == "hello Var\n", done.stderr


def test_usage_and_unknown_names(capsys):
    assert main([]) == 2
    assert "usage:" in capsys.readouterr().err
    assert main(["tvmm", "script.py"]) == 2
    assert "did you mean 'tvm'?" in capsys.readouterr().err
    with pytest.raises(IxionError, match="no adapter"):
        install("numpy")


def test_module_that_is_imported_already_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "tvm", sys)
    with pytest.raises(IxionError, match="imported already"):
        install("tvm")
