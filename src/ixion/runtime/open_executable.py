"""Runs an outline whose sizes come with the inputs: one program per combination of sizes.

What depends on sizes is little: numbers in the step table and the memory plan.  Programs of sizes
met lately are kept; machine code, constants, states and memory are shared by all of them.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ixion.base import config
from ixion.base.target import usable_cores
from ixion.runtime.context import Array, Context, Memory
from ixion.runtime.executable import Executable, Shared, watch_forks
from ixion.runtime.hosts import Resolver
from ixion.runtime.inputs import as_array, check_count, check_dtype
from ixion.runtime.outline import Outline
from ixion.runtime.outputs import Out
from ixion.runtime.profile import Profile
from ixion.runtime.program import Program
from ixion.runtime.sizes import sizes_of

Shapes = tuple[tuple[int, ...], ...]


@dataclass(eq=False)
class _Plan:
    """The program of one combination of sizes, with its contexts by memory."""

    executable: Executable
    contexts: weakref.WeakKeyDictionary[Memory, Context] = field(
        default_factory=weakref.WeakKeyDictionary
    )

    def context(self, memory: Memory) -> Context:
        found = self.contexts.get(memory)
        if found is None or found.body is not memory.block:
            found = self.contexts[memory] = self.executable.new_context(memory)
        return found


class OpenExecutable:
    """Safe to call from many threads at once; runs beyond the number of cores wait.

    ``plans``: how many programs were made so far.  Option ``plan_cache`` says how many are kept.
    """

    def __init__(
        self, outline: Outline, threads: int | None = None, hosts: Resolver | None = None
    ) -> None:
        self.outline, self.threads, self._hosts = outline, threads, hosts
        self.inputs, self.outputs = outline.inputs, outline.outputs
        self.plans = 0
        self._shared: Shared | None = None
        self._known: OrderedDict[tuple[Shapes, tuple[int, ...]], _Plan] = OrderedDict()
        self._reset()
        watch_forks(self)

    def _reset(self) -> None:
        self._limit = 1 if self.outline.states else max(2, usable_cores())
        self._lock = threading.Lock()
        self._places = threading.Semaphore(self._limit)
        self._memories: list[Memory] = []

    def run_flat(
        self,
        values: Sequence[object],
        out: Out | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> list[Array]:
        """Inputs to outputs, in order.

        `sizes` gives symbols that the shapes do not tell. Raises InputError for values or sizes
        that don't fit, KernelError for a fault in a step.
        """
        arrays = self._arrays(values)
        plan = self._plan(tuple([a.shape for a in arrays]), sizes)
        with self._places:
            try:
                memory = self._memories.pop()
            except IndexError:
                memory = Memory()
            try:
                return plan.executable.run_in(plan.context(memory), arrays, out)
            finally:
                self._memories.append(memory)

    def program_for(self, shapes: Shapes) -> Program:
        """The program that inputs of these shapes run."""
        return self._plan(shapes).executable.program

    def profile(self, values: Sequence[object], runs: int = 1) -> Profile:
        """Times every step for the sizes of these inputs."""
        arrays = self._arrays(values)
        plan = self._plan(tuple(a.shape for a in arrays))
        return plan.executable.profile(arrays, runs)

    def states(self) -> dict[str, Array]:
        """The state buffers by name: live arrays, to be read or set between runs."""
        names = [spec.name for spec in self.outline.states]
        with self._lock:
            return dict(zip(names, self._common().states, strict=True))

    def _arrays(self, values: Sequence[object]) -> list[Array]:
        check_count(values, self.inputs)
        arrays = [as_array(v, s) for v, s in zip(values, self.inputs, strict=True)]
        for array, spec in zip(arrays, self.inputs, strict=True):
            check_dtype(array, spec)
        return arrays

    def _plan(self, shapes: Shapes, sizes: Mapping[str, int] | None = None) -> _Plan:
        key = (shapes, tuple(sizes.values())) if sizes else (shapes, ())
        with self._lock:
            found = self._known.get(key)
            if found is None:
                found = self._known[key] = self._new_plan(shapes, sizes or {})
                while len(self._known) > max(1, config.get("plan_cache")):
                    self._known.popitem(last=False)
            else:
                self._known.move_to_end(key)
            return found

    def _new_plan(self, shapes: Shapes, given: Mapping[str, int]) -> _Plan:
        sizes = sizes_of(self.inputs, shapes, self.outline.guards, given)
        program = self.outline.program(sizes)
        self.plans += 1
        return _Plan(Executable(program, self.threads, self._hosts, self._common()))

    def _common(self) -> Shared:
        if self._shared is None:
            self.outline.settle()
            sizes = dict.fromkeys(self.outline.symbols(), 1)
            self._shared = Shared.of(self.outline.program(sizes))
        return self._shared

    def after_fork(self) -> None:
        """In a child: runs of other threads are gone, with the memory they had."""
        self._reset()
        for plan in self._known.values():
            plan.contexts.clear()
