"""Tests of this room run tiny kernels through the real sequencer."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True, scope="session")
def _native():
    import tiny_programs

    tiny_programs.install()
