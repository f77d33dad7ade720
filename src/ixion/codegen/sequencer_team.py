"""LLVM text of running a step table in a team: joining, claiming, barriers, leaving.

The time between two barriers is a *phase*. One word holds its number, the members, and how many of
them have arrived at its end; with the phase's place (first step, tag, loop counters) beside it,
kept for two phases in turn, that is all a newcomer needs.

* *Joining.* The first step worth sharing makes the caller (worker 0) claim the pool and raise its
  epoch. A worker that wakes makes itself a member by compare-and-swap on the team word, whatever
  the others are doing, and walks from the phase's first step; tasks claimed before it came are
  none of its business. Nobody waits for a worker to wake up, so a busy machine, or a forked child
  whose workers are gone, costs nothing but their help.
* *Claiming.* A step's tasks are divided evenly over those who were members when the phase began.
  Each takes a part of what is left of its own range at a time, then of what is left of another's,
  by compare-and-swap on (tag, tasks left). The tag numbers the shared steps, so the words need no
  reset: a worker leaves a step only when all ranges are claimed, hence a larger tag means "nothing
  left" and a smaller one "not begun".
* *Barrier.* The last member to arrive decides for all whether the walk goes on, writes the next
  place and begins the next phase; the others wait for the phase to change.
* *Solo.* Steps too small to share that branch and loop are the caller's alone, from SOLO to
  TOGETHER: the others go to the barrier behind them at once. No barrier is met in between, and
  steps there are not numbered, for the others do not count them.
* *Leaving.* To arrive is a worker's last access to the run; the caller waits for all and closes.

Task boundaries come from shapes alone, so results do not depend on who ran what.
"""

from __future__ import annotations

from ixion.base.abi import PlaceWord, PoolWord, RunWord, Status, StepWord, WorkerWord
from ixion.codegen import sequencer_walk as walk
from ixion.codegen.sequencer_writer import FunctionText

