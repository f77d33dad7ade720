"""LLVM text of running a step table in a team: joining, claiming, barriers, leaving.

* *Joining.* The first step worth sharing makes the caller (worker 0) claim the pool and raise its
  epoch. A worker that wakes registers in the gate word and waits to be admitted: between chunks by
  the caller while that is alone, afterwards by the last worker to reach a barrier. Nobody waits
  for a worker to wake up, so a busy machine, or a forked child whose workers are gone, costs
  nothing but their help.
* *Claiming.* A step's tasks are divided evenly over the members. Each takes half of what is left
  of its own range at a time, then half of what is left of another's, by compare-and-swap on (tag,
  tasks left). The tag numbers the shared steps, so the words need no reset: a worker leaves a step
  only when all ranges are claimed, hence a larger tag means "nothing left" and a smaller one "not
  begun".
* *Barrier.* A count of arrivals and an epoch, which the last to arrive raises after it has decided
  for all whether the walk goes on and who is admitted.
* *Leaving.* Workers count themselves out as their last access to the run; the caller waits for it.

Task boundaries come from shapes alone, so results do not depend on who ran what.
"""

from __future__ import annotations

from ixion.codegen import sequencer_walk as walk
from ixion.codegen.sequencer_writer import FunctionText
from ixion.base.abi import PoolWord, RunWord, Status, StepWord, WorkerWord

# Tags are compared as signed 32-bit distances; a barrier at least this often bounds the distance.
_FORCED_BARRIER_MASK = 1023
_OPEN = 1 << 31
_CLOSED = 1 << 7
_COUNT_MASK = 127
_EXTREMES = ("umax", "umin", "smin")

_TEAM_LOCALS = {
    **walk.LOCALS,
    "tag": "i64",
    "base": "i64",  # tasks of this step the caller did before it had company
    "members": "i64",
    "launched": "i64",
    "late": "i64",
    "victim": "i64",
    "tried": "i64",
}


def team_text() -> str:
    """Functions `open`, `admit`, `publish`, `barrier`, `close`, `depart`."""
    declared = "".join(f"declare i64 @llvm.{name}.i64(i64, i64)\n" for name in _EXTREMES)
    return "\n".join([declared, _open(), _share(), _admit(), _publish(), _barrier(), _close(), _depart()])


def team_walk(suffix: str, profiled: bool) -> str:
    """Function `team`: the walk of one worker, 0 being the caller."""
    f = FunctionText(
        f"internal i64 @team{suffix}(ptr %run, ptr %worker, ptr %pool, i64 %me, i64 %first)"
        " noinline",
        _TEAM_LOCALS,
    )
    _begin(f)
    entry = walk.dispatch(f, profiled)
    _call_block(f, entry)
    _alone_blocks(f, entry, suffix)
    _shared_blocks(f, entry)
    _after_blocks(f, entry)
    walk.ending_blocks(f)
    walk.control_blocks(f, entry)
    _barrier_blocks(f)
    _leave_blocks(f, profiled)
    return f.text()


def _begin(f: FunctionText) -> None:
    """A worker other than the caller starts where its admission says."""
    for name in ("base", "launched", "late", "tag", "victim", "tried"):
        f.set(name, 0)
    f.set("members", 1)
    f.branch(f.compare("eq", "%me", 0), "start", "joined")
    f.label("joined")
    f.set("tag", f.load("i64", "%pool", PoolWord.SHARE_SEQUENCE))
    f.set("base", f.load("i64", "%pool", PoolWord.SHARE_BASE))
    f.set("members", f.load("i64", "%pool", PoolWord.MEMBERS))
    f.jump("start")
    f.label("start")
    walk.begin(f, "%first")


def _call_block(f: FunctionText, entry: str) -> None:
    f.label("call")
    f.set("next", walk.following(f))
    stop = f.load("i64", "%run", RunWord.STOP, "monotonic")
    f.branch(f.compare("eq", stop, 0), "work", "after")
    f.label("work")
    f.branch(f.compare("eq", f.get("members"), 1), "lone", "shared")
    f.label("whole")
    result = walk.kernel_call(f, entry, f.get("base"), f.load("i64", entry, StepWord.TASKS))
    f.branch(f.compare("eq", result, 0, "i32"), "after", "whole.failed")
    f.label("whole.failed")
    _fail(f, result)
    f.jump("after")


