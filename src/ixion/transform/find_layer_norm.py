"""FindLayerNorm: layer norm that an exporter has spelled out becomes one operator again.

ONNX has LayerNormalization since opset 17; before, exporters wrote means, a root and a quotient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from ixion.ir import Call, Constant, Expr, Function, IRModule, Op, TensorType
from ixion.op.call import call as make_call
from ixion.op.typed import attrs_of, op_name
from ixion.transform.context import PassContext
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import FunctionPass
from ixion.transform.registry import register_pass
from ixion.transform.rewriting import Place, Rule, apply_rules

__all__ = ["FindLayerNorm"]


@register_pass("FindLayerNorm")
@dataclass(frozen=True)
class FindLayerNorm(FunctionPass):
    """Rewrites ``(x - mean(x)) / sqrt(mean((x - mean(x))^2) + e)`` over the last axis of float32.

    Also with a reciprocal root as factor.  A product with a vector and a sum with another after it
    become the norm's scale and shift where nothing else needs what lies between.
    """

    info = PassInfo(2, "FindLayerNorm", ["InferType"])

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        return apply_rules(func, _RULES)


def _quotient(call: Call, place: Place) -> Expr | None:
    away, root = call.args
    return _norm(call, away, _below_root(root))


def _product(call: Call, place: Place) -> Expr | None:
    for away, factor in (call.args, call.args[::-1]):
        found = _norm(call, away, _below_root(_inverted(factor)) or _below_reciprocal_root(factor))
        if found is not None:
            return found
    return _with_parameter(call, place, 1)


def _sum(call: Call, place: Place) -> Expr | None:
    return _with_parameter(call, place, 2)


_RULES: dict[str, list[Rule]] = {"divide": [_quotient], "multiply": [_product], "add": [_sum]}


def _norm(call: Call, away: Expr, spread: Expr | None) -> Expr | None:
    """The norm of which these are the deviations, and the variance with an epsilon added."""
    if not _is(away, "subtract") or not _is(spread, "add"):
        return None
    x = away.args[0]
    for variance, constant in (spread.args, spread.args[::-1]):
        epsilon = _number(constant, x)
        if epsilon is not None and _is_deviation(away, x) and _is_variance(variance, x):
            return _made(call, x, epsilon)
    return None


def _made(call: Call, x: Expr, epsilon: float) -> Expr | None:
    kind = x.checked_type
    if not isinstance(kind, TensorType) or kind.dtype != "float32":
        return None
    size = kind.shape[-1]
    if not isinstance(size, int):
        return None
    one, zero = Constant(np.ones(size, np.float32)), Constant(np.zeros(size, np.float32))
    return make_call(
        "nn.layer_norm", x, one, zero, axis=-1, epsilon=epsilon, center=False, scale=False,
        span=call.span,
    )  # fmt: skip


def _with_parameter(call: Call, place: Place, i: int) -> Expr | None:
    """A norm and a product or sum with a vector as one norm with parameter ``i``."""
    for norm, vector in (call.args, call.args[::-1]):
        if not _is(norm, "nn.layer_norm") or not place.only_here(norm):
            continue
        attrs = attrs_of(norm)
        free = not attrs.center and (i == 2 or not attrs.scale)
        if free and attrs.axis == -1 and vector.checked_type == norm.args[i].checked_type:
            args = [*norm.args]
            args[i] = vector
            return make_call(
                "nn.layer_norm", *args, axis=-1, epsilon=attrs.epsilon, center=i == 2,
                scale=attrs.scale or i == 1, span=call.span,
            )  # fmt: skip
    return None


def _below_root(expr: Expr | None) -> Expr | None:
    """``a`` of ``sqrt(a)`` or ``a^0.5``."""
    if _is(expr, "sqrt"):
        return expr.args[0]
    return _base(expr, 0.5)


def _below_reciprocal_root(expr: Expr) -> Expr | None:
    """``a`` of ``rsqrt(a)`` or ``a^-0.5``."""
    if _is(expr, "rsqrt"):
        return expr.args[0]
    return _base(expr, -0.5)


def _inverted(expr: Expr) -> Expr | None:
    """``a`` of ``1 / a``."""
    one = _is(expr, "divide") and _number(expr.args[0], expr.args[1]) == 1
    return expr.args[1] if one and isinstance(expr, Call) else None


def _base(expr: Expr | None, exponent: float) -> Expr | None:
    """``a`` of ``a^exponent``."""
    if not _is(expr, "power") or _number(expr.args[1], expr.args[0]) != exponent:
        return None
    return expr.args[0]


def _is_deviation(expr: Expr, x: Expr) -> bool:
    return _is(expr, "subtract") and expr.args[0] is x and _is_mean(expr.args[1], x)


def _is_mean(expr: Expr, x: Expr) -> bool:
    return _is(expr, "mean") and expr.args[0] is x and _keeps_all_but_last(expr)


def _is_variance(expr: Expr, x: Expr) -> bool:
    if _is(expr, "variance"):
        own = expr.args[0] is x and _is_mean(expr.args[1], x) and not attrs_of(expr).unbiased
        return own and _keeps_all_but_last(expr)
    if not _is(expr, "mean") or not _keeps_all_but_last(expr):
        return False
    square = expr.args[0]
    if _is(square, "multiply"):
        return all(_is_deviation(a, x) for a in square.args)
    away = _base(square, 2.0)
    return away is not None and _is_deviation(away, x)


def _keeps_all_but_last(fold: Call) -> bool:
    """Whether a reduction is over the last axis alone and leaves it there with size 1."""
    attrs, kind = attrs_of(fold), fold.args[0].checked_type
    if not isinstance(kind, TensorType) or attrs.axis is None or attrs.exclude:
        return False
    last = len(kind.shape) - 1
    return bool(attrs.keepdims) and [a % (last + 1) for a in attrs.axis] == [last]


def _number(expr: Expr, beside: Expr) -> float | None:
    """The value of a constant that cannot change the shape of what it is combined with."""
    if not isinstance(expr, Constant) or expr.data.size != 1:
        return None
    kind = beside.checked_type
    fits = isinstance(kind, TensorType) and expr.data.ndim <= len(kind.shape)
    return float(expr.data.reshape(-1)[0]) if fits else None


def _is(expr: Expr | None, name: str) -> TypeGuard[Call]:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and op_name(expr) == name
