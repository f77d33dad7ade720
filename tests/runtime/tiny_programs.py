"""Tiny kernels in LLVM text and programs of them, for tests of the runtime."""

from __future__ import annotations

from functools import cache

from ixion.base.target import Target
from ixion.codegen.llvm import compile_text, load_objects
from ixion.codegen.sequencer import sequencer_text
from ixion.runtime import native
from ixion.runtime.program import Program, Slot, Step, TensorSpec

HEAD = "(ptr %ctx, ptr %slots, i64 %lo, i64 %hi)"
KERNELS = f"""
define i32 @empty{HEAD} {{
  ret i32 0
}}

; slots: a, b, out; a task is one float
define i32 @add{HEAD} {{
entry:
  %a = load ptr, ptr %slots
  %b.at = getelementptr i64, ptr %slots, i64 1
  %b = load ptr, ptr %b.at
  %o.at = getelementptr i64, ptr %slots, i64 2
  %o = load ptr, ptr %o.at
  br label %test
test:
  %i = phi i64 [ %lo, %entry ], [ %i1, %body ]
  %more = icmp ult i64 %i, %hi
  br i1 %more, label %body, label %done
body:
  %pa = getelementptr float, ptr %a, i64 %i
  %pb = getelementptr float, ptr %b, i64 %i
  %po = getelementptr float, ptr %o, i64 %i
  %x = load float, ptr %pa
  %y = load float, ptr %pb
  %z = fadd float %x, %y
  store float %z, ptr %po
  %i1 = add i64 %i, 1
  br label %test
done:
  ret i32 0
}}

; slots: out (int64 per task), value; out[i] = out[i] * 3 + value + i
define i32 @mix{HEAD} {{
entry:
  %o = load ptr, ptr %slots
  %v.at = getelementptr i64, ptr %slots, i64 1
  %v = load i64, ptr %v.at
  br label %test
test:
  %i = phi i64 [ %lo, %entry ], [ %i1, %body ]
  %more = icmp ult i64 %i, %hi
  br i1 %more, label %body, label %done
body:
  %po = getelementptr i64, ptr %o, i64 %i
  %x = load i64, ptr %po
  %x3 = mul i64 %x, 3
  %xv = add i64 %x3, %v
  %xi = add i64 %xv, %i
  store i64 %xi, ptr %po
  %i1 = add i64 %i, 1
  br label %test
done:
  ret i32 0
}}

; slots: out (int64 per task); out[i] = 0
define i32 @zero{HEAD} {{
entry:
  %o = load ptr, ptr %slots
  br label %test
test:
  %i = phi i64 [ %lo, %entry ], [ %i1, %body ]
  %more = icmp ult i64 %i, %hi
  br i1 %more, label %body, label %done
body:
  %po = getelementptr i64, ptr %o, i64 %i
  store i64 0, ptr %po
  %i1 = add i64 %i, 1
  br label %test
done:
  ret i32 0
}}

; slots: from, to, count; to[i] = to[i] + from[count - 1 - i]: reads what other workers wrote
define i32 @cross{HEAD} {{
entry:
  %f = load ptr, ptr %slots
  %t.at = getelementptr i64, ptr %slots, i64 1
  %t = load ptr, ptr %t.at
  %n.at = getelementptr i64, ptr %slots, i64 2
  %n = load i64, ptr %n.at
  br label %test
test:
  %i = phi i64 [ %lo, %entry ], [ %i1, %body ]
  %more = icmp ult i64 %i, %hi
  br i1 %more, label %body, label %done
body:
  %n1 = sub i64 %n, 1
  %j = sub i64 %n1, %i
  %pf = getelementptr i64, ptr %f, i64 %j
  %pt = getelementptr i64, ptr %t, i64 %i
  %x = load i64, ptr %pf
  %y = load i64, ptr %pt
  %z = add i64 %x, %y
  %r = mul i64 %z, 5
  store i64 %r, ptr %pt
  %i1 = add i64 %i, 1
  br label %test
done:
  ret i32 0
}}

; slots: fault, index of the task that fails
define i32 @failing{HEAD} {{
  %code = load i64, ptr %slots
  %at.at = getelementptr i64, ptr %slots, i64 1
  %at = load i64, ptr %at.at
  %above = icmp uge i64 %at, %lo
  %below = icmp ult i64 %at, %hi
  %here = and i1 %above, %below
  br i1 %here, label %bad, label %good
good:
  ret i32 0
bad:
  %index = getelementptr i8, ptr %ctx, i64 8
  store i64 %at, ptr %index
  %c = trunc i64 %code to i32
  ret i32 %c
}}

; slots: turns; keeps a core busy for turns * tasks rounds
define i32 @slow{HEAD} {{
entry:
  %turns = load volatile i64, ptr %slots
  %n = sub i64 %hi, %lo
  %all = mul i64 %n, %turns
  %box = alloca i64
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %i1, %body ]
  %more = icmp ult i64 %i, %all
  br i1 %more, label %body, label %done
body:
  store volatile i64 %i, ptr %box
  %i1 = add i64 %i, 1
  br label %test
done:
  ret i32 0
}}

; slots: out (int64), counter number; out = out * 10 + round
define i32 @digit{HEAD} {{
  %o = load ptr, ptr %slots
  %k.at = getelementptr i64, ptr %slots, i64 1
  %k = load i64, ptr %k.at
  %bytes = mul i64 %k, 16
  %offset = add i64 %bytes, 64
  %c.at = getelementptr i8, ptr %ctx, i64 %offset
  %c = load i64, ptr %c.at
  %x = load i64, ptr %o
  %x10 = mul i64 %x, 10
  %y = add i64 %x10, %c
  store i64 %y, ptr %o
  ret i32 0
}}

; slots: out (int64), value; out = value
define i32 @set{HEAD} {{
  %o = load ptr, ptr %slots
  %v.at = getelementptr i64, ptr %slots, i64 1
  %v = load i64, ptr %v.at
  store i64 %v, ptr %o
  ret i32 0
}}

; slots: out (int64 per task); out[i] = scratch address modulo 64, and scratch is written
define i32 @scratch{HEAD} {{
  %o = load ptr, ptr %slots
  %s = load ptr, ptr %ctx
  %p = getelementptr i64, ptr %o, i64 %lo
  %a = ptrtoint ptr %s to i64
  %m = and i64 %a, 63
  store i64 %m, ptr %p
  store i64 %lo, ptr %s
  ret i32 0
}}
"""