def _alone_blocks(f: FunctionText, entry: str, suffix: str) -> None:
    """The caller without company: small steps whole, others in chunks, looking at the gate."""
    f.label("lone")
    f.branch(f.compare("sle", f.load("i64", entry, StepWord.LIMIT), 1), "whole", "lone.big")
    f.label("lone.big")
    f.branch(f.compare("eq", f.get("launched"), 0), "launch", "chunks")
    f.label("launch")
    tag = f.op("call i64 @open(ptr %run, ptr %pool)")
    f.branch(f.compare("slt", tag, 0), "busy", "launch.done")
    f.label("busy")
    f.store("i64", f.get("step"), "%run", RunWord.STEP)
    f.do(f"ret i64 {f.op(f'call i64 @alone{suffix}(ptr %run)')}")
    f.label("launch.done")
    f.set("tag", tag)
    f.set("launched", 1)
    f.jump("chunks")
    _chunk_blocks(f, entry)


def _chunk_blocks(f: FunctionText, entry: str) -> None:
    f.label("chunks")
    tasks = f.load("i64", entry, StepWord.TASKS)
    eighth = f.op(f"lshr i64 {tasks}, 3")
    quantum = f.op(f"call i64 @llvm.umax.i64(i64 {eighth}, i64 1)")
    f.jump("chunk")
    f.label("chunk")
    pending = f.op(f"and i64 {f.load('i64', '%pool', PoolWord.GATE, 'monotonic')}, {_COUNT_MASK}")
    f.branch(f.compare("eq", pending, 0), "chunk.next", "company")
    f.label("company")
    step, tag, base = f.get("step"), f.get("tag"), f.get("base")
    call = (
        f"call i64 @admit(ptr %worker, ptr %pool, i64 {step}, i64 {tag}, i64 {base}, "
        f"i64 {f.get('members')})"
    )
    f.set("members", f.op(call))
    f.do(f"call void @publish(ptr %pool, i64 {f.get('members')})")
    f.jump("shared")
    f.label("chunk.next")
    low = f.get("base")
    f.branch(f.compare("ult", low, tasks), "chunk.run", "after")
    f.label("chunk.run")
    end = f.op(f"add i64 {low}, {quantum}")
    high = f.op(f"call i64 @llvm.umin.i64(i64 {end}, i64 {tasks})")
    f.set("base", high)
    result = walk.kernel_call(f, entry, low, high)
    f.branch(f.compare("eq", result, 0, "i32"), "chunk", "chunk.failed")
    f.label("chunk.failed")
    _fail(f, result)
    f.jump("after")


def _shared_blocks(f: FunctionText, entry: str) -> None:
    """A step with company: own range first, then what is left of the others'."""
    f.label("shared")
    f.set("tag", f.op(f"add i64 {f.get('tag')}, 1"))
    limit = f.load("i64", entry, StepWord.LIMIT)
    parts = f.op(f"call i64 @llvm.smin.i64(i64 {limit}, i64 {f.get('members')})")
    f.branch(f.compare("sge", "%me", parts), "after", "shared.mine")
    f.label("shared.mine")
    f.branch(f.compare("sle", parts, 1), "whole", "shared.range")
    f.label("shared.range")
    base = f.get("base")
    span = f.op(f"sub i64 {f.load('i64', entry, StepWord.TASKS)}, {base}")
    mark = f.op(f"trunc i64 {f.get('tag')} to i32")
    f.set("victim", "%me")
    f.set("tried", 0)
    f.jump("victim.range")
    _victim_blocks(f, entry, base, span, parts, mark)


def _victim_blocks(
    f: FunctionText, entry: str, base: str, span: str, parts: str, mark: str
) -> None:
    f.label("victim.range")
    victim = f.get("victim")
    low = f.op(f"udiv i64 {f.op(f'mul i64 {victim}, {span}')}, {parts}")
    behind = f.op(f"add i64 {victim}, 1")
    high = f.op(f"udiv i64 {f.op(f'mul i64 {behind}, {span}')}, {parts}")
    size = f.op(f"sub i64 {high}, {low}")
    stop = f.op(f"add i64 {base}, {high}")
    offset = f.op(f"mul i64 {victim}, {PoolWord.CLAIM_STRIDE}")
    word = f.at(f.at("%pool", PoolWord.CLAIMS), offset)
    f.jump("claim")
    _claim_blocks(f, entry, word, size, stop, mark)
    f.label("victim.next")
    f.set("tried", f.op(f"add i64 {f.get('tried')}, 1"))
    f.branch(f.compare("slt", f.get("tried"), parts), "victim.turn", "after")
    f.label("victim.turn")
    wraps = f.compare("eq", behind, parts)
    f.set("victim", f.op(f"select i1 {wraps}, i64 0, i64 {behind}"))
    f.jump("victim.range")


