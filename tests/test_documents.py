"""What the documents show is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_readme_shows_two_commands() -> None:
    commands = [line for block in blocks(README, "sh") for line in block.splitlines()]
    assert commands == [
        "pip install . && ixion demo",
        "pip install '.[test]' && pytest -n auto",
    ]


def test_readme_code_runs(tmp_path: Path) -> None:
    assert output("\n".join(blocks(README, "python")), tmp_path).startswith("7 7")


def test_contributing_code_runs(tmp_path: Path) -> None:
    code = "\n".join(blocks((ROOT / "CONTRIBUTING.md").read_text(), "python"))
    show = """
x = ixion.ir.var("x", shape=(2,), dtype="float32")
body = call("negative", call("negative", call("extra.squash", x)))
module = DropDoubleNegative()(ixion.IRModule.from_expr(ixion.ir.Function([x], body)))
print(ixion.compile(module, threads=1)(np.array([1, -3], np.float32)))
print(Calibration(2.0))
"""
    text = output("import ixion, ixion.ir\nfrom ixion.op import call\n" + code + show, tmp_path)
    assert text.startswith("[ 0.5  -0.75]\n")


def output(code: str, folder: Path) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_links_lead_somewhere() -> None:
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md"):
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_rooms_are_documented_in_import_order() -> None:
    declared = re.findall(r'^    "\(?(\w+)\)?(?: \| \(?(\w+)\)?)?",$', _layers(), re.MULTILINE)
    rooms = [room for pair in declared for room in pair if room]
    table = (ROOT / "CONTRIBUTING.md").read_text().split("| --- | --- |")[1].split("\n\n")[0]
    documented = [
        room
        for row in re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)
        for room in re.findall(r"`(\w+)`", row)
    ]
    assert documented == rooms


def _layers() -> str:
    configuration = (ROOT / "pyproject.toml").read_text()
    return configuration.split("\nlayers = [")[1].split("\n]")[0] + "\n"
