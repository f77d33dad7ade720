"""Runs a machine program: frames on a list, so that calls may nest as deep as memory allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ixion.base import config
from ixion.base.errors import ConfigError
from ixion.runtime.inputs import check_count
from ixion.runtime.machine_link import Block, Linked, Linker, Native, Stack
from ixion.runtime.machine_program import MachineProgram
from ixion.runtime.program import settled
from ixion.runtime.value_kind import Gate, Kind, TensorKind, TupleKind, spec_of
from ixion.runtime.values import Closure

Array = npt.NDArray[Any]

__all__ = ["Machine", "leaf_kinds"]


class Machine:
    """A program bound to what runs its segments and host operators.

    Calls from several threads at once are safe: a run's state is its own, and segments are safe
    themselves.
    """

    def __init__(
        self, program: MachineProgram, segments: Sequence[Native], hosts: Sequence[Native]
    ) -> None:
        """``segments`` and ``hosts``: functions from argument arrays to result arrays.

        Raises CodegenError for a program whose parts don't fit, ConfigError where functions are
        missing.
        """
        program.check()
        if len(segments) != len(program.segments) or len(hosts) != len(program.hosts):
            raise ConfigError("not every segment and host operator has a function")
        program.arrays = settled(program.arrays)
        self.program = program
        self.inputs = [spec_of(name, kind) for name, kind in program.inputs]
        kinds = leaf_kinds(program.output)
        pairs = zip(program.output_names, kinds, strict=True)
        self.outputs = [spec_of(name, kind) for name, kind in pairs]
        self._linker = Linker(program, segments, hosts, config.get("call_depth"))
        self._entry = self._linker.link()
        self._gate = Gate(program.constructors, self._is_own)
        # Where arrays come in inside other values, any result may be one of them.
        self._hidden = not all(isinstance(k, TensorKind) for _, k in program.inputs)

    def call(self, values: Sequence[object]) -> Any:
        """The result as it is: an array, a tuple, a data type value, a closure or a reference.

        Arrays in it may be the caller's own or the program's (read-only). Raises InputError for
        values that don't fit, KernelError for a fault on the way.
        """
        check_count(values, self.inputs)  # type: ignore[arg-type]  # they have names
        sizes: dict[str, int] = {}
        arguments = [
            self._gate.accept(name, kind, value, sizes)
            for (name, kind), value in zip(self.program.inputs, values, strict=True)
        ]
        return _run(self._entry, arguments)

    def run_flat(self, values: Sequence[object]) -> list[Any]:
        """Inputs to the leaves of the result, tuples opened. Tensors are new arrays.

        Raises as ``call`` does.
        """
        result = self.call(values)
        given = {id(value) for value in values}
        return list(_own(_leaves(result, self.program.output), given, self._hidden))

    def _is_own(self, closure: Closure) -> bool:
        return isinstance(closure.func, Linked) and closure.func.owner is self._linker


def _run(entry: Linked, arguments: Sequence[Any]) -> Any:
    bottom: list[Any] = [None]
    stack: Stack = [(bottom, None, 0)]
    regs = [*arguments, *entry.template]
    block: Block | None = entry.entry
    while block is not None:
        for step in block.steps:
            step(regs)
        regs, block = block.go(regs, stack)
    return bottom[0]


def leaf_kinds(kind: Kind) -> list[Kind]:
    """The kinds in a tuple kind at any depth, in order; else the kind itself."""
    stack: list[Kind] = [kind]
    found: list[Kind] = []
    while stack:
        top = stack.pop()
        if isinstance(top, TupleKind):
            stack.extend(reversed(top.fields))
        else:
            found.append(top)
    return found


def _leaves(value: Any, kind: Kind) -> Iterator[Any]:
    stack = [(value, kind)]
    while stack:
        value, kind = stack.pop()
        if isinstance(kind, TupleKind):
            stack.extend(reversed(list(zip(value, kind.fields, strict=True))))
        else:
            yield value


def _own(leaves: Iterator[Any], given: set[int], hidden: bool) -> Iterator[Any]:
    """Leaves with arrays that nobody else has: no input's, no constant's, none twice."""
    for leaf in leaves:
        if isinstance(leaf, np.generic):
            yield np.asarray(leaf)
        elif isinstance(leaf, np.ndarray):
            shared = hidden or leaf.base is not None or not leaf.flags.writeable
            shared = shared or id(leaf) in given
            own = leaf.copy() if shared else leaf
            given.add(id(own))
            yield own
        else:
            yield leaf
