"""From planned steps to the runtime's outline: rooms, host steps, kernels to compile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ixion.base.dim import Dim, add
from ixion.base.guard import Guard
from ixion.base.target import Target
from ixion.ir import Call, Function
from ixion.kernel.sizes import dim_of
from ixion.lower.account import account
from ixion.lower.carry import join_carries
from ixion.lower.join import join_copies, join_results, lifetimes
from ixion.lower.lower import Lowering
from ixion.lower.merge import merge_small
from ixion.lower.overlap import spread_lifetimes
from ixion.lower.step import PlannedStep
from ixion.lower.storage import Storage, Value
from ixion.op.typed import attrs_of, dtype_of, known_dims, op_name
from ixion.runtime.outline import Outline, OutlineStep, RoomSpec
from ixion.runtime.program import HostStep, TensorSpec
from ixion.te.stmt import Kernel
from ixion.te.text import kernel_key


@dataclass(eq=False)
class Assembled:
    """An outline without machine code, and the kernels it needs by symbol."""

    outline: Outline
    kernels: dict[str, Kernel]


def assemble(
    func: Function,
    target: Target,
    input_names: Sequence[str],
    output_names: Sequence[str],
    *,
    consume: bool = False,
    guards: Sequence[Guard] = (),
    carried: Sequence[int] = (),
    regions: Mapping[str, Function] | None = None,
) -> Assembled:
    """Lowers ``func`` (formed kernels with layouts) for ``target``.

    ``regions``: functions that control operators run, by name.
    With ``consume`` the function's constants are freed as they are packed: nobody may look at it
    or at the module that it came from again.  ``carried``: inputs that kernels may
    write.  Raises CodegenError for what has no compiled form.
    """
    lowering = Lowering(
        target, consume=consume, regions=regions or {}, carried=frozenset(carried)
    )
    lowering.run(func)
    places = _output_places(lowering)
    # What is written into a concatenation is written early: copies are looked at after that.
    lowering.steps = join_copies(lowering.steps, lowering.results)
    lowering.steps = join_carries(lowering.steps, lowering.results)
    lifetimes(lowering.steps, lowering.results)
    join_results(lowering.steps)
    lowering.steps = merge_small(lowering.steps)
    lifetimes(lowering.steps, lowering.results)
    spread_lifetimes(lowering.steps)
    kernels, symbols = _named_kernels(lowering.steps)
    sketch = _Sketch(symbols, numbers_of(lowering.steps))
    steps = [sketch.step(step) for step in lowering.steps if step.kind != "mark"]
    output_rooms = [-1 if p is None else sketch.room(p) for p in places]
    outputs = [
        TensorSpec(n, v.shape, v.dtype)  # type: ignore[arg-type]
        for n, v in zip(output_names, lowering.results, strict=True)
    ]
    inputs = [
        TensorSpec(n, known_dims(p), dtype_of(p))  # type: ignore[arg-type]
        for n, p in zip(input_names, func.params, strict=True)
    ]
    outline = Outline(
        sketch.rooms, steps, lowering.constants.arrays, inputs, outputs, target.key(),
        hosts=sketch.hosts, output_rooms=output_rooms, guards=list(guards), carried=list(carried),
    )  # fmt: skip
    if not outline.is_open:
        outline.meta["account"] = account([s for s in lowering.steps if s.kind != "mark"])
    return Assembled(outline, kernels)


@dataclass(eq=False)
class _Sketch:
    """Numbers storages as rooms, and writes steps in terms of them."""

    symbols: dict[int, str]
    places: dict[int, int]  # of steps among those that are no marks
    rooms: list[RoomSpec] = field(default_factory=list)
    hosts: list[HostStep] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.joints: dict[int, int] = {}
        self.kept: list[Storage] = []  # so that ids stay theirs

    def room(self, storage: Storage) -> int:
        """The number of a storage's room; those around it are numbered before it."""
        chain = [storage]
        while chain[-1].parent is not None and id(chain[-1]) not in self.numbers:
            chain.append(chain[-1].parent)
        for one in reversed(chain):
            if id(one) not in self.numbers:
                self._number(one)
        return self.numbers[id(storage)]

    def _number(self, storage: Storage) -> None:
        parent = -1 if storage.parent is None else self.numbers[id(storage.parent)]
        self.numbers[id(storage)] = len(self.rooms)
        self.kept.append(storage)
        self.rooms.append(RoomSpec(
            storage.kind, storage.nbytes, storage.index, storage.first, storage.last, parent,
            storage.at,
        ))  # fmt: skip

    def step(self, planned: PlannedStep) -> OutlineStep:
        rooms = tuple(self.room(s) for s in planned.places)
        only_read = {v.storage for v in planned.reads} - {v.storage for v in planned.writes}
        written = tuple(s not in only_read for s in planned.places)
        if planned.host is not None:
            self.hosts.append(_host_step(planned.host, planned.reads, planned.writes))
            number = len(self.hosts) - 1
            return OutlineStep("host", "", rooms, written, label=planned.label, host=number)
        if planned.kind != "call":
            return self._control(planned, rooms, written)
        kernel = planned.kernel
        assert kernel is not None
        when = None if kernel.when is None else (dim_of(kernel.when[0]), *kernel.when[1:])
        moved: Dim = 0
        for value in (*planned.reads, *planned.writes):
            moved = add(moved, value.nbytes)
        return OutlineStep(
            "call", self.symbols[id(kernel)], rooms, written,
            tuple(dim_of(v) for v in kernel.values), dim_of(kernel.tasks), dim_of(kernel.scratch),
            when, self._joint(planned), planned.label, planned.products, moved,
        )  # fmt: skip

    def _control(
        self, planned: PlannedStep, rooms: tuple[int, ...], written: tuple[bool, ...]
    ) -> OutlineStep:
        target = -1 if planned.target is None else self.places[id(planned.target)]
        width = 1 if planned.reads and planned.reads[0].dtype == "bool" else 8
        return OutlineStep(
            planned.kind, "", rooms, written, label=planned.label,  # type: ignore[arg-type]
            target=target, counter=planned.counter, width=width,
        )  # fmt: skip

    def _joint(self, planned: PlannedStep) -> int:
        if not planned.calls or op_name(planned.calls[0]) != "concatenate":
            return -1
        return self.joints.setdefault(id(planned.calls), len(self.joints))


