"""Lowers a function of formed kernels with planned layouts to steps.

Every formed kernel becomes the loop nests of its schedule (kernels that are structurally equal are
lowered once), views become other names of the same memory, and what has no compute becomes a host
step.  Storages then get joined where a result can overwrite its operand or an operand can be
written straight into a concatenation, and the rest is planned into one arena.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ixion.analysis.dataflow import calls_inside, dataflow_order, operands
from ixion.base import dtype as dtypes
from ixion.base.dim import Dim, add, floordiv, multiply, prod
from ixion.base.errors import CodegenError
from ixion.base.target import Target
from ixion.ir import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    structural_hash,
)
from ixion.ir.trampoline import Step as Stepwise
from ixion.ir.trampoline import run
from ixion.kernel.group import Group
from ixion.kernel.layout import PLAIN, Layout, parse_layout
from ixion.kernel.schedule import Lowered, Place, layout_pack, schedule_for
from ixion.kernel.sizes import dim_of
from ixion.lower.constants import ConstantStore, Originals
from ixion.lower.control import lower_control
from ixion.lower.step import PlannedStep
from ixion.lower.storage import Storage, Value
from ixion.op.call import call
from ixion.op.control import is_control, regions_of
from ixion.op.typed import (
    callee,
    dtype_of,
    field_types,
    function_attr,
    known_dims,
    op_attr,
    op_name,
    shape_of,
)
from ixion.te.sized import bind_sizes
from ixion.te.stmt import Kernel
from ixion.te.tensor import Extent
from ixion.transform.form_kernels import VIEWS, has_compute
from ixion.transform.infer_type import InferType

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(eq=False)
class Lowering:
    """The steps and storages of one function; results are values in plain layout."""

    target: Target
    steps: list[PlannedStep] = field(default_factory=list)
    storages: list[Storage] = field(default_factory=list)
    # Whether the module may be used up: packed constants then replace the originals.
    consume: bool = False
    # Numbers of the inputs that kernels may write.
    carried: frozenset[int] = frozenset()
    # Functions that control operators run, by name.
    regions: Mapping[str, Function] = field(default_factory=dict)
    constants: ConstantStore = field(default_factory=ConstantStore)
    results: list[Value] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.values: dict[int, Value | tuple[Value, ...]] = {}
        self.lowered: dict[object, Lowered] = {}
        self.packed: dict[object, Value] = {}
        self.loops = 0  # counted loops around the steps that are being added
        self.made: list[Constant] = []  # beside the function's; their ids are keys too

    def run(self, func: Function) -> None:
        """Lowers the function's body; raises CodegenError for what has no compiled form."""
        for i, param in enumerate(func.params):
            kind = "carried" if i in self.carried else "input"
            storage = self.storage(kind, _nbytes(param), i)
            self.values[id(param)] = Value(storage, PLAIN, known_dims(param), dtype_of(param))
        order = dataflow_order(func.body)
        self.function = func  # ids of its nodes are keys
        self.originals = Originals(self._constant_uses(order)) if self.consume else None
        run(self._body(order))
        self.results = list(self.flat(self.value(func.body)))

    def inline(self, name: str, given: Sequence[Value]) -> Stepwise[list[Value]]:
        """The results of a region whose steps are added here."""
        func, outer = self.regions[name], self.values
        self.values = {id(p): v for p, v in zip(func.params, given, strict=True)}
        yield self._body(dataflow_order(func.body))
        results = list(self.flat(self.value(func.body)))
        self.values = outer
        return results

    def _body(self, order: Sequence[Expr]) -> Stepwise[None]:
        """Lowers nodes in order; regions nest without Python's stack."""
        for node in order:
            if isinstance(node, Call) and is_control(node):
                self.values[id(node)] = yield lower_control(self, node)
            else:
                self._visit(node)

    def storage(self, kind: Any, nbytes: Dim, index: int = 0) -> Storage:
        storage = Storage(kind, nbytes, index)
        self.storages.append(storage)
        return storage

    def _visit(self, node: Expr) -> None:
        if isinstance(node, Tuple):
            self.values[id(node)] = tuple(
                v for f in node.fields for v in self.flat(self.value(f))
            )
        elif isinstance(node, TupleGetItem):
            fields = self.value(node.tuple_value)
            assert isinstance(fields, tuple)
            self.values[id(node)] = fields[node.index]
        elif isinstance(node, Call) and isinstance(node.op, Function):
            first = len(self.steps)
            self._formed(node)
            calls = calls_inside(callee(node))
            for step in self.steps[first:]:
                step.calls = calls
        elif id(node) not in self.values and not isinstance(node, (Var, Constant, GlobalVar)):
            raise CodegenError(
                f"{type(node).__name__} has no compiled form yet",
                where=getattr(node, "span", None),
                hint='use executor="reference" for programs with control flow',
            )  # fmt: skip

    def value(self, node: Expr) -> Value | tuple[Value, ...]:
        if isinstance(node, Constant) and id(node) not in self.values:
            pack = layout_pack(PLAIN)
            self.values[id(node)] = self._constant(node, pack.key, pack.apply(node.data))
        return self.values[id(node)]

    def flat(self, value: Value | tuple[Value, ...]) -> tuple[Value, ...]:
        return value if isinstance(value, tuple) else (value,)

    def _constant(self, node: Constant, key: str, packed: Array | None = None) -> Value:
        full = (id(node), key)
        if full not in self.packed:
            assert packed is not None
            number = self.constants.add(packed, ours=self.consume)
            storage = self.storage("const", packed.nbytes, number)
            self.packed[full] = Value(storage, PLAIN, shape_of(node), dtype_of(node))
        return self.packed[full]

    def _constant_uses(self, order: Sequence[Expr]) -> Iterator[Constant]:
        """Constants once for every use, results included, in all regions as often as they run."""
        orders = [order]
        while orders:
            order = orders.pop()
            for node in (*order, Tuple(order[-1:])):
                for operand in operands(node):
                    if isinstance(operand, Constant):
                        yield operand
                if isinstance(node, Call) and is_control(node):
                    bodies = [self.regions[var.name_hint].body for var in regions_of(node)]
                    orders += [dataflow_order(body) for body in bodies]

    # Formed kernels.

    def _formed(self, node: Call) -> None:
        function = callee(node)
        calls = calls_inside(function)
        label = _label(node, calls)
        if not all(has_compute(c) for c in calls):
            self._host(node, calls[-1], label)
            return
        if self._alias(node, calls) or self._overwrites(node, calls, label):
            return
        if all(_is_empty(f) for f in field_types(node)):
            outputs = self._outputs(node)
            one = isinstance(node.checked_type, TensorType)
            self.values[id(node)] = outputs[0] if one else tuple(outputs)
            return
        constant = tuple(isinstance(a, Constant) for a in node.args)
        self._emit(node, self.kernels_of(function, constant), label, _products(calls))

    def kernels_of(self, function: Function, constant: tuple[bool, ...]) -> Lowered:
        """The kernels of a formed kernel, made once for equal ones."""
        key = (structural_hash(function), constant)
        if key not in self.lowered:
            self.lowered[key] = self._lower(function, constant)
        return self.lowered[key]

    def _lower(self, function: Function, constant: tuple[bool, ...]) -> Lowered:
        group = Group(function, constant)
        inputs = [parse_layout(t) for t in function_attr(function, "in_layouts")]
        out = parse_layout(function_attr(function, "out_layout"))
        lowered = schedule_for(group, self.target).lower("kernel", inputs, out)
        if group.is_open:
            for kernel, _ in lowered.kernels:
                bind_sizes(kernel)
        return lowered

    def _alias(self, node: Call, calls: Sequence[Call]) -> bool:
        """A view gets no step: another shape or layout of the same memory."""
        if not all(op_name(c) in VIEWS for c in calls) or isinstance(node.args[0], Constant):
            return False
        source = self.value(node.args[0])
        out = parse_layout(function_attr(callee(node), "out_layout"))
        shape = known_dims(node)
        assert isinstance(source, Value)
        relabelled = all(op_name(c) == "copy" for c in calls)
        if relabelled and not source.layout.same_memory(out, shape):
            return False
        if not relabelled and not (
            source.layout.same_memory(PLAIN, source.shape) and out.same_memory(PLAIN, shape)
        ):
            return False
        self.values[id(node)] = Value(source.storage, out, shape, dtype_of(node))
        return True

    def _overwrites(self, node: Call, calls: Sequence[Call], label: str) -> bool:
        """An operator that changes an operand: its result is that memory, or a copy of it."""
        position = op_attr(calls[0], "TWritesOperand") if len(calls) == 1 else None
        if position is None:
            return False
        arg = node.args[callee(node).params.index(calls[0].args[position])]
        target = self.value(arg)
        assert isinstance(target, Value)
        if target.storage.root()[0].kind != "carried":
            target = self._copied(arg, target, label)
        lowered = self._lower(callee(node), tuple(isinstance(a, Constant) for a in node.args))
        inputs = [target if a is arg else self._argument(a, i, lowered)
                  for i, a in enumerate(node.args)]  # fmt: skip
        for kernel, places in lowered.kernels:
            self._step(kernel, places, inputs, [target], [], lowered, label, 0)
        self.values[id(node)] = target
        return True

    def _copied(self, arg: Expr, value: Value, label: str) -> Value:
        param = Var("p0", arg.checked_type)
        text = PLAIN.text(len(value.shape))
        attrs = {"Primitive": 1, "kernel": "relayout", "in_layouts": (text,), "out_layout": text}
        kind = param.type_annotation
        function = Function([param], call("copy", param), kind, attrs=attrs)
        function = InferType()(IRModule.from_expr(function))["main"]
        lowered = self._lower(function, (False,))
        copy = Value(self.storage("arena", value.nbytes), PLAIN, value.shape, value.dtype)
        for kernel, places in lowered.kernels:
            self._step(kernel, places, [value], [copy], [], lowered, label, 0)
        return copy

    def _emit(self, node: Call, lowered: Lowered, label: str, products: Dim) -> None:
        inputs = [self._argument(a, i, lowered) for i, a in enumerate(node.args)]
        outputs = self._outputs(node)
        temps = [self.storage("arena", dim_of(n)) for n in lowered.temps]
        for number, (kernel, places) in enumerate(lowered.kernels):
            self._step(kernel, places, inputs, outputs, temps, lowered, label, products)
            self.steps[-1].carries = number in lowered.moves
            if number in lowered.copies:
                self._note_copy(self.steps[-1], lowered.copies[number], outputs[0])
        kind = node.checked_type
        self.values[id(node)] = outputs[0] if isinstance(kind, TensorType) else tuple(outputs)

    def _argument(self, arg: Expr, i: int, lowered: Lowered) -> Value:
        if not isinstance(arg, Constant):
            value = self.value(arg)
            assert isinstance(value, Value)
            return value
        pack = lowered.packs.get(i, layout_pack(PLAIN))
        known = (id(arg), pack.key) in self.packed
        found = self._constant(arg, pack.key, None if known else pack.apply(arg.data))
        if self.originals is not None:
            self.originals.used(arg)
        return found

    def _outputs(self, node: Call) -> list[Value]:
        layout = parse_layout(function_attr(callee(node), "out_layout"))
        outputs = []
        for f in field_types(node):
            shape = known_dims(f)
            nbytes = layout.size(shape) * dtypes.itemsize(f.dtype)
            outputs.append(Value(self.storage("arena", nbytes), layout, shape, f.dtype))
        return outputs

    def _step(
        self,
        kernel: Kernel,
        places: Sequence[Place],
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        temps: Sequence[Storage],
        lowered: Lowered,
        label: str,
        products: Dim,
    ) -> None:
        storages: list[Storage] = []
        reads: list[Value] = []
        written: list[Value] = []
        for place in places:
            if place.kind == "temp":
                storages.append(temps[place.index])
                continue
            value = _part((inputs if place.kind == "in" else outputs)[place.index], place)
            storages.append(value.storage)
            (reads if place.kind == "in" or place.read else written).append(value)
            if place.keeps:
                reads.append(value)
        in_place = [
            n for n, p in enumerate(places) if p.kind == "in" and p.index in lowered.in_place
        ]
        self.steps.append(PlannedStep(
            label, reads, written, storages, kernel, in_place=in_place,
            products=floordiv(products, len(lowered.kernels)),
        ))  # fmt: skip

    def _note_copy(self, step: PlannedStep, copy: tuple[int, Extent], out: Value) -> None:
        """Remembers that a step only puts its one operand ``copy[1]`` elements into ``out``."""
        step.copy_to = multiply(dim_of(copy[1]), dtypes.itemsize(out.dtype))

    def _host(self, node: Call, call: Call, label: str) -> None:
        inputs: list[Value] = []
        given = {id(p): a for p, a in zip(callee(node).params, node.args, strict=True)}
        for arg in call.args:
            for one in arg.fields if isinstance(arg, Tuple) else (arg,):
                inputs.extend(self.flat(self.value(given.get(id(one), one))))
        outputs = [
            Value(self.storage("arena", _nbytes(f)), PLAIN, known_dims(f), f.dtype)
            for f in field_types(node)
        ]
        storages = [v.storage for v in (*inputs, *outputs)]
        self.steps.append(PlannedStep(label, inputs, outputs, storages, host=call))
        kind = node.checked_type
        self.values[id(node)] = outputs[0] if isinstance(kind, TensorType) else tuple(outputs)


