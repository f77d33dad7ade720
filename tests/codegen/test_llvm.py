"""LLVM door: text to object, object to address, errors instead of a dead process."""

import ctypes
import platform

import pytest

from ixion.base.errors import CodegenError
from ixion.base.target import Target
from ixion.codegen.llvm import asm_text, compile_text, load_objects, optimised_text

TWICE = """
define i64 @twice(i64 %x) {
  %slot = alloca i64
  store i64 %x, ptr %slot
  %y = load i64, ptr %slot
  %z = add i64 %y, %y
  ret i64 %z
}
"""
CALLER = """
declare i64 @twice(i64)
define i64 @fourfold(i64 %x) {
  %y = call i64 @twice(i64 %x)
  %z = call i64 @twice(i64 %y)
  ret i64 %z
}
"""
ABSOLUTE = """
declare i64 @labs(i64)
define i64 @absolute(i64 %x) {
  %y = call i64 @labs(i64 %x)
  ret i64 %y
}
"""
FOREIGN = """
define void @f() {
  call void asm sideeffect "yield", ""()
  ret void
}
"""
WIDE = """
define void @wide(ptr %to, ptr %from) {
  %x = load <16 x float>, ptr %from, align 4
  %y = fadd <16 x float> %x, %x
  store <16 x float> %y, ptr %to, align 4
  ret void
}
"""


def function(address: int) -> object:
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)


def native() -> Target:
    return Target.parse("native")


def test_text_runs():
    library = load_objects([compile_text(TWICE, native())])
    assert function(library.address("twice"))(21) == 42
    assert library.address("twice") == library.address("twice")


def test_objects_of_one_library_see_each_other():
    objects = [compile_text(CALLER, native()), compile_text(TWICE, native())]
    assert function(load_objects(objects).address("fourfold"))(3) == 12


def test_two_libraries_may_define_the_same_symbol():
    first, second = (load_objects([compile_text(TWICE, native())]) for _ in range(2))
    assert first.address("twice") != second.address("twice")
    del first
    assert function(second.address("twice"))(4) == 8


def test_object_is_deterministic():
    assert compile_text(TWICE, native()) == compile_text(TWICE, native())


def test_stack_slots_are_promoted():
    assert "alloca" not in optimised_text(TWICE, native())


def test_code_kept_forever_still_answers():
    library = load_objects([compile_text(TWICE, native())])
    library.keep_forever()
    assert function(library.address("twice"))(5) == 10


def test_process_symbols_are_visible():
    library = load_objects([compile_text(ABSOLUTE, native())])
    assert function(library.address("absolute"))(-9) == 9


def test_512_bit_operations_stay_whole():
    assert "zmm" in asm_text(WIDE, Target.parse("avx512"))
    assert "zmm" not in asm_text(WIDE, Target.parse("avx2"))


def test_other_machines_compile():
    if platform.machine() == "aarch64":
        pytest.skip("the foreign machine of this test is the native one")
    neon = Target("neon", "aarch64-unknown-linux-gnu", "generic", (), 128, 32, True, 1, 1, 1, 1)
    assert "fadd" in asm_text(WIDE, neon)
    with pytest.raises(CodegenError, match="inline assembly"):
        compile_text(FOREIGN, neon)


@pytest.mark.parametrize(
    "text",
    [
        "define i64 @f( {",
        "define i64 @f() {\n ret i32 1\n}",
        "define void @f() {\n %x = add i64 %y, 1\n %y = add i64 %x, 1\n ret void\n}",
    ],
)
def test_bad_text_raises(text: str):
    with pytest.raises(CodegenError):
        compile_text(text, native())


def test_bad_objects_raise():
    image = compile_text(TWICE, native())
    with pytest.raises(CodegenError):
        load_objects([image, image])
    with pytest.raises(CodegenError):
        load_objects([image[: len(image) // 2]])
    with pytest.raises(CodegenError):
        load_objects([b"not an object"])


def test_missing_symbols_raise():
    library = load_objects([compile_text(TWICE, native())])
    with pytest.raises(CodegenError, match="absent"):
        library.address("absent")
