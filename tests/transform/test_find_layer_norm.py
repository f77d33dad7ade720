from __future__ import annotations

import numpy as np
import pytest

import ixion
from ixion import op
from ixion.analysis import list_op_freqs
from ixion.ir import Expr, Function, IRModule, Tuple, const, var
from ixion.transform import FindLayerNorm, InferType, SimplifyInference

VECTOR = "Tensor[(8), float32]"
HEAD = f"def @main(%x: Tensor[(2, 3, 8), float32], %g: {VECTOR}, %b: {VECTOR})"
MEAN = "%0 = mean(%x, axis=[-1], keepdims=True); %1 = subtract(%x, %0);"


def number(value: float) -> Expr:
    return const(np.float32(value))


def mean(x: Expr) -> Expr:
    return op.call("mean", x, axis=(-1,), keepdims=True)


def found(module: IRModule) -> dict[str, int]:
    return dict(list_op_freqs(FindLayerNorm()(InferType()(module))))


@pytest.mark.parametrize(
    "spelled",
    [
        "%2 = mean(power(%1, 2f), axis=[-1], keepdims=True); %3 = divide(%1, sqrt(add(%2, 0.5f)));",
        """%2 = mean(multiply(%1, %1), axis=[2], keepdims=True);
           %3 = divide(%1, power(add(0.5f, %2), 0.5f));""",
        """%2 = variance(%x, %0, axis=[-1], keepdims=True);
           %3 = multiply(rsqrt(add(%2, 0.5f)), %1);""",
        """%2 = subtract(%x, mean(%x, axis=[-1], keepdims=True));
           %4 = mean(power(%2, 2f), axis=[-1], keepdims=True);
           %3 = multiply(%1, divide(1f, sqrt(add(%4, 0.5f))));""",
        """%2 = mean(power(%1, 2f), axis=[-1], keepdims=True);
           %3 = multiply(%1, power(add(%2, 0.5f), -0.5f));""",
    ],
)
def test_what_exporters_write(check, spelled) -> None:
    check(
        FindLayerNorm(),
        HEAD + " { " + MEAN + spelled + " add(%b, multiply(%3, %g)) }",
        HEAD + " { nn.layer_norm(%x, %g, %b, axis=-1, epsilon=0.5f) }",
    )


def test_a_shift_without_a_scale() -> None:
    x, b = var("x", shape=(2, 8)), var("b", shape=(8,))
    away = op.call("subtract", x, mean(x))
    root = op.call("sqrt", op.call("add", mean(op.call("multiply", away, away)), number(1e-5)))
    body = op.call("add", op.call("divide", away, root), b)
    assert found(IRModule.from_expr(Function([x, b], body))) == {"nn.layer_norm": 1}


def test_a_normal_value_that_others_need_too() -> None:
    x, g = var("x", shape=(2, 8)), var("g", shape=(8,))
    away = op.call("subtract", x, mean(x))
    root = op.call("sqrt", op.call("add", mean(op.call("multiply", away, away)), number(1e-5)))
    normal = op.call("divide", away, root)
    body = Tuple([normal, op.call("multiply", normal, g)])
    assert found(IRModule.from_expr(Function([x, g], body))) == {"nn.layer_norm": 1, "multiply": 1}


@pytest.mark.parametrize(
    "spelled",
    [
        # Another axis; no axis kept; the square of something else; another power; no epsilon.
        "%2 = mean(power(%1, 2f), axis=[1], keepdims=True); divide(%1, sqrt(add(%2, 0.5f)))",
        "%2 = mean(power(%1, 3f), axis=[-1], keepdims=True); divide(%1, sqrt(add(%2, 0.5f)))",
        "%2 = mean(power(%x, 2f), axis=[-1], keepdims=True); divide(%1, sqrt(add(%2, 0.5f)))",
        "%2 = mean(power(%1, 2f), axis=[-1], keepdims=True); divide(%x, sqrt(add(%2, 0.5f)))",
        "%2 = mean(power(%1, 2f), axis=[-1], keepdims=True); divide(%1, sqrt(%2))",
        "%2 = mean(power(%1, 2f), axis=[-1], keepdims=True); divide(%1, sqrt(add(%2, %g)))",
        """%2 = variance(%x, %0, axis=[-1], keepdims=True, unbiased=True);
           divide(%1, sqrt(add(%2, 0.5f)))""",
    ],
)
def test_what_only_looks_like_it(check, spelled) -> None:
    text = HEAD + " { " + MEAN + spelled + " }"
    check(FindLayerNorm(), text, text)


def test_the_unpacked_operator_is_found() -> None:
    x, g, b = var("x", shape=(4, 8)), var("g", shape=(8,)), var("b", shape=(8,))
    module = InferType()(IRModule.from_expr(Function([x, g, b], op.call("nn.layer_norm", x, g, b))))
    unpacked = SimplifyInference()(module)
    assert "nn.layer_norm" not in list_op_freqs(unpacked)
    assert found(unpacked) == {"nn.layer_norm": 1}
    kept = SimplifyInference(keep_rows=True)(module)
    assert dict(list_op_freqs(kept)) == {"nn.layer_norm": 1}


def test_one_kernel_of_the_compiled_program() -> None:
    x = var("x", shape=(3, 20))
    away = op.call("subtract", x, mean(x))
    spread = op.call("add", mean(op.call("power", away, number(2))), number(1e-6))
    normal = op.call("divide", away, op.call("sqrt", spread))
    rng = np.random.default_rng(2)
    scale, shift = (const(rng.normal(size=20).astype(np.float32)) for _ in range(2))
    body = op.call("add", op.call("multiply", normal, scale), shift)
    module = IRModule.from_expr(Function([x], body))
    value = rng.normal(1, 2, (3, 20)).astype(np.float32)
    exe = ixion.compile(module, verify=True)
    assert len(exe.program.steps) == 1
    want = ixion.compile(module, executor="reference")(value)
    np.testing.assert_allclose(exe(value), want, rtol=1e-5, atol=1e-6)
