"""Pieces of a walk over the step table that running alone and running in a team share.

A walk is a function `(ptr %run, ptr %worker, ...)` with the locals of LOCALS. Block `dispatch`
reads the step in local `step`; blocks `call`, `host` and `end` belong to the walk; so do `solo` and
`together`, and `settle`, reached after a step that read memory the other workers may write next;
`advance` goes to the step in local `next`.
"""

from __future__ import annotations

from ixion.base.abi import (
    CLOCK_WEIGHT,
    STEP_BYTES,
    Opcode,
    ProfileWord,
    RunWord,
    Status,
    StepWord,
    WorkerWord,
)
from ixion.codegen.sequencer_writer import FunctionText

LOCALS = {
    "step": "i64",
    "next": "i64",
    "expected": "i64",  # nanoseconds of work, by the table's estimate, since the clock was read
    "deadline": "i64",
    "status": "i64",
    "stamped": "i64",  # profile: the step that is running, and since when
    "since": "i64",
}


def begin(f: FunctionText, first: str) -> None:
    """Set the locals up and go to `dispatch` at step `first`."""
    f.set("step", first)
    for name in ("next", "expected", "deadline", "status", "since"):
        f.set(name, 0)
    f.set("stamped", -1)
    f.jump("dispatch")


def dispatch(f: FunctionText, profiled: bool) -> str:
    """Block `dispatch`; returns the operand holding the step's address."""
    f.label("dispatch")
    if profiled:
        stamp(f)
    table = f.load("ptr", "%run", RunWord.TABLE)
    entry = f.at(table, f.op(f"mul i64 {f.get('step')}, {STEP_BYTES}"))
    opcode = f.load("i64", entry, StepWord.OPCODE)
    f.branch(f.compare("eq", opcode, int(Opcode.CALL)), "call", "control")
    f.label("control")
    codes = [code for code in Opcode if code not in (Opcode.END, Opcode.CALL)]
    f.switch(opcode, {int(code): code.name.lower() for code in codes}, "end")
    return entry


def stamp(f: FunctionText) -> None:
    """Charge the time since the last stamp to the step that was running until now."""
    running, since = f.get("stamped"), f.get("since")
    f.set("since", f.op(f"call i64 @stamp(ptr %run, i64 {running}, i64 {since})"))
    f.set("stamped", f.get("step"))


def kernel_call(f: FunctionText, entry: str, low: str, high: str) -> str:
    """Call the step's kernel on tasks [low, high); returns the operand holding its result."""
    kernel = f.load("ptr", entry, StepWord.KERNEL)
    window = _window(f, entry)
    return f.op(f"call i32 {kernel}(ptr %worker, ptr {window}, i64 {low}, i64 {high})")


def following(f: FunctionText) -> str:
    """The step after this one."""
    return f.op(f"add i64 {f.get('step')}, 1")


def ending_blocks(f: FunctionText) -> None:
    """Blocks `end` and `host`: leave through `leave` with a status and a step to resume at."""
    f.label("end")
    f.set("status", int(Status.DONE))
    f.set("next", 0)
    f.jump("leave")
    f.label("host")
    f.set("status", f.get("step"))
    f.set("next", following(f))
    f.jump("leave")


def control_blocks(f: FunctionText, entry: str) -> None:
    """Blocks `jump`, `branch`, `loop`, `next` and `advance`."""
    f.label("jump")
    f.set("next", f.load("i64", entry, StepWord.TARGET))
    f.jump("advance")
    _branch_block(f, entry)
    _loop_block(f, entry)
    _next_block(f, entry)
    f.label("advance")
    f.set("step", f.get("next"))
    f.jump("dispatch")


def overdue(f: FunctionText, entry: str, yes: str, no: str) -> None:
    """Count the step's weight; now and then look at the clock and go to `yes` when time is up."""
    weight = f.load("i64", entry, StepWord.WEIGHT)
    f.set("expected", f.op(f"add i64 {f.get('expected')}, {weight}"))
    f.branch(f.compare("uge", f.get("expected"), CLOCK_WEIGHT), "clock", no)
    f.label("clock")
    f.set("expected", 0)
    deadline = f.op(f"call i64 @deadline(ptr %run, i64 {f.get('deadline')})")
    f.set("deadline", deadline)
    f.branch(f.compare("slt", deadline, 0), yes, no)


def finish(f: FunctionText) -> None:
    """Return `status`, or what a stop flag makes of it, and note the step to resume at."""
    f.store("i64", f.get("next"), "%run", RunWord.STEP)
    stop = f.load("i64", "%run", RunWord.STOP, "acquire")
    f.branch(f.compare("eq", stop, 0), "return", "stopped")
    f.label("stopped")
    clean = f.compare("eq", f.load("i64", "%run", RunWord.CODE), 0)
    chosen = f"select i1 {clean}, i64 {int(Status.STOPPED)}, i64 {int(Status.FAILED)}"
    f.set("status", f.op(chosen))
    f.jump("return")
    f.label("return")
    f.do(f"ret i64 {f.get('status')}")


def support_text() -> str:
    """Functions `fail`, `deadline` and `stamp`."""
    parts = [_fail(), _deadline(), _stamp()]
    return "\n".join(parts)


def _window(f: FunctionText, entry: str) -> str:
    slots = f.load("ptr", "%run", RunWord.SLOTS)
    return f.at(slots, f.load("i64", entry, StepWord.SLOTS))


