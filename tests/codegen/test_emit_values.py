"""Every operation of every dtype, native against numpy, scalar and wider than registers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ixion.base.dtype import to_numpy
from ixion.te.expr import (
    Binary,
    Bitcast,
    Broadcast,
    Cast,
    Compare,
    Const,
    Expr,
    HorizontalReduce,
    Intrinsic,
    Lanes,
    Ramp,
    Select,
    Shuffle,
    Var,
    transposed,
    walk,
)
from ixion.te.stmt import Buffer, For, Kernel, Let, seq

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
SMALL = ("float16", "bfloat16")
FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -7.0, np.inf, -np.inf, np.nan]
COMPARES = ("eq", "ne", "lt", "le", "gt", "ge")


def sample(dtype: str, count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    kind = to_numpy(dtype)
    if dtype == "bool":
        return rng.integers(0, 2, count).astype(bool)
    if dtype in INTEGERS:
        info = np.iinfo(kind)
        small = rng.integers(max(info.min, -9), 10, count)
        wide = rng.integers(info.min, info.max, count, dtype=kind, endpoint=True)
        edges = np.array([info.min, info.max, 0, 1, info.max - 1], kind)
        values = np.where(rng.random(count) < 0.5, small.astype(kind), wide)
        where = rng.integers(0, count, count // 4)
        values[where] = rng.choice(edges, len(where))
        return values
    values = rng.normal(0, 10, count)
    values = np.where(rng.random(count) < 0.3, rng.choice(SPECIAL, count), values)
    values = np.where(
        rng.random(count) < 0.2, values * 10.0 ** rng.integers(-30, 30, count), values
    )
    with np.errstate(all="ignore"):
        return values.astype(kind)


def elementwise(fn, ins: list[str], out: str, lanes: int, rounds: int) -> Kernel:
    return many([fn], ins, [out], lanes, rounds)


def many(fns, ins: list[str], outs: list[str], lanes: int, rounds: int) -> Kernel:
    """A function of the inputs per output."""
    xs = tuple(Buffer(f"x{i}", d) for i, d in enumerate(ins))
    ys = tuple(Buffer(f"y{i}", d) for i, d in enumerate(outs))
    at = Var("t") * lanes
    task = next(v for v in walk(at) if isinstance(v, Var)) if lanes > 1 else at
    values = [fn(*(x.load(at, lanes) for x in xs)) for fn in fns]
    body = seq(y.store(at, value) for y, value in zip(ys, values, strict=True))
    return Kernel("k", (*xs, *ys), task, rounds, body)


def check(native, target: str, fns, ins: list[str], outs: list[str], lanes: int) -> None:
    """Each function of the inputs, stored as the dtype of the same place in ``outs``."""
    rounds = -(-96 // lanes)
    arrays = [sample(d, rounds * lanes, i) for i, d in enumerate(ins)]
    arrays += [np.zeros(rounds * lanes, to_numpy(d)) for d in outs]
    with np.errstate(all="ignore"):
        native.check(many(fns, ins, outs, lanes, rounds), arrays, target)


def binaries(names: Iterable[str], second: Const | None = None) -> list[Any]:
    if second is None:
        return [lambda a, b, op=op: Binary(op, a, b) for op in names]
    return [lambda a, op=op: Binary(op, a, second) for op in names]


def ops(dtype: str) -> list[str]:
    if dtype == "bool":
        return ["add", "mul", "and", "or", "xor", "min", "max"]
    if dtype in INTEGERS:
        words = "add sub mul and or xor min max floordiv floormod truncdiv truncmod shl shr lshr"
        return words.split()
    return "add sub mul div min max floordiv floormod truncdiv truncmod".split()


@pytest.mark.parametrize("dtype", ("bool", *INTEGERS, *FLOATS))
def test_binary(native, target: str, dtype: str):
    names = ops(dtype)
    for lanes in (1, 8):
        check(native, target, binaries(names), [dtype, dtype], [dtype] * len(names), lanes)


@pytest.mark.parametrize("dtype", ("int8", "int32", "int64", "uint16", "uint64"))
def test_division_by_constants(native, target: str, dtype: str):
    for lanes in (1, 8):
        divisors = [d for d in (1, 2, 7, 64, 100, -1, -3, 0) if d >= 0 or dtype[0] != "u"]
        fns = [f for d in divisors for f in binaries(ops(dtype)[8:12], Const(d, dtype, lanes))]
        check(native, target, fns, [dtype], [dtype] * len(fns), lanes)


@pytest.mark.parametrize("dtype", ("int8", "uint32", "int64"))
def test_shift_by_constants(native, target: str, dtype: str):
    shifts = ("shl", "shr", "lshr")
    fns = [f for n in (0, 3, 7, 40, 64) for f in binaries(shifts, Const(n, dtype, 16))]
    check(native, target, fns, [dtype], [dtype] * len(fns), 16)


@pytest.mark.parametrize("dtype", ("float32", "float64", "float16", "bfloat16"))
def test_min_max_keep_nan(native, target: str, dtype: str):
    for lanes in (1, 16):
        constants = [Const(c, dtype, lanes) for c in (0.0, 6.0, np.inf, np.nan)]
        fns = [f for k in constants for f in binaries(("min", "max"), k)]
        fns += [lambda a, k=k: Binary("max", k, a) for k in constants]
        check(native, target, fns, [dtype], [dtype] * len(fns), lanes)


def test_relu_is_one_instruction(native):
    k = elementwise(
        lambda a: Binary("max", a, Const(0.0, "float32", 16)), ["float32"], "float32", 16, 4
    )
    from ixion.base.target import Target
    from ixion.codegen.emit import emit_kernel
    from ixion.codegen.llvm import asm_text

    asm = asm_text(emit_kernel(k, Target.parse("avx512")), Target.parse("avx512"))
    assert asm.count("vmaxps") == 1
    assert "vcmp" not in asm


@pytest.mark.parametrize("dtype", ("bool", *INTEGERS, *FLOATS, *SMALL))
def test_compare_and_select(native, target: str, dtype: str):
    names = ("eq", "ne") if dtype == "bool" else COMPARES
    fns = [lambda a, b, c, op=op: Compare(op, a, b) for op in names]
    fns.append(lambda a, b, c: Select(c, a, b))
    for lanes in (1, 16):
        check(native, target, fns, [dtype, dtype, "bool"], ["bool"] * len(names) + [dtype], lanes)


@pytest.mark.parametrize("source", ("bool", *INTEGERS, *FLOATS, *SMALL, "float8_e4m3fn"))
def test_casts(native, target: str, source: str):
    narrow = (*SMALL, *FLOAT8) if source in (*INTEGERS, "float64") else ()
    outs = [d for d in ("bool", *INTEGERS, *FLOATS, *SMALL, *FLOAT8) if d not in (source, *narrow)]
    for lanes in (1, 16):
        check(native, target, [lambda a, to=to: Cast(a, to) for to in outs], [source], outs, lanes)


@pytest.mark.parametrize("to", (*SMALL, *FLOAT8))
def test_casts_to_small_floats(native, target: str, to: str):
    """Through float32, as ml_dtypes goes: the second rounding is part of the meaning."""
    kind = to_numpy(to)
    for source in ("int8", "int32", "uint64", "float64"):
        x = sample(source, 96)
        k = elementwise(lambda a: Cast(a, to), [source], to, 16, 6)
        y = np.zeros(96, kind)
        native.run(k, [x, y], target)
        with np.errstate(all="ignore"):
            expected = x.astype(np.float32).astype(kind)
        wide, want = y.astype(np.float32), expected.astype(np.float32)
        assert ((wide == want) | (np.isnan(wide) & np.isnan(want))).all()


@pytest.mark.parametrize("dtype", (*SMALL, *FLOAT8))
def test_all_small_floats_are_read_exactly(native, target: str, dtype: str):
    kind = to_numpy(dtype)
    count = 1 << (8 * kind.itemsize)
    x = np.arange(count, dtype=f"u{kind.itemsize}").view(kind)
    k = elementwise(lambda a: Cast(a, "float32"), [dtype], "float32", 16, count // 16)
    y = np.zeros(count, np.float32)
    native.run(k, [x, y], target)
    want = x.astype(np.float32)
    assert ((y == want) | (np.isnan(y) & np.isnan(want))).all()
    assert (np.signbit(y) == np.signbit(want))[~np.isnan(want)].all()


@pytest.mark.parametrize("dtype", (*SMALL, *FLOAT8))
def test_rounding_to_small_floats(native, target: str, dtype: str):
    """Values around every tie, denormals, the largest value, infinities, NaN."""
    kind = to_numpy(dtype)
    count = 1 << min(8 * kind.itemsize, 12)
    step = (1 << (8 * kind.itemsize)) // count
    x = (np.arange(count) * step).astype(f"u{kind.itemsize}").view(kind).astype(np.float32)
    with np.errstate(all="ignore"):
        following = np.nextafter(x.astype(kind), kind.type(np.inf)).astype(np.float32)
        tie = (x + following) / 2
        near = [
            x,
            tie,
            np.nextafter(tie, np.float32(9e9)),
            np.nextafter(tie, np.float32(-9e9)),
            x * 2,
        ]
    values = np.concatenate(
        [*near, np.float32([np.inf, -np.inf, np.nan, 1e30, -1e30, 0.0, -0.0, 1e-40])]
    )
    values = np.resize(values, -(-len(values) // 16) * 16).astype(np.float32)
    k = elementwise(lambda a: Cast(a, dtype), ["float32"], dtype, 16, len(values) // 16)
    y = np.zeros(len(values), kind)
    native.run(k, [values, y], target)
    with np.errstate(all="ignore"):
        want = values.astype(kind).astype(np.float32)
    got = y.astype(np.float32)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    assert same.all(), (values[~same][:5], got[~same][:5], want[~same][:5])


def test_small_floats_are_computed_wide(native, target: str):
    """A sum of three is rounded once, when it is stored."""
    x = sample("bfloat16", 96)
    k = elementwise(lambda a, b: a * b + a, ["bfloat16", "bfloat16"], "bfloat16", 16, 6)
    y = np.zeros(96, ml_dtypes.bfloat16)
    native.run(k, [x, x[::-1].copy(), y], target)
    with np.errstate(all="ignore"):
        a, b = x.astype(np.float32), x[::-1].astype(np.float32)
        want = (a * b + a).astype(ml_dtypes.bfloat16).astype(np.float32)
    got = y.astype(np.float32)
    assert ((got == want) | (np.isnan(got) & np.isnan(want))).all()


@pytest.mark.parametrize(
    ("a", "b"),
    [("float32", "int32"), ("int64", "float64"), ("bfloat16", "uint16"), ("int16", "float16")],
)
def test_bitcast(native, target: str, a: str, b: str):
    for lanes in (1, 16):
        rounds = 96 // lanes
        k = elementwise(lambda x: Bitcast(x, b), [a], b, lanes, rounds)
        x = sample(a, 96)
        y = np.zeros(96, to_numpy(b))
        native.run(k, [x, y], target)
        want = x.view(to_numpy(b))
        assert ((y == want) | (y != y)).all()


@pytest.mark.parametrize("dtype", ("float32", "int32", "int64", "uint8", "float64"))
def test_plain_intrinsics(native, target: str, dtype: str):
    names = ["abs", "sign", "neg", "floor", "ceil", "round", "trunc"]
    names += ["sqrt"] if dtype in FLOATS else ["not", "popcount"]
    tests = ["isnan", "isinf", "isfinite"]
    fns = [lambda a, n=n: Intrinsic(n, (a,)) for n in names + tests]
    for lanes in (1, 16):
        check(native, target, fns, [dtype], [dtype] * len(names) + ["bool"] * 3, lanes)


def test_fma_of_small_integers_is_exact(native, target: str):
    whole = lambda a: Intrinsic("floor", (a,))
    fn = lambda a, b, c: Intrinsic("fma", (whole(a), whole(b), whole(c)))
    rounds, x = 6, np.random.default_rng(1).integers(-999, 999, (3, 96)).astype(np.float32)
    k = elementwise(fn, ["float32"] * 3, "float32", 16, rounds)
    native.check(k, [*x, np.zeros(96, np.float32)], target)


def test_integer_power(native, target: str):
    x = np.array([-3, -1, 0, 1, 2, 3, 10, -2] * 12, np.int32)
    y = np.array([0, 1, 2, 3, 5, 31, 63, 7, 12] * 11, np.int32)[:96]
    k = elementwise(lambda a, b: Intrinsic("pow", (a, b)), ["int32"] * 2, "int32", 8, 12)
    native.check(k, [x, y, np.zeros(96, np.int32)], target)


@pytest.mark.parametrize("dtype", ("float32", "int32", "uint8", "bool"))
def test_lane_folding(native, target: str, dtype: str):
    kinds = {"bool": ("and", "or")}.get(dtype, ("add", "mul", "min", "max"))
    for kind, lanes in itertools.product(kinds, (1, 2, 16, 32)):
        x, y, t = Buffer("x", dtype), Buffer("y", dtype), Var("t")
        k = Kernel("k", (x, y), t, 3, y.store(t, HorizontalReduce(kind, x.load(t * lanes, lanes))))
        data = sample(dtype, 3 * lanes)
        with np.errstate(all="ignore"):
            native.check(k, [data, np.zeros(3, data.dtype)], target)


def test_ramp_broadcast_lanes_let(native, target: str):
    x, y, t, v = Buffer("x", "int32"), Buffer("y", "int32"), Var("t"), Var("v", "int32", 8)
    one = x.load(t)
    body = Let(
        v,
        Ramp(one, 8, 3) + Broadcast(one, 8),
        seq(
            y.store(t * 24, v * 2),
            y.store(t * 24 + 8, v + v),
            y.store(t * 24 + 16, Lanes(tuple(x.load((t + i) % 4) for i in range(8)))),
        ),
    )
    data = sample("int32", 4)
    native.check(Kernel("k", (x, y), t, 4, body), [data, np.zeros(96, np.int32)], target)


def test_deep_chain_needs_no_recursion(native, target: str):
    x = Buffer("x", "int32")
    value: Expr = x.load(0)
    for i in range(5000):
        value = Binary("xor" if i % 2 else "add", value, Const(i, "int32"))
    y, t = Buffer("y", "int32"), Var("t")
    k = Kernel("k", (x, y), t, 1, For(Var("i"), 0, 2, y.store(0, value)))
    out = np.zeros(1, np.int32)
    native.run(k, [np.array([5], np.int32), out], target)
    want = 5
    for i in range(5000):
        want = want ^ i if i % 2 else want + i
    assert out[0] == want


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool", "bfloat16"])
def test_shuffles(native, target: str, dtype: str):
    x, y = Buffer("x", dtype), Buffer("y", dtype)
    a, b = x.load(0, 8), x.load(8, 8)
    mixed = Shuffle(a, b, (15, 0, 3, 8, 9, 7, 7, 2))
    short = Shuffle(mixed, mixed, (1, 14))
    columns = transposed([x.load(4 * i, 4) for i in range(4)])
    body = seq(y.store(0, mixed), y.store(8, short),
               *(y.store(10 + 4 * i, c) for i, c in enumerate(columns)))  # fmt: skip
    arrays = [sample(dtype, 26), sample(dtype, 16, 1)]
    native.check(Kernel("k", (y, x), Var("task"), 1, body), arrays, target)
