"""FormKernels: every call of the main dataflow becomes part of one *formed kernel*.

A formed kernel is a function with attributes ``Primitive`` and ``kernel`` (the op that decides how
it is scheduled).  Unlike Relay's FuseOps it may follow a convolution, product, pooling, reduction
or concatenation with any elementwise work up to the next value that others need, including
diamonds such as ``x * sigmoid(x)``: the immediate post-dominator of a value is the first one
through which everything computed from it passes, so taking all that lies between into the kernel
can neither make a cycle nor compute anything twice.

Scalar constants stay inside the function; other operands become parameters, so that equal kernels
of different layers are structurally equal.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeGuard

from ixion.analysis.dataflow import dataflow_order, operands
from ixion.analysis.dominators import ForwardGraph, PostDominators
from ixion.base import dim as dims
from ixion.ir import (
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    is_dynamic,
)
from ixion.kernel.schedule import serves_open_sizes
from ixion.op.control import is_control
from ixion.op.define import OpPattern
from ixion.op.typed import attrs_of, dims_of, never_larger, op_attr, op_name, same_shape
from ixion.transform.context import PassContext
from ixion.transform.conv_chain import Chain, takes_gate
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import FunctionPass
from ixion.transform.registry import register_pass
from ixion.transform.simplify_inference import is_row_norm

if TYPE_CHECKING:
    from ixion.base.dim import Dim

LIMIT = 48  # calls in one kernel
VIEWS = frozenset(("reshape", "squeeze", "expand_dims", "nn.batch_flatten", "copy"))
# Ops with a schedule of their own that can take elementwise work on their result.
HEADS = frozenset(
    "nn.conv1d nn.conv2d nn.conv2d_transpose nn.dense nn.batch_matmul nn.matmul concatenate"
    " nn.max_pool2d nn.avg_pool2d nn.global_avg_pool2d nn.global_max_pool2d"
    " nn.adaptive_avg_pool2d nn.max_pool1d nn.avg_pool1d".split()
)
# What follows from sizes alone is cheaper to make anew than to read, in so many calls and in
# kernels of these kinds.
COUNTS = frozenset(("sizes", "iota"))
MOST_COUNTED = 16
SIMPLE = frozenset(("elementwise", "injective", "view", "reduce"))
# A head that also takes what comes before it, and moves of its rows.
NORM = "nn.layer_norm"
# Ops that stand alone: several passes over their data.
ALONE = frozenset(("nn.softmax", "nn.log_softmax", "nn.fast_softmax"))


def has_compute(call: Call) -> bool:
    """Whether loops can do the call (else Python does it, as a host step).

    The op must say what its elements are or have a schedule of its own, and no operand may be
    complex.
    """
    if op_attr(call, "FTVMCompute") is None:
        return _scheduled(call)
    return not any(_is_complex(node.checked_type) for node in (*call.args, call))


def _scheduled(call: Call) -> bool:
    """Whether a schedule does the call of an op without compute."""
    can = op_attr(call, "FScheduled")
    if can is None:
        return False
    kinds = (*(a.checked_type for a in call.args), call.checked_type)
    if any(is_dynamic(kind) for kind in kinds) and not serves_open_sizes(op_name(call)):
        return False
    return bool(can(call.attrs, tuple(a.checked_type for a in call.args), call.checked_type))


def _is_complex(kind: Type) -> bool:
    if isinstance(kind, TupleType):
        return any(_is_complex(f) for f in kind.fields)
    return isinstance(kind, TensorType) and kind.dtype.startswith("complex")


@dataclass(eq=False)
class _Group:
    kind: str
    nodes: set[int]
    last: int
    calls: list[Call] = field(default_factory=list)


@register_pass("FormKernels")
@dataclass(frozen=True)
class FormKernels(FunctionPass):
    """Turns a typed dataflow function into calls of formed kernels."""

    info = PassInfo(0, "FormKernels", ["InferType"])

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        if func.attrs is not None and func.attrs.get("Primitive"):
            return func
        body = _Former(func).run()
        return func if body is func.body else func.copy(body=body)


class _Former:
    def __init__(self, func: Function) -> None:
        self.func = func
        nodes = dataflow_order(func.body)
        self.nodes = [n for n in nodes if isinstance(n, (Call, Tuple, TupleGetItem))]
        self.index = {id(n): i for i, n in enumerate(self.nodes)}
        self.groups: dict[int, _Group] = {}
        self.counted = self._counted()

    def run(self) -> Expr:
        self.graph = self._graph()
        self.doms = PostDominators(self.graph)
        for i, node in enumerate(self.nodes):
            if i in self.groups or i in self.counted or is_control(node):
                continue
            if isinstance(node, Call) and isinstance(node.op, Op):
                special = self._attention(i, node) or self._gated(i, node)
                self._take(special or self._convolutions(i, node))
        for i in sorted(self.counted, reverse=True):
            if not self._counted_by_readers(i):
                kind = "elementwise" if _kind(self._call(i)) == "elementwise" else "injective"
                self._take(_Group(kind, {i}, i))
        return self._rebuild()

    def _counted(self) -> dict[int, int]:
        """Calls whose value follows from sizes and scalars alone, and how many calls make it."""
        found: dict[int, int] = {}
        for i, node in enumerate(self.nodes):
            if not isinstance(node, Call) or not has_compute(node) or op_name(node) in HEADS:
                continue
            if _pattern(node) > OpPattern.INJECTIVE or _tensor(node) is None:
                continue
            inner = [found.get(self.index.get(id(a), -1), 0) for a in node.args]
            known = all(n or _is_scalar(a) for n, a in zip(inner, node.args, strict=True))
            if known and sum(inner) < MOST_COUNTED and (any(inner) or op_name(node) in COUNTS):
                found[i] = 1 + sum(inner)
        return found

    def _counted_by_readers(self, i: int) -> bool:
        """Whether each reader of a value that follows from sizes is a kernel that makes it."""
        node = self.graph.nodes[i]
        readers = {consumer.index for consumer, _ in node.outputs}
        return not node.extern_ref and all(map(self._counts, readers))

    def _counts(self, reader: int) -> bool:
        group = self.groups.get(reader)
        if group is None:
            return reader in self.counted
        return group.kind in SIMPLE and has_compute(self._call(reader))

    def _graph(self) -> ForwardGraph:
        graph = ForwardGraph()
        for node in self.nodes:
            here = graph.place(node)
            for arg in operands(node):
                if id(arg) in self.index:
                    graph.node(arg).outputs.append((here, OpPattern.ELEMWISE))
        if id(self.func.body) in self.index:
            graph.node(self.func.body).extern_ref = True
        return graph

    def _grow(self, group: _Group) -> _Group:
        """Takes what may follow the head that the group has last."""
        while group.kind != "opaque" and (step := self._step(group)) is not None:
            path, kind = step
            group.nodes |= path
            group.last = self.doms.parent[group.last]
            group.kind = kind
        return group

    def _convolutions(self, start: int, call: Call) -> _Group:
        """A kernel that grew from one call, or from a chain of convolutions."""
        group = self._grow(_Group(_kind(call), {start}, start))
        chain, kept = Chain(), group
        while chain.take(call):
            if chain.worthwhile():
                kept = _Group("separable", set(group.nodes), group.last)
            after = self._only_consumer(group.last)
            if after is None or after[1].args[0] is not self.nodes[group.last]:
                break
            call = after[1]
            group = _Group(_kind(call), group.nodes | {after[0]}, after[0])
            group = self._grow(group)
        return kept

    def _gated(self, start: int, call: Call) -> _Group | None:
        """A product with a gate, and the convolution that reads it alone."""
        after = self._only_consumer(start) if op_name(call) == "multiply" else None
        if after is None or not takes_gate(call, after[1]):
            return None
        return self._grow(_Group(_kind(after[1]), {start, after[0]}, after[0]))

    def _take(self, group: _Group) -> None:
        for i in group.nodes:
            self.groups[i] = group
        group.calls = [self._call(i) for i in sorted(group.nodes)]

    def _attention(self, start: int, call: Call) -> _Group | None:
        """Product, softmax and product with only elementwise work and views between."""
        if op_name(call) != "nn.batch_matmul":
            return None
        group, softmax = _Group("attention", {start}, start), False
        while (after := self._only_consumer(group.last)) is not None:
            name, before = op_name(after[1]), self.nodes[group.last]
            if name == "nn.batch_matmul":
                if not softmax or after[1].args[0] is not before:
                    return None
                self._extend(group, after[0])
                return self._with_moves(group)
            if name == "nn.softmax" and not softmax:
                softmax = attrs_of(after[1]).axis in (-1, len(dims_of(after[1])) - 1)
                if not softmax:
                    return None
            elif name not in VIEWS and (softmax or not self._keeps_size(group.last, after[1])):
                return None
            self._extend(group, after[0])
            if name == "nn.softmax":
                self._take_guard(group)
        return None

    def _take_guard(self, group: _Group) -> None:
        """Takes ``where(isnan(w), 0, w)`` of the weights: nothing from rows that are all masked."""
        consumers = sorted({c.index for c, _ in self.graph.nodes[group.last].outputs})
        weights = self.nodes[group.last]
        if len(consumers) != 2 or self.graph.nodes[group.last].extern_ref:
            return
        test, chosen = (self.nodes[i] for i in consumers)
        alone = self._only_consumer(consumers[0])
        fits = (
            isinstance(test, Call) and op_name(test) == "isnan"
            and isinstance(chosen, Call) and op_name(chosen) == "where"
            and chosen.args[0] is test and _is_zero(chosen.args[1]) and chosen.args[2] is weights
            and alone is not None and alone[1] is chosen and consumers[0] not in self.groups
        )  # fmt: skip
        if fits:
            group.nodes |= set(consumers)
            group.last = consumers[1]

    def _only_consumer(self, i: int) -> tuple[int, Call] | None:
        """The one call that reads a value which nothing else needs."""
        node = self.graph.nodes[i]
        found = {consumer.index for consumer, _ in node.outputs}
        if node.extern_ref or len(found) != 1:
            return None
        index = found.pop()
        call = self.nodes[index]
        taken = index in self.groups or not isinstance(call, Call) or not has_compute(call)
        return None if taken else (index, self._call(index))

    def _extend(self, group: _Group, i: int) -> None:
        group.nodes.add(i)
        group.last = i

    def _keeps_size(self, i: int, call: Call) -> bool:
        before, after = self._type(i), _tensor(call)
        if before is None or after is None or _pattern(call) > OpPattern.BROADCAST:
            return False
        return never_larger(before, after) and never_larger(after, before)

    def _with_moves(self, group: _Group) -> _Group:
        """Adds the reshapes and transposes that only move the result."""
        while (after := self._only_consumer(group.last)) is not None:
            if op_name(after[1]) not in VIEWS and op_name(after[1]) != "transpose":
                break
            self._extend(group, after[0])
        return group

    def _call(self, i: int) -> Call:
        node = self.nodes[i]
        assert isinstance(node, Call)
        return node

    def _step(self, group: _Group) -> tuple[set[int], str] | None:
        """What the kernel takes next: the nodes up to its last value's post-dominator."""
        sink = self.doms.parent[group.last]
        if sink < 0:
            return None
        path = self._between(group.last, sink)
        if path is None or len(group.nodes) + len(path) > LIMIT:
            return None
        kind = group.kind
        for i in sorted(path):
            node = self.nodes[i]
            if i in self.groups or not isinstance(node, Call) or not has_compute(node):
                return None
            kind = self._joined(group, kind, node, i == sink)
            if not kind:
                return None
        return path, kind

    def _between(self, start: int, sink: int) -> set[int] | None:
        """Nodes on the paths from ``start`` (excluded) to ``sink``; None for too many."""
        found: set[int] = set()
        stack = [start]
        while stack:
            for consumer, _ in self.graph.nodes[stack.pop()].outputs:
                if consumer.index in found:
                    continue
                found.add(consumer.index)
                if len(found) > LIMIT:
                    return None
                if consumer.index != sink:
                    stack.append(consumer.index)
        return found

    def _joined(self, group: _Group, kind: str, call: Call, is_sink: bool) -> str:
        """The kernel's kind after taking ``call``; empty when it cannot."""
        pattern = _pattern(call)
        before, after = self._type(group.last), _tensor(call)
        if before is None or after is None:
            return ""
        same = same_shape(before, after)
        name = op_name(call)
        if kind == "nn.dense" and (name in VIEWS or name == "transpose"):
            return kind if is_sink and self._keeps_dense_rows(group, call) else ""
        if kind == NORM and is_sink and _moves_rows(call) and not self._lies_across(group):
            return kind
        if kind not in ("elementwise", "injective", "view"):  # after a head: elementwise only
            return kind if pattern <= OpPattern.BROADCAST and same and name not in VIEWS else ""
        if is_row_norm(call):
            return NORM if is_sink and self._feeds_rows(group, call) else ""
        if name in HEADS or name in ALONE:
            return ""
        if pattern == OpPattern.COMM_REDUCE:
            return "reduce" if is_sink and kind == "elementwise" else ""
        if pattern > OpPattern.INJECTIVE or not never_larger(after, before):
            return ""
        if pattern <= OpPattern.BROADCAST and same and name not in VIEWS:
            return "elementwise" if kind == "elementwise" else "injective"
        return kind if kind == "view" and name in VIEWS else "injective"

    def _keeps_dense_rows(self, group: _Group, move: Call) -> bool:
        """Whether a move gives a dense layer's rows other names, or puts pictures' channels second.

        After the latter no other move fits.
        """
        if any(op_name(self._call(i)) == "transpose" for i in group.nodes):
            return False
        if op_name(move) == "transpose":
            return _has_channels_second(move)
        return _same_rows(dims_of(move), dims_of(move.args[0]))

    def _lies_across(self, group: _Group) -> bool:
        """Whether a norm's rows have become channels: other moves would tear them."""
        calls = [self._call(i) for i in sorted(group.nodes)]
        after = calls[[is_row_norm(c) for c in calls].index(True) :]
        moves = [attrs_of(c).axes for c in after if op_name(c) == "transpose"]
        return any(axes[-1] % len(axes) != len(axes) - 1 for axes in moves)

    def _feeds_rows(self, group: _Group, norm: Call) -> bool:
        """Whether a norm can compute the rows that it reads from what the group has so far."""
        if any(self.index.get(id(a)) in group.nodes for a in norm.args[1:]):
            return False
        calls = [self._call(i) for i in group.nodes]
        moves = [c for c in calls if _pattern(c) > OpPattern.BROADCAST]
        if not all(_moves_rows(c) or _has_channels_last(c) for c in moves):
            return False
        return any(op_name(c) not in VIEWS for c in calls)

    def _type(self, i: int) -> TensorType | None:
        return _tensor(self.nodes[i])

    def _rebuild(self) -> Expr:
        new: dict[int, Expr] = {}
        for i, node in enumerate(self.nodes):
            group = self.groups.get(i)
            if group is None:
                new[id(node)] = _with_operands(node, new)
            elif i == group.last:
                new[id(node)] = _formed(group, self.groups, self.index, self.counted, new)
        return new.get(id(self.func.body), self.func.body)


