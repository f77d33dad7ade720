"""PlanLayouts: a memory layout for every value between formed kernels.

Each kernel's schedule says which layouts it must have, and for the free ones what they would cost.
Going through the program in order, a kernel whose output layout is free takes the cheapest one,
counting the conversions that later kernels would need.  Where a kernel must have another layout
than its operand has, a *relayout* kernel (a copy) is put between; results are plain.

Values stay the same: layouts are attributes (``in_layouts``, ``out_layout``) of the kernels, and
logical shapes do not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ixion.analysis.dataflow import calls_inside, dataflow_order
from ixion.base.target import Target
from ixion.ir import (
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    structural_hash,
)
from ixion.kernel.group import Group, extents_of
from ixion.kernel.layout import PLAIN, Layout
from ixion.kernel.schedule import Schedule, channel_block, schedule_for
from ixion.kernel.sizes import product, typical
from ixion.op.call import call as make_call
from ixion.op.control import is_control
from ixion.op.typed import callee, dims_of, op_name, tensor_type
from ixion.transform.context import PassContext
from ixion.transform.form_kernels import VIEWS, has_compute
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import FunctionPass
from ixion.transform.registry import register_pass


@register_pass("PlanLayouts")
@dataclass(frozen=True)
class PlanLayouts(FunctionPass):
    """Fixes layouts for one target; runs after FormKernels."""

    target: str | Target = "native"
    info = PassInfo(0, "PlanLayouts", ["InferType"])

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        if func.attrs is not None and func.attrs.get("Primitive"):
            return func
        planner = _Planner(func, Target.parse(self.target))
        return func.copy(body=planner.run())


@dataclass(eq=False)
class _Planner:
    func: Function
    target: Target

    def __post_init__(self) -> None:
        self.nodes = dataflow_order(self.func.body)
        self.kernels = [n for n in self.nodes if isinstance(n, Call) and _is_formed(n)]
        self.schedules: dict[int, Schedule | None] = {}
        self.known: dict[tuple[int, tuple[bool, ...]], Schedule | None] = {}
        self.layouts: dict[int, Layout] = {}
        self.new: dict[int, Expr] = {}
        self.converted: dict[tuple[int, Layout], Expr] = {}
        self.wishes: dict[int, list[Layout]] = {}

    def run(self) -> Expr:
        for kernel in self.kernels:
            self.schedules[id(kernel)] = self._schedule(kernel)
            self._note_wishes(kernel)
        for node in self.nodes:
            if isinstance(node, Call) and is_control(node):
                for arg in node.args:
                    for part in arg.fields if isinstance(arg, Tuple) else (arg,):
                        self.wishes.setdefault(id(part), []).append(PLAIN)
        for node in self.nodes:
            self._visit(node)
        return self._plain(self.func.body)

    def _schedule(self, node: Call) -> Schedule | None:
        constant = tuple(isinstance(a, Constant) for a in node.args)
        function = callee(node)
        key = (structural_hash(function), constant)
        if key not in self.known:
            computed = all(has_compute(c) for c in calls_inside(function))
            self.known[key] = (
                schedule_for(Group(function, constant), self.target) if computed else None
            )
        return self.known[key]

    def _note_wishes(self, node: Call) -> None:
        schedule = self.schedules[id(node)]
        for i, arg in enumerate(node.args):
            wanted = schedule.wanted(i) if schedule is not None else PLAIN
            if wanted is not None:
                self.wishes.setdefault(id(arg), []).append(wanted)

    def _visit(self, node: Expr) -> None:
        if id(node) in self.schedules:
            assert isinstance(node, Call)
            self._kernel(node)
        elif isinstance(node, Tuple):
            fields = tuple(self._value(f) for f in node.fields)
            same = all(a is b for a, b in zip(fields, node.fields, strict=True))
            self.new[id(node)] = node if same else node.copy(fields=fields)
        elif isinstance(node, TupleGetItem):
            self.new[id(node)] = node.copy(tuple_value=self._value(node.tuple_value))
        elif isinstance(node, Call) and is_control(node):
            # Regions take and give plain tensors.
            self.new[id(node)] = node.copy(args=tuple(self._plain(arg) for arg in node.args))
        else:
            self.new[id(node)] = node

    def _value(self, node: Expr) -> Expr:
        return self.new.get(id(node), node)

    def _layout(self, node: Expr) -> Layout:
        return self.layouts.get(id(node), PLAIN)

    def _kernel(self, node: Call) -> None:
        schedule = self.schedules[id(node)]
        args, layouts = [], []
        for i, arg in enumerate(node.args):
            wanted = schedule.wanted(i) if schedule is not None else PLAIN
            known = isinstance(arg, Constant)
            layout = self._layout(arg) if wanted is None or known else wanted
            args.append(self._value(arg) if known else self._in_layout(arg, layout))
            layouts.append(PLAIN if known else layout)
        out = self._choose(node, schedule, layouts)
        self.layouts[id(node)] = out
        self.new[id(node)] = _laid_out(node, args, layouts, out)

    def _choose(self, node: Call, schedule: Schedule | None, inputs: Sequence[Layout]) -> Layout:
        if schedule is None or not isinstance(node.checked_type, TensorType) or _is_view(node):
            return PLAIN
        fixed = schedule.result()
        if fixed is not None:
            return fixed
        candidates = [PLAIN]
        if len(dims_of(node)) >= 3:
            candidates.append(channel_block(self.target))
        if len(candidates) == 1:
            return PLAIN
        return min(candidates, key=lambda c: self._cost(node, schedule, inputs, c))

    def _cost(self, node: Call, schedule: Schedule, inputs: Sequence[Layout], out: Layout) -> float:
        shape = dims_of(node)
        size = typical(product(extents_of(node)))
        wishes = self.wishes.get(id(node), [])
        wrong = sum(not out.same_memory(w, shape) for w in set(wishes))
        if not wishes and not out.same_memory(PLAIN, shape):
            wrong = int(node is self.func.body)
        return schedule.cost(inputs, out) + wrong * size * self.target.lanes("float32")

    def _in_layout(self, arg: Expr, layout: Layout) -> Expr:
        """The operand in a layout, through a relayout kernel where its memory differs."""
        have = self._layout(arg)
        value = self._value(arg)
        kind = arg.checked_type
        if have == layout or not isinstance(kind, TensorType):
            return value
        key = (id(arg), layout)
        if key not in self.converted:
            self.converted[key] = _relayout(value, kind, have, layout)
        return self.converted[key]

    def _plain(self, result: Expr) -> Expr:
        """A result of the program, plain; tuples field by field, without recursion."""
        made: dict[int, Expr] = {}
        stack = [result]
        while stack:
            node = stack[-1]
            if isinstance(node, Tuple):
                todo = [f for f in node.fields if id(f) not in made]
                if todo:
                    stack.extend(todo)
                    continue
                made[id(node)] = node.copy(fields=tuple(made[id(f)] for f in node.fields))
            else:
                made[id(node)] = self._in_layout(node, PLAIN)
            stack.pop()
        return made[id(result)]


def _is_formed(node: Call) -> bool:
    return isinstance(node.op, Function)


def _is_view(node: Call) -> bool:
    return all(op_name(c) in VIEWS for c in calls_inside(callee(node)))


def _laid_out(node: Call, args: Sequence[Expr], inputs: Sequence[Layout], out: Layout) -> Call:
    """The kernel with its layouts as attributes."""
    function = callee(node)
    ranks = [len(tensor_type(p).shape) for p in function.params]
    texts = tuple(x.text(rank) for x, rank in zip(inputs, ranks, strict=True))
    kind = node.checked_type
    rank = len(kind.shape) if isinstance(kind, TensorType) else 0
    function = function.with_attr({"in_layouts": texts, "out_layout": out.text(rank)})
    return node.copy(op=function, args=tuple(args))


def _relayout(value: Expr, kind: TensorType, have: Layout, layout: Layout) -> Call:
    param = Var("p0", kind)
    rank = len(kind.shape)
    attrs = {
        "Primitive": 1, "kernel": "relayout", "in_layouts": (have.text(rank),),
        "out_layout": layout.text(rank),
    }  # fmt: skip
    function = Function([param], make_call("copy", param), kind, attrs=attrs)
    return Call(function, (value,), span=value.span)
