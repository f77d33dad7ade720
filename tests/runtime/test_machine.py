from __future__ import annotations

import threading

import numpy as np
import pytest

from ixion.base.errors import CodegenError, ConfigError, InputError, KernelError
from ixion.runtime.machine import Machine
from ixion.runtime.machine_program import (
    ConstantSpec,
    HostOp,
    Instruction,
    MachineFunction,
    MachineProgram,
    Segment,
)
from ixion.runtime.machine_text import machine_text
from ixion.runtime.value_kind import (
    ConstructorSpec,
    DataKind,
    FunctionKind,
    ParameterKind,
    RefKind,
    TensorKind,
    TupleKind,
    kind_from_json,
    kind_to_json,
)
from ixion.runtime.values import Closure, ConstructorValue, RefValue

NUMBER = TensorKind((), "int64")
LIST = DataKind("List", (NUMBER,))
CONS = ConstructorSpec("Cons", 7, "List", (ParameterKind(0), DataKind("List", (ParameterKind(0),))))
NIL = ConstructorSpec("Nil", 8, "List")
I = Instruction  # noqa: E741 - there are many


def add(values):
    return [np.add(*values)]


def program(functions, inputs, output, **more) -> MachineProgram:
    fields = {
        "arrays": [], "constructors": [CONS, NIL], "segments": [], "hosts": [], "checks": [], **more
    }  # fmt: skip
    names = [f"x{i}" for i in range(len(inputs))]
    return MachineProgram(
        functions, 0, inputs=list(zip(names, inputs, strict=True)), output=output,
        output_names=[f"out{i}" for i in range(len(getattr(output, "fields", "1")))], **fields,
    )  # fmt: skip


def function(name, params, registers, *code, constants=()):
    return MachineFunction(name, params, registers, tuple(constants), tuple(code))


ADD = Segment("add", (("a", NUMBER), ("b", NUMBER)), (NUMBER,), source="x", mode="reference")


def machine(made: MachineProgram) -> Machine:
    return Machine(made, [add] * len(made.segments), [add] * len(made.hosts))


def summing() -> MachineProgram:
    """Adds up a list: ``go(total, list)``, recursive in tail position."""
    go = function(
        "go", 2, 4,
        I("switch", (1,), targets=(1, 5, 6), tags=(7, 8)),
        I("field", (1,), (2,), 0),
        I("field", (1,), (3,), 1),
        I("segment", (0, 2), (0,), 0, dead=(1, 2)),
        I("tailcall", (0, 3), number=1),
        I("return", (0,)),
        I("fail", (1,), label="go"),
    )  # fmt: skip
    main = function(
        "main", 1, 3, I("move", (1,), (2,)), I("tailcall", (2, 0), number=1),
        constants=[ConstantSpec("array", 0)],
    )  # fmt: skip
    arrays = [np.array(0, "int64")]
    return program([main, go], [LIST], NUMBER, arrays=arrays, segments=[ADD])


def as_value(numbers):
    made = ConstructorValue(NIL)
    for one in reversed(numbers):
        made = ConstructorValue(CONS, (np.array(one), made))
    return made


def test_a_loop_over_a_list():
    run = machine(summing())
    assert run.call([as_value(range(10))]) == 45
    (total,) = run.run_flat([as_value([])])
    assert total == 0
    # The constant is the program's: the caller gets a copy.
    total[...] = 5
    assert run.run_flat([as_value([])])[0] == 0


def test_calls_return_to_their_caller():
    """``f(n) = n + f(n - 1)``, the choice done by a list instead of a comparison."""
    down = function(
        "down", 1, 3,
        I("switch", (0,), targets=(1, 6), tags=(7,)),
        I("field", (0,), (1,), 0),
        I("field", (0,), (0,), 1),
        I("call", (0,), (2,), 0, dead=(0,)),
        I("segment", (1, 2), (1,), 0, dead=(2,)),
        I("return", (1,)),
        I("return", (2,)),
    )  # fmt: skip
    made = program([down], [LIST], NUMBER, segments=[ADD])
    # An empty list gives what nobody wrote: nothing.
    assert machine(made).call([as_value([])]) is None
    zero = function(
        "down", 1, 4, *(I(one.name, tuple(r + (r > 0) for r in one.args),
        tuple(r + (r > 0) for r in one.results), one.number, one.targets, one.tags,
        tuple(r + (r > 0) for r in one.dead)) for one in down.code[:-1]), I("return", (1,)),
        constants=[ConstantSpec("array", 0)],
    )  # fmt: skip
    made = program([zero], [LIST], NUMBER, segments=[ADD], arrays=[np.array(100, "int64")])
    assert machine(made).call([as_value([1, 2, 3])]) == 106