def numbers_of(steps: Sequence[PlannedStep]) -> dict[int, int]:
    """Where each step stands among those that are no marks; a mark where the next one stands."""
    found: dict[int, int] = {}
    number = 0
    for step in steps:
        found[id(step)] = number
        number += step.kind != "mark"
    return found


def _output_places(lowering: Lowering) -> list[Storage | None]:
    """Results that a kernel writes straight into the caller's array give None."""
    places: list[Storage | None] = []
    written = {v.storage.root()[0] for step in lowering.steps for v in step.writes}
    storages = [v.storage for v in lowering.results]
    for number, value in enumerate(lowering.results):
        storage = value.storage
        if storages.count(storage) > 1:
            places.append(storage)
        elif storage in written and storage.kind == "arena" and storage.nbytes == value.nbytes:
            storage.kind, storage.index = "output", number
            places.append(None)
        else:
            places.append(storage)
    return places


def _named_kernels(steps: Sequence[PlannedStep]) -> tuple[dict[str, Kernel], dict[int, str]]:
    """Kernels by symbol, equal ones once, and the symbol of each by its id."""
    kernels: dict[str, Kernel] = {}
    symbols: dict[int, str] = {}
    for step in steps:
        kernel = step.kernel
        if kernel is not None and id(kernel) not in symbols:
            symbols[id(kernel)] = symbol = f"ix_{kernel_key(kernel)[:32]}"
            kernels.setdefault(symbol, kernel)
    return kernels, symbols


def _host_step(call: Call, reads: Sequence[Value], writes: Sequence[Value]) -> HostStep:
    attrs: dict[str, Any] = {}
    if call.attrs is not None:
        attrs = {k: _jsonable(v) for k, v in attrs_of(call).items()}
    return HostStep(
        op_name(call), attrs,
        tuple(TensorSpec(f"in{i}", v.shape, v.dtype) for i, v in enumerate(reads)),  # type: ignore[arg-type]
        tuple(TensorSpec(f"out{i}", v.shape, v.dtype) for i, v in enumerate(writes)),  # type: ignore[arg-type]
    )  # fmt: skip


def _jsonable(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_jsonable(v) for v in value]
    return value
