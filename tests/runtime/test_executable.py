"""Values in and out of a run, faults, host steps, states, control flow."""

import threading

import numpy as np
import pytest
import tiny_programs as tiny
from tiny_programs import arena, imm, program

from ixion.base.abi import Fault
from ixion.base.errors import CodegenError, ConfigError, InputError, KernelError
from ixion.runtime.executable import Executable
from ixion.runtime.program import HostStep, Slot, StateSpec, Step, TensorSpec

LARGE = 50_000


def adder(count: int, **more) -> Executable:
    specs = [TensorSpec(name, (count,), "float32") for name in ("left", "right", "sum")]
    slots = (Slot("input", 0), Slot("input", 1), Slot("output", 0))
    step = Step("call", "add", slots, count, label="Add_1")
    return Executable(program([step], specs[:2], specs[2:]), **{"threads": 1, **more})


@pytest.mark.parametrize("count", [1, 7, LARGE])
@pytest.mark.parametrize("threads", [1, 2])
def test_results_by_position_and_name(count, threads):
    executable = adder(count, threads=threads)
    left, right = np.arange(count, dtype=np.float32), np.ones(count, np.float32)
    for result in (
        executable.run_flat([left, right])[0],
        executable.run({"right": right, "left": left})["sum"],
        executable(left, right=right)[0],
    ):
        np.testing.assert_array_equal(result, left + 1)
        assert result.dtype == np.float32


@pytest.mark.parametrize("count", [4, LARGE])
def test_outputs_are_fresh_and_writable(count):
    executable = adder(count)
    one = np.ones(count, np.float32)
    first = executable.run_flat([one, one])[0]
    first[:] = 9
    second = executable.run_flat([one, one])[0]
    np.testing.assert_array_equal(second, 2)
    np.testing.assert_array_equal(first, 9)


@pytest.mark.parametrize("count", [4, LARGE])
def test_any_strides_and_alignment(count):
    executable = adder(count)
    expected = 3 * np.arange(count, dtype=np.float32)
    wide = np.repeat(np.arange(count, dtype=np.float32), 2)
    odd = np.zeros(count * 4 + 1, np.uint8)[1:].view(np.float32)
    odd[:] = 2 * np.arange(count, dtype=np.float32)
    np.testing.assert_array_equal(executable.run_flat([wide[::2], odd])[0], expected)


@pytest.mark.parametrize("count", [4, LARGE])
def test_caller_owned_outputs(count):
    executable = adder(count)
    one = np.ones(count, np.float32)
    out = np.zeros(count, np.float32)
    assert executable.run_flat([one, one], out=[out])[0] is out
    np.testing.assert_array_equal(out, 2)
    strided = np.zeros((count, 2), np.float32)[:, 0]
    executable.run_flat([one, one], out=[strided])
    np.testing.assert_array_equal(strided, 2)
    executable.run_flat([out, one], out=[out])
    np.testing.assert_array_equal(out, 3)
    with pytest.raises(InputError):
        executable.run_flat([one, one], out=[np.zeros(count, np.float64)])
    with pytest.raises(InputError):
        executable.run_flat([one, one], out=[])
    out.flags.writeable = False
    with pytest.raises(InputError, match="sum"):
        executable.run_flat([one, one], out=[out])


def test_dlpack_values():
    class Foreign:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    class Remote(Foreign):
        def __dlpack__(self, **options):
            raise BufferError("on another device")

    executable = adder(3)
    value = Foreign(np.arange(3, dtype=np.float32))
    np.testing.assert_array_equal(executable.run_flat([value, value])[0], [0, 2, 4])
    with pytest.raises(InputError, match="another device"):
        executable.run_flat([value, Remote(value.array)])


def test_scalars_and_empty_tensors():
    specs = [TensorSpec(name, (), "float32") for name in ("left", "right", "sum")]
    slots = (Slot("input", 0), Slot("input", 1), Slot("output", 0))
    executable = Executable(program([Step("call", "add", slots, 1)], specs[:2], specs[2:]))
    result = executable.run_flat([np.float32(2), np.array(3, np.float32)])[0]
    assert result.shape == ()
    assert result == 5
    empty = [TensorSpec(name, (0, 3), "float32") for name in ("left", "right", "sum")]
    executable = Executable(program([Step("call", "add", slots, 0)], empty[:2], empty[2:]))
    zero = np.zeros((0, 3), np.float32)
    assert executable.run_flat([zero, zero])[0].shape == (0, 3)


@pytest.mark.parametrize("count", [3, LARGE])
def test_wrong_values_say_what_was_expected(count):
    executable = adder(count)
    good = np.zeros(count, np.float32)
    cases = [
        ([good], "number of inputs", "2 inputs"),
        ([good, good.astype(np.float64)], "dtype", f"float32[{count}]"),
        ([good, good.astype(">f4")], "dtype", f"float32[{count}]"),
        ([good, good[None]], "rank", f"float32[{count}]"),
        ([good, good[:-1]], "shape", f"float32[{count}]"),
        ([good, [0.0] * count], "not an array", "__dlpack__"),
    ]
    for values, message, expected in cases:
        with pytest.raises(InputError, match=message) as caught:
            executable.run_flat(values)
        assert expected in str(caught.value)
    np.testing.assert_array_equal(executable.run_flat([good, good])[0], good)