def test_closures_tuples_and_references():
    """main(x): cell = ref(x); f = fn y -> (cell := y + cell; cell); f(x); f(x); (f, cell read)."""
    body = function(
        "f", 2, 4,
        I("read", (1,), (2,)),
        I("segment", (0, 2), (2,), 0),
        I("write", (1, 2)),
        I("tuple", (0, 2), (3,)),
        I("item", (3,), (2,), 1),
        I("return", (2,)),
    )  # fmt: skip
    main = function(
        "main", 1, 4,
        I("ref", (0,), (1,)),
        I("closure", (1,), (2,), 1),
        I("invoke", (2, 0), (3,)),
        I("invoke", (2, 0), (3,)),
        I("tuple", (2, 3), (3,)),
        I("return", (3,)),
    )  # fmt: skip
    output = TupleKind((FunctionKind("fn"), NUMBER))
    run = machine(program([main, body], [NUMBER], output, segments=[ADD]))
    closure, last = run.run_flat([np.int64(5)])
    assert last == 15
    assert isinstance(closure, Closure)
    user = function("main", 2, 3, I("invoke", (0, 1), (2,)), I("return", (2,)))
    made = program([user], [FunctionKind("fn"), NUMBER], NUMBER)
    with pytest.raises(InputError, match="a function that this executable returned"):
        machine(made).call([closure, np.int64(1)])


def test_two_way_choice_and_the_end_of_a_block():
    main = function(
        "main", 3, 3,
        I("if", (0,), targets=(3,)),
        I("move", (1,), (2,)),
        I("jump", targets=(4,)),
        I("segment", (1, 2), (2,), 0),
        I("return", (2,)),
    )  # fmt: skip
    flag = TensorKind((), "bool")
    run = machine(program([main], [flag, NUMBER, NUMBER], NUMBER, segments=[ADD]))
    assert run.call([np.bool_(True), np.int64(3), np.int64(4)]) == 3
    assert run.call([np.bool_(False), np.int64(3), np.int64(4)]) == 7


def test_results_never_share_memory_with_inputs_or_each_other():
    main = function("main", 1, 2, I("tuple", (0, 0), (1,)), I("return", (1,)))
    vector = TensorKind((3,), "float32")
    run = machine(program([main], [vector], TupleKind((vector, vector))))
    x = np.arange(3, dtype="float32")
    first, second = run.run_flat([x])
    assert not np.shares_memory(first, x)
    assert not np.shares_memory(first, second)
    assert first.tolist() == second.tolist() == x.tolist()


def test_faults_have_their_place():
    def refuse(values):
        raise InputError("too small", expected=3, found=2)

    adding = I("segment", (0, 1), (2,), 0, label="@main: add")
    main = function("main", 2, 3, adding, I("return", (2,)))
    made = program([main], [NUMBER, NUMBER], NUMBER, segments=[ADD])
    with pytest.raises(KernelError, match="too small") as caught:
        Machine(made, [refuse], []).call([np.int64(1), np.int64(2)])
    assert caught.value.node == "@main: add"
    assert (caught.value.expected, caught.value.found) == (3, 2)


def test_checks_name_the_parameter_and_the_dim():
    main = function("main", 2, 2, I("check", (0, 1), label="@main"), I("return", (0,)))
    row = (
        ("parameter %a", TensorKind(("n", 2), "int64")),
        ("parameter %b", TensorKind(("n",), "int64")),
    )
    some = TensorKind(("?", "?"), "int64")
    line = TensorKind(("?",), "int64")
    run = machine(program([main], [some, line], some, checks=[row]))
    a, b = np.zeros((3, 2), "int64"), np.zeros(3, "int64")
    run.call([a, b])
    with pytest.raises(KernelError, match=r"dimension n of parameter %b \(axis 0\)") as caught:
        run.call([a, b[:2]])
    assert caught.value.expected == "n = 3"
    with pytest.raises(KernelError, match="parameter %a has the wrong shape"):
        run.call([a[:, :1], b])


