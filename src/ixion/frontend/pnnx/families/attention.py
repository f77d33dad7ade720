"""Scaled dot-product attention and multi-head attention, taken apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.frontend.build.matrix import dense, matmul, matmul_transposed
from ixion.frontend.build.movement import (
    broadcast_to,
    concatenate,
    expand_dims,
    reshape,
    split_at,
    squeeze,
    transpose,
)
from ixion.frontend.pnnx.convert import Site, converts
from ixion.frontend.pnnx.promote import cast
from ixion.frontend.term import Term, at_most, static


def _masked(site: Site, scores: Term, mask: Term | None, causal: bool) -> Term:
    """Scores with a bool mask (true is kept), an added float mask, or the causal triangle."""
    if causal:
        mask = _triangle(site, *scores.shape[-2:])
    if mask is None:
        return scores
    if mask.dtype != "bool":
        return site.call("add", scores, cast(site.emit, mask, scores.dtype))
    return site.call("where", mask, scores, site.emit.constant(-math.inf, scores.dtype))


def _triangle(site: Site, rows: Dim, columns: Dim) -> Term:
    """True on and below the diagonal."""
    if isinstance(rows, int) and isinstance(columns, int):
        at_most(1 << 26, rows * columns, "elements of a causal mask")
        return site.emit.constant(np.tril(np.ones((rows, columns), bool)))
    down = expand_dims(site.emit, site.emit.arange(0, rows, 1, "int64"), [1])
    return site.call("less_equal", site.emit.arange(0, columns, 1, "int64"), down)


def _weights(
    site: Site, query: Term, key: Term, mask: Term | None, causal: bool, scale: float
) -> Term:
    scores = matmul_transposed(site.emit, query, key)
    scores = _masked(site, site.call("multiply", scores, scale), mask, causal)
    return site.call("nn.softmax", scores, axis=-1)


@converts("F.scaled_dot_product_attention")
def attention(site: Site) -> Term:
    query, key, value = (site.operand(name) for name in ("query", "key", "value"))
    if site.flag("enable_gqa"):
        times = static(query.shape[-3]) // static(key.shape[-3])
        if times > 1:
            key = site.call("repeat", key, repeats=times, axis=key.rank - 3)
            value = site.call("repeat", value, repeats=times, axis=value.rank - 3)
    scale = site.number("scale", 1 / math.sqrt(static(query.shape[-1])))
    mask = site.tensor("attn_mask")
    weights = _weights(site, query, key, mask, site.flag("is_causal"), scale)
    return matmul(site.emit, weights, value)


@converts("nn.MultiheadAttention")
def multi_head(site: Site) -> Any:
    """One, two or three inputs (query, key, value), then a mask bound by name.

    A second output is the attention weights, averaged over the heads.
    """
    named = {"attn_mask"}
    plain = [
        site.term(site.items[name])
        for name in site.op.inputs
        if name not in {site.op.arguments.get(one) for one in named}
    ]
    query = plain[0]
    key = plain[1] if len(plain) > 1 else query
    value = plain[2] if len(plain) > 2 else key
    flat = query.rank == 2
    if flat:
        query, key, value = (expand_dims(site.emit, one, [1]) for one in (query, key, value))
    first = site.flag("batch_first") and not flat
    if not first:
        query, key, value = (transpose(site.emit, one, (1, 0, 2)) for one in (query, key, value))
    out, weights = _attend(site, query, key, value)
    if not first:
        out = transpose(site.emit, out, (1, 0, 2))
    if flat:
        out, weights = squeeze(site.emit, out, [1]), squeeze(site.emit, weights, [0])
    return out if len(site.op.outputs) == 1 else (out, weights)


def _attend(site: Site, query: Term, key: Term, value: Term) -> tuple[Term, Term]:
    heads, dtype = int(site.arg("num_heads")), query.dtype
    q, k, v = _projected(site, query, key, value)
    embed = static(q.shape[2])
    if site.has_weight("bias_k"):
        k, v = (_appended(site, one, site.weight(f"bias_{name}", dtype))
                for one, name in ((k, "k"), (v, "v")))  # fmt: skip
    mask = site.tensor("attn_mask")
    extra = static(dims.add(k.shape[1], dims.multiply(-1, key.shape[1])))
    if site.flag("add_zero_attn"):
        zero = site.emit.full(0.0, (1, 1, embed), dtype)
        k, v = _appended(site, k, zero), _appended(site, v, zero)
        extra += 1
    q, k, v = (_split_heads(site, one, heads) for one in (q, k, v))
    mask = None if mask is None else _head_mask(site, mask, q, extra)
    weights = _weights(site, q, k, mask, False, 1 / math.sqrt(embed // heads))
    mixed = transpose(site.emit, matmul(site.emit, weights, v), (0, 2, 1, 3))
    mixed = reshape(site.emit, mixed, (q.shape[0], q.shape[2], embed))
    out = dense(
        site.emit, mixed, site.weight("out_proj.weight", dtype),
        site.optional_weight("out_proj.bias", dtype),
    )  # fmt: skip
    return out, site.call("mean", weights, axis=(1,), keepdims=False)


def _projected(site: Site, query: Term, key: Term, value: Term) -> list[Term]:
    dtype = query.dtype
    biases: list[Term | None] = [None] * 3
    if site.has_weight("in_proj_bias"):
        whole = site.weight("in_proj_bias", dtype)
        biases = list(split_at(site.emit, whole, 0, [static(whole.shape[0]) // 3] * 3))
    if site.has_weight("in_proj_weight"):
        whole = site.weight("in_proj_weight", dtype)
        weights = list(split_at(site.emit, whole, 0, [static(whole.shape[0]) // 3] * 3))
    else:
        weights = [site.weight(f"{name}_proj_weight", dtype) for name in "qkv"]
    sources = (query, key, value)
    return [
        dense(site.emit, source, weight, bias)
        for source, weight, bias in zip(sources, weights, biases, strict=True)
    ]


def _appended(site: Site, x: Term, row: Term) -> Term:
    """One more key or value for every sample."""
    wide = broadcast_to(site.emit, row, (x.shape[0], 1, x.shape[2]))
    return concatenate(site.emit, [x, wide], 1)


def _split_heads(site: Site, x: Term, heads: int) -> Term:
    batch, length, embed = x.shape
    parts = reshape(site.emit, x, (batch, length, heads, static(embed) // heads))
    return transpose(site.emit, parts, (0, 2, 1, 3))


def _head_mask(site: Site, mask: Term, query: Term, extra: int) -> Term:
    """(L, S) for all, or (batch * heads, L, S); appended keys are never masked."""
    if extra:
        fill = site.emit.constant(True if mask.dtype == "bool" else 0.0, mask.dtype)
        if mask.dtype == "bool":
            fill = site.emit.constant(False)
        widths = [(0, 0)] * (mask.rank - 1) + [(0, extra)]
        mask = site.call("nn.pad", mask, fill, pad_width=tuple(widths), pad_mode="constant")
    if mask.dtype == "bool":
        # Here, unlike in plain attention, true means masked out.
        mask = site.call("logical_not", mask)
    if mask.rank == 3:
        mask = reshape(site.emit, mask, (query.shape[0], query.shape[1], *mask.shape[1:]))
    return mask
