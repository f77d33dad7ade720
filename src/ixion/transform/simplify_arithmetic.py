"""SimplifyExpr: identities, constants that meet, and what Relay makes of squares and roots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ixion.analysis.constants import scalar, scalar_value
from ixion.ir import Call, Constant, Expr, Op, TensorType
from ixion.op.call import call
from ixion.transform.fold_constant import fold_constant_expr
from ixion.transform.rewriting import Place

__all__ = [
    "arg_of_dequantized",
    "doubled",
    "drop_identity",
    "fill_value",
    "merge_constants",
    "multiply_before_add",
    "reciprocal_root",
]

_COMMUTATIVE = ("add", "multiply")
_NEUTRAL = {"add": 0.0, "subtract": 0.0, "multiply": 1.0, "divide": 1.0}
_FILLS = {"zeros": 0.0, "zeros_like": 0.0, "ones": 1.0, "ones_like": 1.0}


def _name(expr: Expr) -> str:
    return expr.op.name if isinstance(expr, Call) and isinstance(expr.op, Op) else ""


def _orders(binary: Call) -> Iterator[tuple[Expr, Expr]]:
    """Both orders of the operands where the operator commutes."""
    left, right = binary.args
    yield left, right
    if _name(binary) in _COMMUTATIVE:
        yield right, left


def doubled(add: Call, place: Place) -> Expr | None:
    """``x + x`` is ``x * 2``."""
    left, right = add.args
    kind = add.checked_type
    if left is not right or not isinstance(kind, TensorType):
        return None
    return call("multiply", left, scalar(kind.dtype, 2), span=add.span)


def reciprocal_root(divide: Call, place: Place) -> Expr | None:
    """``y / sqrt(x)`` is ``y * rsqrt(x)``."""
    numerator, root = divide.args
    if _name(root) != "sqrt" or not isinstance(root, Call) or not place.only_here(root):
        return None
    return call("multiply", numerator, call("rsqrt", root.args[0]), span=divide.span)


def drop_identity(binary: Call, place: Place) -> Expr | None:
    """``x + 0``, ``x - 0``, ``x * 1``, ``x / 1``, where ``x`` has the result's type."""
    neutral = _NEUTRAL[_name(binary)]
    for data, other in _orders(binary):
        value = _FILLS.get(_name(other))
        if value is None:
            value = scalar_value(other)
        if value == neutral and data.checked_type == binary.checked_type:
            return data
    return None


def fill_value(binary: Call, place: Place) -> Expr | None:
    """A tensor filled with one value, as an operand that broadcasts: the value will do."""
    kind = binary.checked_type
    if len(binary.args) != 2 or not isinstance(kind, TensorType):
        return None
    for at in (0, 1):
        data, filled = binary.args[1 - at], binary.args[at]
        value = _filled_with(filled, kind)
        if value is not None and data.checked_type == kind:
            operands = [value, value]
            operands[1 - at] = data
            return Call(binary.op, operands, binary.attrs, binary.type_args, binary.span)
    return None


def _filled_with(expr: Expr, kind: TensorType) -> Expr | None:
    if not isinstance(expr, Call):
        return None
    name = _name(expr)
    if name in _FILLS:
        return scalar(kind.dtype, _FILLS[name])
    if name in ("full", "full_like") and isinstance(expr.args[-1], Constant):
        value = expr.args[-1]
        same = isinstance(value.checked_type, TensorType) and value.checked_type.dtype == kind.dtype
        return value if same and value.data.ndim == 0 else None
    return None


def multiply_before_add(multiply: Call, place: Place) -> Expr | None:
    """``(x + c1) * c2`` is ``x * c2 + c1 * c2``: scales then fold into what computes ``x``."""
    for total, factor in _orders(multiply):
        if not isinstance(factor, Constant) or _name(total) != "add" or not place.only_here(total):
            continue
        assert isinstance(total, Call)
        for data, term in _orders(total):
            if isinstance(term, Constant) and not isinstance(data, Constant):
                constant = fold_constant_expr(call("multiply", term, factor))
                scaled = call("multiply", data, factor)
                return call("add", scaled, constant, span=multiply.span)
    return None


def merge_constants(outer: Call, place: Place) -> Expr | None:
    """``(x * c1) * c2`` is ``x * (c1 * c2)``; the same for sums."""
    name = _name(outer)
    for inner, second in _orders(outer):
        if not isinstance(second, Constant) or _name(inner) != name or not place.only_here(inner):
            continue
        assert isinstance(inner, Call)
        for data, first in _orders(inner):
            if isinstance(first, Constant) and not isinstance(data, Constant):
                constant = fold_constant_expr(call(name, first, second))
                return call(name, data, constant, span=outer.span)
    return None


def arg_of_dequantized(arg: Call, place: Place) -> Expr | None:
    """The order of quantised values is that of the numbers they stand for."""
    data = arg.args[0]
    if _name(data) != "qnn.dequantize" or not isinstance(data, Call) or not place.only_here(data):
        return None
    attrs: Any = arg.attrs
    return Call(arg.op, (data.args[0],), attrs, (), arg.span)
