"""Control flow as calls of regions: the form, and that the value stays."""

from __future__ import annotations

import numpy as np
import pytest

from ixion import op
from ixion.analysis import check_typed, check_well_formed, evaluate
from ixion.ir import Expr, Function, If, IRModule, Let, Op, const, var
from ixion.ir.visitor import post_order
from ixion.transform import (
    InferType,
    OutlineControl,
    has_control,
    outline_part,
    why_left_alone,
)


def outlined(mod: IRModule) -> IRModule:
    """The outlined module, checked; fails where the program is left alone."""
    reason = why_left_alone(mod)
    assert reason is None, reason
    found = InferType()(OutlineControl()(mod))
    check_well_formed(found)
    check_typed(found)
    for func in found.functions.values():
        assert not has_control(found, "main")
        assert not any(type(node).__name__ in ("If", "Let") for node in post_order(func))
    return found


def ops(mod: IRModule) -> list[str]:
    """Names of the control operators in a module, sorted."""
    names = [
        node.name
        for func in mod.functions.values()
        for node in post_order(func)
        if isinstance(node, Op) and node.name.startswith("control.")
    ]
    return sorted(name.removeprefix("control.") for name in names)


def same_value(mod: IRModule, *args: object) -> IRModule:
    found = outlined(mod)
    np.testing.assert_equal(evaluate(found, list(args)), evaluate(mod, list(args)))
    return found


def test_an_if_runs_one_of_two_regions(check):
    check(
        OutlineControl(),
        """def @main(%c: bool, %x: float32) {
             %0 = exp(%x);
             if (%c) { add(%0, %x) } else { log(%0) }
           }""",
        """def @main(%c: bool, %x: float32) -> float32 {
             %0 = exp(%x);
             %1 = control.branch(%c, @main_then0, @main_else1, (%0, %x));
             %1.0
           }
           def @main_then0(%a: float32, %b: float32) -> (float32,) { (add(%a, %b),) }
           def @main_else1(%a: float32, %b: float32) -> (float32,) { (log(%a),) }""",
    )


def test_what_both_branches_give_alike_is_no_result(check):
    check(
        OutlineControl(),
        """def @main(%c: bool, %x: float32) {
             if (%c) { (%x, exp(%x), 1f) } else { (%x, %x, 1f) }
           }""",
        """def @main(%c: bool, %x: float32) -> (float32, float32, float32) {
             %0 = control.branch(%c, @main_then0, @main_else1, (%x,));
             (%x, %0.0, 1f)
           }
           def @main_then0(%a: float32) -> (float32,) { (exp(%a),) }
           def @main_else1(%a: float32) -> (float32,) { (%a,) }""",
    )


def test_a_counted_loop_is_repeated(check):
    """The counter counts nothing but rounds, the bound and the factor stay what they are."""
    check(
        OutlineControl(),
        """def @main(%n: int32, %x: Tensor[(4), float32]) {
             let %loop = fn (%i: int32, %y: Tensor[(4), float32]) -> Tensor[(4), float32] {
               if (less(%i, %n)) { %loop(add(%i, 1), multiply(%y, %x)) } else { %y }
             };
             %loop(0, %x)
           }""",
        """def @main(%n: int32, %x: Tensor[(4), float32]) -> Tensor[(4), float32] {
             %0 = control.repeat(cast(%n, dtype="int64"), @main_body0, (%x,), (%x,));
             %0.0
           }
           def @main_body0(%y: Tensor[(4), float32], %x: Tensor[(4), float32])
             -> (Tensor[(4), float32],) { (multiply(%y, %x),) }""",
    )