# Tags are compared as signed 32-bit distances; a barrier at least this often bounds the distance.
_FORCED_BARRIER_MASK = 1023
_ONE_MEMBER = 1 << 16
_ONE_PHASE = 1 << 32
_COUNT_MASK = 0xFFFF
_COUNTER_BYTES = WorkerWord.SIZE - WorkerWord.COUNTERS
_INTRINSICS = """\
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""

_TEAM_LOCALS = {
    **walk.LOCALS,
    "tag": "i64",
    "parts": "i64",
    "launched": "i64",
    "late": "i64",
    "solo": "i64",
    "victim": "i64",
    "tried": "i64",
}


def team_text() -> str:
    """Functions `open`, `place`, `barrier`, `close`, `depart` and `ix_worker`."""
    parts = [_INTRINSICS, _place(), _open(), _barrier(), _close(), _depart(), _worker()]
    return "\n".join(parts)


def team_walk(suffix: str, profiled: bool) -> str:
    """Function `team`: the walk of one worker, 0 being the caller."""
    f = FunctionText(
        f"internal i64 @team{suffix}(ptr %run, ptr %worker, ptr %pool, i64 %me, i64 %phase, "
        "i64 %first) noinline",
        _TEAM_LOCALS,
    )
    _begin_blocks(f)
    entry = walk.dispatch(f, profiled)
    _call_block(f, entry)
    _launch_block(f, suffix)
    _shared_block(f, entry)
    _after_blocks(f, entry)
    walk.ending_blocks(f)
    walk.control_blocks(f, entry)
    _barrier_blocks(f)
    _solo_blocks(f, entry)
    _leave_blocks(f, profiled)
    return f.text()


def _begin_blocks(f: FunctionText) -> None:
    """A worker that joined begins where the phase does, or leaves at once when that is over."""
    for name in ("tag", "launched", "late", "victim", "tried", "solo"):
        f.set(name, 0)
    f.set("parts", 1)
    f.branch(f.compare("eq", "%me", 0), "start", "joined")
    f.label("joined")
    place = _place_of(f, "%phase")
    f.set("tag", f.load("i64", place, PlaceWord.TAG))
    _read_parts(f, place)
    f.set("launched", 1)
    halt = f.load("i32", place, PlaceWord.HALT)
    f.branch(f.compare("eq", halt, 0, "i32"), "start", "leave.worker")
    f.label("start")
    walk.begin(f, "%first")


def _read_parts(f: FunctionText, place: str) -> None:
    f.set("parts", f.op(f"zext i32 {f.load('i32', place, PlaceWord.PARTS)} to i64"))


def _call_block(f: FunctionText, entry: str) -> None:
    f.label("call")
    f.set("next", walk.following(f))
    counted = f.op(f"sub i64 1, {f.get('solo')}")
    f.set("tag", f.op(f"add i64 {f.get('tag')}, {counted}"))
    stop = f.load("i64", "%run", RunWord.STOP, "monotonic")
    f.branch(f.compare("eq", stop, 0), "call.mine", "after")
    f.label("call.mine")
    limit = f.load("i64", entry, StepWord.LIMIT)
    f.branch(f.compare("sge", "%me", limit), "after", "call.size")
    f.label("call.size")
    f.branch(f.compare("eq", limit, 1), "whole", "call.big")
    f.label("call.big")
    f.branch(f.compare("eq", f.get("launched"), 0), "launch", "shared")
    f.label("whole")
    result = walk.kernel_call(f, entry, "0", f.load("i64", entry, StepWord.TASKS))
    f.branch(f.compare("eq", result, 0, "i32"), "after", "whole.failed")
    f.label("whole.failed")
    _fail(f, result)


def _launch_block(f: FunctionText, suffix: str) -> None:
    f.label("launch")
    step = f.get("step")
    tag = f.op(f"call i64 @open(ptr %run, ptr %worker, ptr %pool, i64 {step})")
    f.branch(f.compare("slt", tag, 0), "busy", "launched")
    f.label("busy")
    f.store("i64", step, "%run", RunWord.STEP)
    f.do(f"ret i64 {f.op(f'call i64 @alone{suffix}(ptr %run)')}")
    f.label("launched")
    f.set("tag", f.op(f"add i64 {tag}, 1"))
    f.set("launched", 1)
    f.jump("shared")


def _shared_block(f: FunctionText, entry: str) -> None:
    """Own range first, then what is left of the others'. Newcomers have no range of their own."""
    f.label("shared")
    limit = f.load("i64", entry, StepWord.LIMIT)
    parts = f.op(f"call i64 @llvm.smin.i64(i64 {limit}, i64 {f.get('parts')})")
    tasks = f.load("i64", entry, StepWord.TASKS)
    mark = f.op(f"trunc i64 {f.get('tag')} to i32")
    # A full team takes halves; with members still to come, smaller bites leave them something.
    full = f.compare("eq", f.get("parts"), f.load("i64", "%run", RunWord.THREADS))
    shift = f.op(f"select i1 {full}, i64 1, i64 3")
    newcomer = f.compare("sge", "%me", parts)
    f.set("victim", f.op(f"select i1 {newcomer}, i64 0, i64 %me"))
    f.set("tried", 0)
    f.jump("victim.range")
    _victim_blocks(f, entry, tasks, parts, mark, shift)


def _victim_blocks(
    f: FunctionText, entry: str, tasks: str, parts: str, mark: str, shift: str
) -> None:
    f.label("victim.range")
    victim = f.get("victim")
    behind = f.op(f"add i64 {victim}, 1")
    low = f.op(f"udiv i64 {f.op(f'mul i64 {victim}, {tasks}')}, {parts}")
    high = f.op(f"udiv i64 {f.op(f'mul i64 {behind}, {tasks}')}, {parts}")
    size = f.op(f"sub i64 {high}, {low}")
    offset = f.op(f"mul i64 {victim}, {PoolWord.CLAIM_STRIDE}")
    word = f.at(f.at("%pool", PoolWord.CLAIMS), offset)
    f.jump("claim")
    left, seen = _look(f, word, size, mark)
    take = _take(f, word, left, seen, mark, shift)
    first = f.op(f"sub i64 {high}, {left}")
    result = walk.kernel_call(f, entry, first, f.op(f"add i64 {first}, {take}"))
    f.branch(f.compare("eq", result, 0, "i32"), "claim.more", "claim.failed")
    f.label("claim.more")
    stopped = f.load("i64", "%run", RunWord.STOP, "monotonic")
    f.branch(f.compare("eq", stopped, 0), "claim", "after")
    f.label("claim.failed")
    _fail(f, result)
    f.label("victim.next")
    f.set("tried", f.op(f"add i64 {f.get('tried')}, 1"))
    wraps = f.compare("eq", behind, parts)
    f.set("victim", f.op(f"select i1 {wraps}, i64 0, i64 {behind}"))
    f.branch(f.compare("slt", f.get("tried"), parts), "victim.range", "after")