def test_runs_in_several_threads():
    run = machine(summing())
    wrong: list[int] = []

    def work(count: int) -> None:
        for _ in range(50):
            if run.call([as_value(range(count))]) != count * (count - 1) // 2:
                wrong.append(count)

    threads = [threading.Thread(target=work, args=(n,)) for n in (3, 30, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_reference_that_holds_itself_is_an_input():
    main = function("main", 1, 1, I("return", (0,)))
    kind = RefKind(DataKind("Box"))
    box = ConstructorSpec("Box", 9, "Box", (kind,))
    run = machine(program([main], [kind], NUMBER, constructors=[box]))
    cell = RefValue(None)
    cell.value = ConstructorValue(box, (cell,))
    assert run.call([cell]) is cell
    with pytest.raises(InputError, match="wrong value"):
        run.call([ConstructorValue(box, (cell,))])


BROKEN = [
    (I("segment", (0, 1), (0,), 1), "not there"),
    (I("segment", (0,), (0,), 0), "wrong number of arguments"),
    (I("segment", (0, 1), (0, 1), 0), "differ in number"),
    (I("move", (0,), (9,)), "register outside"),
    (I("move", (-1,), (0,)), "register outside"),
    (I("move", (0, 1), (0,)), "wrong number of registers"),
    (I("jump", targets=(5,)), "jump out"),
    (I("jump"), "jump targets"),
    (I("switch", (0,), targets=(0,), tags=(1,)), "jump targets"),
    (I("call", (0,), (1,), 3), "not there"),
    (I("tailcall", (0,), number=0), "wrong number of arguments"),
    (I("closure", (0, 1, 1), (0,), 0), "wrong number of arguments"),
    (I("tailinvoke"), "no function"),
    (I("adt", (0,), (0,), 2), "not there"),
    (I("check", (0,), number=0), "not there"),
    (I("teleport"), "unknown instruction"),
]


@pytest.mark.parametrize(("one", "message"), BROKEN)
def test_programs_that_do_not_hold_together_are_refused(one, message):
    main = function("main", 2, 2, one, I("return", (0,)))
    made = program([main], [NUMBER, NUMBER], NUMBER, segments=[ADD])
    with pytest.raises(CodegenError, match=message):
        machine(made)


def test_functions_must_end_and_constants_must_be_there():
    for main in (
        function("main", 1, 1, I("move", (0,), (0,))),
        function("main", 1, 1),
        function("main", 2, 1, I("return", (0,))),
        function("main", 1, 2, I("return", (0,)), constants=[ConstantSpec("array", 0)]),
        function("main", 1, 1, I("return", (0,)), constants=[ConstantSpec("empty")]),
    ):
        with pytest.raises(CodegenError):
            machine(program([main], [NUMBER], NUMBER))
    with pytest.raises(ConfigError):
        Machine(summing(), [], [])


def test_text_shows_every_instruction():
    text = machine_text(summing())
    assert "function go(%0, %1), 4 registers" in text
    assert "    0  switch %1 Cons: 1, Nil: 5, else 6" in text
    assert "    3  %0 = segment 0 (add) %0 %2 drop %1 drop %2" in text
    assert "       %1 = constant int64[] 0" in text
    assert text.startswith("function main(%0)")


def test_kinds_survive_json():
    kinds = [
        NUMBER, LIST, TensorKind((3, "n", "?"), "bfloat16"), TupleKind((NUMBER, TupleKind())),
        RefKind(LIST), FunctionKind("fn (int64) -> int64"), ParameterKind(1),
    ]  # fmt: skip
    assert [kind_from_json(kind_to_json(k)) for k in kinds] == kinds
    for row in (["tensor", [1.5], "float32"], ["tensor", [1], "float31"], ["what"], []):
        with pytest.raises((ValueError, LookupError, TypeError)):
            kind_from_json(row)


def test_host_operators_take_their_place():
    host = HostOp("add", "", (-1, -1), (NUMBER,))
    main = function("main", 2, 3, I("host", (0, 1), (2,), 0, dead=(0, 1)), I("return", (2,)))
    run = machine(program([main], [NUMBER, NUMBER], NUMBER, hosts=[host]))
    assert run.call([np.int64(3), np.int64(4)]) == 7