def _branch_block(f: FunctionText, entry: str) -> None:
    """Go on when the value at the address in the first slot is nonzero, else to TARGET."""
    f.label("branch")
    where = f.load("ptr", _window(f, entry))
    byte_wide = f.compare("eq", f.load("i64", entry, StepWord.WIDTH), 1)
    f.branch(byte_wide, "branch.byte", "branch.word")
    f.label("branch.byte")
    value = f.load("i8", where)
    f.set("status", f.op(f"zext i8 {value} to i64"))
    f.jump("branch.go")
    f.label("branch.word")
    f.set("status", f.load("i64", where))
    f.jump("branch.go")
    f.label("branch.go")
    _go(f, entry, f.compare("ne", f.get("status"), 0))
    f.jump("settle")


def _loop_block(f: FunctionText, entry: str) -> None:
    """Begin counting: trip count in the first slot, or in memory at its address; none: TARGET."""
    f.label("loop")
    window = _window(f, entry)
    f.set("status", f.load("i64", window))
    direct = f.compare("eq", f.load("i64", entry, StepWord.WIDTH), 0)
    f.branch(direct, "loop.go", "loop.memory")
    f.label("loop.memory")
    f.set("status", f.load("i64", f.load("ptr", window)))
    f.jump("loop.go")
    f.label("loop.go")
    counter = f.at("%worker", f.load("i64", entry, StepWord.COUNTER))
    f.store("i64", 0, counter)
    f.store("i64", f.get("status"), counter, 8)
    _go(f, entry, f.compare("sgt", f.get("status"), 0))
    f.jump("settle")


def _next_block(f: FunctionText, entry: str) -> None:
    """Count one iteration; TARGET while there are more."""
    f.label("next")
    counter = f.at("%worker", f.load("i64", entry, StepWord.COUNTER))
    turn = f.op(f"add i64 {f.load('i64', counter)}, 1")
    f.store("i64", turn, counter)
    _go(f, entry, f.compare("sge", turn, f.load("i64", counter, 8)))
    f.jump("advance")


def _go(f: FunctionText, entry: str, on: str) -> None:
    target = f.load("i64", entry, StepWord.TARGET)
    f.set("next", f.op(f"select i1 {on}, i64 {following(f)}, i64 {target}"))


def _fail() -> str:
    """Record the first nonzero kernel result and stop the run."""
    f = FunctionText(
        "internal void @fail(ptr %run, i64 %who, i64 %step, i32 %result) noinline cold"
    )
    code = f.op("sext i32 %result to i64")
    where = f.at("%run", RunWord.CODE)
    pair = f.op(f"cmpxchg ptr {where}, i64 0, i64 {code} seq_cst seq_cst")
    f.branch(f.op(f"extractvalue {{i64, i1}} {pair}, 1"), "first", "done")
    f.label("first")
    f.store("i64", "%step", "%run", RunWord.ERROR_STEP)
    f.store("i64", "%who", "%run", RunWord.ERROR_WORKER)
    f.store("i64", 1, "%run", RunWord.STOP, "seq_cst")
    f.jump("done")
    f.label("done")
    f.do("ret void")
    return f.text()


def _deadline() -> str:
    """The deadline, set at the first call; -1 when it has passed."""
    f = FunctionText("internal i64 @deadline(ptr %run, i64 %old) noinline")
    budget = f.load("i64", "%run", RunWord.BUDGET)
    f.branch(f.compare("eq", budget, 0), "never", "look")
    f.label("never")
    f.do("ret i64 0")
    f.label("look")
    now = f.op("call i64 @now()")
    f.branch(f.compare("eq", "%old", 0), "first", "check")
    f.label("first")
    f.do(f"ret i64 {f.op(f'add i64 {now}, {budget}')}")
    f.label("check")
    late = f.compare("sgt", now, "%old")
    f.do(f"ret i64 {f.op(f'select i1 {late}, i64 -1, i64 %old')}")
    return f.text()


def _stamp() -> str:
    """Charge the time from `since` to now to step `running` (none below 0); returns now."""
    f = FunctionText("internal i64 @stamp(ptr %run, i64 %running, i64 %since) noinline")
    now = f.op("call i64 @now()")
    f.branch(f.compare("slt", "%running", 0), "done", "charge")
    f.label("charge")
    profile = f.load("ptr", "%run", RunWord.PROFILE)
    record = f.at(profile, f.op(f"mul i64 %running, {ProfileWord.SIZE}"))
    count = f.load("i64", record, ProfileWord.COUNT)
    f.store("i64", f.op(f"add i64 {count}, 1"), record, ProfileWord.COUNT)
    spent = f.op(f"sub i64 {now}, %since")
    total = f.load("i64", record, ProfileWord.TOTAL)
    f.store("i64", f.op(f"add i64 {total}, {spent}"), record, ProfileWord.TOTAL)
    f.store("i64", "%since", record, ProfileWord.START)
    f.store("i64", now, record, ProfileWord.END)
    f.jump("done")
    f.label("done")
    f.do(f"ret i64 {now}")
    return f.text()


def worker_counters() -> range:
    """Byte offsets of the loop counters' words in a worker record."""
    return range(WorkerWord.COUNTERS, WorkerWord.SIZE, 8)
