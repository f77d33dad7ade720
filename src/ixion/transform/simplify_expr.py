"""SimplifyExpr: Relay's local rewrites, to a fixed point."""

from __future__ import annotations

from dataclasses import dataclass

from ixion.ir import Function, IRModule, get_attr_map
from ixion.op.define import OpPattern
from ixion.transform import simplify_arithmetic as arithmetic
from ixion.transform import simplify_cast as casts
from ixion.transform import simplify_shape as shapes
from ixion.transform.context import PassContext
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import FunctionPass
from ixion.transform.registry import register_pass
from ixion.transform.rewriting import Rule, apply_rules
from ixion.transform.simplify_binomial import factored_binomial
from ixion.transform.simplify_like import LIKE_RULES

__all__ = ["SimplifyExpr", "SimplifyExprPostAlterOp"]

_PATTERN = get_attr_map("TOpPattern")

_RESHAPE: list[Rule] = [shapes.merge_reshapes]
_TRANSPOSE: list[Rule] = [shapes.merge_transposes, shapes.drop_transpose]
_CAST: list[Rule] = [casts.drop_cast, casts.merge_casts, casts.merge_clip_casts]

_POST_ALTER_OP: dict[str, list[Rule]] = {
    **{name: [arithmetic.drop_identity] for name in ("add", "subtract", "multiply", "divide")},
    "reshape": _RESHAPE,
    "contrib_reverse_reshape": _RESHAPE,
    "cast": _CAST,
    "cast_like": [casts.drop_cast, casts.merge_casts],
    "clip": [casts.drop_clip],
}

_RULES: dict[str, list[Rule]] = {
    **{name: [rule] for name, rule in LIKE_RULES.items()},
    **_POST_ALTER_OP,
    "cast_like": [LIKE_RULES["cast_like"]],
    "transpose": _TRANSPOSE,
    "layout_transform": _TRANSPOSE,
    "add": [
        arithmetic.doubled,
        arithmetic.drop_identity,
        arithmetic.fill_value,
        arithmetic.merge_constants,
        factored_binomial,
    ],
    "subtract": [arithmetic.drop_identity, arithmetic.fill_value],
    "multiply": [
        arithmetic.drop_identity,
        arithmetic.fill_value,
        arithmetic.multiply_before_add,
        arithmetic.merge_constants,
    ],
    "divide": [arithmetic.reciprocal_root, arithmetic.drop_identity, arithmetic.fill_value],
    **{name: [arithmetic.arg_of_dequantized] for name in ("argmax", "argmin", "argsort")},
}


def _all_rules() -> dict[str, list[Rule]]:
    """The rules, with that on filled operands for every broadcasting operator there is now."""
    rules = dict(_RULES)
    for op in _PATTERN:
        if _PATTERN[op] == OpPattern.BROADCAST:
            rules.setdefault(op.name, [arithmetic.fill_value])
    return rules


@register_pass("SimplifyExpr")
@dataclass(frozen=True)
class SimplifyExpr(FunctionPass):
    """Concrete shapes for ``*_like`` operators, identities, chains of reshapes, transposes, casts
    and clips, adjacent constants, filled operands, ``x + x``, division by roots, binomials.
    """

    info = PassInfo(0, "SimplifyExpr", ["InferType"])

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        return apply_rules(func, _all_rules())


@register_pass("SimplifyExprPostAlterOp")
@dataclass(frozen=True)
class SimplifyExprPostAlterOp(FunctionPass):
    """The few rewrites that clean up after a change of layouts."""

    info = PassInfo(0, "SimplifyExprPostAlterOp", ["InferType"])

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        return apply_rules(func, _POST_ALTER_OP)
