"""Vector functions: at most 2 ulp in float32 over all exponents, exact at infinities and NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ixion.base.target import Target
from ixion.codegen import vmath
from ixion.codegen.emit import emit_kernel
from ixion.codegen.llvm import asm_text
from ixion.te.evaluate import run_kernel
from ixion.te.expr import INTRINSICS, Binary, Intrinsic, Var
from ixion.te.stmt import Buffer, Kernel, Let, seq, unroll

WIDE = np.longdouble


def erf(x: np.ndarray) -> np.ndarray:
    return np.array([math.erf(v) for v in x.astype(np.float64)], x.dtype)


def softplus(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


NUMPY = (
    "exp exp2 expm1 log log1p log2 log10 sqrt tanh sin cos tan sinh cosh floor ceil trunc".split()
)
TRUTH: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(np, name) for name in NUMPY}, "round": np.rint, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": sigmoid,
    "softplus": softplus, "erf": erf,
}  # fmt: skip
SPECIAL = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    1e-45,
    -1e-45,
    1.1754944e-38,
]


def grid(dtype: str, count: int) -> np.ndarray:
    """Every exponent and both signs, then the usual range more densely, then special values."""
    rng = np.random.default_rng(7)
    word = np.dtype(dtype.replace("float", "uint"))
    bits = 8 * word.itemsize
    step = 1 << (bits - (count // 2).bit_length() + 1)
    even = np.arange(count // 2, dtype=np.uint64) * np.uint64(step)
    spread = even + rng.integers(0, step, count // 2, dtype=np.uint64)
    usual = rng.normal(0, 4, count - count // 2 - len(SPECIAL))
    with np.errstate(all="ignore"):
        parts = [spread.astype(word).view(dtype), usual.astype(dtype), np.array(SPECIAL, dtype)]
    return np.concatenate(parts)


def error_in_ulps(found: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Infinite where one is NaN and the other is not, or a zero has the wrong sign."""
    with np.errstate(all="ignore"):
        nearest = truth.astype(found.dtype)
        error = np.abs(found.astype(WIDE) - truth) / np.spacing(np.abs(nearest)).astype(WIDE)
    error[(found == nearest) | (np.isnan(found) & np.isnan(truth))] = 0
    error[np.isnan(error)] = np.inf
    zero = (truth == 0) & (found == 0)
    error[zero & (np.signbit(truth) != np.signbit(found))] = np.inf
    return error


