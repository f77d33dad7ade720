"""Control operators as steps: marks, branches, jumps and loops around the steps of their regions.

What a region gives is *carried* to where the operator's result lives: a copy, which ``carry``
leaves out wherever the value can be computed in that place at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ixion.base import dtype as dtypes
from ixion.base.abi import MAX_LOOPS
from ixion.base.dim import multiply, prod
from ixion.ir import Call, Constant, Expr, Function, TensorType, Tuple, Var
from ixion.ir.trampoline import Step
from ixion.kernel.layout import PLAIN
from ixion.lower.step import PlannedKind, PlannedStep
from ixion.lower.storage import Storage, Value
from ixion.op.call import call as make_call
from ixion.op.control import regions_of
from ixion.op.typed import op_name, tensor_type

if TYPE_CHECKING:
    from ixion.lower.lower import Lowering

__all__ = ["lower_control"]

Values = list[Value]


def lower_control(lowering: Lowering, call: Call) -> Step[Value | tuple[Value, ...]]:
    """Adds the steps of a control operator; gives its value. A step of ``ir.trampoline``."""
    return _RULES[op_name(call)](_Writer(lowering, call))


class _Writer:
    """Writes the steps of one call."""

    def __init__(self, lowering: Lowering, call: Call) -> None:
        self.lowering, self.call = lowering, call
        self.names = [var.name_hint for var in regions_of(call)]

    def values(self, arg: int) -> Values:
        """The tensors of a tuple argument."""
        given = self.call.args[arg]
        assert isinstance(given, Tuple)
        return [v for field in given.fields for v in self.lowering.flat(self.value(field))]

    def value(self, expr: Expr) -> Value | tuple[Value, ...]:
        return self.lowering.value(expr)

    def region(self, number: int, given: Sequence[Value]) -> Step[Values]:
        return self.lowering.inline(self.names[number], given)

    def place_for(self, value: Value) -> Value:
        """Memory of its own for a value like this one."""
        nbytes = multiply(prod(value.shape), dtypes.itemsize(value.dtype))
        storage = self.lowering.storage("arena", nbytes)
        return Value(storage, PLAIN, value.shape, value.dtype)

    def result_places(self) -> Values:
        """Memory for what the call gives."""
        kinds = [tensor_type(kind) for kind in self.call.checked_type.fields]  # type: ignore[attr-defined]
        return [self.place_for(Value(_NOWHERE, PLAIN, kind.shape, kind.dtype)) for kind in kinds]

    def carry(self, values: Sequence[Value], places: Sequence[Value]) -> None:
        """Puts values where they are wanted, as if all at once."""
        pairs = [
            (v, p) for v, p in zip(values, places, strict=True)
            if v.storage is not _NOWHERE and v.storage is not p.storage
        ]  # fmt: skip
        overwritten = {place.storage for _, place in pairs}
        moved: list[tuple[Value, Value]] = []
        for value, place in pairs:
            if value.storage.root()[0] in overwritten:
                # Another of these copies would overwrite it first.
                aside = self.place_for(value)
                self._copy(value, aside)
                value = aside  # noqa: PLW2901
            moved.append((value, place))
        for value, place in moved:
            self._copy(value, place)

    def _copy(self, value: Value, place: Value) -> None:
        if any(isinstance(d, int) and d == 0 for d in value.shape):
            return
        lowering = self.lowering
        kernel = lowering.kernels_of(_copy_of(value), (False,))
        for one, _ in kernel.kernels:
            lowering.steps.append(PlannedStep(
                "carry", [value], [place], [place.storage, value.storage], one, carries=True,
            ))  # fmt: skip

    def number(self, value: int) -> Value:
        """A constant scalar int64."""
        made = Constant(np.array(value, np.int64))
        made._set_checked_type(TensorType((), "int64"))
        self.lowering.made.append(made)
        return _single(self.value(made))

    def computed(self, name: str, dtype: str, *values: Value) -> Value:
        """An elementwise operator on scalars."""
        kernels = self.lowering.kernels_of(_scalar_kernel(name, dtype, values), (False, False))
        place = self.place_for(Value(_NOWHERE, PLAIN, (), dtype))
        places = [place.storage, *(value.storage for value in values)]
        for one, _ in kernels.kernels:
            self.lowering.steps.append(PlannedStep(name, [*values], [place], places, one))
        return place

    def mark(self) -> PlannedStep:
        """A place to go to, not yet among the steps."""
        return PlannedStep("", [], [], [], kind="mark")

    def add(
        self,
        kind: PlannedKind,
        target: PlannedStep | None = None,
        read: Value | None = None,
        counter: int = 0,
    ) -> None:
        reads = [] if read is None else [read]
        places = [value.storage for value in reads]
        label = f"{kind} {op_name(self.call)}"
        step = PlannedStep(label, reads, [], places, kind=kind, target=target, counter=counter)
        self.lowering.steps.append(step)

    def put(self, mark: PlannedStep) -> None:
        self.lowering.steps.append(mark)


_NOWHERE = Storage("arena", 0)


def _branch(writer: _Writer) -> Step[tuple[Value, ...]]:
    given = writer.values(3)
    other, end = writer.mark(), writer.mark()
    places = writer.result_places()
    writer.add("branch", other, _single(writer.value(writer.call.args[0])))
    writer.carry((yield writer.region(0, given)), places)
    writer.add("jump", end)
    writer.put(other)
    writer.carry((yield writer.region(1, given)), places)
    writer.put(end)
    return tuple(places)


def _loop(writer: _Writer) -> Step[tuple[Value, ...]]:
    start, kept = writer.values(2), writer.values(3)
    state = [writer.place_for(value) for value in start]
    top, end, behind = writer.mark(), writer.mark(), writer.mark()
    writer.carry(start, state)
    writer.add("solo", behind)
    writer.put(top)
    go, *passed = yield writer.region(0, [*state, *kept])
    writer.add("branch", end, go)
    writer.carry((yield writer.region(1, [*state, *kept, *passed])), state)
    writer.add("jump", top)
    writer.put(end)
    writer.put(behind)
    writer.add("together")
    return (*state, *passed)


def _repeat(writer: _Writer) -> Step[tuple[Value, ...]]:
    counter = writer.lowering.loops
    if counter >= MAX_LOOPS:
        deep: tuple[Value, ...] = yield _counted(writer)
        return deep
    start, kept = writer.values(2), writer.values(3)
    state = [writer.place_for(value) for value in start]
    top, end, behind = writer.mark(), writer.mark(), writer.mark()
    writer.carry(start, state)
    writer.add("solo", behind)
    writer.add("loop", end, _single(writer.value(writer.call.args[0])), counter)
    writer.put(top)
    writer.lowering.loops += 1
    writer.carry((yield writer.region(0, [*state, *kept])), state)
    writer.lowering.loops -= 1
    writer.add("next", top, counter=counter)
    writer.put(end)
    writer.put(behind)
    writer.add("together")
    return tuple(state)


def _counted(writer: _Writer) -> Step[tuple[Value, ...]]:
    """A loop with a count inside so many others that the sequencer has no counter left for it."""
    start, kept = writer.values(2), writer.values(3)
    count = _single(writer.value(writer.call.args[0]))
    zero, one = (writer.number(n) for n in (0, 1))
    number, *state = (writer.place_for(value) for value in (zero, *start))
    top, end, behind = writer.mark(), writer.mark(), writer.mark()
    writer.carry([zero, *start], [number, *state])
    writer.add("solo", behind)
    writer.put(top)
    writer.add("branch", end, writer.computed("less", "bool", number, count))
    new = yield writer.region(0, [*state, *kept])
    writer.carry([writer.computed("add", "int64", number, one), *new], [number, *state])
    writer.add("jump", top)
    writer.put(end)
    writer.put(behind)
    writer.add("together")
    return tuple(state)


def _unset(writer: _Writer) -> Step[Value]:
    kind = tensor_type(writer.call)
    yield from ()
    return Value(_NOWHERE, PLAIN, kind.shape, kind.dtype)


_RULES: dict[str, Callable[[_Writer], Step[Any]]] = {
    "control.branch": _branch,
    "control.loop": _loop,
    "control.repeat": _repeat,
    "control.unset": _unset,
}


def _single(value: Value | tuple[Value, ...]) -> Value:
    assert isinstance(value, Value)
    return value


def _copy_of(value: Value) -> Function:
    """A formed kernel that copies a plain tensor."""
    kind = TensorType((prod(value.shape),), value.dtype)
    return _formed("copy", "relayout", [kind], kind)


def _scalar_kernel(name: str, dtype: str, values: Sequence[Value]) -> Function:
    kinds = [TensorType((), value.dtype) for value in values]
    return _formed(name, "elementwise", kinds, TensorType((), dtype))


def _formed(name: str, kernel: str, kinds: Sequence[TensorType], result: TensorType) -> Function:
    """A formed kernel of one operator on plain tensors."""
    params = [Var(f"p{i}", kind) for i, kind in enumerate(kinds)]
    for param, kind in zip(params, kinds, strict=True):
        param._set_checked_type(kind)
    body = make_call(name, *params)
    body._set_checked_type(result)
    layouts = ("",) * len(params)
    attrs = {"Primitive": 1, "kernel": kernel, "in_layouts": layouts, "out_layout": ""}
    return Function(params, body, result, attrs=attrs)
