"""LLVM text of waiting: pause, sleep on a word (futex), wake, and the clock.

`park(word, old, sleepers, spin)` returns once the 32-bit word differs from `old`: after at most
`spin` pauses the thread counts itself among the sleepers, looks again, and sleeps. Whoever changes
the word does so sequentially consistently and then calls `unpark`, which enters the kernel only if
someone sleeps: of a sleeper that counts itself and a changer that looks at the count, at least one
sees the other.
"""

from __future__ import annotations

from ixion.base.errors import CodegenError
from ixion.base.target import Target
from ixion.codegen.sequencer_writer import FunctionText

_FUTEX_NUMBER = {"x86_64": 202, "aarch64": 98}
# AArch64's own "yield" hint does nothing on most cores; an instruction barrier does pause.
_PAUSE = {
    "x86_64": ("llvm.x86.sse2.pause()", "llvm.x86.sse2.pause()"),
    "aarch64": ("llvm.aarch64.isb(i32)", "llvm.aarch64.isb(i32 15)"),
}
_WAIT_PRIVATE = 128
_WAKE_PRIVATE = 129
_CLOCK_MONOTONIC = 1


def waiting_text(target: Target) -> str:
    """Functions `park`, `unpark` and `now` (nanoseconds) and their declarations.

    Raises CodegenError for a machine whose futex call is not known.
    """
    machine = target.triple.split("-")[0]
    if machine not in _FUTEX_NUMBER:
        raise CodegenError(f"no thread waiting for machine '{machine}'", hint="use x86-64, AArch64")
    declared, called = _PAUSE[machine]
    head = (
        f"declare void @{declared}\n"
        "declare i64 @syscall(i64, ...)\n"
        "declare i32 @clock_gettime(i32, ptr)\n"
    )
    number = _FUTEX_NUMBER[machine]
    return "\n".join([head, _park(number, called), _unpark(number), _now()])


def _park(futex: int, pause: str) -> str:
    f = FunctionText(
        "internal void @park(ptr %word, i32 %old, ptr %sleepers, i64 %spin)", {"turn": "i64"}
    )
    f.set("turn", 0)
    f.jump("spin")
    f.label("spin")
    f.branch(f.compare("ne", f.load("i32", "%word", 0, "acquire"), "%old", "i32"), "done", "pause")
    f.label("pause")
    f.do(f"call void @{pause}")
    f.set("turn", f.op(f"add i64 {f.get('turn')}, 1"))
    f.branch(f.compare("ult", f.get("turn"), "%spin"), "spin", "drowsy")
    f.label("drowsy")
    f.do("atomicrmw add ptr %sleepers, i32 1 seq_cst")
    f.jump("look")
    f.label("look")
    now = f.load("i32", "%word", 0, "seq_cst")
    f.branch(f.compare("ne", now, "%old", "i32"), "woken", "sleep")
    f.label("sleep")
    f.do(
        f"call i64 (i64, ...) @syscall(i64 {futex}, ptr %word, i32 {_WAIT_PRIVATE}, i32 %old, "
        "ptr null, ptr null, i32 0)"
    )
    f.jump("look")
    f.label("woken")
    f.do("atomicrmw sub ptr %sleepers, i32 1 seq_cst")
    f.jump("done")
    f.label("done")
    f.do("ret void")
    return f.text()


def _unpark(futex: int) -> str:
    f = FunctionText("internal void @unpark(ptr %word, ptr %sleepers, i32 %most)")
    asleep = f.load("i32", "%sleepers", 0, "seq_cst")
    f.branch(f.compare("eq", asleep, 0, "i32"), "done", "wake")
    f.label("wake")
    f.do(
        f"call i64 (i64, ...) @syscall(i64 {futex}, ptr %word, i32 {_WAKE_PRIVATE}, i32 %most, "
        "ptr null, ptr null, i32 0)"
    )
    f.jump("done")
    f.label("done")
    f.do("ret void")
    return f.text()


def _now() -> str:
    f = FunctionText("internal i64 @now() noinline", {"time": "[2 x i64]"})
    f.do(f"call i32 @clock_gettime(i32 {_CLOCK_MONOTONIC}, ptr %time.slot)")
    seconds = f.op(f"mul i64 {f.load('i64', '%time.slot')}, 1000000000")
    rest = f.load("i64", "%time.slot", 8)
    f.do(f"ret i64 {f.op(f'add i64 {seconds}, {rest}')}")
    return f.text()
