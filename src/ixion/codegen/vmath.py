"""Functions of te that no instruction computes, spelled out in te expressions.

A function is written once as a builder from operands to an expression, so the code generator can
emit it and te's numpy evaluator can run it. Here they are found by name (``exp.float32``), given a
width, and flattened for the emitter; each is built once per process.

In float32 the frequent functions have their own polynomials and rely on FMA. The others, and all of
them on a target without FMA, are computed in float64 and rounded once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from ixion.base.errors import CodegenError
from ixion.base.target import Target
from ixion.codegen import vmath_exp, vmath_log, vmath_special, vmath_trig
from ixion.codegen.emit_plan import Plan, plan
from ixion.codegen.vmath_convert import conversion
from ixion.te.expr import Expr, Var, cast

Function = Callable[..., Expr]

# Written for both dtypes.
_BOTH: dict[str, Function] = {
    "exp": vmath_exp.exp, "exp2": vmath_exp.exp2, "expm1": vmath_exp.expm1,
    "sigmoid": vmath_exp.sigmoid, "tanh": vmath_exp.tanh, "log": vmath_log.log,
    "log2": vmath_log.log2, "log10": vmath_log.log10, "log1p": vmath_log.log1p,
    "softplus": vmath_log.softplus, "erf": vmath_special.erf, "sin": vmath_trig.sin,
    "cos": vmath_trig.cos, "gate": vmath_exp.gate,
}  # fmt: skip
# Exact, or right in either dtype by nature.
_PLAIN: dict[str, Function] = {
    "rsqrt": vmath_special.rsqrt, "sign": vmath_special.sign, "floor": vmath_special.floor,
    "ceil": vmath_special.ceil, "trunc": vmath_special.trunc, "round": vmath_special.round_even,
    "floordiv": vmath_special.floordiv, "floormod": vmath_special.floormod,
    "truncdiv": vmath_special.truncdiv, "truncmod": vmath_special.truncmod,
}  # fmt: skip
# Written for float64.
_DOUBLE: dict[str, Function] = {
    "sinh": vmath_exp.sinh, "cosh": vmath_exp.cosh, "tan": vmath_trig.tan,
    "asin": vmath_trig.asin, "acos": vmath_trig.acos, "atan": vmath_trig.atan,
    "atan2": vmath_trig.atan2, "asinh": vmath_log.asinh, "acosh": vmath_log.acosh,
    "atanh": vmath_log.atanh, "pow": vmath_special.pow_double,
}  # fmt: skip
# What float64 does for float32 where that differs from float64 for its own sake.
_FOR_SINGLE: dict[str, Function] = {
    "pow": vmath_special.pow_single,
    "sin": functools.partial(vmath_trig.sin, exponent=127),
    "cos": functools.partial(vmath_trig.cos, exponent=127),
    "tan": functools.partial(vmath_trig.tan, exponent=127),
}
_TWO_OPERANDS = frozenset(("pow", "atan2", "floordiv", "floormod", "truncdiv", "truncmod"))


class Expansion(NamedTuple):
    """A function as steps over parameters."""

    parameters: tuple[Var, ...]
    body: Expr
    plan: Plan


def expansion(name: str, lanes: int, target: Target) -> Expansion:
    """The function ``name`` (``exp.float32``, ``bits.bfloat16``) on vectors of ``lanes``.

    Raises CodegenError for a name that is not in the tables.
    """
    return _expansion(name, lanes, target.fma)


@functools.cache
def _expansion(name: str, lanes: int, fma: bool) -> Expansion:
    function, _, dtype = name.partition(".")
    if function in ("bits", "value"):
        operand, build = conversion(function, dtype)
        parameters: tuple[Var, ...] = (Var("x", operand, lanes),)
    else:
        build = builder(function, dtype, fma)
        count = 2 if function in _TWO_OPERANDS else 1
        parameters = tuple(Var(f"x{i}", dtype, lanes) for i in range(count))
    body = build(*parameters)
    return Expansion(parameters, body, plan(body))


def builder(function: str, dtype: str, fma: bool) -> Function:
    """The builder of a function on ``dtype`` (float32 or float64) operands.

    Raises CodegenError for a function that is not in the tables.
    """
    if function in _PLAIN:
        return _PLAIN[function]
    if dtype == "float64" and function in _BOTH | _DOUBLE:
        return (_BOTH | _DOUBLE)[function]
    if dtype == "float32" and fma and function in _BOTH:
        return _BOTH[function]
    wide = (_BOTH | _DOUBLE | _FOR_SINGLE).get(function)
    if wide is None or dtype != "float32":
        raise CodegenError(f"no '{function}' on {dtype}", where="codegen")
    return functools.partial(_through_double, wide)


def _through_double(function: Function, *operands: Expr) -> Expr:
    return cast(function(*(cast(o, "float64") for o in operands)), "float32")