def _look(f: FunctionText, word: str, size: str, mark: str) -> tuple[str, str]:
    """Block `claim`: tasks left in a range, and the claim word they were read from."""
    f.label("claim")
    seen = f.load("i64", word, 0, "monotonic")
    theirs = f.op(f"trunc i64 {f.op(f'lshr i64 {seen}, 32')} to i32")
    distance = f.op(f"sub i32 {theirs}, {mark}")
    rest = f.op(f"and i64 {seen}, {_ONE_PHASE - 1}")
    begun = f.compare("eq", distance, 0, "i32")
    ahead = f.compare("sgt", distance, 0, "i32")
    known = f.op(f"select i1 {begun}, i64 {rest}, i64 {size}")
    left = f.op(f"select i1 {ahead}, i64 0, i64 {known}")
    f.branch(f.compare("eq", left, 0), "victim.next", "claim.take")
    return left, seen


def _take(f: FunctionText, word: str, left: str, seen: str, mark: str, shift: str) -> str:
    """Block `claim.take`, going on in `claim.run`: claim some of the tasks; returns how many."""
    f.label("claim.take")
    take = f.op(f"call i64 @llvm.umax.i64(i64 {f.op(f'lshr i64 {left}, {shift}')}, i64 1)")
    remain = f.op(f"sub i64 {left}, {take}")
    tagged = f.op(f"shl i64 {f.op(f'zext i32 {mark} to i64')}, 32")
    wanted = f.op(f"or i64 {tagged}, {remain}")
    pair = f.op(f"cmpxchg ptr {word}, i64 {seen}, i64 {wanted} monotonic monotonic")
    f.branch(f.op(f"extractvalue {{i64, i1}} {pair}, 1"), "claim.run", "claim")
    f.label("claim.run")
    return take


def _after_blocks(f: FunctionText, entry: str) -> None:
    """The caller watches the clock; who is not alone may have to wait."""
    f.label("after")
    f.branch(f.compare("eq", "%me", 0), "watch", "sync")
    f.label("watch")
    walk.overdue(f, entry, "overdue", "sync")
    f.label("overdue")
    f.set("late", 1)
    f.store("i64", 1, "%run", RunWord.YIELD, "monotonic")
    f.jump("sync")
    f.label("sync")
    f.branch(f.compare("eq", _is_shared(f), 0), "sync.lone", "sync.team")
    f.label("sync.lone")
    stop = f.load("i64", "%run", RunWord.STOP, "monotonic")
    leave = f.compare("ne", f.op(f"or i64 {stop}, {f.get('late')}"), 0)
    f.branch(leave, "sync.leave", "advance")
    f.label("sync.leave")
    # In the middle of a solo the others are waiting: they learn of it at a barrier.
    f.branch(f.compare("eq", f.get("launched"), 0), "halt", "barrier")
    f.label("sync.team")
    flagged = f.compare("ne", f.load("i64", entry, StepWord.BARRIER), 0)
    forced = f.compare("eq", f.op(f"and i64 {f.get('tag')}, {_FORCED_BARRIER_MASK}"), 0)
    f.branch(f.op(f"or i1 {flagged}, {forced}"), "barrier", "advance")


def _barrier_blocks(f: FunctionText) -> None:
    f.label("settle")
    f.branch(f.compare("eq", _is_shared(f), 0), "advance", "barrier")
    f.label("barrier")
    step, tag = f.get("next"), f.get("tag")
    call = f"call ptr @barrier(ptr %run, ptr %worker, ptr %pool, i64 {step}, i64 {tag})"
    place = f.op(call)
    _read_parts(f, place)
    halt = f.load("i32", place, PlaceWord.HALT)
    f.branch(f.compare("eq", halt, 0, "i32"), "advance", "halt")
    f.label("halt")
    f.set("status", int(Status.YIELD))
    f.jump("leave")


def _is_shared(f: FunctionText) -> str:
    """Nonzero while others walk the same steps."""
    apart = f.op(f"sub i64 1, {f.get('solo')}")
    return f.op(f"and i64 {f.get('launched')}, {apart}")


