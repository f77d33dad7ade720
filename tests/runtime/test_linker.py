"""Our own linker against hand-written objects, LLVM's linker, and broken files."""

import contextlib
import ctypes
import platform
import random
from pathlib import Path

import numpy as np
import pytest
from tiny_programs import kernels, sequencer_object

from ixion.base.errors import CodegenError
from ixion.base.target import Target
from ixion.codegen.llvm import compile_text, load_objects
from ixion.runtime import linker, native
from ixion.runtime.linker import UnlinkableError, link

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="links x86-64 code only")

CONSTANTS = """
@table = internal constant [4 x i64] [i64 3, i64 5, i64 7, i64 11], align 64
@pointers = internal constant [2 x ptr] [ptr @table, ptr @labs]
@counter = internal global i64 40
@zeros = internal global [1000 x i64] zeroinitializer
@shared = global i64 9
declare i64 @labs(i64)
define i64 @constant(i64 %i) {
  %p = getelementptr i64, ptr @table, i64 %i
  %x = load i64, ptr %p
  ret i64 %x
}
define i64 @count(i64 %by) {
  %x = load i64, ptr @counter
  %y = add i64 %x, %by
  store i64 %y, ptr @counter
  ret i64 %y
}
define i64 @zero(i64 %i) {
  %p = getelementptr i64, ptr @zeros, i64 %i
  %x = load i64, ptr %p
  store i64 1, ptr %p
  ret i64 %x
}
define i64 @outside(i64 %x) {
  %y = call i64 @labs(i64 %x)
  %z = add i64 %y, 1
  ret i64 %z
}
define i64 @indirect(i64 %x) {
  %p = getelementptr ptr, ptr @pointers, i64 1
  %f = load volatile ptr, ptr %p
  %y = call i64 %f(i64 %x)
  ret i64 %y
}
define i64 @float(i64 %x) {
  %f = sitofp i64 %x to double
  %g = fmul double %f, 2.5
  %y = fptosi double %g to i64
  ret i64 %y
}
define i64 @choose(i64 %x) {
  switch i64 %x, label %other [
    i64 0, label %a
    i64 1, label %b
    i64 2, label %c
    i64 3, label %d
    i64 4, label %e
  ]
a:
  ret i64 17
b:
  %p = call i64 @labs(i64 %x)
  ret i64 %p
c:
  ret i64 -4
d:
  %q = mul i64 %x, 1000
  ret i64 %q
e:
  ret i64 99
other:
  ret i64 -1
}
"""
USER = """
@shared = external global i64
declare i64 @constant(i64)
define i64 @across(i64 %i) {
  %x = call i64 @constant(i64 %i)
  %y = load i64, ptr @shared
  %z = add i64 %x, %y
  ret i64 %z
}
"""
CALLS = [
    ("constant", 2, 7), ("count", 2, 42), ("count", 1, 43), ("zero", 999, 0), ("zero", 999, 1),
    ("outside", -4, 5), ("indirect", -6, 6), ("float", 4, 10), ("choose", 0, 17), ("choose", 1, 1),
    ("choose", 2, -4), ("choose", 3, 3000), ("choose", 4, 99), ("choose", 5, -1), ("across", 3, 20),
]  # fmt: skip


def function(address):
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)


def objects(target="native"):
    return [compile_text(text, Target.parse(target)) for text in (CONSTANTS, USER)]


@pytest.mark.parametrize("target", ["native", "generic"])
@pytest.mark.parametrize("loader", [link, load_objects])
@pytest.mark.parametrize("order", [1, -1])
def test_linked_code_runs(target, loader, order):
    code = loader(objects(target)[::order])
    for name, argument, expected in CALLS:
        assert function(code.address(name))(argument) == expected, name


def test_libraries_are_apart():
    first, second = link(objects()), link(objects())
    assert function(first.address("count"))(1) == 41
    assert function(second.address("count"))(1) == 41
    del first
    assert function(second.address("count"))(1) == 42


def test_code_is_not_writable_and_data_not_executable():
    code = link(objects())
    ranges = {}
    with Path("/proc/self/maps").open() as maps:
        for line in maps:
            span, mode, *_ = line.split()
            low, high = (int(part, 16) for part in span.split("-"))
            ranges[low, high] = mode

    def mode_of(address):
        return next(mode for (low, high), mode in ranges.items() if low <= address < high)

    assert mode_of(code.address("constant")).startswith("r-x")
    assert mode_of(code.address("shared")).startswith("rw-")
    assert code._memory.ctypes.data % 64 == 0


def test_the_runtimes_own_code_links():
    assert link([sequencer_object()]).address("ix_run")
    assert link([kernels()]).address("add")


def test_what_does_not_link_says_why():
    (one, user) = objects()
    for images, message in [
        ([one, one], "twice"),
        ([user], "constant"),
        ([b""], "not an object file"),
        ([b"\x7fELF" + bytes(200)], "not an object file"),
        ([one[:-30]], "not an object file"),
    ]:
        with pytest.raises(CodegenError, match=message):
            link(images)
    with pytest.raises(CodegenError, match="absent"):
        link([one]).address("absent")


def test_other_machines_are_left_to_llvm():
    neon = Target("neon", "aarch64-unknown-linux-gnu", "generic", (), 128, 32, True, 1, 1, 1, 1)
    with pytest.raises(UnlinkableError):
        link([compile_text(USER, neon)])


def test_llvm_links_what_we_cannot(monkeypatch):
    def refuse(files):
        raise UnlinkableError("for the test")

    monkeypatch.setattr(native, "link", refuse)
    code = native.load(objects())
    assert not isinstance(code, linker.LinkedCode)
    assert function(code.address("across"))(3) == 20


def test_damaged_objects_never_crash():
    """Linking may succeed where the damage is harmless or in code; nothing here is executed."""
    image = objects()[0]
    random_ = random.Random(5)
    for _ in range(300):
        damaged = bytearray(image)
        for _ in range(random_.randint(1, 4)):
            damaged[random_.randrange(len(image))] = random_.randrange(256)
        with contextlib.suppress(CodegenError):
            link([bytes(damaged)])
    for size in range(0, len(image), 97):
        with pytest.raises(CodegenError):
            link([image[:size]])


def test_empty_libraries():
    with pytest.raises(CodegenError):
        link([]).address("anything")
    assert np.all(link([])._memory == 0)