def function_kernel(name: str, dtype: str, lanes: int, count: int, operands: int = 1) -> Kernel:
    xs = tuple(Buffer(f"x{i}", dtype) for i in range(operands))
    y, t = Buffer("y", dtype), Var("t")
    value = Intrinsic(name, tuple(x.load(t * lanes, lanes) for x in xs))
    return Kernel("k", (*xs, y), t, count // lanes, y.store(t * lanes, value))


def apply(native, target: str, name: str, *xs: np.ndarray) -> np.ndarray:
    dtype, lanes = str(xs[0].dtype), 16
    y = np.zeros_like(xs[0])
    native.run(function_kernel(name, dtype, lanes, len(y), len(xs)), [*xs, y], target)
    return y


@pytest.mark.parametrize("name", list(TRUTH))
def test_float32(native, target: str, name: str):
    x = grid("float32", 1 << 15)
    with np.errstate(all="ignore"):
        error = error_in_ulps(apply(native, target, name, x), TRUTH[name](x.astype(WIDE)))
    worst = error.argmax()
    assert error[worst] <= 2.0, (name, x[worst], error[worst])


@pytest.mark.parametrize("name", list(TRUTH))
def test_float64(native, target: str, name: str):
    if target == "avx2":
        pytest.skip("the same code as for avx512")
    x = grid("float64", 1 << 13)
    with np.errstate(all="ignore"):
        error = error_in_ulps(apply(native, target, name, x), TRUTH[name](x.astype(WIDE)))
    worst = error.argmax()
    assert error[worst] <= 5.0, (name, x[worst], error[worst])


@pytest.mark.parametrize("name", ["pow", "atan2", "fmod"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_two_operands(native, target: str, name: str, dtype: str):
    special = np.array([*SPECIAL, 3.0, -3.0, -2.0, 2.5, 1e30, -1e10, 7.0], dtype)
    a, b = (v.ravel() for v in np.meshgrid(special, special))
    rng = np.random.default_rng(3)
    some = [np.exp(rng.normal(0, 2, 2000)), rng.normal(0, 100, 2000), rng.integers(-50, 50, 2000)]
    more = [rng.normal(0, 10, 2000), rng.normal(0, 3, 2000), rng.integers(-20, 20, 2000)]
    x = np.concatenate([a, grid(dtype, 4096), *(v.astype(dtype) for v in some)])
    y = np.concatenate([b, grid(dtype, 4096)[::-1], *(v.astype(dtype) for v in more)])
    size = len(x) // 16 * 16
    x, y = x[:size].copy(), y[:size].copy()
    truth = {"pow": np.power, "atan2": np.arctan2, "fmod": np.fmod}[name]
    wide = np.dtype(dtype) if name == "fmod" else WIDE
    with np.errstate(all="ignore"):
        error = error_in_ulps(
            apply(native, target, name, x, y), truth(x.astype(wide), y.astype(wide)).astype(WIDE)
        )
    worst = error.argmax()
    assert error[worst] <= (2 if dtype == "float32" else 5), (x[worst], y[worst], error[worst])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_small_floats_go_through_float32(native, target: str, dtype: str):
    from ixion.base.dtype import to_numpy

    kind = to_numpy(dtype)
    x = np.arange(1 << 16, dtype=np.uint16).view(kind)
    for name in ("exp", "tanh", "sigmoid"):
        y = np.zeros_like(x)
        native.run(function_kernel(name, dtype, 16, len(x)), [x, y], target)
        with np.errstate(all="ignore"):
            want = TRUTH[name](x.astype(np.float64)).astype(np.float32).astype(kind)
        a, b = y.astype(np.float64), want.astype(np.float64)
        with np.errstate(all="ignore"):
            step = np.abs(b) / 1024 + 2.0**-24 if dtype == "float16" else np.abs(b) / 128
            assert ((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= step)).all()


@pytest.mark.parametrize("name", ["exp", "log1p", "tanh", "erf", "sin", "softplus", "floor"])
def test_builders_run_in_numpy(name: str):
    """The expression that is emitted means the same to te's evaluator."""
    x = np.concatenate([grid("float32", 96)[-64:-13], np.array(SPECIAL, np.float32)])[:48]
    expansion = vmath.expansion(f"{name}.float32", 48, Target.parse("avx2"))
    buffer, y, t = Buffer("x", "float32"), Buffer("y", "float32"), Var("t")
    (parameter,) = expansion.parameters
    body = Let(parameter, buffer.load(0, 48), y.store(0, expansion.body))
    out = np.zeros(48, np.float32)
    with np.errstate(all="ignore"):
        run_kernel(Kernel("k", (buffer, y), t, 1, body), [x, out])
        assert error_in_ulps(out, TRUTH[name](x.astype(WIDE))).max() <= 2


OPERANDS = {"fma": 3, "pow": 2, "atan2": 2, "fmod": 2}
ALL = sorted(INTRINSICS - {"not", "popcount", "isnan", "isinf", "isfinite"})


@pytest.mark.parametrize(
    ("dtype", "lanes", "names"),
    [("float32", 4, ALL), ("float64", 1, ALL), ("float16", 16, ["fma"]), ("bfloat16", 1, ["exp"]),
     ("float8_e4m3fn", 16, ["floor"])],
)  # fmt: skip
@pytest.mark.parametrize("target", ["avx512", "avx2", "generic", "neon"])
def test_objects_need_no_symbol(target: str, dtype: str, lanes: int, names: list[str]):
    """No function of te becomes a call out of the object; compiled only, for any machine."""
    t, x, y = Var("t"), Buffer("x", dtype), Buffer("y", dtype)
    machine = Target.parse(target)
    loads = [x.load(t + i, lanes) for i in range(3)]
    values = [Intrinsic(name, tuple(loads[: OPERANDS.get(name, 1)])) for name in names]
    for op in ("floordiv", "floormod", "truncdiv", "truncmod"):
        values.append(Binary(op, loads[0], loads[1]))
    body = seq(y.store(i * 16, value) for i, value in enumerate(values))
    check_calls(asm_text(emit_kernel(Kernel("k", (x, y), t, 1, body), machine), machine), dtype)


def check_calls(asm: str, name: str) -> None:
    assert "@PLT" not in asm, name
    assert "@GOT" not in asm, name
    called = [
        line.split()[1]
        for line in asm.splitlines()
        if line.split()[:1] in (["callq"], ["call"], ["bl"])
    ]
    assert all(c.startswith(("ixion.", '"ixion.')) for c in called), (name, called)


def test_many_copies_become_calls(native, target: str):
    """The same bits come from code in place and from a called function."""
    x, y, t, j = Buffer("x", "float32"), Buffer("y", "float32"), Var("t"), Var("j")
    lanes = 8
    value = Intrinsic("tanh", (x.load(j * lanes, lanes),))
    body = unroll(j, 40, y.store(j * lanes, value))
    kernel = Kernel("k", (x, y), t, 1, body)
    assert "call <8 x float> @ixion.tanh" in emit_kernel(kernel, Target.parse(target))
    some = np.tile(np.random.default_rng(0).normal(0, 1, lanes).astype(np.float32), 40)
    found = np.zeros_like(some)
    native.run(kernel, [some, found], target)
    assert (found.reshape(40, lanes) == found[:lanes]).all()
    assert error_in_ulps(found, np.tanh(some.astype(WIDE))).max() <= 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gate(native, target: str, dtype: str):
    """2 / (1 + 2^x), good for sums in which 1 is: no infinity, no denormal number on the way."""
    x = grid(dtype, 1 << 14)
    found = apply(native, target, "gate", x)
    with np.errstate(all="ignore"):
        want = 2 / (1 + np.exp2(x.astype(WIDE)))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(x))
    error = np.abs(found.astype(WIDE) - want)[~np.isnan(x)]
    assert error.max() <= (2e-7 if dtype == "float32" else 1e-15)
