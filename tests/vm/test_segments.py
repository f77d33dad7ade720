"""What becomes a segment, and what segments know of sizes."""

from __future__ import annotations

import numpy as np
import pytest

from ixion.base.errors import InputError, KernelError
from ixion.runtime.value_kind import TensorKind
from ixion.runtime.values import ConstructorValue


def number(value):
    return np.array(value, "int32")


def names(exe):
    return [segment.name for segment in exe.machine_program.segments]


def code(exe, name):
    functions = {f.name: f for f in exe.machine_program.functions}
    return [one.name for one in functions[name].code]


# A function that kernels cannot do.
CALLED = """
def @other(%x: Tensor[(4), float32], %l: List[int32]) -> Tensor[(4), float32] {
  match (%l) { Nil => %x, Cons(_, %t) => @other(exp(%x), %t) }
}
"""


def counted(exe, count):
    """A list of so many elements."""
    constructors = {c.name_hint: c for c in exe.machine_program.constructors}
    made = ConstructorValue(constructors["Nil"])
    for _ in range(count):
        made = ConstructorValue(constructors["Cons"], (number(0), made))
    return made


def test_operators_in_a_row_are_one_segment(build):
    exe = build(
        CALLED
        + """
        def @main(%x: Tensor[(4), float32], %c: List[int32]) -> Tensor[(4), float32] {
          let %a = negative(%x);
          let %b = add(%a, %x);
          let %d = (%a, %b);
          let %e = concatenate(%d, axis=0);
          let %f = split(%e, indices_or_sections=2, axis=0);
          let %g = @other(multiply(%f.0, %f.1), %c);
          add(%g, %a)
        }"""
    )
    assert code(exe, "@main") == ["segment", "call", "segment", "return"]
    assert names(exe)[0] == "negative+add+concatenate+split+1 more"
    x = np.array([1, 2, 3, 4], "float32")
    np.testing.assert_array_equal(exe(x, counted(exe, 0)), (-x) * 0 + -x)


def test_what_is_only_needed_after_a_call_runs_after_it(build):
    """It fuses with its user, and its result does not lie around during the call."""
    exe = build(
        CALLED
        + """
        def @main(%x: Tensor[(4), float32], %c: List[int32]) -> Tensor[(4), float32] {
          let %a = exp(%x);
          let %b = @other(%x, %c);
          add(%a, %b)
        }"""
    )
    assert code(exe, "@main") == ["call", "segment", "return"]
    assert "exp+add" in names(exe)


def test_a_segment_that_has_to_be_there_takes_along_what_can_join(build):
    exe = build(
        CALLED
        + """
        def @main(%x: Tensor[(4), float32], %c: List[int32])
            -> (Tensor[(4), float32], Tensor[(4), float32]) {
          let %a = exp(%x);
          let %b = log(%x);
          (@other(%a, %c), %b)
        }"""
    )
    assert code(exe, "@main") == ["segment", "call", "tuple", "return"]
    assert names(exe)[0] == "exp+log"


def test_equal_segments_are_one(build):
    exe = build(
        """
        def @main(%n: int32, %m: int32) -> int32 {
          if (less(%n, %m)) { add(%n, 1) } else { @more(%m, %n) }
        }
        def @more(%a: int32, %b: int32) -> int32 {
          if (less(%a, %b)) { add(%b, 1) } else { @main(%a, %b) }
        }"""
    )
    assert sorted(names(exe)) == ["add", "less"]


def test_small_functions_of_tensors_go_inline(build):
    exe = build(
        """
        def @cell(%x: float32, %h: float32) -> float32 {
          let %y = tanh(add(%x, %h));
          let %z = @twice(%y);
          subtract(%z, %h)
        }
        def @twice(%x: float32) -> float32 { let %y = %x; add(%y, %y) }
        def @main(%x: float32, %h: float32, %n: List[int32]) -> float32 {
          match (%n) { Nil => %h, Cons(_, %t) => @main(%x, @cell(%x, @cell(%x, %h)), %t) }
        }"""
    )
    assert [f.name for f in exe.machine_program.functions] == ["@main"]
    assert code(exe, "@main") == ["switch", "return", "field", "segment", "tailcall", "fail"]

    def cell(x, h):
        return 2 * np.tanh(x + h) - h

    want = np.float64(0.25)
    for _ in range(6):
        want = cell(0.5, want)
    found = exe(np.float32(0.5), np.float32(0.25), counted(exe, 3))
    np.testing.assert_allclose(found, want, rtol=1e-5)


def test_a_program_that_becomes_plain_is_no_machine_program():
    import ixion
    from ixion.driver.text import parse

    module = parse(
        """#[version = "0.0.5"]
        def @f(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { let %y = exp(%x); add(%y, %y) }
        def @main(%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
          let %a = @f(%x);
          if (True) { @f(%a) } else { %a }
        }"""
    )
    exe = ixion.compile(module, threads=1)
    assert exe.program is not None
    x = np.array([0.5, -1], "float32")
    np.testing.assert_allclose(exe(x), 2 * np.exp(2 * np.exp(x)), rtol=1e-6)


