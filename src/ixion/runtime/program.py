"""A compiled program as data: steps, constants, buffers, machine code. Saved by program_file.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ixion.base import dtype as dtypes
from ixion.base.errors import CodegenError
from ixion.runtime.arena import address_of, allocate

SlotKind = Literal["arena", "const", "input", "output", "imm", "state"]
StepKind = Literal["call", "host", "jump", "branch", "loop", "next", "solo", "together"]

#: Alignment in bytes of the arena, constants, states and scratch. Inputs and outputs have 16.
ALIGNMENT = 64


def aligned(size: int, alignment: int = ALIGNMENT) -> int:
    """`size` rounded up to a multiple of `alignment`."""
    return -(-size // alignment) * alignment


@dataclass(frozen=True)
class TensorSpec:
    """Name, static shape and dtype (Relay's names) of a dense row-major tensor."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * dtypes.itemsize(self.dtype)

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape)}"


@dataclass(frozen=True)
class StateSpec(TensorSpec):
    """A buffer that persists between runs, zero at first or a copy of constant `initial`."""

    initial: int = -1


@dataclass(frozen=True)
class Slot:
    """One int64 a kernel receives.

    The address `offset` bytes into the arena, or into constant, input, output or state number
    `index`; for "imm" the number `offset` itself.
    """

    kind: SlotKind
    index: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Step:
    """One step of a program.

    - "call": run `kernel` on tasks 0..tasks-1 with a window of `slots`. `barrier`: later steps may
      only begin when it is done. `cost`: expected nanoseconds on one thread, 0 = unknown; it
      decides how many threads take part.
    - "host": Python does `hosts[host]` with `slots` (its inputs, then its outputs).
    - "jump": go to step `target`.
    - "branch": go on if the value (`width` bytes, 1 or 8) at the address in `slots[0]` is nonzero,
      else go to `target`.
    - "loop": begin loop number `counter` with the trip count `slots[0]` (an imm, or the address of
      an int64); with a count below 1 go to `target`.
    - "next": end of a round; go to `target` unless it was the last. A kernel finds the round's
      number at byte COUNTERS + 16 * counter of its ctx.
    - "solo": up to the "together" that is `target` no step may go anywhere else. Where none of them
      is worth sharing, one thread does them all.
    """

    kind: StepKind = "call"
    kernel: str = ""
    slots: tuple[Slot, ...] = ()
    tasks: int = 1
    barrier: bool = True
    label: str = ""
    cost: float = 0.0
    host: int = -1
    target: int = -1
    counter: int = 0
    width: int = 8


@dataclass(frozen=True)
class HostStep:
    """An operator done in Python: its name, JSON-able attributes, argument and result tensors."""

    op: str
    attrs: dict[str, Any]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]


@dataclass
class Program:
    """Everything a run needs.

    `output_places[i]`, where given, says where output i lies after a run (an arena, const, input
    or state slot): it is copied from there, else kernels write it through "output" slots. `meta`
    is the caller's, JSON-able. `carried`: inputs that are never copied, as kernels write them.
    """

    steps: list[Step]
    constants: list[npt.NDArray[Any]]
    arena_size: int
    scratch_size: int
    inputs: list[TensorSpec]
    outputs: list[TensorSpec]
    target_key: str
    objects: list[bytes]
    hosts: list[HostStep] = field(default_factory=list)
    states: list[StateSpec] = field(default_factory=list)
    output_places: list[Slot | None] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)
    carried: list[int] = field(default_factory=list)

    def check(self) -> None:
        """Raise CodegenError where a step, slot or place refers to something that is not there."""
        for number, step in enumerate(self.steps):
            where = f"step {number} ({step.label or step.kernel or step.kind})"
            self._check_step(step, where)
            for slot in step.slots:
                self._check_slot(slot, where)
        for place in self.output_places:
            if place is not None:
                self._check_slot(place, "output places")
        if self.output_places and len(self.output_places) != len(self.outputs):
            raise CodegenError("output places and outputs differ in number")

    def settle(self) -> None:
        """Move the constants into one block, each at a 64-byte boundary, read-only.

        The arrays in `constants` become views of the block, so that the originals can go. Nothing
        happens where they are settled already.
        """
        if not all(is_settled(array) for array in self.constants):
            self.constants = settled(self.constants)

    def _check_step(self, step: Step, where: str) -> None:
        needs = {"branch": 1, "loop": 1}.get(step.kind, 0)
        if len(step.slots) < needs:
            raise CodegenError("a branch or loop needs one slot", where=where)
        jumps = step.kind in ("jump", "branch", "loop", "next", "solo")
        if jumps and not 0 <= step.target <= len(self.steps):
            raise CodegenError("jump out of the program", where=where, found=step.target)
        if step.kind == "host":
            self._check_host(step, where)

    def _check_host(self, step: Step, where: str) -> None:
        if not 0 <= step.host < len(self.hosts):
            raise CodegenError("unknown host step", where=where, found=step.host)
        host = self.hosts[step.host]
        if len(step.slots) != len(host.inputs) + len(host.outputs):
            raise CodegenError("a host step needs one slot per argument and result", where=where)

    def _check_slot(self, slot: Slot, where: str) -> None:
        sizes = self._sizes(slot.kind)
        if sizes is None:
            return
        if not 0 <= slot.index < len(sizes) or not 0 <= slot.offset <= sizes[slot.index]:
            raise CodegenError("slot outside its buffer", where=where, found=slot)

    def _sizes(self, kind: SlotKind) -> Sequence[int] | None:
        if kind == "imm":
            return None
        if kind == "arena":
            return [self.arena_size]
        if kind == "const":
            return [array.nbytes for array in self.constants]
        if kind == "state":
            return [spec.nbytes for spec in self.states]
        return [spec.nbytes for spec in (self.inputs if kind == "input" else self.outputs)]


def settled(arrays: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    """Read-only copies of `arrays` in one block, each at a 64-byte boundary."""
    block = allocate(sum(aligned(array.nbytes) for array in arrays))
    copies, offset = [], 0
    for array in arrays:
        view = np.ndarray(array.shape, array.dtype, buffer=block, offset=offset)
        view[...] = array
        copies.append(view)
        offset += aligned(array.nbytes)
    for view in copies:
        view.flags.writeable = False
    return copies


def is_settled(array: npt.NDArray[Any]) -> bool:
    """Whether an array is read-only, dense and at a 64-byte boundary."""
    if array.nbytes == 0:
        return True
    contiguous = array.flags.c_contiguous and not array.flags.writeable
    return contiguous and address_of(array) % ALIGNMENT == 0