def _solo_blocks(f: FunctionText, entry: str) -> None:
    """Blocks `solo` and `together`."""
    f.label("solo")
    f.branch(f.compare("eq", "%me", 0), "solo.caller", "solo.worker")
    f.label("solo.caller")
    f.set("next", walk.following(f))
    f.set("solo", f.get("launched"))
    f.jump("advance")
    f.label("solo.worker")
    # The caller meets the same barrier when it has done TOGETHER.
    f.set("next", f.op(f"add i64 {f.load('i64', entry, StepWord.TARGET)}, 1"))
    f.jump("barrier")
    f.label("together")
    f.set("next", walk.following(f))
    f.set("solo", 0)
    f.branch(f.compare("eq", f.get("launched"), 0), "advance", "barrier")


def _leave_blocks(f: FunctionText, profiled: bool) -> None:
    f.label("leave")
    f.branch(f.compare("eq", "%me", 0), "leave.caller", "leave.worker")
    f.label("leave.worker")
    f.do("call void @depart(ptr %pool)")
    f.do("ret i64 0")
    f.label("leave.caller")
    if profiled:
        walk.stamp(f)
    f.branch(f.compare("eq", f.get("launched"), 0), "closed", "close")
    f.label("close")
    f.do(f"call void @close(ptr %pool, i64 {f.get('tag')})")
    f.jump("closed")
    f.label("closed")
    f.store("i64", 0, "%run", RunWord.YIELD)
    walk.finish(f)


def _fail(f: FunctionText, result: str) -> None:
    f.do(f"call void @fail(ptr %run, i64 %me, i64 {f.get('step')}, i32 {result})")
    f.jump("after")


def _pool(f: FunctionText, offset: int) -> str:
    return f.at("%pool", offset)


def _place_of(f: FunctionText, phase: str) -> str:
    odd = f.op(f"and i64 {phase}, 1")
    return f.at(_pool(f, PoolWord.PLACES), f.op(f"mul i64 {odd}, {PoolWord.PLACE_SIZE}"))


def _counters_of(f: FunctionText, phase: str) -> str:
    odd = f.op(f"and i64 {phase}, 1")
    return f.at(_pool(f, PoolWord.COUNTERS), f.op(f"mul i64 {odd}, {_COUNTER_BYTES}"))


def _unpark(f: FunctionText, word: int, sleepers: int, most: str = "2147483647") -> None:
    where, asleep = _pool(f, word), _pool(f, sleepers)
    f.do(f"call void @unpark(ptr {where}, ptr {asleep}, i32 {most})")


def _park(f: FunctionText, word: int, old: str, sleepers: int) -> None:
    spin = f.load("i64", "%pool", PoolWord.SPIN, "monotonic")
    where, asleep = _pool(f, word), _pool(f, sleepers)
    f.do(f"call void @park(ptr {where}, i32 {old}, ptr {asleep}, i64 {spin})")


def _swap(f: FunctionText, old: str, new: str) -> str:
    """Compare-and-swap of the team word; whether it worked."""
    where = _pool(f, PoolWord.TEAM)
    pair = f.op(f"cmpxchg ptr {where}, i64 {old}, i64 {new} seq_cst seq_cst")
    return f.op(f"extractvalue {{i64, i1}} {pair}, 1")


def _split(f: FunctionText, team: str) -> tuple[str, str, str]:
    """Phase, members and arrivals of a team word."""
    phase = f.op(f"lshr i64 {team}, 32")
    members = f.op(f"and i64 {f.op(f'lshr i64 {team}, 16')}, {_COUNT_MASK}")
    return phase, members, f.op(f"and i64 {team}, {_COUNT_MASK}")


def _place() -> str:
    """Write down where a phase begins."""
    f = FunctionText(
        "internal ptr @place(ptr %worker, ptr %pool, i64 %phase, i64 %step, i64 %tag, "
        "i64 %parts, i64 %halt)"
    )
    place = _place_of(f, "%phase")
    f.store("i64", "%step", place, PlaceWord.STEP)
    f.store("i64", "%tag", place, PlaceWord.TAG)
    f.store("i32", f.op("trunc i64 %parts to i32"), place, PlaceWord.PARTS)
    f.store("i32", f.op("trunc i64 %halt to i32"), place, PlaceWord.HALT)
    mine, theirs = f.at("%worker", WorkerWord.COUNTERS), _counters_of(f, "%phase")
    copy = f"ptr align 8 {theirs}, ptr align 8 {mine}, i64 {_COUNTER_BYTES}, i1 false"
    f.do(f"call void @llvm.memcpy.p0.p0.i64({copy})")
    f.do(f"ret ptr {place}")
    return f.text()


