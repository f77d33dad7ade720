"""The sequencer's text: same for every model, compiles for every machine with a known futex."""

import pytest

from ixion.base.errors import CodegenError
from ixion.base.target import Target
from ixion.codegen.llvm import asm_text, compile_text
from ixion.codegen.sequencer import sequencer_text


def aarch64() -> Target:
    return Target("neon", "aarch64-unknown-linux-gnu", "generic", (), 128, 32, True, 1, 1, 1, 1)


@pytest.mark.parametrize("target", [Target.parse("native"), Target.parse("generic"), aarch64()])
def test_compiles(target):
    assert b"ix_run_profiled" in compile_text(sequencer_text(target), target)


def test_text_is_deterministic():
    target = Target.parse("native")
    assert sequencer_text(target) == sequencer_text(target)


def test_needs_only_the_c_library():
    text = sequencer_text(Target.parse("generic"))
    declared = {line.split("@")[1].split("(")[0] for line in text.splitlines() if "declare" in line}
    assert {name for name in declared if not name.startswith("llvm.")} == {
        "syscall",
        "clock_gettime",
    }


def test_atomics_are_inline():
    """Without the machine's atomic instructions LLVM could call a library we don't have."""
    calls = {
        line.split()[-1].removesuffix("@PLT")
        for target in (aarch64(), Target.parse("generic"))
        for line in asm_text(sequencer_text(target), target).splitlines()
        if line.split()[:1] in (["bl"], ["callq"]) and "*" not in line
    }
    own = {"park", "unpark", "now", "fail", "deadline", "stamp", "alone", "alone_profiled"}
    own |= {"team", "team_profiled", "place", "open", "barrier", "close", "depart"}
    own |= {"flush", "restore"}
    assert calls - own == {"syscall", "clock_gettime"}


def test_waits_pause():
    assert "pause" in asm_text(sequencer_text(Target.parse("generic")), Target.parse("generic"))
    assert "isb" in asm_text(sequencer_text(aarch64()), aarch64())


def test_unknown_machines_are_refused():
    riscv = Target("other", "riscv64-unknown-linux-gnu", "generic", (), 128, 32, True, 1, 1, 1, 1)
    with pytest.raises(CodegenError, match="riscv64"):
        sequencer_text(riscv)