def _claim_blocks(
    f: FunctionText, entry: str, word: str, size: str, stop: str, mark: str
) -> None:
    f.label("claim")
    seen = f.load("i64", word, 0, "monotonic")
    their = f.op(f"trunc i64 {f.op(f'lshr i64 {seen}, 32')} to i32")
    distance = f.op(f"sub i32 {their}, {mark}")
    rest = f.op(f"and i64 {seen}, 4294967295")
    begun = f.compare("eq", distance, 0, "i32")
    ahead = f.compare("sgt", distance, 0, "i32")
    known = f.op(f"select i1 {begun}, i64 {rest}, i64 {size}")
    left = f.op(f"select i1 {ahead}, i64 0, i64 {known}")
    f.branch(f.compare("eq", left, 0), "victim.next", "claim.take")
    f.label("claim.take")
    half = f.op(f"lshr i64 {left}, 1")
    take = f.op(f"call i64 @llvm.umax.i64(i64 {half}, i64 1)")
    remain = f.op(f"sub i64 {left}, {take}")
    tagged = f.op(f"shl i64 {f.op(f'zext i32 {mark} to i64')}, 32")
    wanted = f.op(f"or i64 {tagged}, {remain}")
    pair = f.op(f"cmpxchg ptr {word}, i64 {seen}, i64 {wanted} monotonic monotonic")
    f.branch(f.op(f"extractvalue {{i64, i1}} {pair}, 1"), "claim.run", "claim")
    f.label("claim.run")
    first = f.op(f"sub i64 {stop}, {left}")
    result = walk.kernel_call(f, entry, first, f.op(f"add i64 {first}, {take}"))
    f.branch(f.compare("eq", result, 0, "i32"), "claim.more", "claim.failed")
    f.label("claim.more")
    stopped = f.load("i64", "%run", RunWord.STOP, "monotonic")
    f.branch(f.compare("eq", stopped, 0), "claim", "after")
    f.label("claim.failed")
    _fail(f, result)
    f.jump("after")


def _after_blocks(f: FunctionText, entry: str) -> None:
    f.label("after")
    f.set("base", 0)
    f.branch(f.compare("eq", "%me", 0), "watch", "sync")
    f.label("watch")
    walk.overdue(f, entry, "overdue", "sync")
    f.label("overdue")
    f.set("late", 1)
    f.store("i64", 1, "%run", RunWord.YIELD, "monotonic")
    f.jump("sync")
    f.label("sync")
    f.branch(f.compare("eq", f.get("members"), 1), "sync.lone", "sync.team")
    f.label("sync.lone")
    stop = f.load("i64", "%run", RunWord.STOP, "monotonic")
    leave = f.compare("ne", f.op(f"or i64 {stop}, {f.get('late')}"), 0)
    f.branch(leave, "halt", "advance")
    f.label("sync.team")
    flagged = f.compare("ne", f.load("i64", entry, StepWord.BARRIER), 0)
    forced = f.compare("eq", f.op(f"and i64 {f.get('tag')}, {_FORCED_BARRIER_MASK}"), 0)
    f.branch(f.op(f"or i1 {flagged}, {forced}"), "barrier", "advance")


def _barrier_blocks(f: FunctionText) -> None:
    f.label("settle")
    f.branch(f.compare("eq", f.get("members"), 1), "advance", "barrier")
    f.label("barrier")
    step, tag, members = f.get("next"), f.get("tag"), f.get("members")
    f.do(
        "call void @barrier(ptr %run, ptr %worker, ptr %pool, "
        f"i64 {step}, i64 {tag}, i64 {members})"
    )
    f.set("members", f.load("i64", "%pool", PoolWord.MEMBERS))
    f.branch(f.compare("eq", f.load("i64", "%pool", PoolWord.HALT), 0), "advance", "halt")
    f.label("halt")
    f.set("status", int(Status.YIELD))
    f.jump("leave")


def _leave_blocks(f: FunctionText, profiled: bool) -> None:
    f.label("leave")
    f.branch(f.compare("eq", "%me", 0), "leave.caller", "leave.worker")
    f.label("leave.worker")
    f.do("call void @depart(ptr %pool)")
    f.do("ret i64 0")
    f.label("leave.caller")
    if profiled:
        walk.stamp(f)
    f.branch(f.compare("eq", f.get("launched"), 0), "leave.closed", "leave.close")
    f.label("leave.close")
    f.do(f"call void @close(ptr %pool, i64 {f.get('tag')}, i64 {f.get('members')})")
    f.jump("leave.closed")
    f.label("leave.closed")
    f.store("i64", 0, "%run", RunWord.YIELD)
    walk.finish(f)


