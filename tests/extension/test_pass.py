"""A user's pass: by itself, by name, in a sequence, and under a context's switches."""

from __future__ import annotations

import pytest

import ixion
import ixion_extra
from ixion import ir, transform

HEADER = '#[version = "0.0.5"]\n'
BEFORE = (
    HEADER
    + """
def @main(%x: Tensor[(2, 3), float32]) {
  %0 = negative(%x);
  %1 = nn.relu(%0);
  %2 = negative(%1);
  %3 = negative(%2);
  negative(%3)
}
"""
)
AFTER = (
    HEADER
    + """
def @main(%x: Tensor[(2, 3), float32]) {
  %0 = negative(%x);
  %1 = nn.relu(%0);
  negative(%1)
}
"""
)


@pytest.mark.parametrize("make", [ixion_extra.DropDoubleNegative, "by name"])
def test_it_rewrites(make) -> None:
    if make == "by name":
        make = transform.get_pass("extra.DropDoubleNegative")
    after = make()(ixion.parse(BEFORE))
    ir.assert_structural_equal(after, transform.InferType()(ixion.parse(AFTER)))


def test_in_a_sequence_it_obeys_the_level_and_the_switches() -> None:
    sequence = transform.Sequential([ixion_extra.DropDoubleNegative()])
    before = transform.InferType()(ixion.parse(BEFORE))

    def changed(**options) -> bool:
        with transform.PassContext(**options):
            return not ir.structural_equal(sequence(before), before)

    assert changed(opt_level=1)
    assert not changed(opt_level=0)
    assert changed(opt_level=0, required_pass=["extra.DropDoubleNegative"])
    assert not changed(opt_level=3, disabled_pass=["extra.DropDoubleNegative"])


def test_nothing_to_do_gives_the_same_module_back() -> None:
    module = transform.InferType()(ixion.parse(AFTER))
    assert ixion_extra.DropDoubleNegative()(module) is module
