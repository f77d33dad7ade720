"""FuseOps: wrap groups of operators that one kernel can compute in primitive functions.

The groups come from ``graph_partitioner``; this file builds the graph it works on and rewrites the
program by its result. Groups, parameters and their order are Relay's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ixion.analysis.dominators import ForwardGraph
from ixion.ir import (
    Call,
    Constant,
    Expr,
    Function,
    FuncType,
    If,
    IRModule,
    Let,
    Match,
    Op,
    RefCreate,
    RefRead,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    get_attr_map,
    is_dynamic,
    rewrite,
)
from ixion.ir.visitor import children
from ixion.op.define import OpPattern
from ixion.transform.context import PassContext
from ixion.transform.graph_partitioner import Group, partition
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import FunctionPass
from ixion.transform.registry import register_pass
from ixion.transform.type_inferencer import written_type
from ixion.transform.type_writer import keep_type, write_type

__all__ = ["FuseOps"]

_PATTERN = get_attr_map("TOpPattern")
_NON_COMPUTATIONAL = get_attr_map("TNonComputational")
_QNN = get_attr_map("FTVMQnnCanonicalize")
_RESHAPE = get_attr_map("TReshapeOp")
_DATA_DEPENDENT = get_attr_map("TShapeDataDependent")
_MAX_DEPTH = 256
_SIMPLE_DTYPES = frozenset({"int32", "int64", "float32", "float64", "bool"})
_STOP = "annotation.stop_fusion"


@register_pass("FuseOps")
@dataclass(frozen=True)
class FuseOps(FunctionPass):
    """Relay's operator fusion.

    ``fuse_opt_level`` 0 makes a function of every operator, -1 takes the context's level. The
    context's ``relay.FuseOps.max_depth`` bounds the nodes of a group, and with
    ``relay.FuseOps.link_params`` constants stay inside the functions.
    """

    fuse_opt_level: int = -1
    info = PassInfo(0, "FuseOps", ["InferType"])

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        level = ctx.opt_level if self.fuse_opt_level == -1 else self.fuse_opt_level
        depth = ctx.get_config("relay.FuseOps.max_depth", _MAX_DEPTH)
        graph = _forward_graph(func)
        groups = partition(graph, level, depth)
        link = bool(ctx.get_config("relay.FuseOps.link_params", False))
        return _Fuser(graph, groups, link).rewrite(func)


def _is_external(func: Function) -> bool:
    return func.attrs is not None and func.attrs.get("Compiler") is not None


class _GraphBuilder:
    """Adds the uses an expression makes of others, with how it looks at them."""

    def __init__(self) -> None:
        self.graph = ForwardGraph()

    def use(self, value: Expr, user: Expr, pattern: OpPattern) -> None:
        self.graph.node(value).outputs.append((self.graph.node(user), pattern))

    def use_outside(self, *values: Expr) -> None:
        for value in values:
            self.graph.node(value).extern_ref = True

    def open(self, expr: Expr) -> tuple[Expr, ...]:
        """Note the uses ``expr`` makes, before it is visited; what to visit below it."""
        rule = _USES.get(type(expr))
        if rule is not None:
            rule(self, expr)
        if type(expr) is Function and _is_external(expr):
            return ()
        return tuple(part for part in children(expr) if type(part) is not Op)

    def _call(self, call: Call) -> None:
        node = self.graph.node(call)
        node.pattern = _call_pattern(call)
        if not isinstance(call.op, Op):
            self.use_outside(call.op)
        for arg in call.args:
            self.use(arg, call, _edge_pattern(node.pattern, call, arg))

    def _tuple(self, expr: Tuple) -> None:
        self.graph.node(expr).pattern = OpPattern.TUPLE
        for field in expr.fields:
            if isinstance(field.checked_type, TensorType):
                self.use(field, expr, OpPattern.INJECTIVE)
            else:
                self.use_outside(field)

    def _tuple_item(self, expr: TupleGetItem) -> None:
        kind = expr.tuple_value.checked_type
        assert isinstance(kind, TupleType)
        if all(isinstance(field, TensorType) for field in kind.fields):
            self.graph.node(expr).pattern = OpPattern.INJECTIVE
            self.use(expr.tuple_value, expr, OpPattern.INJECTIVE)
        else:
            self.use_outside(expr.tuple_value)

    def _constant(self, expr: Constant) -> None:
        simple = not expr.data.ndim and expr.data.dtype.name in _SIMPLE_DTYPES
        self.graph.node(expr).pattern = OpPattern.ELEMWISE if simple else OpPattern.OPAQUE

    def _opaque(self, expr: Expr) -> None:
        if type(expr) is not Function or not _is_external(expr):
            self.use_outside(*children(expr))


_USES: dict[type, Callable[[_GraphBuilder, Any], None]] = {
    Call: _GraphBuilder._call,
    Tuple: _GraphBuilder._tuple,
    TupleGetItem: _GraphBuilder._tuple_item,
    Constant: _GraphBuilder._constant,
    **dict.fromkeys(
        (Function, Let, If, Match, RefCreate, RefRead, RefWrite), _GraphBuilder._opaque
    ),
}


def _call_pattern(call: Call) -> OpPattern:
    if not isinstance(call.op, Op):
        return OpPattern.OPAQUE
    if _DATA_DEPENDENT.get(call.op, False) and is_dynamic(call.checked_type):
        return OpPattern.OPAQUE
    return OpPattern(_PATTERN.get(call.op, OpPattern.OPAQUE))


def _edge_pattern(pattern: OpPattern, call: Call, arg: Expr) -> OpPattern:
    """A broadcast that does not change an operand's shape is elementwise to it."""
    if pattern != OpPattern.BROADCAST:
        return pattern
    out, kind = call.checked_type, arg.checked_type
    if isinstance(out, TensorType) and isinstance(kind, TensorType) and out.shape == kind.shape:
        return OpPattern.ELEMWISE
    return pattern


