"""A user's node kind: everything that its fields bring along."""

from __future__ import annotations

import pytest

from ixion import ir
from ixion_extra import Calibration, calibration
from ixion_extra.nodes import current


def test_construction_and_reflection() -> None:
    node = Calibration(2.0, [3, 4], note="by hand")
    assert (node.scale, node.channels, node.note) == (2.0, (3, 4), "by hand")
    assert node.type_key == "extra.Calibration"
    seen: dict[str, object] = {}
    node.visit_attrs(seen.__setitem__)
    assert seen == {"scale": 2.0, "channels": (3, 4), "note": "by hand"}


def test_it_is_immutable_and_compared_by_identity() -> None:
    node = Calibration()
    with pytest.raises(AttributeError, match="immutable"):
        node.scale = 3.0
    assert node != Calibration()
    assert node.copy(scale=1.0) is node
    assert node.copy(scale=2.0).scale == 2.0


def test_structural_equality_and_hash_leave_the_note_out() -> None:
    a, b = Calibration(2.0, (1,), note="a"), Calibration(2.0, (1,), note="b")
    assert ir.structural_equal(a, b)
    assert ir.structural_hash(a) == ir.structural_hash(b)
    assert not ir.structural_equal(a, Calibration(3.0, (1,)))


def test_json_round_trip() -> None:
    node = Calibration(0.5, (1, 2), note="kept")
    loaded = ir.load_json(ir.save_json(node))
    assert isinstance(loaded, Calibration)
    assert loaded.note == "kept"
    ir.assert_structural_equal(loaded, node)


def test_a_scope_stack_of_nodes() -> None:
    assert current().scale == 1.0
    with calibration(scale=2.0) as outer, calibration(channels=(7,)) as inner:
        assert (inner.scale, inner.channels) == (2.0, (7,))
        assert outer.channels == ()
        assert current() is inner
    assert current().scale == 1.0