def _fail(f: FunctionText, result: str) -> None:
    f.do(f"call void @fail(ptr %run, i64 %me, i64 {f.get('step')}, i32 {result})")


def _word(f: FunctionText, offset: int) -> str:
    return f.at("%pool", offset)


def _unpark(f: FunctionText, word: int, sleepers: int, most: str = "2147483647") -> None:
    where, asleep = _word(f, word), _word(f, sleepers)
    f.do(f"call void @unpark(ptr {where}, ptr {asleep}, i32 {most})")


def _park(f: FunctionText, word: int, old: str, sleepers: int) -> None:
    spin = f.load("i64", "%pool", PoolWord.SPIN)
    where, asleep = _word(f, word), _word(f, sleepers)
    f.do(f"call void @park(ptr {where}, i32 {old}, ptr {asleep}, i64 {spin})")


def _open() -> str:
    """Claim the pool for a run and call its workers; the last tag used, or -1 when it is busy."""
    f = FunctionText("internal i64 @open(ptr %run, ptr %pool) noinline")
    pair = f.op(f"cmpxchg ptr {_word(f, PoolWord.BUSY)}, i32 0, i32 1 seq_cst seq_cst")
    f.branch(f.op(f"extractvalue {{i32, i1}} {pair}, 1"), "free", "busy")
    f.label("busy")
    f.do("ret i64 -1")
    f.label("free")
    number = f.op(f"add i64 {f.load('i64', '%pool', PoolWord.RUN_NUMBER)}, 1")
    f.store("i64", number, "%pool", PoolWord.RUN_NUMBER)
    f.store("ptr", "%run", "%pool", PoolWord.RUN)
    f.store("i64", 1, "%pool", PoolWord.MEMBERS)
    f.store("i64", 0, "%pool", PoolWord.HALT)
    f.store("i32", 0, "%pool", PoolWord.ARRIVED, "monotonic")
    f.store("i32", 0, "%pool", PoolWord.LEFT, "monotonic")
    most = f.op(f"sub i64 {f.load('i64', '%run', RunWord.THREADS)}, 1")
    f.store("i64", most, "%pool", PoolWord.GATE_MOST)
    f.store("i32", _admit_word(f, number, "1"), "%pool", PoolWord.ADMIT, "monotonic")
    gate = f.op(f"or i64 {f.op(f'shl i64 {number}, 32')}, {_OPEN}")
    f.store("i64", gate, "%pool", PoolWord.GATE, "release")
    f.do(f"atomicrmw add ptr {_word(f, PoolWord.EPOCH)}, i32 1 seq_cst")
    _unpark(f, PoolWord.EPOCH, PoolWord.EPOCH_SLEEPERS, f.op(f"trunc i64 {most} to i32"))
    f.do(f"ret i64 {f.load('i64', '%pool', PoolWord.SEQUENCE)}")
    return f.text()


def _admit_word(f: FunctionText, number: str, low: str) -> str:
    shifted = f.op(f"shl i64 {number}, 8")
    return f.op(f"trunc i64 {f.op(f'or i64 {shifted}, {low}')} to i32")


def _share() -> str:
    """Write down where admitted workers start."""
    f = FunctionText(
        "internal void @share(ptr %worker, ptr %pool, i64 %step, i64 %tag, i64 %base) noinline"
    )
    f.store("i64", "%step", "%pool", PoolWord.SHARE_STEP)
    f.store("i64", "%tag", "%pool", PoolWord.SHARE_SEQUENCE)
    f.store("i64", "%base", "%pool", PoolWord.SHARE_BASE)
    for index, offset in enumerate(walk.worker_counters()):
        value = f.load("i64", "%worker", offset)
        f.store("i64", value, "%pool", PoolWord.SHARE_COUNTERS + 8 * index)
    f.do("ret void")
    return f.text()


