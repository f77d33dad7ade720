"""A program before its sizes are known: what ``Program`` is made of, sizes as dims.

Everything that does not depend on sizes is settled: which kernels run in which order on which
pieces of memory, how long each piece is needed, which share one.  ``Outline.program`` evaluates
the dims, plans the arena and says where barriers are needed; an outline without symbols has one
program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy.typing as npt

from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.base.guard import Guard
from ixion.runtime.barriers import Touch, needed_barriers
from ixion.runtime.memory import Room, plan
from ixion.runtime.program import (
    HostStep,
    Program,
    Slot,
    StateSpec,
    Step,
    StepKind,
    TensorSpec,
    aligned,
    is_settled,
    settled,
)
from ixion.runtime.size_table import SizeTable


@dataclass(frozen=True)
class RoomSpec:
    """A piece of memory.  ``first`` and ``last``: steps that first write and last read it.

    One with a ``parent`` (its number) lies ``at`` bytes into that.
    """

    kind: str
    nbytes: Dim
    index: int = 0
    first: int = -1
    last: int = -1
    parent: int = -1
    at: Dim = 0


@dataclass(frozen=True)
class OutlineStep:
    """A step over rooms, by number; what its kernel gets are their addresses, then ``scalars``.

    ``written[i]``: whether the step writes room i.  ``joint``: steps of one concatenation, which
    write different parts of one tensor, have the same number there, others -1.  ``when``: only
    done where this dim lies between the two numbers.  ``products``: multiply-adds; ``moved``:
    bytes.
    """

    kind: StepKind = "call"
    kernel: str = ""
    rooms: tuple[int, ...] = ()
    written: tuple[bool, ...] = ()
    scalars: tuple[Dim, ...] = ()
    tasks: Dim = 1
    scratch: Dim = 0
    when: tuple[Dim, int, int] | None = None
    joint: int = -1
    label: str = ""
    products: Dim = 0
    moved: Dim = 0
    host: int = -1
    target: int = -1
    counter: int = 0
    width: int = 8


@dataclass
class Outline:
    """Everything a program is made from.

    ``output_rooms[i]``: where result i lies after a run, -1 where a kernel writes it into the
    caller's array.  ``carried``: inputs that are state kept by the caller and may be written.
    """

    rooms: list[RoomSpec]
    steps: list[OutlineStep]
    constants: list[npt.NDArray[Any]]
    inputs: list[TensorSpec]
    outputs: list[TensorSpec]
    target_key: str
    objects: list[bytes] = field(default_factory=list)
    hosts: list[HostStep] = field(default_factory=list)
    states: list[StateSpec] = field(default_factory=list)
    output_rooms: list[int] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    carried: list[int] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)
    _table: SizeTable | None = field(default=None, repr=False)

    @property
    def is_open(self) -> bool:
        """Whether a size is known at run time only."""
        return any(not isinstance(d, int) for spec in self.inputs for d in spec.shape)

    def size_table(self) -> SizeTable:
        """Every dim of the outline, ready to be evaluated."""
        if self._table is None:
            self._table = SizeTable()
            for dim in self._dims():
                if not isinstance(dim, int):
                    self._table.add(dim)
        return self._table

    def _dims(self) -> Iterator[Dim]:
        for room in self.rooms:
            yield from (room.nbytes, room.at)
        for step in self.steps:
            yield from (step.tasks, step.scratch, step.products, step.moved, *step.scalars)
            if step.when is not None:
                yield step.when[0]
        specs = [*self.inputs, *self.outputs]
        for host in self.hosts:
            specs += [*host.inputs, *host.outputs]
            yield from _attr_dims(host.attrs)
        for spec in specs:
            yield from spec.shape

    def settle(self) -> None:
        """Moves the constants into one block (see ``Program.settle``)."""
        if not all(is_settled(array) for array in self.constants):
            self.constants = settled(self.constants)

    def symbols(self) -> list[str]:
        """Names of the sizes that are known at run time only, in order of the inputs."""
        found: dict[str, None] = {}
        for spec in self.inputs:
            for d in spec.shape:
                found.update(dict.fromkeys(sorted(dims.free_vars(d))))
        return list(found)

    def program(self, sizes: Mapping[str, int]) -> Program:
        """The program for these values of the symbols; shares constants and machine code."""
        return self.program_and_rooms(sizes)[0]

    def program_and_rooms(self, sizes: Mapping[str, int]) -> tuple[Program, list[Room]]:
        """The program, and every piece of memory with its place."""
        return _Builder(self, sizes).program()


def bound_host(host: HostStep, sizes: Mapping[str, int]) -> HostStep:
    """A host step with numbers for symbols, in its attributes and tensors."""

    def number(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [number(one) for one in value]
        return dims.evaluate(value, sizes) if isinstance(value, dims.SymExpr) else value

    def spec(one: TensorSpec) -> TensorSpec:
        return replace(one, shape=tuple(number(list(one.shape))))

    return replace(
        host, attrs={name: number(value) for name, value in host.attrs.items()},
        inputs=tuple(map(spec, host.inputs)), outputs=tuple(map(spec, host.outputs)),
    )  # fmt: skip


def _attr_dims(value: Any) -> Iterator[Dim]:
    """Dims among the values of attributes."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            stack.extend(one.values())
        elif isinstance(one, (list, tuple)):
            stack.extend(one)
        elif isinstance(one, dims.SymExpr):
            yield one


