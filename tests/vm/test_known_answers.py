from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from ixion.base import config
from ixion.base.errors import InputError, KernelError
from ixion.runtime.values import Closure, ConstructorValue, RefValue


def number(value):
    return np.array(value, "int32")


def as_list(value):
    """A List value as a Python list, however long."""
    found = []
    while value.fields:
        found.append(value.fields[0].tolist())
        value = value.fields[1]
    return found


def make_list(exe, values):
    tags = {c.name_hint: c for c in exe.machine_program.constructors}
    made = ConstructorValue(tags["Nil"])
    for value in reversed(values):
        made = ConstructorValue(tags["Cons"], (value, made))
    return made


FACTORIAL = """
def @main(%n: int32) -> int32 {
  if (equal(%n, 0)) { 1 } else { multiply(%n, @main(subtract(%n, 1))) }
}"""


def test_factorial(build):
    exe = build(FACTORIAL)
    assert [int(exe(number(n))) for n in (0, 1, 5, 12)] == [1, 1, 120, 479001600]


def test_fibonacci_by_two_calls(build):
    exe = build(
        """def @main(%n: int32) -> int32 {
             if (less(%n, 2)) { %n } else {
               add(@main(subtract(%n, 1)), @main(subtract(%n, 2)))
             }
           }"""
    )
    assert [int(exe(number(n))) for n in (0, 1, 2, 10, 15)] == [0, 1, 1, 55, 610]


EVEN = """
def @main(%n: int32) -> bool { @even(%n) }
def @even(%n: int32) -> bool { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }
def @odd(%n: int32) -> bool { if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }
"""


def test_mutual_recursion_of_any_depth(build):
    exe = build(EVEN)
    assert exe(number(100_000))
    assert not exe(number(99_999))


def test_recursion_that_is_not_in_tail_position(build):
    """Every call waits for the next, 100,000 deep: frames are not on Python's stack."""
    exe = build(
        """def @main(%n: int32) -> int32 {
             if (equal(%n, 0)) { 0 } else { add(1, @main(subtract(%n, 1))) }
           }"""
    )
    assert int(exe(number(100_000))) == 100_000


def test_calls_that_nest_too_deep_end_the_run(build):
    with config.override(call_depth=50):
        exe = build(FACTORIAL)
    assert int(exe(number(12))) == 479001600
    with pytest.raises(KernelError, match="calls nest deeper than 50") as caught:
        exe(number(60))
    assert "@main" in str(caught.value)
    assert "call_depth" in str(caught.value)
    assert int(exe(number(12))) == 479001600


def test_a_tail_call_takes_no_depth(build):
    with config.override(call_depth=10):
        exe = build(EVEN)
    assert exe(number(1000))


LISTS = """
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Cons(%h, %t) => Cons(%f(%h), @map(%f, %t)), Nil => Nil }
}
def @filter[A](%f: fn (A) -> bool, %l: List[A]) -> List[A] {
  match (%l) {
    Cons(%h, %t) => { let %rest = @filter(%f, %t); if (%f(%h)) { Cons(%h, %rest) } else { %rest } },
    Nil => Nil
  }
}
def @foldl[A, B](%f: fn (A, B) -> A, %s: A, %l: List[B]) -> A {
  match (%l) { Cons(%h, %t) => @foldl(%f, %f(%s, %h), %t), Nil => %s }
}
def @foldr[A, B](%f: fn (A, B) -> B, %s: B, %l: List[A]) -> B {
  match (%l) { Cons(%h, %t) => %f(%h, @foldr(%f, %s, %t)), Nil => %s }
}
"""


def test_lists_map_filter_fold(build):
    exe = build(
        LISTS
        + """
        def @main(%l: List[int32], %k: int32) -> (List[int32], int32, List[int32]) {
          let %far = fn (%x: int32) -> bool { less(%k, %x) };
          let %grown = @map(fn (%x: int32) -> int32 { multiply(%x, %k) }, %l);
          let %kept = @filter(%far, %grown);
          let %less = fn (%a: int32, %b: int32) -> int32 { subtract(%a, %b) };
          (%kept, @foldl(%less, 100, %kept), @foldr(Cons, Nil, %grown))
        }"""
    )
    values = [number(v) for v in (1, 7, 0, 3)]
    kept, left, same = exe(make_list(exe, values), number(3))
    assert as_list(kept) == [21, 9]
    assert int(left) == 100 - 21 - 9
    assert as_list(same) == [3, 21, 0, 9]


