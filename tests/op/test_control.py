"""The operators over regions: types, values, text."""

from __future__ import annotations

import numpy as np
import pytest

from ixion.analysis import evaluate
from ixion.base.errors import TypeInferenceError
from ixion.ir import IRModule, assert_structural_equal, parse
from ixion.transform import InferType

REGIONS = """
def @head(%i: int64, %n: int64) -> (bool, int64) { (less(%i, %n), multiply(%i, %i)) }
def @body(%i: int64, %n: int64, %t: int64) -> (int64,) { (add(%i, add(%t, 1i64)),) }
def @twice(%x: float32) -> (float32,) { (add(%x, %x),) }
def @minus(%x: float32) -> (float32,) { (negative(%x),) }
"""


def typed(text: str) -> IRModule:
    return InferType()(parse('#[version = "0.0.5"]\n' + REGIONS + text))


def test_a_loop_gives_its_state_and_what_its_head_passed_last():
    mod = typed("def @main(%n: int64) { control.loop(@head, @body, (0i64,), (%n,)) }")

    def expected(n: int) -> tuple[int, int]:
        i = 0
        while i < n:
            i += i * i + 1
        return i, i * i

    for n in (-1, 0, 1, 5, 100):
        found = evaluate(mod, [np.int64(n)])
        assert tuple(int(v) for v in found) == expected(n)


def test_a_branch_runs_one_region():
    mod = typed(
        """def @main(%c: bool, %x: float32) {
             %0 = control.branch(%c, @twice, @minus, (%x,));
             %0.0
           }"""
    )
    assert evaluate(mod, [np.True_, np.float32(3)]) == 6
    assert evaluate(mod, [np.False_, np.float32(3)]) == -3


@pytest.mark.parametrize(("count", "value"), [(-2, 1.5), (0, 1.5), (1, 3.0), (4, 24.0)])
def test_a_region_is_repeated(count, value):
    mod = typed(
        """def @main(%n: int64, %x: float32) {
             %0 = control.repeat(%n, @twice, (%x,), ());
             %0.0
           }"""
    )
    assert evaluate(mod, [np.int64(count), np.float32(1.5)]) == value


def test_text_and_json_bring_a_program_back():
    mod = typed(
        """def @main(%n: int64, %c: bool, %x: float32) {
             let %u = control.unset(shape=[2, 3], dtype="int8");
             (control.loop(@head, @body, (0i64,), (%n,)), control.branch(%c, @twice, @minus, (%x,)),
              control.repeat(%n, @twice, (%x,), ()), %u)
           }"""
    )
    assert_structural_equal(InferType()(parse(mod.astext())), mod)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("control.branch(%n, @twice, @minus, (%x,))", "a scalar decides here"),
        ("control.branch(%c, @twice, @minus, (%n,))", "takes other values"),
        ("control.branch(%c, @twice, @head, (%x,))", "takes other values"),
        ("control.loop(@body, @body, (0i64,), (%n,))", "takes other values"),
        ("control.loop(@twice, @twice, (%x,), ())", "a scalar decides here"),
        ("control.repeat(%x, @twice, (%x,), ())", "a scalar decides here"),
        ("control.repeat(%n, @head, (%n,), (%n,))", "must keep the state's types"),
        ("control.repeat(%n, %x, (%n,), (%n,))", "must be a function that gives a tuple"),
    ],
)
def test_regions_that_do_not_fit_are_refused(call, message):
    with pytest.raises(TypeInferenceError, match=message):
        typed(f"def @main(%n: int64, %c: bool, %x: float32) {{ {call} }}")
