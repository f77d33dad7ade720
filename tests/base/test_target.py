"""Targets by name, and as data."""

from __future__ import annotations

import pytest

from ixion.base.errors import ConfigError
from ixion.base.target import Target, cache_sizes, usable_cores


@pytest.mark.parametrize(
    ("name", "cpu", "bits", "registers", "fma"),
    [
        ("avx512", "x86-64-v4", 512, 32, True),
        ("avx2", "x86-64-v3", 256, 16, True),
        ("neon", "generic", 128, 32, True),
    ],
)
def test_named_targets(name: str, cpu: str, bits: int, registers: int, fma: bool) -> None:
    target = Target.parse(name)
    assert (target.cpu, target.vector_bits, target.vector_registers) == (cpu, bits, registers)
    assert target.fma is fma
    assert target.lanes("float32") == bits // 32
    assert target.lanes("bool") == bits // 8


def test_generic_is_the_baseline_of_this_machine() -> None:
    target = Target.parse("generic")
    assert target.vector_bits == 128
    assert target.fma is not target.is_x86


def test_native_is_at_least_generic_and_cached() -> None:
    assert Target.parse("native") is Target.parse(" Native ")
    assert Target.parse("native").vector_bits >= 128
    target = Target.parse("native")
    assert Target.parse(target) is target


def test_keys_tell_targets_apart() -> None:
    names = ("avx512", "avx2", "neon")
    assert len({Target.parse(name).key() for name in names}) == len(names)
    assert Target.parse("avx2").key().startswith("x86-64-v3-")


def test_unknown_targets_get_a_hint() -> None:
    with pytest.raises(ConfigError, match="did you mean 'avx512'"):
        Target.parse("avx51")


def test_the_machine() -> None:
    l1, l2, _ = cache_sizes()
    assert 0 < l1 <= l2
    assert usable_cores() >= 1