def test_a_long_list_in_and_out(build):
    exe = build(
        LISTS
        + """
        def @main(%l: List[int32]) -> List[int32] {
          let %turn = fn (%done: List[int32], %x: int32) -> List[int32] { Cons(%x, %done) };
          @foldl(%turn, Nil, %l)
        }"""
    )
    values = [number(v) for v in range(30_000)]
    assert as_list(exe(make_list(exe, values))) == list(range(29_999, -1, -1))


def test_trees(build):
    exe = build(
        """
        def @grow(%n: int32) -> Tree[int32] {
          if (equal(%n, 0)) { Leaf(1) } else {
            Fork(@grow(subtract(%n, 1)), Leaf(%n))
          }
        }
        def @sum(%t: Tree[int32]) -> int32 {
          match (%t) { Leaf(%x) => %x, Fork(%a, %b) => add(@sum(%a), @sum(%b)) }
        }
        def @main(%n: int32) -> int32 { @sum(@grow(%n)) }"""
    )
    assert [int(exe(number(n))) for n in (0, 1, 10)] == [1, 2, 56]


def test_nested_patterns_in_order(build):
    exe = build(
        """
        def @main(%l: List[int32], %m: List[int32]) -> int32 {
          match ((%l, %m)) {
            (Cons(%a, Nil), Cons(%b, Nil)) => add(multiply(%a, 10), %b),
            (Cons(_, Cons(%x, _)), Nil) => %x,
            (Nil, _) => -1,
            _ => -2
          }
        }"""
    )

    def run(left, right):
        return int(exe(*(make_list(exe, [number(v) for v in part]) for part in (left, right))))

    assert run([4], [2]) == 42
    assert run([4, 5, 6], []) == 5
    assert run([], [7]) == -1
    assert run([], []) == -1
    assert run([4, 5], [6]) == -2
    assert run([4], []) == -2


def test_a_match_without_a_clause_that_fits(build):
    exe = build(
        """def @main(%l: List[int32]) -> int32 {
             match? (%l) { Cons(%h, _) => %h }
           }"""
    )
    assert int(exe(make_list(exe, [number(3)]))) == 3
    with pytest.raises(KernelError, match="no clause of the match fits") as caught:
        exe(make_list(exe, []))
    assert caught.value.found == "Nil()"


def test_closures_keep_what_they_saw(build):
    exe = build(
        """
        def @main(%x: float32, %l: List[int32]) -> (float32, float32, List[int32]) {
          let %adder = fn (%a: float32) { fn (%b: float32) { add(%a, %b) } };
          let %one = %adder(1f);
          let %ten = %adder(multiply(%x, 10f));
          (%one(%ten(%x)), %ten(0f), %l)
        }"""
    )
    *values, _ = exe(np.float32(2), make_list(exe, []))
    assert [float(v) for v in values] == [23, 20]


def test_a_recursive_closure_over_variables(build):
    exe = build(
        """
        def @main(%x: float32, %n: int32) -> float32 {
          let %step = add(%x, 1f);
          let %go = fn (%i: int32) -> float32 {
            if (equal(%i, 0)) { %x } else { multiply(%go(subtract(%i, 1)), %step) }
          };
          %go(%n)
        }"""
    )
    assert float(exe(np.float32(2), number(3))) == 2 * 3**3


def test_a_recursive_closure_as_a_value(build):
    """The function hands itself on, so it is made anew from what it closes over."""
    exe = build(
        LISTS
        + """
        def @main(%l: List[int32], %k: int32) -> int32 {
          let %go = fn (%n: int32) -> int32 {
            if (less(%n, %k)) { %n } else {
              @foldl(fn (%a: int32, %b: int32) -> int32 { add(%a, %b) }, 0,
                     @map(%go, Cons(subtract(%n, %k), Cons(0, Nil))))
            }
          };
          @foldl(fn (%a: int32, %b: int32) -> int32 { add(%a, %b) }, 0, @map(%go, %l))
        }"""
    )
    # go(n) is n mod k.
    assert int(exe(make_list(exe, [number(v) for v in (5, 9, 20)]), number(4))) == 1 + 1 + 0


def test_a_reference_as_a_counter(build):
    exe = build(
        LISTS
        + """
        def @main(%l: List[int32]) -> (int32, int32) {
          let %count = ref(0);
          let %tick = fn (%x: int32) -> int32 {
            let %done = ref_write(%count, add(ref_read(%count), 1));
            multiply(%x, ref_read(%count))
          };
          let %twice = @map(%tick, @map(%tick, %l));
          (ref_read(%count), @foldl(fn (%a: int32, %b: int32) -> int32 { add(%a, %b) }, 0, %twice))
        }"""
    )
    # The inner map ticks 1, 2 for its elements first to last; the outer goes on with 3, 4.
    assert [int(v) for v in exe(make_list(exe, [number(10), number(1)]))] == [4, 10 * 3 + 2 * 4]