def _is_zero(expr: Expr) -> bool:
    """Whether an operand is the one number 0, which broadcasts to any shape."""
    return isinstance(expr, Constant) and expr.data.size == 1 and not expr.data.any()


def _moves_only(expr: Expr) -> TypeGuard[Call]:
    """Data movement that a kernel may repeat while it reads, instead of reading its result."""
    if not isinstance(expr, Call) or not has_compute(expr):
        return False
    name = op_name(expr)
    if name in ("take", "strided_slice"):
        return all(isinstance(a, Constant) for a in expr.args[1:])
    return name in VIEWS or name == "transpose"


def _repeatable(expr: Expr, groups: dict[int, _Group], index: dict[int, int]) -> TypeGuard[Call]:
    """Whether an expression is moves alone: not what some head's kernel does to its result."""
    if not _moves_only(expr):
        return False
    group = groups.get(index[id(expr)])
    return group is None or (group.kind not in HEADS and group.kind != NORM)


def _rests_on(
    expr: Expr, made: dict[int, Expr], groups: dict[int, _Group], index: dict[int, int]
) -> bool:
    """Whether what a chain of moves starts from is the result of some kernel."""
    source: Expr = expr
    while _repeatable(source, groups, index):
        source = source.args[0]
    return not isinstance(source, (Call, Tuple, TupleGetItem)) or id(source) in made