def test_a_loop_that_data_ends(check):
    check(
        OutlineControl(),
        """def @loop(%y: float32, %k: float32) -> float32 {
             %0 = multiply(%y, %k);
             if (less(%0, 100f)) { @loop(add(%0, 1f), %k) } else { %0 }
           }
           def @main(%x: float32) { @loop(%x, 3f) }""",
        """def @main(%x: float32) -> float32 {
             %0 = control.loop(@main_head0, @main_body1, (%x,), ());
             %0.1
           }
           def @main_head0(%y: float32) -> (bool, float32) {
             %0 = multiply(%y, 3f);
             (less(%0, 100f), %0)
           }
           def @main_body1(%y: float32, %z: float32) -> (float32,) { (add(%z, 1f),) }""",
    )


COUNTERS = [
    ("int32", "less(%i, %n)", "add(%i, 1)", "0"),
    ("int64", "less(%i, %n)", "add(1i64, %i)", "3i64"),
    ("int64", "less_equal(%i, %n)", "add(%i, 2i64)", "-4i64"),
    ("int32", "greater(%n, %i)", "add(%i, 3)", "-1"),
    ("int64", "greater(%i, %n)", "subtract(%i, 1i64)", "6i64"),
    ("int32", "greater_equal(%i, %n)", "add(%i, -2)", "6"),
    ("int64", "less_equal(%n, %i)", "subtract(%i, 3i64)", "7i64"),
    ("int32", "logical_not(less(%n, %i))", "add(%i, 4)", "-5"),
]


@pytest.mark.parametrize(("dtype", "test", "step", "start"), COUNTERS)
@pytest.mark.parametrize("ends", [False, True])
def test_how_often_a_counter_lets_a_loop_run(module, dtype, test, step, start, ends):
    go = "%loop(" + step + ", add(%y, cast(%i, dtype=\"float32\")))"
    sides = ("%y", go) if ends else (go, "%y")
    cond = f"logical_not({test})" if ends else test
    mod = module(
        f"""def @main(%n: {dtype}) {{
              let %loop = fn (%i: {dtype}, %y: float32) -> float32 {{
                if ({cond}) {{ {sides[0]} }} else {{ {sides[1]} }}
              }};
              %loop({start}, 0f)
            }}"""
    )
    for n in range(-6, 9):
        found = same_value(mod, np.array(n, dtype))
    assert ops(found) == ["repeat"]


@pytest.mark.parametrize(
    ("test", "step"),
    [
        ("less(%i, %n)", "add(%i, -1)"),  # away from the bound
        ("less(%i, %n)", "multiply(%i, 2)"),
        ("not_equal(%i, %n)", "add(%i, 1)"),
        ("less(%i, %m)", "add(%i, 1)"),  # the bound changes
    ],
)
def test_other_counters_are_asked_every_round(module, test, step):
    mod = module(
        f"""def @main(%n: int32) {{
              let %loop = fn (%i: int32, %m: int32) -> int32 {{
                if ({test}) {{ %loop({step}, subtract(%m, 1)) }} else {{ %i }}
              }};
              %loop(3, %n)
            }}"""
    )
    assert ops(same_value(mod, np.int32(3))) == ["loop"]


def test_two_ways_out_and_a_result_of_two(module):
    mod = module(
        """def @main(%n: int32, %x: float32) {
             let %loop = fn (%i: int32, %y: float32) -> (float32, bool) {
               if (less(%i, %n)) {
                 let %z = multiply(%y, %y);
                 if (less(%z, 1000f)) { %loop(add(%i, 1), %z) } else { (negative(%z), True) }
               } else { (%y, False) }
             };
             %loop(0, %x)
           }"""
    )
    for n, x in ((0, 2), (2, 2), (9, 2), (9, 0.5), (1, 40)):
        found = same_value(mod, np.int32(n), np.float32(x))
    assert ops(found) == ["branch", "branch", "loop", "unset", "unset", "unset"]