def test_open_sizes_have_the_names_their_types_say(build):
    """``relu`` keeps a size, concatenation adds: the segment after the call knows it still."""
    exe = build(
        """
        def @id(%x: Tensor[(?, 2), float32], %l: List[int32]) -> Tensor[(?, 2), float32] {
          match (%l) { Nil => %x, Cons(_, %t) => @id(exp(%x), %t) }
        }
        def @main(%x: Tensor[(?, 2), float32], %c: List[int32]) -> Tensor[(?, 2), float32] {
          let %a = nn.relu(%x);
          let %b = concatenate((%a, %x), axis=0);
          let %d = @id(%b, %c);
          let %e = @id(%a, %c);
          (concatenate((%a, %x, %d, %e, %b), axis=0))
        }"""
    )
    (segment,) = (s for s in exe.machine_program.segments if len(s.inputs) > 2)
    rows = {name: kind.shape[0] for name, kind in segment.inputs}
    # b is concatenated again where it is used: what comes in are the others.
    assert rows["a"] == rows["x"]
    assert len({rows["a"], rows["d"], rows["e"]}) == 3
    x = np.array([[1, -2], [-3, 4]], "float32")
    a = np.maximum(x, 0)
    b = np.concatenate([a, x])
    want = np.concatenate([a, x, b, a, b])
    np.testing.assert_array_equal(exe(x, counted(exe, 0)), want)


def test_a_size_computed_as_a_tensor_is_computed_again_where_it_is_needed(build):
    """The type of the reshape follows from the value of an operator that another segment has."""
    exe = build(
        """
        def @id(%x: Tensor[(?, ?), float32], %s: Tensor[(1), int64], %c: bool)
            -> Tensor[(?, ?), float32] {
          if (%c) { %x } else { full(cast(take(%s, 0), dtype="float32"), shape=[1, 1]) }
        }
        def @main(%x: Tensor[(?, 2), float32], %c: bool) -> Tensor[(?), float32] {
          let %rows = strided_slice(shape_of(%x, dtype="int64"), begin=[0], end=[1], strides=[1]);
          let %size = multiply(%rows, 2i64);
          let %y = @id(%x, %size, %c);
          let %flat = dyn.reshape(%x, %size, newshape=[]);
          add(%flat, sum(%y))
        }"""
    )
    x = np.array([[1, -2], [-3, 4], [5, 6]], "float32")
    np.testing.assert_array_equal(exe(x, np.bool_(True)), x.reshape(-1) + x.sum())
    np.testing.assert_array_equal(exe(x, np.bool_(False)), x.reshape(-1) + 6)
    assert not exe.machine_program.hosts


def test_sizes_from_data_are_host_operators_between_segments(build):
    exe = build(
        """
        def @main(%x: Tensor[(?), float32]) -> Tensor[(?), float32] {
          let %a = exp(negative(%x));
          let %at = reshape(argwhere(less(%a, 1f)), newshape=[-1]);
          let %b = take(%a, %at, axis=0, mode="fast");
          multiply(%b, %b)
        }"""
    )
    assert [host.op for host in exe.machine_program.hosts] == ["argwhere"]
    assert code(exe, "@main") == ["segment", "host", "segment", "return"]
    x = np.array([0.5, -1, 2], "float32")
    np.testing.assert_allclose(exe(x), np.exp(-2 * x[[0, 2]]), rtol=1e-6)


def test_sizes_that_types_promise_are_checked(build):
    """A function says two arguments are as long as each other; data says otherwise."""
    exe = build(
        """
        def @twins(%a: Tensor[(3), float32], %n: int32) -> Tensor[(3), float32] {
          if (equal(%n, 0)) { %a } else { @twins(add(%a, 1f), subtract(%n, 1)) }
        }
        def @main(%x: Tensor[(?), float32], %n: int32) -> Tensor[(?), float32] {
          let %at = reshape(argwhere(greater(%x, 0f)), newshape=[-1]);
          @twins(take(%x, %at, axis=0), %n)
        }"""
    )
    x = np.array([1, 2, -1, 3], "float32")
    np.testing.assert_array_equal(exe(x, number(2)), [3, 4, 5])
    with pytest.raises(KernelError, match="parameter %a has the wrong shape") as caught:
        exe(x[:3], number(2))
    assert (caught.value.expected, caught.value.found) == ("float32[3]", "float32[2]")
    assert "@twins" in str(caught.value)


