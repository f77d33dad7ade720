"""Loads and stores touch what they should and nothing else (arrays lie next to forbidden pages)."""

from __future__ import annotations

import numpy as np
import pytest

from ixion.base.dtype import to_numpy
from ixion.te.expr import Binary, Const, Load, Var, cast
from ixion.te.stmt import Buffer, Fault, For, If, Kernel, Prefetch, seq

DTYPES = ("float32", "int8", "int64", "bool", "bfloat16")


def data(dtype: str, count: int, seed: int = 0) -> np.ndarray:
    raw = np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 100, count)
    return raw.astype(to_numpy(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", (1, 4, 16))
def test_masked_tail(native, target: str, dtype: str, lanes: int):
    """Every count from none to all, at run time and as a constant."""
    x, y, t = Buffer("x", dtype), Buffer("y", dtype), Var("t")
    n = Var("n")
    value = Load(x, Const(0, "int64"), lanes, 1, n)
    k = Kernel("k", (x, y), t, 1, y.store(0, value, n), scalars=(n,))
    for count in sorted({0, 1, lanes // 2, lanes - 1, lanes} - ({0} if lanes == 1 else set())):
        native.check(k, [data(dtype, count), data(dtype, count, 1)], target, scalars=(count,))
        fixed = Const(count, "int64")
        value2 = Load(x, Const(0, "int64"), lanes, 1, fixed)
        again = Kernel("k", (x, y), t, 1, y.store(0, value2, fixed))
        native.check(again, [data(dtype, count), data(dtype, count, 1)], target)


@pytest.mark.parametrize("dtype", ("float32", "int8", "float16"))
def test_unread_lanes_are_zero(native, target: str, dtype: str):
    x, y, t, n = Buffer("x", dtype), Buffer("y", dtype), Var("t"), Var("n")
    k = Kernel("k", (x, y), t, 1, y.store(0, Load(x, Const(0, "int64"), 16, 1, n)), scalars=(n,))
    for count in (0, 5, 16):
        native.check(k, [data(dtype, count), data(dtype, 16, 1)], target, scalars=(count,))


@pytest.mark.parametrize("dtype", ("float32", "uint8", "int64", "float16"))
def test_strided_loads(native, target: str, dtype: str):
    for stride in (0, 1, 2, 3, 4, 5, 8):
        for lanes in (2, 8, 16):
            size = (lanes - 1) * stride + 1
            x, y, t, n = Buffer("x", dtype), Buffer("y", dtype), Var("t"), Var("n")
            whole = Load(x, Const(0, "int64"), lanes, stride)
            some = Load(x, Const(0, "int64"), lanes, stride, n)
            body = seq(y.store(0, whole), y.store(lanes, some))
            k = Kernel("k", (x, y), t, 1, body, scalars=(n,))
            arrays = [data(dtype, size), data(dtype, 2 * lanes, 1)]
            native.check(k, arrays, target, scalars=(lanes - 1,))


@pytest.mark.parametrize("stride", (2, 5))
def test_strided_loads_under_a_count_stay_inside(native, target: str, stride: int):
    x, y, t, n = Buffer("x", "float32"), Buffer("y", "float32"), Var("t"), Var("n")
    value = Load(x, Const(0, "int64"), 16, stride, n)
    k = Kernel("k", (x, y), t, 1, y.store(0, value), scalars=(n,))
    for count in (1, 7, 16):
        arrays = [data("float32", (count - 1) * stride + 1), data("float32", 16, 1)]
        native.check(k, arrays, target, scalars=(count,))


def test_in_place(native, target: str):
    """An output that is an input: later loads see earlier stores."""
    x, t, i = Buffer("x", "float32"), Var("t"), Var("i")
    step = x.store(i + 1, x.load(i) + x.load(i + 1))
    body = seq(For(i, 0, 7, step), x.store(0, x.load(0) + x.load(7)), x.store(1, x.load(0) * 2.0))
    native.check(Kernel("k", (x,), t, 1, body), [data("float32", 8)], target)


def test_scratch_and_register_buffers(native, target: str):
    x, y, t, i = Buffer("x", "float32"), Buffer("y", "float32"), Var("t"), Var("i")
    a = Buffer("a", "float32", "scratch", 32, offset=64)
    b = Buffer("b", "int8", "scratch", 16, offset=0)
    r = Buffer("r", "float32", "register", 2, 8)
    body = seq(
        For(i, 0, 32, a.store(i, x.load(t * 32 + i) * 2.0)),
        For(i, 0, 16, b.store(i, cast(i, "int8"))),
        r.store(0, a.load(0, 8)),
        r.store(1, a.load(24, 8, -1) + r.load(0)),
        For(i, 0, 3, r.store(0, r.load(0) + r.load(1))),
        y.store(t * 16, r.load(0)),
        y.store(t * 16 + 8, r.load(1) + cast(b.load(3), "float32")),
    )
    body = seq(*(s for s in body.body))  # type: ignore[attr-defined]
    k = Kernel("k", (x, y), t, 3, body, scratch=192, locals=(a, b, r))
    native.check(k, [data("float32", 96), np.zeros(48, np.float32)], target, tasks=range(1, 3))


def test_fault(native, target: str):
    """The kernel stops at once, with code and index; nothing after it is done."""
    x, y, t, i = Buffer("x", "int32"), Buffer("y", "int32"), Var("t"), Var("i")
    at = cast(x.load(t * 4 + i), "int64")
    bad = Binary("or", at < 0, at >= 4)
    body = For(i, 0, 4, seq(If(bad, Fault(7, at)), y.store(t * 4 + i, x.load(at))))
    k = Kernel("k", (x, y), t, 2, body)
    values, out = np.array([1, 2, 3, 0, 2, -9, 1, 1], np.int32), np.zeros(8, np.int32)
    reply = native.run(k, [values, out], target)
    assert (reply["code"], reply["index"]) == (7, -9)
    assert out.tolist() == [2, 3, 0, 1, 3, 0, 0, 0]
    assert native.run(k, [np.zeros(8, np.int32), out], target)["code"] == 0


def test_asking_for_a_line_is_no_access(native, target: str):
    """Lines of forbidden pages on both sides may be asked for."""
    x, y, t, i = Buffer("x", "float32"), Buffer("y", "float32"), Var("t"), Var("i")
    ask = [Prefetch(x, i * 4096 + offset) for offset in (-70000, 0, 70000)]
    body = For(i, 0, 4, seq(*ask, y.store(i, x.load(i))))
    k = Kernel("k", (x, y), t, 1, body)
    native.check(k, [data("float32", 4), data("float32", 4, 1)], target)
