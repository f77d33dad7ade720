from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(start: int, count: int, folder: Path) -> None:
    environment = {**os.environ, "IXION_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.driver.random_networks", str(start), str(count)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-200:]}\n{done.stderr[-3000:]}"
    assert done.stdout.endswith("all equal\n")


def test_random_networks(tmp_path: Path) -> None:
    run(0, 9, tmp_path)


def test_channel_factor_beside_a_transposed_value(tmp_path: Path) -> None:
    """A value of one lane each joins vectors that a transposition left in registers."""
    run(1014, 1, tmp_path)


@pytest.mark.slow
def test_many_random_networks(tmp_path: Path) -> None:
    run(1000, 300, tmp_path)