def _open() -> str:
    """Claim the pool for a run and call its workers; the last tag used, or -1 when it is busy."""
    f = FunctionText("internal i64 @open(ptr %run, ptr %worker, ptr %pool, i64 %step) noinline")
    pair = f.op(f"cmpxchg ptr {_pool(f, PoolWord.BUSY)}, i32 0, i32 1 seq_cst seq_cst")
    f.branch(f.op(f"extractvalue {{i32, i1}} {pair}, 1"), "free", "busy")
    f.label("busy")
    f.do("ret i64 -1")
    f.label("free")
    f.store("ptr", "%run", "%pool", PoolWord.RUN)
    f.store("i64", f.load("i64", "%run", RunWord.SPIN), "%pool", PoolWord.SPIN, "monotonic")
    threads = f.load("i64", "%run", RunWord.THREADS)
    f.store("i64", threads, "%pool", PoolWord.THREADS, "monotonic")
    tag = f.load("i64", "%pool", PoolWord.SEQUENCE)
    team = f.load("i64", "%pool", PoolWord.TEAM, "monotonic")
    phase = f.op(f"lshr i64 {team}, 32")
    arguments = f"ptr %worker, ptr %pool, i64 {phase}, i64 %step, i64 {tag}, i64 1, i64 0"
    f.op(f"call ptr @place({arguments})")
    opened = f.op(f"or i64 {f.op(f'shl i64 {phase}, 32')}, {_ONE_MEMBER}")
    f.store("i64", opened, "%pool", PoolWord.TEAM, "release")
    f.do(f"atomicrmw add ptr {_pool(f, PoolWord.EPOCH)}, i32 1 seq_cst")
    most = f.op(f"trunc i64 {threads} to i32")
    _unpark(f, PoolWord.EPOCH, PoolWord.EPOCH_SLEEPERS, f.op(f"sub i32 {most}, 1"))
    f.do(f"ret i64 {tag}")
    return f.text()


def _barrier() -> str:
    """Wait for all members and begin the next phase at `step`; returns its place."""
    f = FunctionText(
        "internal ptr @barrier(ptr %run, ptr %worker, ptr %pool, i64 %step, i64 %tag) noinline",
        {"old": "i64"},
    )
    team = f.load("i64", "%pool", PoolWord.TEAM, "monotonic")
    low = f.op(f"and i64 {team}, {_ONE_PHASE - 1}")
    f.branch(f.compare("eq", low, _ONE_MEMBER), "lone", "arrive")
    f.label("lone")
    place = _next_place(f, team, "1")
    swapped = _swap(f, team, f.op(f"add i64 {team}, {_ONE_PHASE}"))
    f.branch(swapped, "lone.done", "arrive")
    f.label("lone.done")
    f.do(f"ret ptr {place}")
    f.label("arrive")
    old = f.op(f"atomicrmw add ptr {_pool(f, PoolWord.TEAM)}, i64 1 seq_cst")
    phase, members, before = _split(f, old)
    arrived = f.op(f"add i64 {before}, 1")
    f.branch(f.compare("eq", arrived, members), "last", "wait")
    f.label("wait")
    _park(f, PoolWord.PHASE, f.op(f"trunc i64 {phase} to i32"), PoolWord.PHASE_SLEEPERS)
    f.do(f"ret ptr {_place_of(f, f.op(f'add i64 {phase}, 1'))}")
    f.label("last")
    following = _next_place(f, old, members)
    begun = f.op(f"sub i64 {f.op(f'add i64 {old}, {_ONE_PHASE}')}, {before}")
    f.store("i64", begun, "%pool", PoolWord.TEAM, "seq_cst")
    _unpark(f, PoolWord.PHASE, PoolWord.PHASE_SLEEPERS)
    f.do(f"ret ptr {following}")
    return f.text()


def _next_place(f: FunctionText, team: str, parts: str) -> str:
    """Decide about halting and write the place of the phase after `team`'s."""
    stop = f.load("i64", "%run", RunWord.STOP, "monotonic")
    halt = f.op(f"or i64 {stop}, {f.load('i64', '%run', RunWord.YIELD, 'monotonic')}")
    phase = f.op(f"add i64 {f.op(f'lshr i64 {team}, 32')}, 1")
    arguments = f"ptr %worker, ptr %pool, i64 {phase}, i64 %step, i64 %tag, i64 {parts}, i64 {halt}"
    return f.op(f"call ptr @place({arguments})")