def _read_through(
    kind: str, expr: Expr, made: dict[int, Expr], groups: dict[int, _Group], index: dict[int, int]
) -> TypeGuard[Call]:
    """Whether a kernel of some kind reads what ``expr`` moves rather than its result.

    Attention reads its operands however they lie. Elementwise work and moves read whole rows that
    were moved, however many others do.
    """
    if not _repeatable(expr, groups, index) or not _rests_on(expr, made, groups, index):
        return False
    if kind == "attention":
        return True
    if kind not in ("elementwise", "injective", NORM):
        return False
    source: Expr = expr
    moves = 0
    while _repeatable(source, groups, index):
        if op_name(source) not in VIEWS:
            moves += 1
            if not _keeps_rows(source):
                return False
        source = source.args[0]
    return moves > 0 and isinstance(source, (Call, Constant))


def _keeps_rows(call: Call) -> bool:
    """Whether neighbours along the last axis stay neighbours."""
    rank, attrs = len(dims_of(call.args[0])), attrs_of(call)
    if op_name(call) == "transpose":
        return bool(attrs.axes) and attrs.axes[-1] % rank == rank - 1
    if op_name(call) == "take":
        return attrs.axis is not None and attrs.axis % rank != rank - 1
    if op_name(call) == "strided_slice" and isinstance(call.args[0], Constant):
        return bool(attrs.axes) and all(a % rank != rank - 1 for a in attrs.axes)
    return False


