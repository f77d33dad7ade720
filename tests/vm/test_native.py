"""Loops, choices and operators sized by data that run without Python between their steps."""

from __future__ import annotations

import numpy as np
import pytest

from ixion.runtime.values import ConstructorValue

LOOP = """
def @power(%i: int32, %x: Tensor[(3), float32], %y: Tensor[(3), float32]) -> Tensor[(3), float32] {
  if (less_equal(%i, 0)) { %y } else { @power(subtract(%i, 1), %x, multiply(%x, %y)) }
}
"""


def number(value):
    return np.array(value, "int32")


def vectors(exe, values):
    constructors = {c.name_hint: c for c in exe.machine_program.constructors}
    made = ConstructorValue(constructors["Nil"])
    for value in reversed(values):
        made = ConstructorValue(constructors["Cons"], (value, made))
    return made


def instructions(exe):
    return {f.name: [one.name for one in f.code] for f in exe.machine_program.functions}


def test_a_loop_of_tensors_is_part_of_a_segment(build):
    exe = build(
        LOOP
        + """
        def @main(%l: List[Tensor[(3), float32]], %n: int32) -> Tensor[(3), float32] {
          match (%l) {
            Nil => full(0f, shape=[3], dtype="float32"),
            Cons(%x, %t) => {
              let %rest = @main(%t, %n);
              let %one = @power(add(%n, 1), %x, ones_like(%x));
              add(%rest, nn.relu(%one))
            }
          }
        }"""
    )
    assert list(instructions(exe)) == ["@main"]
    assert instructions(exe)["@main"].count("segment") == 1
    (loop,) = (s for s in exe.machine_program.segments if "@power" in s.name)
    assert "loop" in {step.kind for step in loop.program.steps}
    values = [np.array([1, 2, -3], "float32"), np.array([0, -1, 2], "float32")]
    want = sum(np.maximum(v**5, 0) for v in values)
    np.testing.assert_array_equal(exe(vectors(exe, values), number(4)), want)


def test_a_loop_as_a_value_runs_on_frames(build):
    """It may be called with anything its type lets through."""
    exe = build(
        LOOP
        + """
        def @twice[A](%f: fn (int32, A, A) -> A, %x: A) -> A { %f(2, %x, %f(1, %x, %x)) }
        def @main(%x: Tensor[(3), float32], %l: List[int32]) -> Tensor[(3), float32] {
          match (%l) { Nil => @twice(@power, %x), Cons(_, %t) => @main(%x, %t) }
        }"""
    )
    assert "@power" in instructions(exe)
    x = np.array([1, 2, -3], "float32")
    np.testing.assert_array_equal(exe(x, vectors(exe, [number(1)])), x**4)


def test_an_operator_sized_by_data_has_a_kernel(build):
    exe = build(
        """
        def @main(%x: Tensor[(4, 5), float32], %l: List[int32]) -> Tensor[(?), float32] {
          match (%l) {
            Nil => {
              let %at = argwhere(greater(%x, 0.5f));
              let %rows = reshape(strided_slice(%at, begin=[0, 0], end=[100, 1], strides=[1]),
                                  newshape=[-1]);
              cast(%rows, dtype="float32")
            },
            Cons(_, %t) => @main(add(%x, 1f), %t)
          }
        }"""
    )
    (segment,) = (s for s in exe.machine_program.segments if s.name == "argwhere")
    assert segment.mode == "bounded"
    assert not exe.machine_program.hosts
    x = np.random.default_rng(0).random((4, 5)).astype("float32")
    want = np.argwhere(x > 0.5)[:, 0].astype("float32")
    np.testing.assert_array_equal(exe(x, vectors(exe, [])), want)
    np.testing.assert_array_equal(exe(0 * x, vectors(exe, [])), np.zeros(0, "float32"))
    everything = np.repeat(np.arange(4), 5).astype("float32")
    np.testing.assert_array_equal(exe(x, vectors(exe, [number(0)])), everything)


@pytest.mark.parametrize("rows", [0, 1, 6])
def test_an_operator_sized_by_data_on_open_sizes(build, rows):
    exe = build(
        """
        def @main(%x: Tensor[(?, 2), float32]) -> (Tensor[(?, 2), int32], Tensor[(?), float32]) {
          let %at = argwhere(%x);
          (%at, sum(cast(%at, dtype="float32"), axis=[1]))
        }"""
    )
    x = np.random.default_rng(rows).integers(0, 2, (rows, 2)).astype("float32")
    at, total = exe(x)
    np.testing.assert_array_equal(at, np.argwhere(x))
    np.testing.assert_array_equal(total, np.argwhere(x).sum(1).astype("float32"))


def test_programs_of_tensors_alone_need_no_machine():
    import ixion
    from ixion.driver.text import parse

    module = parse(
        '#[version = "0.0.5"]\n'
        + LOOP
        + """
        def @main(%x: Tensor[(3), float32], %n: int32) -> Tensor[(3), float32] {
          let %c = greater(sum(%x), 0f);
          if (%c) { @power(%n, %x, %x) } else { negative(%x) }
        }"""
    )
    exe = ixion.compile(module, threads=1)
    assert {"branch", "loop"} <= {step.kind for step in exe.program.steps}
    x = np.array([1, 2, 3], "float32")
    np.testing.assert_array_equal(exe(x, number(3)), x**4)
    np.testing.assert_array_equal(exe(-x, number(3)), x)