def _close() -> str:
    """End a run: wait until all other members have arrived, let nobody in any more."""
    f = FunctionText("internal void @close(ptr %pool, i64 %tag) noinline")
    f.jump("look")
    f.label("look")
    team = f.load("i64", "%pool", PoolWord.TEAM, "acquire")
    phase, members, arrived = _split(f, team)
    f.branch(f.compare("eq", f.op(f"add i64 {arrived}, 1"), members), "all", "wait")
    f.label("wait")
    half = f.op(f"trunc i64 {team} to i32")
    _park(f, PoolWord.TEAM, half, PoolWord.CALLER_SLEEPS)
    f.jump("look")
    f.label("all")
    closed = f.op(f"shl i64 {f.op(f'add i64 {phase}, 1')}, 32")
    f.branch(_swap(f, team, closed), "closed", "look")
    f.label("closed")
    f.store("i64", "%tag", "%pool", PoolWord.SEQUENCE)
    f.store("i32", 0, "%pool", PoolWord.BUSY, "release")
    f.do("ret void")
    return f.text()


def _depart() -> str:
    f = FunctionText("internal void @depart(ptr %pool) noinline")
    f.do(f"atomicrmw add ptr {_pool(f, PoolWord.TEAM)}, i64 1 seq_cst")
    _unpark(f, PoolWord.TEAM, PoolWord.CALLER_SLEEPS, "1")
    f.do("ret void")
    return f.text()


def _worker() -> str:
    """Function `ix_worker(pool)`: serve runs until the pool's QUIT word is set."""
    f = FunctionText("i64 @ix_worker(ptr %pool)", {"epoch": "i32"})
    f.do("call i64 @flush()")
    f.set("epoch", f.load("i32", "%pool", PoolWord.EPOCH, "acquire"))
    f.jump("join")
    f.label("idle")
    _park(f, PoolWord.EPOCH, f.get("epoch"), PoolWord.EPOCH_SLEEPERS)
    f.set("epoch", f.load("i32", "%pool", PoolWord.EPOCH, "acquire"))
    quits = f.load("i32", "%pool", PoolWord.QUIT, "monotonic")
    f.branch(f.compare("eq", quits, 0, "i32"), "join", "quit")
    f.label("quit")
    f.do("ret i64 0")
    _join_blocks(f)
    return f.text()


def _join_blocks(f: FunctionText) -> None:
    """Become a member unless the team is closed or full; not while the phase is changing."""
    f.label("join")
    team = f.load("i64", "%pool", PoolWord.TEAM, "acquire")
    phase, members, arrived = _split(f, team)
    f.branch(f.compare("eq", members, 0), "idle", "join.room")
    f.label("join.room")
    # The run itself may be gone until this worker is a member.
    most = f.load("i64", "%pool", PoolWord.THREADS, "monotonic")
    f.branch(f.compare("uge", members, most), "idle", "join.time")
    f.label("join.time")
    f.branch(f.compare("ult", arrived, members), "join.enter", "join.wait")
    f.label("join.wait")
    _park(f, PoolWord.PHASE, f.op(f"trunc i64 {phase} to i32"), PoolWord.PHASE_SLEEPERS)
    f.jump("join")
    f.label("join.enter")
    f.branch(_swap(f, team, f.op(f"add i64 {team}, {_ONE_MEMBER}")), "joined", "join")
    f.label("joined")
    run = f.load("ptr", "%pool", PoolWord.RUN)
    step = f.load("i64", _place_of(f, phase), PlaceWord.STEP)
    records = f.load("ptr", run, RunWord.WORKERS)
    worker = f.at(records, f.op(f"mul i64 {members}, {WorkerWord.SIZE}"))
    mine, theirs = f.at(worker, WorkerWord.COUNTERS), _counters_of(f, phase)
    copy = f"ptr align 8 {mine}, ptr align 8 {theirs}, i64 {_COUNTER_BYTES}, i1 false"
    f.do(f"call void @llvm.memcpy.p0.p0.i64({copy})")
    f.do(
        f"call i64 @team(ptr {run}, ptr {worker}, ptr %pool, i64 {members}, i64 {phase}, "
        f"i64 {step})"
    )
    f.jump("idle")