def _admit() -> str:
    """Make members of the workers in the gate; returns how many there are now."""
    f = FunctionText(
        "internal i64 @admit(ptr %worker, ptr %pool, i64 %step, i64 %tag, i64 %base, i64 %members)"
        " noinline"
    )
    gate = f.load("i64", "%pool", PoolWord.GATE, "acquire")
    came = f.op(f"add i64 {f.op(f'and i64 {gate}, {_COUNT_MASK}')}, 1")
    f.branch(f.compare("ugt", came, "%members"), "more", "none")
    f.label("none")
    f.do("ret i64 %members")
    f.label("more")
    f.do("call void @share(ptr %worker, ptr %pool, i64 %step, i64 %tag, i64 %base)")
    f.store("i64", came, "%pool", PoolWord.MEMBERS)
    f.do(f"ret i64 {came}")
    return f.text()


def _publish() -> str:
    """Let the workers in that `admit` made members."""
    f = FunctionText("internal void @publish(ptr %pool, i64 %members) noinline")
    number = f.load("i64", "%pool", PoolWord.RUN_NUMBER)
    f.store("i32", _admit_word(f, number, "%members"), "%pool", PoolWord.ADMIT, "seq_cst")
    _unpark(f, PoolWord.ADMIT, PoolWord.ADMIT_SLEEPERS)
    f.do("ret void")
    return f.text()


def _barrier() -> str:
    """Wait for all members; the last one decides about halting and admission, then lets go.

    Admission is published after the epoch has moved, or a newcomer could reach the next barrier
    while this one still shows the old epoch.
    """
    f = FunctionText(
        "internal void @barrier(ptr %run, ptr %worker, ptr %pool, i64 %step, i64 %tag, "
        "i64 %members) noinline",
        {"now": "i64"},
    )
    epoch = f.load("i32", "%pool", PoolWord.BARRIER_EPOCH, "monotonic")
    before = f.op(f"atomicrmw add ptr {_word(f, PoolWord.ARRIVED)}, i32 1 acq_rel")
    last = f.op("trunc i64 %members to i32")
    arrived = f.op(f"add i32 {before}, 1")
    f.branch(f.compare("eq", arrived, last, "i32"), "last", "wait")
    f.label("wait")
    _park(f, PoolWord.BARRIER_EPOCH, epoch, PoolWord.BARRIER_SLEEPERS)
    f.do("ret void")
    f.label("last")
    f.store("i32", 0, "%pool", PoolWord.ARRIVED, "monotonic")
    _decide(f)
    f.do(f"atomicrmw add ptr {_word(f, PoolWord.BARRIER_EPOCH)}, i32 1 seq_cst")
    _unpark(f, PoolWord.BARRIER_EPOCH, PoolWord.BARRIER_SLEEPERS)
    f.branch(f.compare("ugt", f.get("now"), "%members"), "news", "done")
    f.label("news")
    f.do(f"call void @publish(ptr %pool, i64 {f.get('now')})")
    f.jump("done")
    f.label("done")
    f.do("ret void")
    return f.text()


def _decide(f: FunctionText) -> None:
    """Set HALT; unless halting, admit whoever came (local `now`: members from here on)."""
    f.set("now", "%members")
    stop = f.load("i64", "%run", RunWord.STOP, "monotonic")
    halt = f.op(f"or i64 {stop}, {f.load('i64', '%run', RunWord.YIELD, 'monotonic')}")
    f.store("i64", halt, "%pool", PoolWord.HALT)
    f.branch(f.compare("eq", halt, 0), "admit", "release")
    f.label("admit")
    call = "call i64 @admit(ptr %worker, ptr %pool, i64 %step, i64 %tag, i64 0, i64 %members)"
    f.set("now", f.op(call))
    f.jump("release")
    f.label("release")


def _close() -> str:
    """End a run: send away who was not admitted, wait for the members, free the pool."""
    f = FunctionText("internal void @close(ptr %pool, i64 %tag, i64 %members) noinline")
    gate = f.op(f"atomicrmw xchg ptr {_word(f, PoolWord.GATE)}, i64 0 seq_cst")
    others = f.op("sub i64 %members, 1")
    pending = f.op(f"and i64 {gate}, {_COUNT_MASK}")
    f.branch(f.compare("ugt", pending, others), "refuse", "refused")
    f.label("refuse")
    word = _admit_word(f, f.load("i64", "%pool", PoolWord.RUN_NUMBER), str(_CLOSED))
    f.store("i32", word, "%pool", PoolWord.ADMIT, "seq_cst")
    _unpark(f, PoolWord.ADMIT, PoolWord.ADMIT_SLEEPERS)
    f.jump("refused")
    f.label("refused")
    wanted = f.op(f"trunc i64 {others} to i32")
    f.jump("look")
    f.label("look")
    left = f.load("i32", "%pool", PoolWord.LEFT, "acquire")
    f.branch(f.compare("eq", left, wanted, "i32"), "free", "wait")
    f.label("wait")
    _park(f, PoolWord.LEFT, left, PoolWord.LEFT_SLEEPERS)
    f.jump("look")
    f.label("free")
    f.store("i64", "%tag", "%pool", PoolWord.SEQUENCE)
    f.store("i32", 0, "%pool", PoolWord.BUSY, "release")
    f.do("ret void")
    return f.text()