def _moves_rows(call: Call) -> bool:
    """Whether the result consists of rows of the one operand, each as a whole.

    Also where its channels come second: then the rows lie across it.
    """
    name, before, after = op_name(call), dims_of(call.args[0]), dims_of(call)
    if name == "transpose":
        axes = [a % len(before) for a in attrs_of(call).axes or ()]
        return bool(axes) and len(before) - 1 in (axes[-1], *axes[1:2])
    if name == "take" and not (isinstance(call.args[1], Constant) and call.args[1].data.size == 1):
        return False
    if name not in VIEWS and name not in ("take", "strided_slice"):
        return False
    return _same_rows(before, after) and 0 not in after


def _same_rows(before: Sequence[Dim], after: Sequence[Dim]) -> bool:
    """Whether the last axes have one length."""
    if not before or not after:
        return not before and not after
    return bool(dims.same(before[-1], after[-1]))


def _has_channels_last(call: Call) -> bool:
    """Whether the call moves the channels (axis 1) to the end and keeps the order of the others."""
    rank = len(dims_of(call))
    wanted = [0, *range(2, rank), 1]
    return op_name(call) == "transpose" and [a % rank for a in attrs_of(call).axes or ()] == wanted


def _has_channels_second(call: Call) -> bool:
    """Whether a transpose moves the last of four or more axes to the second place."""
    rank = len(dims_of(call))
    return rank >= 4 and [a % rank for a in attrs_of(call).axes or ()] == [
        0, rank - 1, *range(1, rank - 1)
    ]  # fmt: skip