def test_wrong_names_suggest_the_right_one():
    executable = adder(2)
    good = np.zeros(2, np.float32)
    with pytest.raises(InputError, match="'right'") as caught:
        executable.run({"left": good, "rihgt": good})
    assert "did you mean 'right'" in str(caught.value)
    with pytest.raises(InputError, match="'right' is missing"):
        executable.run({"left": good})


@pytest.mark.parametrize("threads", [1, 2])
def test_a_fault_names_step_node_and_index(threads):
    fine = Step("call", "failing", (imm(0), imm(0)), 10)
    bad = Step("call", "failing", (imm(int(Fault.INDEX)), imm(7)), 10, label="Gather_3")
    never = Step("call", "set", (arena(), imm(5)))
    executable = Executable(program([fine, bad, never], arena=64), threads=threads)
    for _ in range(50):
        with pytest.raises(KernelError, match="index out of range") as caught:
            executable.run_flat([])
        assert (caught.value.step, caught.value.node, caught.value.index) == (1, "Gather_3", 7)


def test_a_run_after_a_fault_is_whole():
    steps = [
        Step("call", "set", (Slot("output", 0), imm(1))),
        Step("call", "failing", (Slot("imm", 0, 9), imm(0))),
    ]
    flag = TensorSpec("flag", (1,), "int64")
    executable = Executable(program(steps, [], [flag]), threads=1)
    for _ in range(3):
        with pytest.raises(KernelError, match="fault 9"):
            executable.run_flat([])


def host_program(count: int = 3):
    spec = TensorSpec("x", (count,), "float32")
    host = HostStep("double", {"factor": 2}, (spec,), (spec,))
    steps = [
        Step("call", "add", (Slot("input", 0), Slot("input", 0), arena()), count),
        Step("host", slots=(arena(), arena(8 * count)), label="Double_2", host=0),
        Step("call", "add", (arena(8 * count), Slot("const", 0), Slot("output", 0)), count),
    ]
    one = np.ones(count, np.float32)
    return program(steps, [spec], [spec], 16 * count, hosts=[host], constants=[one])


@pytest.mark.parametrize("count", [4, LARGE])
@pytest.mark.parametrize("threads", [1, 2])
def test_host_steps_see_and_give_arrays(count, threads):
    seen = []

    def resolver(host):
        def double(values):
            seen.append(values[0].flags.writeable)
            return [values[0] * np.float32(host.attrs["factor"])]

        return double

    executable = Executable(host_program(count), threads, resolver)
    value = np.arange(count, dtype=np.float32)
    for _ in range(3):
        np.testing.assert_array_equal(executable.run_flat([value])[0], 4 * value + 1)
    assert seen == [False] * 3


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda values: 1 / 0, "division by zero"),
        (lambda values: [values[0][:1]], "expected float32"),
        (lambda values: [values[0].astype(np.float64)], "float64"),
        (lambda values: [], "shorter"),
    ],
)
def test_a_failing_host_step_names_itself(function, message):
    executable = Executable(host_program(), 1, lambda host: function)
    for _ in range(2):
        with pytest.raises(KernelError, match=message) as caught:
            executable.run_flat([np.zeros(3, np.float32)])
        assert (caught.value.step, caught.value.node) == (1, "Double_2")


def test_host_steps_need_a_resolver():
    with pytest.raises(ConfigError, match="double"):
        Executable(host_program(), 1)


def test_constants_move_into_one_aligned_block():
    values = [np.arange(n, dtype=np.float32) for n in (3, 5, 0, 17)]
    made = program(
        [Step("call", "add", (Slot("const", 3), Slot("const", 3, 4), Slot("output", 0)), 16)],
        [],
        [TensorSpec("sum", (16,), "float32")],
        constants=list(values),
    )
    result = Executable(made, threads=1).run_flat([])[0]
    np.testing.assert_array_equal(result, 2 * np.arange(16) + 1)
    for array, value in zip(made.constants, values, strict=True):
        np.testing.assert_array_equal(array, value)
        assert array.ctypes.data % 64 == 0
        assert not array.flags.writeable
    kept = made.constants
    Executable(made, threads=1)
    assert made.constants is kept


def test_outputs_may_lie_anywhere():
    spec = TensorSpec("x", (4,), "int64")
    steps = [Step("call", "zero", (arena(64),), 4), Step("call", "set", (arena(64), imm(5)))]
    places = [arena(64), Slot("input", 0), Slot("const", 0)]
    made = program(steps, [spec], [spec] * 3, 128, output_places=places, constants=[np.full(4, 3)])
    value = np.arange(4)
    results = Executable(made).run_flat([value])
    for result, expected in zip(results, ([5, 0, 0, 0], value, [3] * 4), strict=True):
        np.testing.assert_array_equal(result, expected)
    assert results[1] is not value


