"""FoldConstant: evaluate what depends on constants only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ixion.analysis.binding import let_values
from ixion.analysis.constants import check_constant
from ixion.analysis.evaluate import call_op
from ixion.base.dtype import to_numpy
from ixion.ir import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    IRModule,
    Let,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    get_attr_map,
    rewrite,
)
from ixion.ir.sizes import attrs_symbols
from ixion.ir.visitor import post_order
from ixion.transform.context import PassContext
from ixion.transform.infer_type import expr_type
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import FunctionPass
from ixion.transform.registry import register_pass
from ixion.transform.type_inferencer import written_type

__all__ = ["FoldConstant", "fold_constant_expr"]

_STATEFUL = get_attr_map("TOpIsStateful")
_NON_COMPUTATIONAL = get_attr_map("TNonComputational")
_QNN = get_attr_map("FTVMQnnCanonicalize")
_SHAPES = frozenset({"shape_of", "vm.shape_of", "ndarray_size"})
_LEFT_ALONE = _SHAPES | {"device_copy"}

# In float32 and float64 numpy's own arithmetic rounds these once, which is what the references
# promise (a float64 intermediate of a float32 operation rounds to the same bits): no detour, no
# second copy of a weight.
_EXACT: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "negative": np.negative,
    "sqrt": np.sqrt,
}
_EXACT_DTYPES = ("float32", "float64")


@register_pass("FoldConstant")
@dataclass(frozen=True)
class FoldConstant(FunctionPass):
    """Replaces operator calls on constants by their value, by the operators' references.

    Also takes the known branch of an if, fields of known tuples, shapes of statically shaped
    tensors, and puts constants in place of the let variables bound to them. Leaves alone calls
    without operands (a large ``zeros`` is better made at run time), calls whose attributes hold
    symbolic sizes, stateful operators, the
    inside of primitive functions, and quantised operators unless ``fold_qnn``.
    """

    fold_qnn: bool = False
    info = PassInfo(2, "FoldConstant")

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _Folder(func, self.fold_qnn).fold()  # type: ignore[return-value]


def fold_constant_expr(expr: Expr, mod: IRModule | None = None, fold_qnn: bool = False) -> Expr:
    """``expr`` with constants folded; it may be untyped."""
    return _Folder(expr, fold_qnn).fold()


class _Folder:
    def __init__(self, root: Expr, fold_qnn: bool) -> None:
        self._root = root
        self._fold_qnn = fold_qnn
        nodes = post_order(root)
        self._bound = let_values(nodes)
        # Primitive functions are kernels already: what is inside stays.
        self._done: dict[Expr, Expr] = {
            node: node for node in nodes if type(node) is Function and _is_primitive(node)
        }

    def fold(self) -> Expr:
        return rewrite(self._root, self._visit, self._done)

    def _visit(self, old: Expr, new: Expr) -> Expr:
        rule = _RULES.get(type(new))
        result = new if rule is None else rule(self, old, new)
        if self._bound and old in self._bound and type(result) is Constant:
            # A let's body is visited after its value.
            for var in self._bound[old]:
                self._done[var] = result
        return result

    def _let(self, old: Let, new: Let) -> Expr:
        return new.body if type(self._done.get(old.var)) is Constant else new

    def _if(self, old: If, new: If) -> Expr:
        if type(new.cond) is not Constant:
            return new
        return new.true_branch if bool(new.cond.data) else new.false_branch

    def _tuple_item(self, old: TupleGetItem, new: TupleGetItem) -> Expr:
        whole = new.tuple_value
        return whole.fields[new.index] if type(whole) is Tuple else new

    def _call(self, old: Call, new: Call) -> Expr:
        op = new.op
        if type(op) is not Op or not new.args or _STATEFUL.get(op, False):
            return new
        if op.name in _SHAPES:
            return _shape_value(old, new)
        if not all(map(check_constant, new.args)):
            return new
        if _NON_COMPUTATIONAL.get(op, False) and not (self._fold_qnn and op in _QNN):
            return new
        if op.name in _LEFT_ALONE or attrs_symbols(new.attrs):
            return new
        return _evaluated(old, new)


def _is_primitive(func: Function) -> bool:
    return func.attrs is not None and bool(func.attrs.get("Primitive", 0))


_RULES: dict[type, Callable[[_Folder, Any, Any], Expr]] = {
    Call: _Folder._call,
    If: _Folder._if,
    Let: _Folder._let,
    TupleGetItem: _Folder._tuple_item,
}


def _evaluated(old: Call, new: Call) -> Expr:
    known = written_type(old)
    if known is None:
        known = expr_type(new)
    elif written_type(new) is None:
        new._set_checked_type(known)
    exact = _EXACT.get(new.op.name)  # type: ignore[attr-defined]  # an Op
    if exact is not None and isinstance(known, TensorType) and known.dtype in _EXACT_DTYPES:
        with np.errstate(all="ignore"):
            return Constant(exact(*[arg.data for arg in new.args]))  # type: ignore[attr-defined]
    return _as_expr(call_op(new, [_value(arg) for arg in new.args]))


def _value(expr: Expr) -> Any:
    """The value of a constant or of a tuple of constants."""
    if isinstance(expr, Tuple):
        return tuple(_value(field) for field in expr.fields)
    assert isinstance(expr, Constant)
    return expr.data


def _as_expr(value: Any) -> Expr:
    if isinstance(value, tuple):
        return Tuple([_as_expr(field) for field in value])
    return Constant(value)


def _shape_value(old: Call, new: Call) -> Expr:
    """The shape, or element count, of a tensor whose shape is static; else the call itself."""
    source = new.args[0]
    if isinstance(source, Constant):
        shape: Any = source.data.shape
    else:
        kind = written_type(old.args[0])
        if not isinstance(kind, TensorType) or not all(isinstance(d, int) for d in kind.shape):
            return new
        shape = kind.shape
    attrs: Any = new.attrs
    is_size = isinstance(new.op, Op) and new.op.name == "ndarray_size"
    value = np.prod(shape, dtype=np.int64) if is_size else shape
    return Constant(np.array(value, dtype=to_numpy(attrs.dtype or "int32")))