def _kind(call: Call) -> str:
    name = op_name(call)
    if is_row_norm(call) and has_compute(call):
        return NORM
    if not has_compute(call) or not isinstance(call.checked_type, TensorType) or name in ALONE:
        return "opaque"
    if name in HEADS:
        return str(name)
    if name in VIEWS:
        return "view"
    pattern = _pattern(call)
    if pattern == OpPattern.COMM_REDUCE:
        return "reduce"
    if pattern <= OpPattern.BROADCAST:
        return "elementwise"
    return "injective" if pattern == OpPattern.INJECTIVE else "opaque"


def _pattern(call: Call) -> OpPattern:
    value = op_attr(call, "TOpPattern")
    return OpPattern.OPAQUE if value is None else OpPattern(value)


def _tensor(node: Expr) -> TensorType | None:
    kind = node.checked_type
    return kind if isinstance(kind, TensorType) else None


def _with_operands(node: Expr, new: dict[int, Expr]) -> Expr:
    if isinstance(node, Tuple):
        fields = tuple(new.get(id(f), f) for f in node.fields)
        same = all(a is b for a, b in zip(fields, node.fields, strict=True))
        return node if same else node.copy(fields=fields)
    if isinstance(node, TupleGetItem):
        return node.copy(tuple_value=new.get(id(node.tuple_value), node.tuple_value))
    assert isinstance(node, Call)
    return node.copy(args=tuple(new.get(id(a), a) for a in node.args))


