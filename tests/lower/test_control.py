"""Steps of loops and branches: where state lies, and which copies are left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ixion.op
from ixion.base.target import Target
from ixion.driver import pipeline
from ixion.driver.compilation import interface, regions
from ixion.ir import parse
from ixion.lower.assemble import assemble
from ixion.runtime.program import Program, Step

ROW = "Tensor[(16), float32]"
TABLE = "Tensor[(200, 300), float32]"


def program(text: str) -> Program:
    """The program of a text whose loop is called %loop."""
    module = parse('#[version = "0.0.5"]\n' + text)
    *_, (_, module) = pipeline.run(module, pipeline.COMPILED, Target.parse("avx2"), 3)
    ins, outs = interface(module, module["main"])
    names = [s.name for s in ins], [s.name for s in outs]
    made = assemble(module["main"], Target.parse("avx2"), *names, regions=regions(module))
    return made.outline.program({})


def loop(state: str, kind: str, new: str, more: str = "") -> str:
    return f"""def @main(%n: int64, %x: {kind}, %w: {kind}{more}) {{
      let %loop = fn (%i: int64, %y: {kind}{state}) -> {kind} {{
        if (less(%i, %n)) {{ %loop(add(%i, 1i64), {new}) }} else {{ %y }}
      }};
      %loop(0i64, %x)
    }}"""


def inside(made: Program) -> list[Step]:
    """The calls of the innermost loop."""
    last = next(i for i, s in enumerate(made.steps) if s.kind in ("next", "jump"))
    first = made.steps[last].target
    return [s for s in made.steps[first:last] if s.kind == "call"]


def test_an_elementwise_round_writes_the_state_where_it_lies():
    made = program(loop("", TABLE, "add(multiply(%y, %w), %w)"))
    (step,) = inside(made)
    assert step.slots[0] == step.slots[1]
    assert made.output_places == [None]  # the state is the caller's array
    assert made.arena_size == 0


def test_a_round_that_reads_elsewhere_than_it_writes_needs_a_second_place():
    steps = inside(program(loop("", TABLE, "reverse(%y, axis=0)")))
    assert [s.label.split()[0] for s in steps] == ["reverse", "carry"]
    assert steps[0].slots[0] != steps[0].slots[1]
    assert steps[1].slots == (steps[0].slots[1], steps[0].slots[0])


def test_small_steps_of_a_round_are_one():
    made = program(loop("", ROW, "tanh(add(%w, nn.softmax(%y, axis=0)))"))
    (step,) = inside(made)
    assert "softmax" in step.label
    assert [s.kind for s in made.steps] == [
        "call", "solo", "loop", "call", "next", "together",
    ]  # fmt: skip


def test_a_row_is_written_without_copying_the_others():
    text = f"""def @main(%n: int64, %x: {ROW}) {{
      let %loop = fn (%i: int64, %y: {ROW}, %all: Tensor[(5000, 16), float32])
          -> Tensor[(5000, 16), float32] {{
        if (less(%i, %n)) {{
          let %z = sin(%y);
          %loop(add(%i, 1i64), %z, put_slice(%all, expand_dims(%z, axis=0), %i))
        }} else {{ %all }}
      }};
      %loop(0i64, %x, zeros(shape=[5000, 16], dtype="float32"))
    }}"""
    made = program(text)
    (step,) = inside(made)
    outputs = [slot for slot in step.slots if slot.kind == "output"]
    assert len(outputs) == 1  # the buffer is one memory, and the caller's
    assert made.arena_size < 1000


def test_a_row_of_a_tensor_that_is_needed_later_is_put_into_a_copy():
    text = f"""def @main(%i: int64, %x: {TABLE}, %r: Tensor[(1, 300), float32]) {{
      %0 = exp(%x);
      (put_slice(%0, %r, %i), %0)
    }}"""
    kinds = [s.label.split()[0] for s in program(text).steps]
    assert kinds == ["exp", "put_slice", "put_slice"]
    once = text.replace(", %0)\n", ", %i)\n")
    assert [s.label.split()[0] for s in program(once).steps] == ["exp", "put_slice"]


def test_what_is_used_in_every_round_is_not_overwritten_by_one():
    """A value made before the loop and read in it keeps its memory until the loop is left."""
    text = f"""def @main(%n: int64, %x: {TABLE}) {{
      let %loop = fn (%i: int64, %y: {TABLE}) -> {TABLE} {{
        if (less(%i, %n)) {{
          let %a = reverse(add(%y, exp(%x)), axis=0);
          let %b = reverse(multiply(%a, %a), axis=1);
          %loop(add(%i, 1i64), reverse(%b, axis=0))
        }} else {{ %y }}
      }};
      %loop(0i64, %x)
    }}"""
    made = program(text)
    first = next(s for s in made.steps if s.label.startswith("exp"))
    kept = first.slots[0]
    assert kept.kind == "arena"
    for step in inside(made):
        if step.slots[0].kind == "arena":
            assert abs(step.slots[0].offset - kept.offset) >= 200 * 300 * 4


def test_a_branch_writes_its_result_from_either_side():
    text = f"""def @main(%c: bool, %x: {TABLE}) {{
      if (%c) {{ exp(%x) }} else {{ reverse(%x, axis=0) }}
    }}"""
    made = program(text)
    assert [s.kind for s in made.steps] == ["branch", "call", "jump", "call"]
    assert made.steps[1].slots[0] == made.steps[3].slots[0]
    assert (made.steps[0].target, made.steps[2].target) == (3, 4)
    assert made.steps[0].width == 1


def test_all_wait_before_a_jump_back():
    """The first steps of a round may write what the last ones of the round before still read."""
    made = program(loop("", TABLE, "reverse(sin(reverse(%y, axis=0)), axis=1)"))
    steps = made.steps
    last = next(i for i, s in enumerate(steps) if s.kind == "next")
    assert steps[last - 1].barrier


def test_loops_nest_as_deep_as_there_are_counters():
    body = "%y"
    text = ""
    for depth in range(9):
        text += f"""def @f{depth}(%i: int64, %n: int64, %y: {ROW}) -> {ROW} {{
          if (less(%i, %n)) {{ @f{depth}(add(%i, 1i64), %n, {body.replace('%y', 'sin(%y)')}) }}
          else {{ %y }}
        }}\n"""
        body = f"@f{depth}(0i64, %n, %y)"
    made = program(text + f"def @main(%n: int64, %y: {ROW}) {{ {body} }}")
    assert sum(s.kind == "next" for s in made.steps) <= 9
    assert made.check() is None


def test_state_that_changes_places_is_set_aside():
    text = f"""def @main(%n: int64, %a: {TABLE}, %b: {TABLE}) {{
      let %loop = fn (%i: int64, %x: {TABLE}, %y: {TABLE}) -> ({TABLE}, {TABLE}) {{
        if (less(%i, %n)) {{ %loop(add(%i, 1i64), %y, %x) }} else {{ (%x, %y) }}
      }};
      %loop(0i64, %a, %b)
    }}"""
    steps = inside(program(text))
    memory: dict[Any, int] = {("output", 0): 1, ("output", 1): 2}
    for step in steps:
        to, source = (s.kind if s.kind == "arena" else (s.kind, s.index) for s in step.slots)
        memory[to] = memory[source]
    assert (memory["output", 0], memory["output", 1]) == (2, 1)
    assert len(steps) == 3


@pytest.mark.parametrize("size", [1, 3, 17, 64])
def test_put_slice_in_machine_code(size):
    """Along both axes, at both ends; a position without room is an error."""
    x = np.arange(4 * 70, dtype=np.int32).reshape(4, 70)
    for axis in (0, 1):
        part = np.full((min(size, 4), 70) if axis == 0 else (4, size), -1, np.int32)
        shapes = [f"Tensor[{shape}, int32]" for shape in (x.shape, part.shape)]
        made = ixion.compile(parse(
            f"""#[version = "0.0.5"]
            def @main(%x: {shapes[0]}, %p: {shapes[1]}, %b: int32) {{
              put_slice(%x, %p, %b, axis={axis})
            }}"""
        ))  # fmt: skip
        room = x.shape[axis] - part.shape[axis]
        for begin in {0, room // 2, room}:
            want = x.copy()
            want[(slice(None),) * axis + (slice(begin, begin + part.shape[axis]),)] = part
            np.testing.assert_array_equal(made(x, part, np.int32(begin)), want)
        for begin in (-1, room + 1, 2**31 - 1):
            with pytest.raises(ixion.base.errors.KernelError, match="index out of range"):
                made(x, part, np.int32(begin))
