"""Functions of te that no instruction computes, spelled out in te expressions.

A function is written once as a builder from operands to an expression, so the code generator can emit it
and te's numpy evaluator can run it. Here they are found by name (``exp.float32``), given a width,
and flattened for the emitter; each is built once per process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from ixion.base.errors import CodegenError
from ixion.base.target import Target
from ixion.codegen.emit_plan import Plan, plan
from ixion.codegen.vmath_convert import CONVERSIONS
from ixion.te.expr import Expr, Var

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
    builder = CONVERSIONS.get(name)
    if builder is None:
        raise CodegenError(f"no '{function}' on {dtype}", where="codegen")
    operand, build = builder
    parameter = Var("x", operand, lanes)
    body = build(parameter)
    return Expansion((parameter,), body, plan(body))
