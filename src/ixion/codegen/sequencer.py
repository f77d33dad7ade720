"""LLVM text of the native sequencer: the one loop that runs every model's step table.

`ix_run(run)` walks the table on the calling thread and returns a Status or the index of a host
step, to be entered again at RunWord.STEP. A run record with a pool makes the caller worker 0 of a
team (sequencer_team.py); without one, or when the pool is busy, it walks alone.
"""

from __future__ import annotations

from ixion.base.abi import RunWord, Status, StepWord
from ixion.base.target import Target
from ixion.codegen import sequencer_walk as walk
from ixion.codegen.float_mode import float_mode_text
from ixion.codegen.sequencer_team import team_text, team_walk
from ixion.codegen.sequencer_wait import waiting_text
from ixion.codegen.sequencer_writer import FunctionText


def sequencer_text(target: Target) -> str:
    """Module defining `i64 ix_run(ptr)`, `i64 ix_run_profiled(ptr)` and `i64 ix_worker(ptr)`.

    The arguments are run records and, for the worker loop, the pool record (base/abi.py).
    The module needs `syscall` and `clock_gettime` of the C library.

    Raises CodegenError for a machine whose futex call is not known.
    """
    parts = [float_mode_text(target), waiting_text(target), walk.support_text(), team_text()]
    for suffix in ("", "_profiled"):
        profiled = bool(suffix)
        parts += [_entry(suffix), _alone(suffix, profiled), team_walk(suffix, profiled)]
    return "\n".join(parts)


def _entry(suffix: str) -> str:
    """A run that begins forgets what stopped the one before."""
    f = FunctionText(f"i64 @ix_run{suffix}(ptr %run)")
    mode = f.op("call i64 @flush()")
    pool = f.load("ptr", "%run", RunWord.POOL)
    step = f.load("i64", "%run", RunWord.STEP)
    f.branch(f.compare("eq", step, 0), "begin", "choose")
    f.label("begin")
    f.store("i64", 0, "%run", RunWord.STOP)
    f.store("i64", 0, "%run", RunWord.CODE)
    f.jump("choose")
    f.label("choose")
    f.branch(f.compare("eq", pool, "null", "ptr"), "alone", "team")
    f.label("alone")
    alone = f.op(f"call i64 @alone{suffix}(ptr %run)")
    f.do(f"call void @restore(i64 {mode})")
    f.do(f"ret i64 {alone}")
    f.label("team")
    worker = f.load("ptr", "%run", RunWord.WORKERS)
    arguments = f"ptr %run, ptr {worker}, ptr {pool}, i64 0, i64 0, i64 {step}"
    together = f.op(f"call i64 @team{suffix}({arguments})")
    f.do(f"call void @restore(i64 {mode})")
    f.do(f"ret i64 {together}")
    return f.text()


def _alone(suffix: str, profiled: bool) -> str:
    f = FunctionText(f"internal i64 @alone{suffix}(ptr %run) noinline", walk.LOCALS)
    f.do(f"%worker = load ptr, ptr {f.at('%run', RunWord.WORKERS)}, align 8")
    walk.begin(f, f.load("i64", "%run", RunWord.STEP))
    entry = walk.dispatch(f, profiled)
    _call_blocks(f, entry)
    walk.ending_blocks(f)
    walk.control_blocks(f, entry)
    f.label("settle")
    f.jump("advance")
    for name in ("solo", "together"):
        f.label(name)
        f.set("next", walk.following(f))
        f.jump("advance")
    f.label("leave")
    if profiled:
        walk.stamp(f)
    walk.finish(f)
    return f.text()


def _call_blocks(f: FunctionText, entry: str) -> None:
    f.label("call")
    f.set("next", walk.following(f))
    stop = f.load("i64", "%run", RunWord.STOP, "monotonic")
    f.branch(f.compare("eq", stop, 0), "work", "leave")
    f.label("work")
    result = walk.kernel_call(f, entry, "0", f.load("i64", entry, StepWord.TASKS))
    f.branch(f.compare("eq", result, 0, "i32"), "worked", "failed")
    f.label("failed")
    f.do(f"call void @fail(ptr %run, i64 0, i64 {f.get('step')}, i32 {result})")
    f.jump("leave")
    f.label("worked")
    walk.overdue(f, entry, "yield", "advance")
    f.label("yield")
    f.set("status", int(Status.YIELD))
    f.jump("leave")