def test_loops_inside_loops_and_branches_inside_both(module):
    mod = module(
        """def @inner(%j: int32, %i: int32, %y: Tensor[(3), float32]) -> Tensor[(3), float32] {
             if (less(%j, %i)) {
               @inner(add(%j, 1), %i, if (less(sum(%y), 50f)) { add(%y, %y) } else { negative(%y) })
             } else { %y }
           }
           def @main(%n: int32, %x: Tensor[(3), float32]) {
             let %outer = fn (%i: int32, %y: Tensor[(3), float32]) -> Tensor[(3), float32] {
               if (less(%i, %n)) { %outer(add(%i, 1), add(@inner(0, %i, %y), %x)) } else { %y }
             };
             %outer(0, %x)
           }"""
    )
    for n in (0, 1, 6):
        found = same_value(mod, np.int32(n), np.array([1, 2, 3], "float32"))
    assert ops(found) == ["branch", "repeat", "repeat"]


def test_states_that_change_places_and_tuples_of_states(module):
    mod = module(
        """def @main(%n: int64, %a: float32, %b: float32) {
             let %loop = fn (%i: int64, %s: (float32, (float32, float32)))
                 -> (float32, (float32, float32)) {
               %0 = %s.1;
               if (less(%i, %n)) { %loop(add(%i, 1i64), (%0.0, (add(%s.0, %0.0), %0.1))) }
               else { %s }
             };
             %loop(0i64, (%a, (%b, 7f)))
           }"""
    )
    for n in (0, 1, 10):
        found = same_value(mod, np.int64(n), np.float32(1), np.float32(1))
    main = found["main"].body
    (call,) = [n for n in post_order(main) if getattr(n, "op", None) is Op.get("control.repeat")]
    assert len(call.args[2].fields) == 2  # the 7 never changes


def test_functions_are_put_in_place_of_calls_of_them(check):
    check(
        OutlineControl(),
        """def @square(%x: float32) -> float32 { multiply(%x, %x) }
           def @main(%x: float32) {
             let %apply = fn (%f: fn (float32) -> float32, %y: float32) { add(%f(%y), %y) };
             let %twice = fn (%y: float32) { add(%y, %y) };
             %apply(%twice, %apply(@square, %x))
           }""",
        """def @main(%x: float32) -> float32 {
             %0 = add(multiply(%x, %x), %x);
             add(add(%0, %0), %0)
           }""",
    )


def test_a_condition_that_is_known_chooses_now(check):
    check(
        OutlineControl(),
        "def @main(%x: float32) { if (True) { exp(%x) } else { %x } }",
        "def @main(%x: float32) -> float32 { exp(%x) }",
    )


def test_sizes_stay_known_inside_a_region(module):
    """The target shape is computed outside: inside it must still be a number."""
    mod = module(
        """def @main(%c: bool, %x: Tensor[(2, 6), float32], %y: Tensor[(4, 3), float32]) {
             %0 = shape_of(%y, dtype="int64");
             if (%c) { exp(dyn.reshape(%x, %0, newshape=[])) } else { %y }
           }"""
    )
    x, y = np.ones((2, 6), "float32"), np.zeros((4, 3), "float32")
    same_value(mod, np.True_, x, y)


def test_a_dataflow_program_is_not_touched(module):
    mod = module("def @main(%x: float32) { exp(add(%x, %x)) }")
    assert OutlineControl()(mod) is mod
    assert not has_control(mod)


