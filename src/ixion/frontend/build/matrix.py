"""Matrix products with numpy's broadcasting."""

from __future__ import annotations

from collections.abc import Sequence

from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.frontend.build.movement import (
    broadcast_to,
    expand_dims,
    reshape,
    squeeze,
    swap_last,
    transpose,
)
from ixion.frontend.emitter import Emitter
from ixion.frontend.term import Term
from ixion.op.broadcast import join_dims


def dense(emit: Emitter, x: Term, weight: Term, bias: Term | None = None) -> Term:
    """Product of x (.., K) with the transpose of weight (N, K), and a bias of N."""
    out = emit.call("nn.dense", x, weight, units=weight.shape[0])
    return out if bias is None else emit.call("nn.bias_add", out, bias, axis=-1)


def matmul(emit: Emitter, a: Term, b: Term) -> Term:
    """As numpy's `a @ b`: vectors are widened and narrowed again, leading axes broadcast."""
    if a.rank == 1:
        return squeeze(emit, matmul(emit, expand_dims(emit, a, [0]), b), [-2 if b.rank > 1 else -1])
    if b.rank == 1:
        return squeeze(emit, matmul(emit, a, expand_dims(emit, b, [1])), [-1])
    if b.rank == 2:
        # The transpose of a known weight is made here; of anything else it fuses or vanishes.
        return dense(emit, a, transpose(emit, b, (1, 0)))
    return _batched(emit, a, b)


def _batched(emit: Emitter, a: Term, b: Term) -> Term:
    batch = _broadcast(a.shape[:-2], b.shape[:-2])
    left, right = _in_three(emit, a, batch), _in_three(emit, b, batch)
    out = emit.call("nn.batch_matmul", left, right, transpose_a=False, transpose_b=False)
    return reshape(emit, out, (*batch, a.shape[-2], b.shape[-1]))


def _in_three(emit: Emitter, x: Term, batch: Sequence[Dim]) -> Term:
    """One batch axis: the product of `batch`, or 1 if x is the same for all of it."""
    own = x.shape[:-2]
    if all(dim == 1 for dim in own):
        return reshape(emit, x, (1, *x.shape[-2:]))
    if len(own) != len(batch) or not all(dims.same(a, b) for a, b in zip(own, batch, strict=True)):
        x = broadcast_to(emit, x, (*batch, *x.shape[-2:]))
    return reshape(emit, x, (dims.prod(batch), *x.shape[-2:]))


def _broadcast(a: Sequence[Dim], b: Sequence[Dim]) -> tuple[Dim, ...]:
    rank = max(len(a), len(b))
    left: list[Dim] = [*[1] * (rank - len(a)), *a]
    right: list[Dim] = [*[1] * (rank - len(b)), *b]
    joined = (join_dims(x, y) for x, y in zip(left, right, strict=True))
    return tuple(x if dim is None else dim for x, dim in zip(left, joined, strict=True))


def matmul_transposed(emit: Emitter, a: Term, b: Term) -> Term:
    """`a @ b.T` over the last two axes."""
    return matmul(emit, a, swap_last(emit, b))
