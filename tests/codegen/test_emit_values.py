"""Every operation of every dtype, native against numpy, at widths that do and do not fit registers."""

from __future__ import annotations

import itertools

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
    Var,
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
    values = np.where(rng.random(count) < 0.2, values * 10.0 ** rng.integers(-30, 30, count), values)
    with np.errstate(all="ignore"):
        return values.astype(kind)


def elementwise(fn, ins: list[str], out: str, lanes: int, rounds: int) -> Kernel:
    xs = tuple(Buffer(f"x{i}", d) for i, d in enumerate(ins))
    y, task = Buffer("y", out), Var("t")
    value = fn(*(x.load(task * lanes, lanes) for x in xs))
    return Kernel("k", (*xs, y), task, rounds, y.store(task * lanes, value))


def check(native, target: str, fn, ins: list[str], out: str, lanes: int, seed: int = 0) -> None:
    rounds = -(-96 // lanes)
    arrays = [sample(d, rounds * lanes, seed + i) for i, d in enumerate(ins)]
    arrays.append(np.zeros(rounds * lanes, to_numpy(out)))
    with np.errstate(all="ignore"):
        native.check(elementwise(fn, ins, out, lanes, rounds), arrays, target)


def ops(dtype: str) -> list[str]:
    if dtype == "bool":
        return ["add", "mul", "and", "or", "xor", "min", "max"]
    if dtype in INTEGERS:
        words = "add sub mul and or xor min max floordiv floormod truncdiv truncmod shl shr lshr"
        return words.split()
    return "add sub mul div min max floordiv floormod truncdiv truncmod".split()


@pytest.mark.parametrize("dtype", ("bool", *INTEGERS, *FLOATS))
def test_binary(native, target: str, dtype: str):
    for lanes, op in itertools.product((1, 16), ops(dtype)):
        if lanes == 1 or op in ("add", "min", "floordiv", "floormod", "shr", "lshr", "shl", "div"):
            check(native, target, lambda a, b, op=op: Binary(op, a, b), [dtype, dtype], dtype, lanes)


@pytest.mark.parametrize("dtype", ("int8", "int32", "int64", "uint16", "uint64"))
def test_division_by_constants(native, target: str, dtype: str):
    for divisor, op in itertools.product((1, 2, 7, 64, 100, -1, -3, 0), ops(dtype)[8:12]):
        if divisor < 0 and dtype[0] == "u":
            continue
        lanes = 8 if op == "floormod" else 1
        d = Const(divisor, dtype, lanes)
        check(native, target, lambda a, op=op, d=d: Binary(op, a, d), [dtype], dtype, lanes)


@pytest.mark.parametrize("dtype", ("int8", "uint32", "int64"))
def test_shift_by_constants(native, target: str, dtype: str):
    for amount, op in itertools.product((0, 3, 7, 40, 64), ("shl", "shr", "lshr")):
        d = Const(amount, dtype, 16)
        check(native, target, lambda a, op=op, d=d: Binary(op, a, d), [dtype], dtype, 16)


@pytest.mark.parametrize("dtype", ("float32", "float64", "float16", "bfloat16"))
def test_min_max_keep_nan(native, target: str, dtype: str):
    for op, c in itertools.product(("min", "max"), (0.0, 6.0, np.inf, np.nan)):
        for lanes in (1, 16):
            k = Const(c, dtype, lanes)
            check(native, target, lambda a, op=op, k=k: Binary(op, a, k), [dtype], dtype, lanes)
            check(native, target, lambda a, op=op, k=k: Binary(op, k, a), [dtype], dtype, lanes)


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
    for lanes, op in itertools.product((1, 16), COMPARES):
        if dtype == "bool" and op not in ("eq", "ne"):
            continue
        check(native, target, lambda a, b, op=op: Compare(op, a, b), [dtype, dtype], "bool", lanes)
    pick = lambda a, b, c: Select(c, a, b)
    check(native, target, pick, [dtype, dtype, "bool"], dtype, 16)


@pytest.mark.parametrize("source", ("bool", *INTEGERS, *FLOATS, *SMALL, "float8_e4m3fn"))
def test_casts(native, target: str, source: str):
    for to in ("bool", *INTEGERS, *FLOATS, *SMALL, *FLOAT8):
        if source == to or (source in (*INTEGERS, "float64") and to in (*SMALL, *FLOAT8)):
            continue  # see test_casts_to_small_floats
        for lanes in (1, 16):
            check(native, target, lambda a, to=to: Cast(a, to), [source], to, lanes)


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
        near = [x, tie, np.nextafter(tie, np.float32(9e9)), np.nextafter(tie, np.float32(-9e9)), x * 2]
    values = np.concatenate([*near, np.float32([np.inf, -np.inf, np.nan, 1e30, -1e30, 0.0, -0.0, 1e-40])])
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
    for name, lanes in itertools.product(names, (1, 16)):
        check(native, target, lambda a, n=name: Intrinsic(n, (a,)), [dtype], dtype, lanes)
    for name in ("isnan", "isinf", "isfinite"):
        check(native, target, lambda a, n=name: Intrinsic(n, (a,)), [dtype], "bool", 16)


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
    value: Expr = Buffer("x", "int32").load(0)
    x = value.buffer  # type: ignore[attr-defined]
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
