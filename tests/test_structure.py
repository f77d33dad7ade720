"""The house rules that a machine can check."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src" / "ixion"
TESTS = Path(__file__).parent
ROOMS = {path.name for path in SOURCES.iterdir() if path.is_dir() and path.name != "__pycache__"}
PYTHON = sorted(SOURCES.rglob("*.py"))
VAGUE = {"util", "utils", "helper", "helpers", "common", "misc", "core"}
MOST_LINES = 600


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(SOURCES)) for path in paths]


def test_no_file_is_too_long() -> None:
    long = [path for path in PYTHON if len(path.read_text().splitlines()) > MOST_LINES]
    assert not names(long)


def test_every_name_says_something() -> None:
    assert not names([path for path in PYTHON if path.stem in VAGUE])


def test_every_room_explains_itself() -> None:
    assert not [room for room in ROOMS if not docstring(SOURCES / room / "__init__.py")]


def test_the_package_is_pure_python() -> None:
    allowed = {".py", ".rly", ".onnx", ".param", ".bin", ".npz"}
    files = [path for path in SOURCES.rglob("*") if path.is_file()]
    foreign = [p for p in files if p.suffix not in allowed and p.name != "py.typed"]
    assert not names([p for p in foreign if "__pycache__" not in p.parts])


def test_llvm_text_stays_in_codegen() -> None:
    marks = re.compile(r"getelementptr|define (void|i32) @|declare .* @llvm\.")
    rooms = [path for path in PYTHON if "codegen" not in path.relative_to(SOURCES).parts]
    assert not names([path for path in rooms if marks.search(path.read_text())])


def test_tests_mirror_rooms() -> None:
    folders = {p.name for p in TESTS.iterdir() if p.is_dir() and any(p.glob("*.py"))}
    assert folders - {"extension"} <= ROOMS


def test_no_unfinished_marks() -> None:
    marks = re.compile("TO" + "DO|FIX" + "ME")
    assert not names([path for path in PYTHON if marks.search(path.read_text())])


def docstring(path: Path) -> str | None:
    return ast.get_docstring(ast.parse(path.read_text())) if path.exists() else None


def test_import_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    cli = pytest.importorskip("importlinter.cli")
    monkeypatch.chdir(SOURCES.parents[1])
    assert cli.lint_imports(no_cache=True) == 0
