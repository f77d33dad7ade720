"""What the documents show is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("code", blocks(README, "python"))
def test_readme_code_runs(code: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("7 7")


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
