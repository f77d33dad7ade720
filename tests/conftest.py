"""What every test shares: reproducible generated examples, and a cache of its own."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Other processes share the machine, so no deadline; equal examples on every run.
settings.register_profile(
    "suite",
    deadline=None,
    derandomize=True,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("deep", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

# Before anything imports the package: a test must neither read nor fill the user's cache.
_cache = tempfile.TemporaryDirectory(prefix="ixion-test-cache-")
os.environ.setdefault("IXION_CACHE_DIR", _cache.name)

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout that the tests belong to."""
    return ROOT


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked slow run only when asked for by `-m`."""
    if config.option.markexpr:
        return
    skip = pytest.mark.skip(reason="slow; run with -m slow")
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(skip)