def test_a_reference_that_leads_back_to_itself(build):
    """Recursion through a reference: the function is stored in what it closes over."""
    exe = build(
        """
        def @main(%n: int32) -> int32 {
          let %cell = ref(fn (%i: int32) -> int32 { 0 });
          let %sum = fn (%i: int32) -> int32 {
            let %again = ref_read(%cell);
            if (equal(%i, 0)) { 0 } else { add(%i, %again(subtract(%i, 1))) }
          };
          let %tied = ref_write(%cell, %sum);
          %sum(%n)
        }"""
    )
    assert int(exe(number(1000))) == 500_500


def test_a_reference_as_a_result(build):
    exe = build("def @main(%x: float32) -> ref(float32) { ref(add(%x, 1f)) }")
    found = exe(np.float32(2))
    assert isinstance(found, RefValue)
    assert float(found.value) == 3


def test_a_loop_that_grows_its_tensor(build):
    """Sizes depend on data: 2 rows become 2 * 2**n."""
    exe = build(
        """
        def @main(%x: Tensor[(?, 3), float32], %n: int32) -> Tensor[(?, 3), float32] {
          if (equal(%n, 0)) { %x } else {
            @main(concatenate((%x, multiply(%x, 2f)), axis=0), subtract(%n, 1))
          }
        }"""
    )
    x = np.arange(6, dtype="float32").reshape(2, 3)
    for rounds in (0, 1, 4):
        want = x
        for _ in range(rounds):
            want = np.concatenate([want, want * 2])
        np.testing.assert_array_equal(exe(x, number(rounds)), want)
    assert exe.machine_program.segments[1].mode == "compiled"


def test_plain_dataflow_with_sizes_from_data(build):
    exe = build(
        """
        def @main(%x: Tensor[(?), float32]) -> (Tensor[(?), float32], Tensor[(?, 1), int32]) {
          let %where = argwhere(greater(%x, 0f));
          let %picked = take(%x, reshape(%where, newshape=[-1]), axis=0);
          (multiply(%picked, %picked), %where)
        }"""
    )
    x = np.array([3, -1, 0, 2, -5], "float32")
    squares, where = exe(x)
    assert squares.tolist() == [9, 4]
    assert where.tolist() == [[0], [3]]
    squares, where = exe(-np.abs(x))
    assert squares.shape == (0,)
    assert where.shape == (0, 1)


def test_values_are_let_go_of(build):
    """A loop over large tensors holds few of them, and a waiting call only what it needs later."""
    exe = build(
        """
        def @main(%n: int32, %x: Tensor[(300, 300), float32]) -> Tensor[(300, 300), float32] {
          if (equal(%n, 0)) { %x } else {
            let %y = add(%x, 1f);
            let %z = @main(subtract(%n, 1), %y);
            add(%z, 1f)
          }
        }"""
    )
    alive: list[weakref.ref] = []
    most = 0
    machine = exe.machine
    linked = machine._linker.functions[0]
    for block in linked.blocks.values():
        block.steps = tuple(_watched(step, alive) for step in block.steps)
    result = exe(number(50), np.zeros((300, 300), "float32"))
    assert result[0, 0] == 100
    gc.collect()
    most = max(_watched.most)
    assert most <= 4


def _watched(step, alive):
    def run(regs):
        before = {id(v) for v in regs}
        step(regs)
        alive.extend(
            weakref.ref(v) for v in regs if isinstance(v, np.ndarray) and v.size > 1000
            and id(v) not in before
        )  # fmt: skip
        _watched.most.append(len({id(r()) for r in alive if r() is not None}))

    return run


_watched.most = [0]


def test_functions_as_results_can_be_given_back(build):
    exe = build(
        """
        def @main(%f: fn (float32) -> float32, %x: float32, %c: bool)
            -> (fn (float32) -> float32, float32) {
          let %g = fn (%y: float32) -> float32 { add(%f(%y), %x) };
          if (%c) { (%g, 0f) } else { (%f, %f(%x)) }
        }"""
    )
    with pytest.raises(InputError, match="wrong value"):
        exe(lambda x: x, np.float32(1), np.bool_(True))
    other = build("def @main(%x: float32) -> fn (float32) -> float32 { fn (%y: float32) { %x } }")
    foreign = other(np.float32(1))
    assert isinstance(foreign, Closure)
    with pytest.raises(InputError, match="a function that this executable returned"):
        exe(foreign, np.float32(1), np.bool_(True))
