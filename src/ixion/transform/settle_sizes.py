"""SettleSizes: what type inference knows of sizes is written into the program.

Exporters and Relay programs compute shapes as tensors. Where type inference knows such a tensor's
value, in numbers and symbols, operators take their sizes from attributes, and what still uses the
tensor itself gets ``sizes(values=...)``; the arithmetic behind it is dead.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ixion.base import dim as dims
from ixion.base.dtype import is_float, to_numpy
from ixion.ir import Call, Constant, Expr, Function, IRModule, Op, TensorType, TupleGetItem, rewrite
from ixion.op.sizes import iota, sizes
from ixion.op.typed import attrs_of, op_name
from ixion.op.value import Array, is_concrete, is_settled
from ixion.transform.context import PassContext
from ixion.transform.dynamic_ops import static_call
from ixion.transform.known_values import KnownValues
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import FunctionPass
from ixion.transform.registry import register_pass
from ixion.transform.type_inferencer import written_type
from ixion.transform.type_writer import keep_type

__all__ = ["SettleSizes"]

_MADE_OF_SIZES = frozenset(("sizes", "iota"))


@register_pass("SettleSizes")
@dataclass(frozen=True)
class SettleSizes(FunctionPass):
    """``dyn.*`` calls become calls with symbolic sizes in attributes, and small integer tensors of
    known value become ``sizes`` or constants. Sizes that depend on data stay as they are.
    """

    info = PassInfo(0, "SettleSizes", ["InferType"])

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        known = KnownValues(func, mod)
        first: dict[Hashable, Expr] = {}

        def visit(old: Expr, new: Expr) -> Expr:
            if isinstance(new, TupleGetItem) or _is_op_call(new):
                new = _settled(old, new, known)
            if isinstance(new, Call) and op_name(new) in _MADE_OF_SIZES:
                new = first.setdefault((op_name(new), *attrs_of(new).items()), new)
            return keep_type(old, new)

        return rewrite(func, visit)  # type: ignore[return-value]  # a function stays one


def _is_op_call(expr: Expr) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op)


def _settled(old: Expr, new: Expr, known: KnownValues) -> Expr:
    value, kind = known.of(old), written_type(old)
    whole = isinstance(kind, TensorType) and not is_float(kind.dtype)
    if whole and value is not None and is_settled(value):
        return _tensor(value, old, new)
    if not isinstance(new, Call) or not isinstance(old, Call):
        return new
    name = op_name(new)
    if name == "arange":
        return _range(new, [known.of(arg) for arg in old.args])
    if not name.startswith("dyn."):
        return new
    values = [known.of(arg) for arg in old.args]
    return static_call(new, [v if v is not None and is_settled(v) else None for v in values]) or new


def _tensor(value: Array, old: Expr, new: Expr) -> Expr:
    kind = written_type(old)
    assert isinstance(kind, TensorType)
    if is_concrete(value):
        return Constant(value.astype(to_numpy(kind.dtype)), span=old.span)
    if isinstance(new, Call) and op_name(new) in _MADE_OF_SIZES:
        return new
    return sizes(value, kind.dtype).copy(span=old.span)


def _range(new: Call, values: list[Any]) -> Expr:
    """An arange over whole numbers, of which at least one bound is a symbol."""
    dtype = attrs_of(new).dtype
    if any(v is None or not is_settled(v) for v in values) or not np.issubdtype(
        to_numpy(dtype), np.integer
    ):
        return new
    start, stop, step = (v.reshape(-1)[0] for v in values)
    if not isinstance(step, int) or step == 0:
        return new
    room = stop - start if step > 0 else start - stop
    length = dims.ceil_div(room, abs(step))
    if isinstance(length, int):
        return new
    return iota(length, start, step, dtype).copy(span=new.span)

