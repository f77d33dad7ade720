"""LLVM text of the floating-point mode of a run: numbers below the normal range count as zero.

Many CPUs take a hundred cycles and more for each instruction that meets a denormal number, which
networks whose activations fade away are full of. The mode belongs to the thread, so a caller's own
is put back before its run returns.
"""

from __future__ import annotations

from ixion.base.target import Target
from ixion.codegen.sequencer_writer import FunctionText

_X86_FLUSH = 0x8040  # MXCSR: flush to zero, denormals are zero (Intel SDM volume 1, 10.2.3)
_ARM_FLUSH = 1 << 24  # FPCR.FZ (Arm ARM, D19.2)


def float_mode_text(target: Target) -> str:
    """Functions `i64 flush()`, which returns the mode as it was, and `void restore(i64 mode)`."""
    if target.is_x86:
        head = "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)\n"
        return f"{head}\n{_x86_flush()}\n{_x86_restore()}"
    head = "declare i64 @llvm.aarch64.get.fpcr()\ndeclare void @llvm.aarch64.set.fpcr(i64)\n"
    return f"{head}\n{_arm_flush()}\n{_arm_restore()}"


def _x86_flush() -> str:
    f = FunctionText("internal i64 @flush()", {"mode": "i32"})
    f.do("call void @llvm.x86.sse.stmxcsr(ptr %mode.slot)")
    old = f.get("mode")
    f.set("mode", f.op(f"or i32 {old}, {_X86_FLUSH}"))
    f.do("call void @llvm.x86.sse.ldmxcsr(ptr %mode.slot)")
    f.do(f"ret i64 {f.op(f'zext i32 {old} to i64')}")
    return f.text()


def _x86_restore() -> str:
    f = FunctionText("internal void @restore(i64 %old)", {"mode": "i32"})
    f.set("mode", f.op("trunc i64 %old to i32"))
    f.do("call void @llvm.x86.sse.ldmxcsr(ptr %mode.slot)")
    f.do("ret void")
    return f.text()


def _arm_flush() -> str:
    f = FunctionText("internal i64 @flush()")
    old = f.op("call i64 @llvm.aarch64.get.fpcr()")
    f.do(f"call void @llvm.aarch64.set.fpcr(i64 {f.op(f'or i64 {old}, {_ARM_FLUSH}')})")
    f.do(f"ret i64 {old}")
    return f.text()


def _arm_restore() -> str:
    f = FunctionText("internal void @restore(i64 %old)")
    f.do("call void @llvm.aarch64.set.fpcr(i64 %old)")
    f.do("ret void")
    return f.text()