@cache
def kernels() -> bytes:
    return compile_text(KERNELS, Target.parse("native"))


@cache
def sequencer_object() -> bytes:
    target = Target.parse("native")
    return compile_text(sequencer_text(target), target)


def install() -> None:
    native.install(load_objects, sequencer_object)


def program(
    steps: list[Step],
    inputs: list[TensorSpec] | None = None,
    outputs: list[TensorSpec] | None = None,
    arena: int = 0,
    **more: object,
) -> Program:
    parts = {"constants": [], "scratch_size": 256, "target_key": "test", "objects": [kernels()]}
    return Program(
        steps=steps,
        inputs=inputs or [],
        outputs=outputs or [],
        arena_size=arena,
        **{**parts, **more},
    )


def imm(value: int) -> Slot:
    return Slot("imm", 0, value)


def arena(offset: int = 0) -> Slot:
    return Slot("arena", 0, offset)


def chain(length: int, count: int, cost: float = 0.0) -> Program:
    """Steps that mix two int64[count] buffers so that a lost barrier shows in the output."""
    size = -(-count * 8 // 64) * 64
    steps = [Step("call", "mix", (arena(), imm(1)), count, label="first", cost=cost)]
    steps.append(Step("call", "mix", (arena(size), imm(2)), count, label="second", cost=cost))
    for number in range(length):
        place = (arena(), arena(size)) if number % 2 == 0 else (arena(size), arena())
        step = Step("call", "cross", (*place, imm(count)), count, label=f"cross{number}", cost=cost)
        steps.append(step)
    outputs = [TensorSpec("a", (count,), "int64"), TensorSpec("b", (count,), "int64")]
    places = [arena(), arena(size)]
    return program(reset(count, size) + steps, [], outputs, 2 * size, output_places=places)


def reset(count: int, size: int) -> list[Step]:
    """The arena keeps the last run's values: begin with zeros, a task an element."""
    return [Step("call", "zero", (arena(place),), count, label="reset") for place in (0, size)]


def chain_expected(length: int, count: int) -> tuple[list[int], list[int]]:
    mask = (1 << 64) - 1
    a = [(1 + i) & mask for i in range(count)]
    b = [(2 + i) & mask for i in range(count)]
    for number in range(length):
        source, to = (a, b) if number % 2 == 0 else (b, a)
        new = [((source[count - 1 - i] + to[i]) * 5) & mask for i in range(count)]
        if number % 2 == 0:
            b = new
        else:
            a = new
    return a, b