def _part(value: Value, place: Place) -> Value:
    """What a kernel sees of a value: all of it, or some elements as a storage inside its own."""
    if place.length is None:
        return value
    width, length, start = dtypes.itemsize(value.dtype), dim_of(place.length), dim_of(place.start)
    storage = Storage(
        value.storage.kind, multiply(length, width), parent=value.storage,
        at=multiply(start, width),
    )  # fmt: skip
    return Value(storage, PLAIN, (length,), value.dtype)


def _nbytes(node: Expr | TensorType) -> Dim:
    return multiply(prod(known_dims(node)), dtypes.itemsize(dtype_of(node)))


def _is_empty(kind: TensorType) -> bool:
    return any(isinstance(d, int) and d == 0 for d in kind.shape)


def _label(node: Call, calls: Sequence[Call]) -> str:
    """What a step stands for: the fused ops, and the node of the model they come from."""
    ops = "+".join(op_name(c).removeprefix("nn.") for c in calls)
    origin = getattr(node.span, "source_name", None)
    return f"{ops} [{origin.name}]" if origin is not None else ops


def _products(calls: Sequence[Call]) -> Dim:
    total: Dim = 0
    for c in calls:
        count = op_attr(c, "FMacCount")
        if count is not None:
            types = tuple(a.checked_type for a in c.args)
            total = add(total, count(c.attrs, types, c.checked_type))
    return total


__all__ = ["Layout", "Lowering", "PlannedStep"]
