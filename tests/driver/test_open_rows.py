"""Machine code of dense layers, norms, products and attention at many sizes, against numpy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ixion
from ixion import op
from ixion.base.dim import SymVar
from ixion.ir import Expr, Function, TensorType, Var, const

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(31)
B, S, T = SymVar("B"), SymVar("S"), SymVar("T")
# Around the heights of tiles and the lanes of vectors, and some far from both.
LENGTHS = (1, 2, 3, 5, 7, 8, 9, 13, 15, 16, 17, 24, 25, 31, 32, 33, 47, 49, 63, 64, 65, 100, 131)


def tensor(name: str, *shape: Any) -> Var:
    return Var(name, TensorType(shape, "float32"))


def weight(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32) / 4


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def check(
    params: list[Var], body: Expr, reference: Callable[..., Array], sizes: list[dict[str, int]],
    target: str, threads: int = 1,
) -> None:  # fmt: skip
    """The program for all sizes, run at each of them; ``reference`` works in float64."""
    model = ixion.compile(Function(params, body), target=target, threads=threads)
    for given in sizes:
        shapes = [
            tuple(given.get(str(d), d) for d in p.type_annotation.shape) for p in params
        ]
        values = [RNG.standard_normal(s).astype(np.float32) for s in shapes]
        got = model.run_flat(values)[0]
        want = reference(*(v.astype(np.float64) for v in values))
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4, err_msg=str(given))


TARGETS = pytest.mark.parametrize("target", ["native", "avx2", "generic"])


@TARGETS
@pytest.mark.parametrize(("depth", "columns"), [(30, 50), (320, 272)])
def test_dense_with_gelu(target: str, depth: int, columns: int) -> None:
    x, w, c = tensor("x", B, S, depth), weight(columns, depth), weight(columns)
    total = op.call("add", op.call("nn.dense", x, const(w)), const(c))
    inner = op.call("erf", op.call("multiply", total, const(np.float32(2**-0.5))))
    half = op.call("multiply", total, const(np.float32(0.5)))
    body = op.call("multiply", half, op.call("add", inner, const(np.float32(1))))

    def reference(x: Array) -> Array:
        y = x @ w.T.astype(np.float64) + c
        return y * 0.5 * (1 + np.vectorize(math.erf)(y / math.sqrt(2)))

    sizes = [{"B": b, "S": s} for b, lengths in ((1, LENGTHS), (3, LENGTHS[::3])) for s in lengths]
    check([x], body, reference, sizes, target, threads=2)


@TARGETS
def test_layer_norm_after_a_residual(target: str) -> None:
    x, y, g, c = tensor("x", B, S, 100), tensor("y", B, S, 100), weight(100), weight(100)
    body = op.call("nn.layer_norm", op.call("add", x, y), const(g), const(c), axis=-1)

    def reference(x: Array, y: Array) -> Array:
        z = x + y
        spread = ((z - z.mean(-1, keepdims=True)) ** 2).mean(-1, keepdims=True)
        return (z - z.mean(-1, keepdims=True)) / np.sqrt(spread + 1e-5) * g + c

    sizes = [{"B": b, "S": s} for b in (1, 2) for s in LENGTHS]
    check([x, y], body, reference, sizes, target, threads=2)


@TARGETS
@pytest.mark.parametrize("transpose_b", [False, True])
def test_products_of_open_operands(target: str, transpose_b: bool) -> None:
    x = tensor("x", B, S, T)
    y = tensor("y", B, SymVar("N"), T) if transpose_b else tensor("y", B, T, SymVar("N"))
    body = op.call("nn.batch_matmul", x, y, transpose_b=transpose_b)
    turned = (lambda y: y.swapaxes(1, 2)) if transpose_b else (lambda y: y)
    draw = np.random.default_rng(4)
    sizes = [
        {"B": int(draw.integers(1, 4)), **{n: int(draw.choice(LENGTHS)) for n in "STN"}}
        for _ in range(40)
    ]
    check([x, y], body, lambda x, y: x @ turned(y), sizes, target)


def heads(x: Expr, axes: tuple[int, ...] = (0, 2, 1, 3)) -> Expr:
    split = op.call("reshape", x, newshape=(0, 0, 3, 20))
    return op.call("reshape", op.call("transpose", split, axes=axes), newshape=(-3, 0, 0))


@TARGETS
@pytest.mark.parametrize("rows", [1, S])
def test_attention(target: str, rows: Any) -> None:
    q, k, v = tensor("q", B, rows, 60), tensor("k", B, T, 60), tensor("v", B, T, 60)
    mask = tensor("mask", B, 1, 1, T)
    scores = op.call("nn.batch_matmul", heads(q), heads(k, (0, 2, 3, 1)))
    scores = op.call("add", op.call("reshape", scores, newshape=(-4, -1, 3, 0, 0)), mask)
    weights = op.call("reshape", op.call("nn.softmax", scores, axis=-1), newshape=(-3, 0, 0))
    out = op.call("nn.batch_matmul", weights, heads(v))
    out = op.call("reshape", out, newshape=(-4, -1, 3, 0, 0))
    body = op.call("reshape", op.call("transpose", out, axes=(0, 2, 1, 3)), newshape=(0, 0, -3))

    def split(x: Array) -> Array:
        return x.reshape(*x.shape[:2], 3, 20).transpose(0, 2, 1, 3)

    def reference(q: Array, k: Array, v: Array, mask: Array) -> Array:
        weights = softmax(split(q) @ split(k).swapaxes(2, 3) + mask)
        return (weights @ split(v)).transpose(0, 2, 1, 3).reshape(q.shape)

    draw = np.random.default_rng(5)
    sizes = [{"B": 1, "S": 3, "T": 2500}, {"B": 1, "S": 70, "T": 1300}]
    sizes += [
        {"B": int(draw.integers(1, 4)), **{n: int(draw.choice(LENGTHS)) for n in "ST"}}
        for _ in range(30)
    ]
    check([q, k, v, mask], body, reference, sizes, target, threads=2)


@TARGETS
def test_transposing_moves(target: str) -> None:
    x = tensor("x", B, S, T)
    body = op.call("negative", op.call("transpose", x, axes=(0, 2, 1)))
    sizes = [{"B": 2, "S": s, "T": t} for s in (1, 4, 16, 19, 40) for t in (1, 3, 15, 16, 33)]
    check([x], body, lambda x: -x.transpose(0, 2, 1), sizes, target)