def test_named_sizes_of_parameters_agree(build):
    import ixion
    from ixion import op
    from ixion.base.dim import SymVar
    from ixion.ir import (
        Function,
        If,
        IRModule,
        RefCreate,
        RefRead,
        TensorType,
        Tuple,
        TupleGetItem,
        Var,
    )

    n = SymVar("n")
    a, b = Var("a", TensorType((n, 2))), Var("b", TensorType((n,)))
    flag = Var("flag", TensorType((), "bool"))
    body = If(flag, Tuple([a, b]), Tuple([op.call("negative", a), op.call("exp", b)]))
    result = TupleGetItem(RefRead(RefCreate(body)), 0), TupleGetItem(RefRead(RefCreate(body)), 1)
    exe = ixion.compile(IRModule.from_expr(Function([a, b, flag], Tuple(result))), threads=1)
    assert exe.inputs[0].shape == ("n", 2)
    x, y = np.ones((3, 2), "float32"), np.zeros(3, "float32")
    first, second = exe(x, y, np.bool_(False))
    assert first.tolist() == (-x).tolist()
    assert second.tolist() == [1, 1, 1]
    with pytest.raises(InputError, match="dimension n of input 'b'") as caught:
        exe(x, y[:2], np.bool_(True))
    assert caught.value.expected == "n = 3"


def test_a_fault_in_a_segment_names_function_and_operator(build):
    exe = build(
        """
        def @main(%x: Tensor[(5), float32], %i: int32, %l: List[int32]) -> float32 {
          match (%l) { Nil => take(%x, %i, mode="fast"), Cons(_, %t) => @main(%x, %i, %t) }
        }"""
    )
    x = np.arange(5, dtype="float32")
    assert float(exe(x, number(4), counted(exe, 3))) == 4
    with pytest.raises(KernelError, match="out of range") as caught:
        exe(x, number(5), counted(exe, 3))
    assert "@main: take" in str(caught.value)
    assert float(exe(x, number(1), counted(exe, 0))) == 1


def test_segments_that_do_not_fit_say_so(build):
    """Sizes that meet in an operator and do not broadcast."""
    exe = build(
        """
        def @main(%x: Tensor[(?), float32], %y: Tensor[(?), float32], %c: bool)
            -> Tensor[(?), float32] {
          if (%c) { add(%x, %y) } else { %x }
        }"""
    )
    x, y = np.arange(3, dtype="float32"), np.ones(2, "float32")
    np.testing.assert_array_equal(exe(x, y, np.bool_(False)), x)
    np.testing.assert_array_equal(exe(x, y[:1], np.bool_(True)), x + 1)
    np.testing.assert_array_equal(exe(x, x, np.bool_(True)), x + x)
    with pytest.raises(KernelError, match="broadcast") as caught:
        exe(x, y, np.bool_(True))
    assert "add" in str(caught.value)


def test_a_host_operator_that_refuses_its_arguments(build):
    exe = build(
        """
        def @main(%x: Tensor[(?), float32], %s: Tensor[(?), int64]) -> Tensor[(?, ?), float32] {
          dyn.reshape(%x, %s, newshape=[])
        }""".replace("Tensor[(?), int64]", "Tensor[(2), int64]")
    )
    x = np.arange(6, dtype="float32")
    np.testing.assert_array_equal(exe(x, np.array([2, 3])), x.reshape(2, 3))
    with pytest.raises(KernelError, match="element counts differ") as caught:
        exe(x, np.array([4, 2]))
    assert "dyn.reshape" in str(caught.value)


def test_inputs_of_the_wrong_kind(build):
    exe = build(
        """
        def @main(%p: (int32, Tensor[(2), float32]), %l: List[Tensor[(2), float32]]) -> int32 {
          match (%l) { Cons(_, _) => %p.0, Nil => 0 }
        }"""
    )
    constructors = {c.name_hint: c for c in exe.machine_program.constructors}

    def value(name, *fields):
        from ixion.runtime.values import ConstructorValue

        return ConstructorValue(constructors[name], fields)

    x = np.ones(2, "float32")
    pair, nil = (number(3), x), value("Nil")
    good = value("Cons", x, nil)
    assert int(exe(pair, good)) == 3
    assert int(exe([number(3), x], nil)) == 0
    for first, second, message in [
        ((number(3),), good, "input 'p' has a wrong value"),
        ((np.int64(3), x), good, "input 'p' has the wrong dtype"),
        ((number(3), x[:1]), good, "input 'p' has the wrong shape"),
        (pair, value("Cons", x.astype("float64"), nil), "a part of input 'l' has the wrong dtype"),
        (pair, value("Cons", [1.0, 2.0], nil), "a part of input 'l' has a wrong value"),
        (pair, value("Cons", x), "input 'l' has a value that is not of type List"),
        (pair, x, "input 'l' has a wrong value"),
    ]:
        with pytest.raises(InputError, match=message):
            exe(first, second)


def test_kinds_as_text():
    assert str(TensorKind((3, "n", "?"), "float32")) == "float32[3, n, ?]"