def _is_scalar(expr: Expr) -> bool:
    return isinstance(expr, Constant) and expr.data.size == 1


def _formed(
    group: _Group,
    groups: dict[int, _Group],
    index: dict[int, int],
    counted: Container[int],
    new: dict[int, Expr],
) -> Call:
    """A call of the group's function on what it reads from outside."""
    inside: dict[int, Expr] = {}
    params: list[Var] = []
    args: list[Expr] = []

    def operand(expr: Expr, scalars: bool) -> Expr:
        if id(expr) in inside:
            return inside[id(expr)]
        if scalars and _is_scalar(expr):
            return expr
        if scalars and index.get(id(expr)) in counted and group.kind in SIMPLE:
            return expr  # with all that it is computed from: nothing of it comes from outside
        if _read_through(group.kind, expr, new, groups, index):
            chain: list[Call] = []
            source: Expr = expr
            while id(source) not in inside and _repeatable(source, groups, index):
                chain.append(source)
                source = source.args[0]
            value = operand(source, True)
            for move in reversed(chain):
                rest = tuple(operand(a, True) for a in move.args[1:])
                value = inside[id(move)] = move.copy(args=(value, *rest))
            return value
        if isinstance(expr, Tuple):
            return Tuple(tuple(operand(f, scalars) for f in expr.fields), span=expr.span)
        var = Var(f"p{len(params)}", expr.checked_type)
        params.append(var)
        args.append(new.get(id(expr), expr))
        inside[id(expr)] = var
        return var

    last = group.calls[-1]
    for call in group.calls:
        scalars = op_name(call) not in HEADS and op_attr(call, "FTVMCompute") is not None
        inside[id(call)] = call.copy(args=tuple(operand(a, scalars) for a in call.args))
    body = inside[id(last)]
    kind = group.kind if group.kind != "opaque" else str(op_name(last))
    function = Function(params, body, last.checked_type, attrs={"Primitive": 1, "kernel": kind})
    return Call(function, tuple(args), span=last.span)
