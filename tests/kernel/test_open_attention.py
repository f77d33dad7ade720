"""Attention over rows, keys and heads that are counted at run time only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.kernel.conftest import check_open, check_schedule

from ixion import op, te
from ixion.base.dim import SymVar
from ixion.base.target import Target
from ixion.ir import Expr, TensorType, Var, const, var
from ixion.kernel.attention_output import NotAttentionError, output_strides
from ixion.kernel.schedule_attention import AttentionSchedule
from ixion.kernel.sizes import same_extent
from ixion.te.expr import size

# Many kernels at many sizes: minutes of compilation.
pytestmark = pytest.mark.slow

RNG = np.random.default_rng(23)
B, S, T = SymVar("B"), SymVar("S"), SymVar("T")


def tensor(name: str, *shape: object) -> Var:
    return Var(name, TensorType(shape, "float32"))


def heads(x: Expr, count: int, width: int, axes=(0, 2, 1, 3)) -> Expr:
    split = op.call("reshape", x, newshape=(0, 0, count, width))
    return op.call("reshape", op.call("transpose", split, axes=axes), newshape=(-3, 0, 0))


def attention(q, k, v, mask, count: int, width: int, guarded: bool = False) -> Expr:
    """As exporters write it: heads side by side, a mask added to the scaled scores."""
    scores = op.call(
        "nn.batch_matmul", heads(q, count, width), heads(k, count, width, (0, 2, 3, 1))
    )
    scores = op.call("reshape", scores, newshape=(-4, -1, count, 0, 0))
    scores = op.call("multiply", scores, const(np.float32(width**-0.5)))
    if mask is not None:
        scores = op.call("add", scores, mask)
    weights = op.call("nn.softmax", scores, axis=-1)
    if guarded:
        zero = const(np.zeros(1, np.float32))
        weights = op.call("where", op.call("isnan", weights), zero, weights)
    weights = op.call("reshape", weights, newshape=(-3, 0, 0))
    out = op.call("nn.batch_matmul", weights, heads(v, count, width))
    out = op.call("reshape", out, newshape=(-4, -1, count, 0, 0))
    return op.call("reshape", op.call("transpose", out, axes=(0, 2, 1, 3)), newshape=(0, 0, -3))


@pytest.mark.parametrize(("count", "width"), [(2, 5), (3, 16)])
@pytest.mark.parametrize("masked", ["", "keys", "rows and keys"])
def test_attention_of_open_batch_and_length(target, count, width, masked) -> None:
    q, k, v = (tensor(n, B, S, count * width) for n in "qkv")
    mask = {
        "": None, "keys": tensor("m", B, 1, 1, S), "rows and keys": tensor("m", 1, 1, S, S)
    }[masked]  # fmt: skip
    body = attention(q, k, v, mask, count, width)
    params = [q, k, v] if mask is None else [q, k, v, mask]
    shapes = []
    for b, s in ((1, 1), (2, 2), (1, 7), (1, 17), (2, 9)):
        given = [(b, s, count * width)] * 3
        if mask is not None:
            given.append((b, 1, 1, s) if masked == "keys" else (1, 1, s, s))
        shapes.append(given)
    check_open(params, body, shapes, target, expect=AttentionSchedule)


@pytest.mark.parametrize("rows", [1, 3, S])
def test_attention_to_other_keys(target, rows) -> None:
    q, k, v = tensor("q", B, rows, 10), tensor("k", B, T, 10), tensor("v", B, T, 10)
    body = attention(q, k, v, None, 2, 5)
    shapes = []
    for b, s, t in ((1, 1, 1), (2, 5, 3), (1, 2, 33), (1, 10, 16)):
        m = s if rows is S else rows
        shapes.append([(b, m, 10), (b, t, 10), (b, t, 10)])
    check_open([q, k, v], body, shapes, target, expect=AttentionSchedule)


def test_keys_that_lie_row_by_row_are_transposed_with_what_is_left(target) -> None:
    q, k, v = tensor("q", 1, S, 36), tensor("k", 1, T, 36), tensor("v", 1, T, 36)
    body = attention(q, k, v, None, 2, 18)
    shapes = [[(1, s, 36), (1, t, 36), (1, t, 36)] for s, t in ((1, 1), (2, 16), (9, 23), (3, 50))]
    check_open([q, k, v], body, shapes, target, expect=AttentionSchedule)


def test_open_attention_over_blocks_of_keys(target) -> None:
    q, k, v = tensor("q", 1, S, 4), tensor("k", 1, T, 4), tensor("v", 1, T, 4)
    body = attention(q, k, v, None, 1, 4)
    small = replace(Target.parse(target), l1=1 << 10)
    shapes = [[(1, s, 4), (1, t, 4), (1, t, 4)] for s, t in ((1, 513), (3, 530), (6, 1030))]
    check_open([q, k, v], body, shapes, small, expect=AttentionSchedule)


@pytest.mark.parametrize("keys", [19, 530])
def test_guarded_rows_without_keys_give_nothing(target, keys) -> None:
    q, k, v = (var(n, shape=(1, 3 if n == "q" else keys, 4)) for n in "qkv")
    mask = var("mask", shape=(1, 1, 3, keys))
    body = attention(q, k, v, mask, 1, 4, guarded=True)
    values = [RNG.standard_normal(x.type_annotation.shape).astype(np.float32) for x in (q, k, v)]
    hidden = np.zeros((1, 1, 3, keys), np.float32)
    hidden[..., 1, :] = -np.inf
    hidden[..., 2, 1:] = -np.inf
    small = replace(Target.parse(target), l1=1 << 10)
    check_schedule(
        [q, k, v, mask], body, [*values, hidden], small, expect=AttentionSchedule, blocked=False
    )


def test_open_guarded_attention(target) -> None:
    q, k, v = (tensor(n, B, S, 10) for n in "qkv")
    mask = tensor("m", B, 1, S, S)
    body = attention(q, k, v, mask, 2, 5, guarded=True)
    shapes = [[*[(b, s, 10)] * 3, (b, 1, s, s)] for b, s in ((1, 1), (2, 6), (1, 18))]
    check_open([q, k, v, mask], body, shapes, target, expect=AttentionSchedule)


def moved(product, axes, shape):
    """A product's (heads of 3, rows, width) split, transposed and joined."""
    b, s = size("B"), size("S")
    split = te.compute((b, 3, s, 8), lambda i, h, m, d: product(i * 3 + h, m, d))
    order = te.compute(
        [(b, 3, s, 8)[a] for a in axes],
        lambda *i: split(*(i[axes.index(d)] for d in range(4))),
    )
    return order if shape is None else shape(order)


def test_where_results_go_is_found_for_all_sizes() -> None:
    b, s = size("B"), size("S")
    product = te.placeholder((b * 3, s, 8), "float32", "p")
    joined = lambda t: te.compute((b, s, 24), lambda i, m, c: t(i, m, c // 8, c % 8))
    form = output_strides(moved(product, (0, 2, 1, 3), joined), product)
    wanted = (s * 24, 8, 3, 24, 1)
    assert all(same_extent(x, y) for x, y in zip(form, wanted, strict=True)), form
    form = output_strides(moved(product, (2, 0, 1, 3), None), product)
    wanted = (24, 8, 3, b * 24, 1)
    assert form.period in (1, 3)
    assert same_extent(form.row, wanted[3])
    form = output_strides(moved(product, (0, 1, 2, 3), None), product)
    assert same_extent(form.outer, s * 8)
    assert same_extent(form.row, 8)


def test_irregular_places_are_refused() -> None:
    b, s = size("B"), size("S")
    product = te.placeholder((b * 3, s, 8), "float32", "p")
    turned = te.compute((b * 3, s, 8), lambda i, m, d: product(i, s - 1 - m, d))
    with pytest.raises(NotAttentionError):
        output_strides(turned, product)
