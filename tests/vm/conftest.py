"""Programs with control flow, compiled and run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ixion
from ixion.driver.machine import MachineExecutable
from ixion.driver.text import parse

sys.path.insert(0, str(Path(__file__).parent))

TYPES = """
type List[A] { Cons(A, List[A]), Nil, }
type Tree[A] { Leaf(A), Fork(Tree[A], Tree[A]), }
"""


@pytest.fixture
def build() -> Callable[[str], MachineExecutable]:
    """The executable of a program with control flow, from text without its version line.

    Lists and trees are defined.
    """

    def built(text: str, **options: object) -> MachineExecutable:
        module = parse(f'#[version = "0.0.5"]\n{TYPES}{text}')
        made = ixion.compile(module, threads=1, **options)
        assert isinstance(made, MachineExecutable)
        return made

    return built