def _forward_graph(root: Expr) -> ForwardGraph:
    builder = _GraphBuilder()
    builder.use_outside(root)
    opened: set[Expr] = set()
    placed: set[Expr] = set()
    stack = [root]
    while stack:
        expr = stack.pop()
        if expr in placed:
            continue
        if expr in opened:
            placed.add(expr)
            builder.graph.place(expr)
            continue
        opened.add(expr)
        stack.append(expr)
        stack.extend(reversed(builder.open(expr)))
    return builder.graph


class _Inputs:
    """The parameters of the function a group becomes, and what it is called with."""

    def __init__(self) -> None:
        self.params: dict[Expr, Var] = {}

    def param(self, value: Expr, kind: Type) -> Var:
        found = self.params.get(value)
        if found is None:
            found = self.params[value] = Var(f"p{len(self.params)}", kind)
            write_type(found, kind)
        return found


class _Fuser:
    def __init__(self, graph: ForwardGraph, groups: list[Group], link_params: bool) -> None:
        self._groups: dict[object, Group] = {
            node.ref: groups[node.index].find_root() for node in graph.nodes
        }
        self._inputs: dict[Group, _Inputs] = {}
        self._link_params = link_params

    def rewrite(self, func: Function) -> Function:
        if _is_primitive(func):
            return func
        # What is fused already, or somebody else's to compile, stays as it is.
        done: dict[Expr, Expr] = {
            ref: ref
            for ref in self._groups
            if isinstance(ref, Function) and (_is_primitive(ref) or _is_external(ref))
        }
        return rewrite(func, self._visit, done)  # type: ignore[return-value]

    def _visit(self, old: Expr, new: Expr) -> Expr:
        if type(old) is Call:
            return self._call(old, new)  # type: ignore[arg-type]
        if type(old) is Tuple:
            return self._tuple(old, new)  # type: ignore[arg-type]
        if type(old) is TupleGetItem:
            return self._tuple_item(old, new)  # type: ignore[arg-type]
        return new

    def _call(self, old: Call, new: Call) -> Expr:
        op = old.op
        if not isinstance(op, Op):
            return new
        if _NON_COMPUTATIONAL.get(op, False) and op not in _QNN:
            return new
        if op.name == _STOP:
            return new.args[0]
        group = self._groups[old]
        args = self._inside(old.args, new.args, group)
        inner = Call(op, args, old.attrs, old.type_args, old.span)
        keep_type(old, inner)
        if group.root_ref is not old:
            return inner
        return self._function(group, old, inner)

    def _tuple(self, old: Tuple, new: Tuple) -> Expr:
        group = self._groups[old]
        if group.root_ref is old:
            return new
        inner = new.copy(fields=self._inside(old.fields, new.fields, group))
        return keep_type(old, inner)

    def _tuple_item(self, old: TupleGetItem, new: TupleGetItem) -> Expr:
        group = self._groups[old]
        isolated = self._groups[old.tuple_value] is not group
        if group.root_ref is old and isolated:
            return new
        (whole,) = self._inside((old.tuple_value,), (new.tuple_value,), group)
        inner = TupleGetItem(whole, old.index, old.span)
        keep_type(old, inner)
        if group.root_ref is not old:
            return inner
        return self._function(group, old, inner)

    def _inside(
        self, old: tuple[Expr, ...], new: tuple[Expr, ...], group: Group
    ) -> tuple[Expr, ...]:
        """Operands as they look from inside ``group``: those from outside become parameters."""
        result: list[Expr] = []
        for before, after in zip(old, new, strict=True):
            linked = self._link_params and isinstance(after, Constant)
            if self._groups[before] is group or linked:
                result.append(after)
            else:
                inputs = self._inputs.setdefault(group, _Inputs())
                result.append(inputs.param(after, before.checked_type))
        return tuple(result)

    def _function(self, group: Group, old: Expr, body: Expr) -> Call:
        kind = old.checked_type
        params = self._inputs.get(group, _Inputs()).params
        has_call, only_reshapes = _contents(body, params)
        attrs: dict[str, Any] = {"Primitive": int(has_call)}
        if has_call and only_reshapes:
            attrs["relay.reshape_only"] = 1
        func = Function(tuple(params.values()), body, kind, (), attrs)
        if written_type(body) is not None:
            write_type(func, FuncType([param.checked_type for param in params.values()], kind))
        return keep_type(old, Call(func, tuple(params), span=body.span))


def _is_primitive(func: Function) -> bool:
    return func.attrs is not None and bool(func.attrs.get("Primitive", 0))


def _contents(body: Expr, params: dict[Expr, Var]) -> tuple[bool, bool]:
    """Whether a group has a call at all, and whether all its calls only reshape tensors."""
    has_call = False
    only_reshapes = all(isinstance(p.type_annotation, TensorType) for p in params.values())
    stack, seen = [body], {body}
    while stack:
        expr = stack.pop()
        if isinstance(expr, Call):
            has_call = True
            only_reshapes = only_reshapes and bool(_RESHAPE.get(expr.op, False))
        for part in children(expr):
            if part not in seen:
                seen.add(part)
                stack.append(part)
    return has_call, only_reshapes