class _Builder:
    def __init__(self, outline: Outline, sizes: Mapping[str, int]) -> None:
        self.outline, self.table, self.sizes = outline, outline.size_table(), sizes
        self.values = self.table.values(sizes)
        # Memory is taken as if no size were 0: what is not there may still be looked at.
        empty = any(size == 0 for size in sizes.values())
        roomy = {name: max(size, 1) for name, size in sizes.items()}
        self.roomy = self.table.values(roomy) if empty else self.values

    def value(self, dim: Dim) -> int:
        return dim if isinstance(dim, int) else self.values[self.table.add(dim)]

    def program(self) -> tuple[Program, list[Room]]:
        outline = self.outline
        rooms = self._rooms()
        size = plan(rooms)
        size += self._slack(rooms)
        kept = [i for i, step in enumerate(outline.steps) if self._runs(step)]
        moved = _positions(kept, len(outline.steps))
        touches = [self._touch(outline.steps[i], rooms) for i in kept]
        barriers = needed_barriers(touches)
        steps = [
            self._step(outline.steps[i], rooms, barrier, moved)
            for i, barrier in zip(kept, barriers, strict=True)
        ]
        scratch = max((self.value(outline.steps[i].scratch) for i in kept), default=0)
        program = Program(
            steps, outline.constants, size, scratch, [self._spec(s) for s in outline.inputs],
            [self._spec(s) for s in outline.outputs], outline.target_key, outline.objects,
            [bound_host(h, self.sizes) for h in outline.hosts], list(outline.states),
            [None if n < 0 else _slot(rooms[n]) for n in outline.output_rooms], outline.meta,
            list(outline.carried),
        )  # fmt: skip
        return program, rooms

    def _rooms(self) -> list[Room]:
        rooms: list[Room] = []
        for spec in self.outline.rooms:
            nbytes = spec.nbytes
            size = nbytes if isinstance(nbytes, int) else self.roomy[self.table.add(nbytes)]
            rooms.append(Room(spec.kind, size, spec.index, spec.first, spec.last))
        for room, spec in zip(rooms, self.outline.rooms, strict=True):
            if spec.parent >= 0:
                room.parent, room.at = rooms[spec.parent], self.value(spec.at)
        return rooms

    def _slack(self, rooms: Sequence[Room]) -> int:
        """Bytes around the arena for looks at tensors that have no elements.

        The last of none is the one before the first, so they go both ways.
        """
        real = [self.value(spec.nbytes) for spec in self.outline.rooms]
        if all(real):
            return 0
        slack = aligned(max(r.nbytes for r in rooms)) + 4096
        for room, size in zip(rooms, real, strict=True):
            if size == 0 and room.kind == "input":
                room.kind, room.offset = "arena", slack
            elif room.kind == "arena" and room.parent is None:
                room.offset = max(room.offset, 0) + slack
        return 2 * slack

    def _runs(self, step: OutlineStep) -> bool:
        if step.kind == "call" and self.value(step.tasks) == 0:
            return False
        if step.when is None:
            return True
        dim, least, most = step.when
        return least <= self.value(dim) <= most

    def _touch(self, step: OutlineStep, rooms: Sequence[Room]) -> Touch:
        places = [rooms[n].place() for n in step.rooms]
        return Touch(tuple(zip(places, step.written, strict=True)), step.joint, step.kind != "call")

    def _step(
        self, step: OutlineStep, rooms: Sequence[Room], barrier: bool, moved: Callable[[int], int]
    ) -> Step:
        slots = tuple(_slot(rooms[n]) for n in step.rooms)
        slots += tuple(Slot("imm", 0, self.value(s)) for s in step.scalars)
        target = moved(step.target) if step.target >= 0 else -1
        return Step(
            step.kind, step.kernel, slots, self.value(step.tasks), barrier, step.label,
            self._cost(step), step.host, target, step.counter, step.width,
        )  # fmt: skip

    def _cost(self, step: OutlineStep) -> float:
        """Expected nanoseconds on one thread: arithmetic at 100 GFLOP/s, memory at 20 GB/s."""
        if step.kind != "call":
            return 0.0
        return max(2 * self.value(step.products) / 100.0, self.value(step.moved) / 20.0, 1)

    def _spec(self, spec: TensorSpec) -> TensorSpec:
        return replace(spec, shape=tuple(self.value(d) for d in spec.shape))


def _positions(kept: Sequence[int], total: int) -> Callable[[int], int]:
    """The new number of a step, or of the next one that is still there."""
    moved = [0] * (total + 1)
    position = len(kept)
    moved[total] = position
    left = list(kept)
    for number in range(total - 1, -1, -1):
        if left and left[-1] == number:
            left.pop()
            position -= 1
        moved[number] = position
    return moved.__getitem__


def _slot(room: Room) -> Slot:
    root, at = room.root()
    if root.kind == "arena":
        # A tensor without elements is never written and has no place of its own.
        return Slot("arena", 0, max(root.offset, 0) + at)
    kind = "input" if root.kind == "carried" else root.kind
    return Slot(kind, root.index, at)  # type: ignore[arg-type]
