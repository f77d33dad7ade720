"""Elements in cheaper words, which round differently by less than the functions themselves may."""

from __future__ import annotations

from ixion.codegen import vmath_coefficients as tables
from ixion.codegen.vmath_build import horner
from ixion.codegen.vmath_exp import LOG2_E
from ixion.te.expr import Binary, Const, Expr, Intrinsic, binary, intrinsic


def cheaper(expr: Expr) -> Expr:
    """Small constant powers as products, a constant divisor of erf as factor, and the gates of
    GELU.  Any other expression is given back as it is.
    """
    if not expr.dtype.startswith("float"):
        return expr
    if isinstance(expr, Intrinsic) and expr.name == "pow":
        return _power(expr)
    if isinstance(expr, Intrinsic) and expr.name == "erf":
        return _erf(expr)
    return _gate(expr) if isinstance(expr, Binary) and expr.op == "add" else expr


def _power(expr: Intrinsic) -> Expr:
    base, exponent = expr.args
    if not isinstance(exponent, Const):
        return expr
    square = binary("mul", base, base)
    powers = {1.0: base, 2.0: square, 3.0: binary("mul", square, base)}
    return powers.get(float(exponent.value), expr)


def _erf(expr: Intrinsic) -> Expr:
    base = expr.args[0]
    if not isinstance(base, Binary) or base.op != "div" or not isinstance(base.b, Const):
        return expr
    if 2.0**-60 < abs(base.b.value) < 2.0**60:
        inverse = Const(1.0 / base.b.value, base.dtype)
        return Intrinsic("erf", (binary("mul", base.a, inverse),))
    return expr


def _gate(expr: Binary) -> Expr:
    """``1 + tanh(x)`` and ``1 + erf(x)``.

    What tanh and erf take pains for, small results to their last bit, is lost in the sum.  As
    sigmoids, which both nearly are, they are more exact where the sum is near 0.
    """
    for function, one in ((expr.a, expr.b), (expr.b, expr.a)):
        fits = isinstance(one, Const) and one.value == 1 and expr.dtype == "float32"
        if not fits or not isinstance(function, Intrinsic):
            continue
        x = function.args[0]
        if function.name == "tanh":
            return intrinsic("gate", x * (-2.0 * LOG2_E))
        if function.name == "erf":
            return intrinsic("gate", x * horner(x * x, tables.ERF_GATE["float32"]))
    return expr
