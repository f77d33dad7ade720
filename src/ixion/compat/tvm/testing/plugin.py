"""A pytest plugin: ``target`` and ``dev``, and parameters that take their values together.

``python -m ixion.compat tvm -m pytest`` loads it.
"""

from __future__ import annotations

from typing import Any

import pytest

from ixion.compat.tvm.nd import Device, device
from ixion.compat.tvm.testing import enabled_targets
from ixion.compat.tvm.testing.parametrize import Correlated


@pytest.fixture
def dev(target: str) -> Device:
    """The device of the test's target."""
    return device(target)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test for each enabled target and each set of correlated parameters."""
    listed = {
        name.strip()
        for mark in metafunc.definition.iter_markers("parametrize")
        for name in _names(mark.args[0])
    }
    if "target" in metafunc.fixturenames and "target" not in listed:
        metafunc.parametrize("target", [name for name, _ in enabled_targets()])
    for names, found in _groups(metafunc):
        rows = list(zip(*(one.values for one in found), strict=True))
        metafunc.parametrize(names, rows, indirect=True, ids=found[0].ids)


def _names(argument: Any) -> list[str]:
    return argument.split(",") if isinstance(argument, str) else list(argument)


def _groups(metafunc: pytest.Metafunc) -> list[tuple[list[str], list[Correlated]]]:
    groups: dict[object, tuple[list[str], list[Correlated]]] = {}
    for name, definitions in metafunc._arg2fixturedefs.items():
        found = getattr(definitions[-1].func, "correlated", None)
        if isinstance(found, Correlated):
            names, members = groups.setdefault(found.group, ([], []))
            names.append(name)
            members.append(found)
    return list(groups.values())
