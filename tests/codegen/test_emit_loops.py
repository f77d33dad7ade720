"""Random loop nests: loops, branches, register buffers and lets, native against numpy."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.base.errors import CodegenError
from ixion.base.target import Target
from ixion.codegen.emit import emit_kernel, emit_module
from ixion.codegen.llvm import compile_text
from ixion.te.expr import Binary, Broadcast, Const, Expr, Load, Var, compare, maximum, select
from ixion.te.stmt import Buffer, For, If, Kernel, Let, Stmt, seq, unroll

LANES = 4
SIZE = 64
DATA = np.random.default_rng(3).integers(-50, 50, SIZE).astype(np.int32)


class Builder:
    """Draws statements; every index is brought into range by a remainder."""

    def __init__(self, draw) -> None:
        self.draw = draw
        self.x = Buffer("x", "int32", size=SIZE)
        self.y = Buffer("y", "int32", size=SIZE)
        self.s = Buffer("s", "int32", "scratch", SIZE)
        self.r = Buffer("r", "int32", "register", 3, LANES)
        self.task, self.scalar = Var("t"), Var("n")
        self.indices: list[Var] = [self.task, self.scalar]
        self.unrolled: list[Var] = []
        self.values: list[Var] = []
        self.count = 0

    def fresh(self, dtype: str = "int64", lanes: int = 1) -> Var:
        self.count += 1
        return Var(f"v{self.count}", dtype, lanes)

    def index(self) -> Expr:
        total: Expr = Const(self.draw(st.integers(-9, 9)), "int64")
        for _ in range(self.draw(st.integers(1, 3))):
            part = self.draw(st.sampled_from(self.indices)) * self.draw(st.integers(-4, 9))
            op = self.draw(st.sampled_from(["add", "add", "sub", "floordiv", "floormod", "max"]))
            if op in ("floordiv", "floormod"):
                total = (total + part) // 3 if op == "floordiv" else (total + part) % 7
            else:
                total = (
                    total + part
                    if op == "add"
                    else total - part
                    if op == "sub"
                    else maximum(total, part)
                )
        return total % (SIZE - LANES + 1)

    def register(self) -> Expr:
        if self.unrolled and self.draw(st.booleans()):
            return self.draw(st.sampled_from(self.unrolled)) % 3
        return Const(self.draw(st.integers(0, 2)), "int64")

    def condition(self) -> Expr:
        op = self.draw(st.sampled_from(["lt", "eq", "ge"]))
        left = self.draw(st.sampled_from(self.indices)) * self.draw(st.integers(1, 3))
        return compare(op, left % 5, self.draw(st.integers(0, 4)))

    def value(self, depth: int = 2) -> Expr:
        kind = self.draw(st.integers(0, 7 if depth else 3))
        if kind == 0:
            return Const(self.draw(st.integers(-5, 5)), "int32", LANES)
        if kind == 1:
            return self.r.load(self.register())
        if kind == 2 and self.values:
            return self.draw(st.sampled_from(self.values))
        if kind <= 3:
            buffer = self.draw(st.sampled_from([self.x, self.y, self.s]))
            return buffer.load(self.index(), LANES)
        if kind == 4:
            return Broadcast(Load(self.x, self.index()), LANES)
        if kind == 5:
            return select(self.condition(), self.value(depth - 1), self.value(depth - 1))
        op = self.draw(st.sampled_from(["add", "sub", "xor", "min", "max"]))
        return Binary(op, self.value(depth - 1), self.value(depth - 1))

    def block(self, depth: int) -> Stmt:
        return seq(*(self.statement(depth) for _ in range(self.draw(st.integers(1, 4)))))

    def statement(self, depth: int) -> Stmt:
        kind = self.draw(st.integers(0, 7 if depth else 3))
        if kind <= 1:
            return self.r.store(self.register(), self.value())
        if kind <= 3:
            buffer = self.draw(st.sampled_from([self.y, self.s]))
            return buffer.store(self.index(), self.value())
        if kind == 4:
            return self.let(depth)
        if kind == 5:
            orelse = self.block(depth - 1) if self.draw(st.booleans()) else None
            return If(self.condition(), self.block(depth - 1), orelse)
        return self.loop(depth, unrolled=kind == 6)

    def let(self, depth: int) -> Stmt:
        if self.draw(st.booleans()):
            var, value = self.fresh(), self.index()
            kept = self.indices
        else:
            var, value = self.fresh("int32", LANES), self.value()
            kept = self.values
        kept.append(var)
        body = self.block(depth - 1)
        kept.pop()
        return Let(var, value, body)

    def loop(self, depth: int, unrolled: bool) -> Stmt:
        var = self.fresh()
        fixed = unrolled or self.draw(st.booleans())
        lo = self.draw(st.integers(-1, 2))
        hi: int | Expr = self.draw(st.integers(0, 4)) if fixed else self.scalar % 4
        step = self.draw(st.integers(1, 2))
        self.indices.append(var)
        if unrolled:
            self.unrolled.append(var)
        body = self.block(depth - 1)
        self.indices.pop()
        if unrolled:
            self.unrolled.pop()
        return For(var, lo, hi, body, unrolled=unrolled, step=step)

    def kernel(self) -> Kernel:
        body = seq(
            *(self.r.store(i, Const(i, "int32", LANES)) for i in range(3)),
            *(self.s.store(i, Const(i, "int32", LANES)) for i in range(0, SIZE, LANES)),
            self.block(3),
            *(
                self.y.store(i * LANES, self.r.load(i) + self.y.load(i * LANES, LANES))
                for i in range(3)
            ),
        )
        return Kernel(
            "k", (self.x, self.y), self.task, 3, body, (self.scalar,), 4 * SIZE, (self.s, self.r)
        )


@st.composite
def kernels(draw) -> Kernel:
    return Builder(draw).kernel()


@given(kernels(), st.integers(0, 9))
@settings(max_examples=40)
def test_random_nests(native, kernel: Kernel, scalar: int):
    native.check(kernel, [DATA, DATA[::-1].copy()], "generic", scalars=(scalar,))


@given(kernels(), st.integers(0, 9))
@settings(max_examples=10)
def test_random_nests_on_every_target(native, target: str, kernel: Kernel, scalar: int):
    native.check(kernel, [DATA, DATA[::-1].copy()], target, scalars=(scalar,), tasks=range(1, 3))


def gemm(rows: int, vectors: int, depth: int, lanes: int) -> Kernel:
    a, b = Buffer("A", "float32"), Buffer("B", "float32")
    c, acc = Buffer("C", "float32"), Buffer("acc", "float32", "register", rows * vectors, lanes)
    t, k, u, r, v = Var("t"), Var("k"), Var("u"), Var("r"), Var("v")
    from ixion.te.expr import intrinsic

    at = r * vectors + v
    scalar = a.load(r * depth + k + u)
    panel = b.load((k + u) * (vectors * lanes) + v * lanes, lanes)
    step = acc.store(at, intrinsic("fma", Broadcast(scalar, lanes), panel, acc.load(at)))
    tile = lambda body: unroll(r, rows, unroll(v, vectors, body))
    body = seq(
        tile(acc.store(at, Const(0.0, "float32", lanes))),
        For(k, 0, depth, unroll(u, 4, tile(step)), step=4),
        tile(c.store(at * lanes, acc.load(at))),
    )
    return Kernel("gemm", (a, b, c), t, 1, body, locals=(acc,))


def test_gemm_tile(native, target: str):
    lanes = Target.parse(target).lanes("float32")
    rng = np.random.default_rng(0)
    rows, vectors, depth = (14, 2, 32) if lanes == 16 else (4, 2, 32)
    a = rng.integers(-5, 5, (rows, depth)).astype(np.float32)
    b = rng.integers(-5, 5, (depth, vectors * lanes)).astype(np.float32)
    c = np.zeros(rows * vectors * lanes, np.float32)
    kernel = gemm(rows, vectors, depth, lanes)
    reply = native.run(kernel, [a.ravel(), b.ravel(), c], target, asm=True)
    assert (c.reshape(rows, -1) == a @ b).all()
    assert not re.search(r"%[xyz]mm\d+, -?\d*\(%rsp\)", reply["asm"]), "a vector is spilled"


def test_broadcast_load_is_an_operand(native):
    if "avx512" not in _available():
        pytest.skip("this CPU has no avx512")
    kernel = gemm(28, 1, 8, 16)
    arrays = [
        np.zeros(28 * 8, np.float32),
        np.zeros(8 * 16, np.float32),
        np.zeros(28 * 16, np.float32),
    ]
    asm = native.run(kernel, arrays, "avx512", asm=True)["asm"]
    assert asm.count("{1to16}") == 28 * 4


def _available() -> list[str]:
    from ixion.base.target import cpu_flags

    return ["avx512"] if "avx512bw" in cpu_flags() else []


def test_module_of_several_kernels():
    kernels = [gemm(2, 1, 8, 8), gemm(3, 2, 8, 8)]
    kernels[1].name = 'with "odd" name'
    text = emit_module(kernels, Target.parse("avx2"))
    assert text.count("define i32") == 2
    compile_text(text, Target.parse("avx2"))


def test_loops_must_be_unrollable():
    x, r, t, i = Buffer("x", "int32"), Buffer("r", "int32", "register", 4, 1), Var("t"), Var("i")
    run_time_index = Kernel("k", (x,), t, 1, For(i, 0, 4, r.store(i, x.load(i))), locals=(r,))
    with pytest.raises(CodegenError, match="register buffer"):
        emit_kernel(run_time_index, Target.parse("generic"))
    run_time_bound = Kernel("k", (x,), t, 1, For(i, 0, t, x.store(i, x.load(0)), unrolled=True))
    with pytest.raises(CodegenError, match="bound"):
        emit_kernel(run_time_bound, Target.parse("generic"))


def test_operations_a_dtype_lacks():
    x, t = Buffer("x", "bool"), Var("t")
    k = Kernel("k", (x,), t, 1, x.store(0, Binary("sub", x.load(0), x.load(1))))
    with pytest.raises(CodegenError, match="bool"):
        emit_kernel(k, Target.parse("generic"))
    z = Buffer("z", "complex64")
    with pytest.raises(CodegenError, match="complex64"):
        emit_kernel(Kernel("k", (z,), t, 1, z.store(0, z.load(1))), Target.parse("generic"))