def test_states_persist_between_runs():
    state = StateSpec("memory", (2,), "int64", initial=0)
    fresh = StateSpec("other", (2,), "int64")
    steps = [Step("call", "mix", (Slot("state", 0), imm(1)), 2)]
    out = TensorSpec("out", (2,), "int64")
    made = program(
        steps,
        [],
        [out],
        states=[state, fresh],
        constants=[np.array([10, 20])],
        output_places=[Slot("state", 0)],
    )
    executable = Executable(made)
    np.testing.assert_array_equal(executable.run_flat([])[0], [31, 62])
    np.testing.assert_array_equal(executable.run_flat([])[0], [94, 188])
    executable.states()["memory"][:] = 0
    np.testing.assert_array_equal(executable.run_flat([])[0], [1, 2])
    np.testing.assert_array_equal(executable.states()["other"], 0)


@pytest.mark.parametrize("threads", [1, 2])
def test_scratch_is_private_and_aligned(threads):
    spec = TensorSpec("x", (64,), "int64")
    steps = [
        Step("call", "zero", (Slot("output", 0),), 64),
        Step("call", "scratch", (Slot("output", 0),), 64),
    ]
    executable = Executable(program(steps, [], [spec]), threads)
    np.testing.assert_array_equal(executable.run_flat([])[0], 0)


COUNTING = [
    Step("call", "set", (arena(), imm(1))),
    Step("loop", slots=(imm(3),), target=7, counter=0),
    Step("loop", slots=(arena(64),), target=6, counter=1),
    Step("call", "digit", (arena(), imm(0))),
    Step("call", "digit", (arena(), imm(1))),
    Step("next", target=3, counter=1),
    Step("next", target=2, counter=0),
]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("inner", "expected"), [(2, 1000110112021), (1, 1001020), (0, 1)])
def test_nested_loops_count_for_the_kernel(threads, inner, expected):
    share = Step("call", "mix", (arena(128), imm(0)), 8)
    steps = [Step("call", "set", (arena(64), imm(inner))), share, *_shifted(COUNTING, 2)]
    out = TensorSpec("out", (1,), "int64")
    made = program(steps, [], [out], 256, output_places=[arena()])
    executable = Executable(made, threads)
    for _ in range(20):
        assert executable.run_flat([])[0] == expected


def _shifted(steps, by):
    from dataclasses import replace

    return [s if s.target < 0 else replace(s, target=s.target + by) for s in steps]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("flag", [0, 1])
def test_branches_take_one_way(threads, width, flag):
    where = (0).to_bytes(width - 1, "little")
    steps = [
        Step("call", "set", (arena(64), imm(flag))),
        Step("call", "mix", (arena(128), imm(0)), 8),
        Step("branch", slots=(arena(64),), target=5, width=width),
        Step("call", "set", (arena(), imm(10))),
        Step("jump", target=6),
        Step("call", "set", (arena(), imm(20))),
        Step("call", "mix", (arena(), imm(0))),
    ]
    assert len(where) == width - 1
    out = TensorSpec("out", (1,), "int64")
    executable = Executable(program(steps, [], [out], 256, output_places=[arena()]), threads)
    for _ in range(20):
        assert executable.run_flat([])[0] == (30 if flag else 60)


def test_programs_that_do_not_fit_are_refused():
    spec = TensorSpec("x", (4,), "int64")
    for steps, more in [
        ([Step("call", "set", (arena(100), imm(1)))], {}),
        ([Step("call", "set", (Slot("const", 0), imm(1)))], {}),
        ([Step("jump", target=3)], {}),
        ([Step("branch", target=0)], {}),
        ([Step("host", host=0)], {}),
        ([Step("loop", slots=(imm(1),), target=1, counter=9)], {}),
        ([Step("call", "absent")], {}),
        ([], {"output_places": [arena(), arena()]}),
        ([Step("call", "empty")], {"objects": []}),
    ]:
        with pytest.raises(CodegenError):
            Executable(program(steps, [], [spec], 64, **more), threads=1)


@pytest.mark.parametrize("threads", [0, -1, 1000])
def test_impossible_threads_are_refused(threads):
    with pytest.raises(ConfigError):
        adder(2, threads=threads)


def test_stop_ends_a_run_at_its_next_step():
    steps = [Step("call", "slow", (imm(200_000),), cost=1e5)] * 100_000
    executable = Executable(program(steps), threads=1)
    caught = []

    def run():
        try:
            executable.run_flat([])
        except KernelError as error:
            caught.append(error)

    executable.stop()
    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive():
        executable.stop()
        thread.join(0.01)
    assert "stopped" in str(caught[0])


def test_profile_has_a_row_per_step():
    executable = Executable(tiny.chain(5, 100), threads=1)
    profile = executable.profile([], runs=3)
    assert [step.label for step in profile.steps][:3] == ["reset", "reset", "first"]
    assert all(step.count == 3 and step.end >= step.start > 0 for step in profile.steps)
    assert profile.total == sum(step.total for step in profile.hottest())
    host = Executable(host_program(), 2, lambda host: lambda values: [values[0] + values[0]])
    rows = host.profile([np.zeros(3, np.float32)]).steps
    assert [row.kind for row in rows] == ["call", "host", "call"]
    assert rows[1].total > 0
