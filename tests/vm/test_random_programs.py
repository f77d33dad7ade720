from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_control import Generator

import ixion
from ixion.analysis import evaluate
from ixion.driver.executable import flattened
from ixion.driver.machine import MachineExecutable
from ixion.runtime.values import ConstructorValue


def assert_same(found: Any, wanted: Any) -> None:
    """Equal structure, constructors, shapes, dtypes and elements."""
    stack = [(found, wanted)]
    while stack:
        one, other = stack.pop()
        if isinstance(other, tuple):
            assert isinstance(one, tuple)
            stack.extend(zip(one, other, strict=True))
        elif isinstance(other, ConstructorValue):
            assert one.constructor.name_hint == other.constructor.name_hint
            stack.append((one.fields, other.fields))
        else:
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


def compare(seed: int, depth: int) -> None:
    """A program compiled gives what the reference interpreter gives, at several sizes."""
    module = Generator(seed).program(depth)
    exe = ixion.compile(module, threads=1)
    for count in (seed % 4, 0, 5):
        values = [
            np.array([1, -2, 3], "float32"), np.array(seed % 5, "int32"),
            np.arange(count, dtype="float32") - 1,
        ]  # fmt: skip
        wanted = evaluate(module, values)
        if isinstance(exe, MachineExecutable):
            assert_same(exe.call(*values), wanted)
        else:
            assert_same(tuple(exe.run_flat(values)), tuple(flattened(wanted)))


@pytest.mark.parametrize("seed", range(60))
def test_small_programs(seed: int) -> None:
    compare(seed, 3)


@pytest.mark.parametrize("seed", range(1000, 1030))
def test_larger_programs(seed: int) -> None:
    compare(seed, 5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2000, 2400))
def test_many_programs(seed: int) -> None:
    compare(seed, 5)