def _depart() -> str:
    f = FunctionText("internal void @depart(ptr %pool) noinline")
    f.do(f"atomicrmw add ptr {_word(f, PoolWord.LEFT)}, i32 1 seq_cst")
    _unpark(f, PoolWord.LEFT, PoolWord.LEFT_SLEEPERS, "1")
    f.do("ret void")
    return f.text()


def worker_text() -> str:
    """Function `ix_worker(pool)`: serve runs until the pool's QUIT word is set."""
    f = FunctionText("i64 @ix_worker(ptr %pool)", {"epoch": "i32"})
    f.set("epoch", f.load("i32", "%pool", PoolWord.EPOCH, "acquire"))
    f.jump("idle")
    f.label("idle")
    _park(f, PoolWord.EPOCH, f.get("epoch"), PoolWord.EPOCH_SLEEPERS)
    f.set("epoch", f.load("i32", "%pool", PoolWord.EPOCH, "acquire"))
    quit_word = f.load("i32", "%pool", PoolWord.QUIT, "monotonic")
    f.branch(f.compare("eq", quit_word, 0, "i32"), "register", "quit")
    f.label("quit")
    f.do("ret i64 0")
    _register_blocks(f)
    return f.text()


def _register_blocks(f: FunctionText) -> None:
    f.label("register")
    gate = f.load("i64", "%pool", PoolWord.GATE, "acquire")
    f.branch(f.compare("eq", f.op(f"and i64 {gate}, {_OPEN}"), 0), "idle", "room")
    f.label("room")
    came = f.op(f"and i64 {gate}, {_COUNT_MASK}")
    most = f.load("i64", "%pool", PoolWord.GATE_MOST)
    f.branch(f.compare("ult", came, most), "enter", "idle")
    f.label("enter")
    me = f.op(f"add i64 {came}, 1")
    number = f.op(f"trunc i64 {f.op(f'lshr i64 {gate}, 32')} to i32")
    entered = f.op(f"add i64 {gate}, 1")
    pair = f.op(f"cmpxchg ptr {_word(f, PoolWord.GATE)}, i64 {gate}, i64 {entered} seq_cst seq_cst")
    f.branch(f.op(f"extractvalue {{i64, i1}} {pair}, 1"), "pending", "register")
    f.label("pending")
    admit = f.load("i32", "%pool", PoolWord.ADMIT, "acquire")
    theirs = f.op(f"lshr i32 {admit}, 8")
    mine = f.op(f"and i32 {number}, 16777215")
    same = f.compare("eq", theirs, mine, "i32")
    shut = f.compare("ne", f.op(f"and i32 {admit}, {_CLOSED}"), 0, "i32")
    open_ = f.op(f"and i1 {same}, {f.op(f'xor i1 {shut}, true')}")
    f.branch(open_, "pending.count", "idle")
    f.label("pending.count")
    members = f.op(f"zext i32 {f.op(f'and i32 {admit}, {_COUNT_MASK}')} to i64")
    f.branch(f.compare("ugt", members, me), "member", "pending.wait")
    f.label("pending.wait")
    _park(f, PoolWord.ADMIT, admit, PoolWord.ADMIT_SLEEPERS)
    f.jump("pending")
    f.label("member")
    _member(f, me)


def _member(f: FunctionText, me: str) -> None:
    """Walk as worker `me` with the counters of whoever admitted it."""
    run = f.load("ptr", "%pool", PoolWord.RUN)
    records = f.load("ptr", run, RunWord.WORKERS)
    worker = f.at(records, f.op(f"mul i64 {me}, {WorkerWord.SIZE}"))
    for index, offset in enumerate(walk.worker_counters()):
        value = f.load("i64", "%pool", PoolWord.SHARE_COUNTERS + 8 * index)
        f.store("i64", value, worker, offset)
    step = f.load("i64", "%pool", PoolWord.SHARE_STEP)
    f.do(f"call i64 @team(ptr {run}, ptr {worker}, ptr %pool, i64 {me}, i64 {step})")
    f.jump("idle")