LEFT = [
    (
        """def @main(%n: int32) -> int32 {
             if (less(%n, 2)) { 1 } else { multiply(%n, @main(subtract(%n, 1))) }
           }""",
        "before the end of its work",
    ),
    (
        """def @main(%n: int32, %x: Tensor[(1), float32]) {
             let %grow = fn (%i: int32, %y: Tensor[(?), float32]) -> Tensor[(?), float32] {
               if (less(%i, %n)) { %grow(add(%i, 1), concatenate((%y, %y))) } else { %y }
             };
             %grow(0, %x)
           }""",
        r"changes from Tensor\[\(1\), float32\] to Tensor\[\(2\), float32\]",
    ),
    (
        """def @main(%c: bool, %x: float32) {
             let %f = if (%c) { fn (%y: float32) { exp(%y) } } else { fn (%y: float32) { %y } };
             %f(%x)
           }""",
        "which function is called depends on data",
    ),
    ("def @main(%x: float32) { let %r = ref(%x); ref_read(%r) }", "a RefRead is no first-order"),
    (
        """def @even(%n: int32) -> bool {
             if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) }
           }
           def @odd(%n: int32) -> bool {
             if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) }
           }
           def @main(%n: int32) { @even(%n) }""",
        "through other functions",
    ),
    (
        """def @main(%c: bool, %x: Tensor[(3), float32]) {
             if (%c) { argwhere(%x) } else { argwhere(negative(%x)) }
           }""",
        "depends on data",
    ),
]


@pytest.mark.parametrize(("text", "reason"), LEFT)
def test_what_is_left_alone_and_why(module, text, reason):
    mod = module(text)
    found = why_left_alone(mod)
    assert found is not None
    with pytest.raises(AssertionError, match=reason):
        outlined(mod)
    assert OutlineControl()(mod) is mod


def test_a_part_of_a_program_that_is_left_alone(module):
    """The loop inside a function that calls itself before its end."""
    mod = module(
        """def @main(%n: int32, %x: float32) -> float32 {
             let %loop = fn (%i: int32, %y: float32) -> float32 {
               if (less(%i, %n)) { %loop(add(%i, 1), multiply(%y, 2f)) } else { %y }
             };
             let %z = %loop(0, %x);
             if (less(%n, 1)) { %z } else { add(@main(subtract(%n, 1), %x), %z) }
           }"""
    )
    assert why_left_alone(mod) is not None
    func = mod["main"]
    lets = [node for node in post_order(func) if isinstance(node, Let)]
    outer = max(lets, key=lambda let: len(post_order(let)))
    found, regions = outline_part(mod, Let(outer.var, outer.value, outer.body.value), "part")
    assert [name.name_hint for name in regions] == ["part_body0"]
    whole = mod.clone()
    for name, region in regions.items():
        whole.update_func(name, region)
    body = Let(outer.body.var, found, outer.body.body)
    whole.update_func(mod.get_global_var("main"), func.copy(body=body))
    whole = InferType()(whole)
    check_well_formed(whole)
    for n in (0, 1, 4):
        args = [np.int32(n), np.float32(1.5)]
        assert evaluate(whole, args) == evaluate(mod, args)


def test_running_it_again_changes_nothing(module):
    mod = outlined(
        module(
            """def @main(%c: bool, %x: float32) {
                 if (%c) { if (less(%x, 1f)) { exp(%x) } else { %x } } else { negative(%x) }
               }"""
        )
    )
    assert OutlineControl()(mod) is mod


def test_deep_programs_cost_no_stack_and_linear_time(module):
    depth = 6_000
    x = var("x", shape=())
    value: Expr = x
    lets = []
    for _ in range(depth):
        name = var("v")
        lets.append((name, op.add(value, const(1.0))))
        value = name
    body: Expr = value
    for name, bound in reversed(lets):
        body = Let(name, bound, body)
    found = outlined(InferType()(IRModule.from_expr(Function([x], body))))
    assert float(evaluate(found, [np.float32(0)])) == depth


def test_branches_nest_deep(module):
    depth = 300
    x, n = var("x", shape=()), var("n", shape=(), dtype="int32")
    body: Expr = x
    for i in range(depth):
        body = If(op.less(n, const(i)), op.add(body, const(1.0)), op.negative(x))
    mod = InferType()(IRModule.from_expr(Function([x, n], body)))
    found = outlined(mod)
    for n_ in (-1, 5, depth):
        args = [np.float32(2), np.int32(n_)]
        assert evaluate(found, args) == evaluate(mod, args)
