"""Many threads, forks and interrupts, each in a process of its own that a fault would end."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BEGIN = f"""
import os, signal, sys, threading, time
sys.path.insert(0, {str(HERE)!r})
import numpy as np
import tiny_programs as tiny
from ixion.runtime.executable import Executable
from ixion.runtime.program import Slot, Step, TensorSpec
tiny.install()

def expected(length, count):
    return [np.array(v, np.uint64).astype(np.int64) for v in tiny.chain_expected(length, count)]

def check(executable, right, runs):
    for run in range(runs):
        for found, value in zip(executable.run_flat([]), right):
            assert np.array_equal(found, value), run
"""


def run(code: str, timeout: float = 100) -> str:
    command = [sys.executable, "-c", BEGIN + code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_results_do_not_depend_on_threads():
    run("""
right = expected(40, 257)
for cost in (0.0, 3000.0, 5000.0):
    for threads in (1, 2, 3, 8):
        check(Executable(tiny.chain(40, 257, cost), threads), right, 100)
""")


def test_many_callers_share_executables():
    run("""
small, large = expected(9, 33), expected(21, 1000)
one, two = Executable(tiny.chain(9, 33), 2), Executable(tiny.chain(21, 1000), 3)
failures = []

def work(number):
    try:
        check(one if number % 2 else two, small if number % 2 else large, 200)
    except BaseException as error:
        failures.append(error)

callers = [threading.Thread(target=work, args=(n,)) for n in range(12)]
[c.start() for c in callers]
[c.join() for c in callers]
assert not failures, failures
assert len(one._contexts) <= one._limit
""")


def test_executables_may_go_while_workers_wait():
    run("""
right = expected(5, 64)
for turn in range(60):
    check(Executable(tiny.chain(5, 64), 2), right, 3)
""")


def test_unwaited_steps_run_side_by_side():
    run("""
steps = []
for n in range(200):
    place = tiny.arena(1024 * (n % 50))
    steps.append(Step("call", "mix", (place, tiny.imm(n)), 100, barrier=n % 10 == 9))
spec = TensorSpec("out", (100,), "int64")
zero = [Step("call", "zero", (tiny.arena(1024 * n),), 100, barrier=n == 49) for n in range(50)]
made = tiny.program(zero + steps, [], [spec], 64 << 10, output_places=[tiny.arena(1024 * 7)])
right = Executable(made, 1).run_flat([])[0]
shared = Executable(made, 3)
for run in range(500):
    assert np.array_equal(shared.run_flat([])[0], right), run
""")


def test_long_runs_without_barriers_stay_together():
    run("""
steps = [Step("call", "empty", (), 4, barrier=False)] * 5000
executable = Executable(tiny.program(steps), 2)
for run in range(20):
    executable.run_flat([])
""")


def test_a_host_step_in_every_other_place():
    run("""
from ixion.runtime.program import HostStep
spec = TensorSpec("x", (64,), "int64")
host = HostStep("increment", {}, (spec,), (spec,))
steps = [Step("call", "zero", (tiny.arena(),), 64)]
for n in range(50):
    steps.append(Step("call", "mix", (tiny.arena(), tiny.imm(n)), 64))
    steps.append(Step("host", slots=(tiny.arena(), tiny.arena()), host=0))
made = tiny.program(steps, [], [spec], 512, hosts=[host], output_places=[tiny.arena()])
resolver = lambda host: lambda values: [values[0] + 1]
right = Executable(made, 1, resolver).run_flat([])[0]
shared = Executable(made, 2, resolver)
for run in range(50):
    assert np.array_equal(shared.run_flat([])[0], right), run
""")


def test_forked_children_run_alone():
    run("""
right = expected(9, 100)
executable = Executable(tiny.chain(9, 100), 2)
check(executable, right, 20)
stop = []

def work():
    while not stop:
        check(executable, right, 1)

busy = threading.Thread(target=work)
busy.start()
children = []
for n in range(10):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        check(executable, right, 50)
        from ixion.runtime.pool import default_threads
        assert default_threads() == 1
        check(Executable(tiny.chain(9, 100)), right, 20)
        check(Executable(tiny.chain(9, 100), 2), right, 20)
        assert threading.active_count() == 2, threading.enumerate()
        os._exit(0)
    children.append(child)
    check(executable, right, 20)
codes = [os.waitpid(child, 0)[1] for child in children]
stop.append(1)
busy.join()
assert codes == [0] * 10, codes
""")


def test_a_fork_in_a_host_step():
    run("""
from ixion.runtime.program import HostStep
spec = TensorSpec("x", (4,), "int64")
steps = [Step("call", "zero", (tiny.arena(),), 4), Step("host", slots=(tiny.arena(),), host=0)]
steps += [Step("call", "mix", (tiny.arena(), tiny.imm(3)), 4)] * 20
made = tiny.program(steps, [], [spec], 64, hosts=[HostStep("fork", {}, (), (spec,))],
                    output_places=[tiny.arena()])
pids = []

def fork(values):
    pids.append(os.fork())
    return [np.zeros(4, np.int64)]

executable = Executable(made, 2, lambda host: fork)
result = executable.run_flat([])[0]
right = Executable(made, 1, lambda host: lambda values: [np.zeros(4, np.int64)]).run_flat([])[0]
if pids[0] == 0:
    os._exit(0 if np.array_equal(result, right) else 1)
assert np.array_equal(result, right)
assert os.waitpid(pids[0], 0)[1] == 0
""")


def test_faults_on_any_worker_reach_the_caller():
    run("""
from ixion.base.errors import KernelError
steps = [Step("call", "slow", (tiny.imm(50),), 64)] * 5
steps += [Step("call", "failing", (tiny.imm(1), tiny.imm(60)), 64, label="bad")]
steps += [Step("call", "slow", (tiny.imm(50),), 64)] * 5
executable = Executable(tiny.program(steps), 3)
for run in range(300):
    try:
        executable.run_flat([])
    except KernelError as error:
        assert (error.step, error.node, error.index) == (5, "bad", 60)
    else:
        raise AssertionError(run)
""")


LONG = """
steps = [Step("call", "slow", (tiny.imm({turns}),), {tasks}, cost=1e6)] * 100000
executable = Executable(tiny.program(steps), {threads})
before = Executable(tiny.chain(3, 50), {threads})
print("ready", flush=True)
try:
    executable.run_flat([])
except KeyboardInterrupt:
    check(before, expected(3, 50), 5)
    try:
        executable.run_flat([])
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_long_run(threads):
    code = BEGIN + LONG.format(turns=100_000, tasks=8, threads=threads)
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        for _ in range(2):
            time.sleep(0.4)
            process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert process.wait(30) == 0


def test_signal_handlers_run_during_a_run():
    run("""
steps = [Step("call", "slow", (tiny.imm(100000),), cost=1e5)] * 4000
seen = []
signal.signal(signal.SIGALRM, lambda number, frame: seen.append(time.monotonic()))
signal.setitimer(signal.ITIMER_REAL, 0.1)
executable = Executable(tiny.program(steps), 1)
executable.run_flat([])
end = time.monotonic()
assert seen and seen[0] < end
""")


def test_a_process_ends_while_workers_wait():
    assert (
        run("check(Executable(tiny.chain(9, 100), 2), expected(9, 100), 5); print('end')")
        == "end\n"
    )
