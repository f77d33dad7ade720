"""What a program costs: multiply-accumulates, operations, bytes; and which operators it has."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from ixion.base import dtype as dtypes
from ixion.ir import Call, Constant, Expr, Function, IRModule, Op, TensorType, TupleType, Type
from ixion.ir.op import get_attr_map
from ixion.ir.visitor import post_order

__all__ = ["Cost", "cost_of", "cost_of_call", "get_total_mac_number", "list_op_freqs"]

_MACS = get_attr_map("FMacCount")


@dataclass(frozen=True)
class Cost:
    """``macs``: multiply-accumulates of matrix-like operators; ``flops``: two a MAC, one an output
    element of any other; ``read`` and ``written``: bytes of operands and results, as if nothing
    were fused or cached; ``weights``: bytes of constants, counted once each.
    """

    macs: int = 0
    flops: int = 0
    read: int = 0
    written: int = 0
    weights: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.macs + other.macs,
            self.flops + other.flops,
            self.read + other.read,
            self.written + other.written,
            self.weights + other.weights,
        )


def _elements(kind: Type) -> int:
    """Elements of a tensor or of all in a tuple; a size that is not known counts as 1."""
    if isinstance(kind, TupleType):
        return sum(_elements(field) for field in kind.fields)
    count = 1
    if isinstance(kind, TensorType):
        for dim in kind.shape:
            count *= dim if isinstance(dim, int) else 1
    return count


def _bytes(kind: Type) -> int:
    if isinstance(kind, TupleType):
        return sum(_bytes(field) for field in kind.fields)
    if not isinstance(kind, TensorType):
        return 0
    return (_elements(kind) * dtypes.bits(kind.dtype) + 7) // 8


def cost_of_call(call: Call) -> Cost:
    """Cost of one typed operator call; weights are left out."""
    kinds = tuple(arg.checked_type for arg in call.args)
    out = call.checked_type
    count = _MACS.get(call.op)
    macs = 0 if count is None else int(count(call.attrs, kinds, out))
    flops = 2 * macs if macs else _elements(out)
    return Cost(macs, flops, sum(_bytes(kind) for kind in kinds), _bytes(out))


def cost_of(target: Expr | IRModule) -> Cost:
    """Cost of every operator call in a typed expression, function or module."""
    roots = list(target.functions.values()) if isinstance(target, IRModule) else [target]
    total = Cost()
    for root in roots:
        for expr in post_order(root):
            if isinstance(expr, Call) and isinstance(expr.op, Op):
                total += cost_of_call(expr)
            elif isinstance(expr, Constant):
                total += Cost(weights=expr.data.nbytes)
    return total


# Relay counts these and no other.
_RELAY_MACS = frozenset(
    {"nn.conv2d", "nn.conv2d_transpose", "nn.dense", "nn.batch_matmul", "nn.contrib_conv2d_NCHWc"}
)


def get_total_mac_number(expr: Function) -> int:
    """Multiply-accumulates of the convolutions, dense layers and batched matmuls Relay counts."""
    total = 0
    for each in post_order(expr):
        if isinstance(each, Call) and isinstance(each.op, Op) and each.op.name in _RELAY_MACS:
            transposed = each.op.name == "nn.conv2d_transpose"
            total += _transposed_macs(each) if transposed else cost_of_call(each).macs
    return total


def _transposed_macs(conv: Call) -> int:
    """Relay counts a transposed convolution over its output, as if it were a convolution."""
    attrs: Any = conv.attrs
    data = conv.args[0].checked_type
    assert isinstance(data, TensorType)
    channels: Any = data.shape[attrs.data_layout.index("C")]
    kernel = math.prod(attrs.kernel_size)
    return int(_elements(conv.checked_type) * kernel * channels // attrs.groups)


def list_op_freqs(mod: IRModule) -> dict[str, int]:
    """How many calls of each operator a module has."""
    counts: Counter[str] = Counter()
    for func in mod.functions.values():
        for expr in post_order(func):
            if isinstance(expr, Call) and isinstance(expr.op, Op):
                counts[expr.op.name] += 1
    return dict(counts)
