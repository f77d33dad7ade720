"""Runs an outline whose sizes come with the inputs: one plan per combination of sizes.

What depends on sizes is little: numbers in the step table and the memory plan.  Plans of sizes met
lately are kept; machine code, constants, states and memory are shared by all of them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ixion.base import config
from ixion.base import dtype as dtypes
from ixion.base.abi import RunWord, Status
from ixion.base.errors import CodegenError, InputError, KernelError
from ixion.base.target import usable_cores
from ixion.runtime import native
from ixion.runtime.context import Array
from ixion.runtime.executable import Executable, Shared, fault_reason, new_states, watch_forks
from ixion.runtime.hosts import HostFunction, Resolver, do_host, resolve
from ixion.runtime.inputs import as_array, check_count, check_dtype, usable_in_place
from ixion.runtime.open_context import OpenContext
from ixion.runtime.outline import Outline, bound_host
from ixion.runtime.outputs import Out, check_out
from ixion.runtime.plan import Plan, Planner
from ixion.runtime.pool import checked_threads, default_threads, pool_for, spin_of
from ixion.runtime.profile import Profile
from ixion.runtime.program import HostStep, Program, TensorSpec
from ixion.runtime.sizes import sizes_of

Shapes = tuple[tuple[int, ...], ...]
_DONE = int(Status.DONE)


@dataclass(eq=False)
class _Sized:
    """A plan and what it has besides numbers: specs of results, host steps with their functions."""

    plan: Plan
    outputs: list[TensorSpec]
    hosts: dict[int, tuple[HostStep, HostFunction]] = field(default_factory=dict)


class OpenExecutable:
    """Safe to call from many threads at once; runs beyond the number of cores wait.

    ``plans``: how many plans were made so far.  Option ``plan_cache`` says how many are kept.
    """

    def __init__(
        self, outline: Outline, threads: int | None = None, hosts: Resolver | None = None
    ) -> None:
        """As ``Executable``."""
        outline.settle()
        self.outline, self._hosts = outline, hosts
        self.threads = default_threads() if threads is None else checked_threads(threads)
        self.inputs, self.outputs = outline.inputs, outline.outputs
        self.plans = 0
        self._code = native.load(outline.objects) if outline.objects else None
        self._call = native.sequencer().run
        self._states = new_states(outline.states, outline.constants)
        self._planner = Planner(outline, self._address, self.threads)
        self._known: OrderedDict[tuple[Shapes, tuple[int, ...]], _Sized] = OrderedDict()
        self._forked = False
        self._reset()
        watch_forks(self)

    def _reset(self) -> None:
        self._limit = 1 if self.outline.states or self.outline.carried else max(2, usable_cores())
        self._lock = threading.Lock()
        self._places = threading.Semaphore(self._limit)
        self._contexts: list[OpenContext] = []
        self._all: list[OpenContext] = []

    def _address(self, symbol: str) -> int:
        if self._code is None:
            raise CodegenError(f"the program has no object that defines '{symbol}'")
        return self._code.address(symbol)

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
        sized = self._sized(tuple([a.shape for a in arrays]), sizes)
        if out is not None:
            check_out(out, sized.outputs)
        with self._places:
            try:
                context = self._contexts.pop()
            except IndexError:
                context = self._new_context()
            try:
                return self._run(context, sized, arrays, out)
            except BaseException:
                context.reset()
                raise
            finally:
                context.leave()
                self._contexts.append(context)

    def _run(
        self, context: OpenContext, sized: _Sized, arrays: Sequence[Array], out: Out | None
    ) -> list[Array]:
        written = self._results(sized, arrays, out)
        context.enter(sized.plan, arrays, written)
        status = self._call(context.record)
        while status != _DONE:
            if status >= 0:
                self._host_step(context, sized, status)
            elif status != Status.YIELD:
                raise self._fault(context, sized, status)
            status = self._call(context.record)
        return self._collected(context, sized, written, out)

    def _results(
        self, sized: _Sized, inputs: Sequence[Array], out: Out | None
    ) -> list[Array | None]:
        """Arrays that kernels write results to: the caller's where that can be, else new ones."""
        written: list[Array | None] = []
        for i, (spec, place) in enumerate(zip(sized.outputs, sized.plan.places, strict=True)):
            if place is not None:
                written.append(None)
                continue
            given = None if out is None else out[i]
            if given is None or not usable_in_place(given) or _overlaps(given, inputs):
                given = np.empty(spec.shape, dtypes.to_numpy(spec.dtype))
            written.append(given)
        return written

    def _collected(
        self,
        context: OpenContext,
        sized: _Sized,
        written: Sequence[Array | None],
        out: Out | None,
    ) -> list[Array]:
        results = []
        for i, (made, spec) in enumerate(zip(written, sized.outputs, strict=True)):
            place, given = sized.plan.places[i], None if out is None else out[i]
            if place is None:
                assert made is not None
                found = made
            else:
                found = context.result(*place, spec.shape, spec.dtype)
            if given is None:
                results.append(found if made is not None else found.copy())
                continue
            if given is not found:
                given[...] = found
            results.append(given)
        return results

    def _host_step(self, context: OpenContext, sized: _Sized, number: int) -> None:
        step = self.outline.steps[sized.plan.numbers[number]]
        host, function = self._host(sized, step.host)
        first = sized.plan.windows[sized.plan.numbers[number]]
        base, offset = sized.plan.slot_base, sized.plan.slot_offset
        tensors = [
            context.result(int(base[first + i]), int(offset[first + i]), spec.shape, spec.dtype)
            for i, spec in enumerate((*host.inputs, *host.outputs))
        ]
        do_host(host, function, tensors, number, step.label)

    def _host(self, sized: _Sized, number: int) -> tuple[HostStep, HostFunction]:
        found = sized.hosts.get(number)
        if found is None:
            host = bound_host(self.outline.hosts[number], sized.plan.sizes)
            found = sized.hosts[number] = (host, resolve([host], self._hosts)[0])
        return found

    def _fault(self, context: OpenContext, sized: _Sized, status: int) -> KernelError:
        if status == Status.STOPPED:
            return KernelError("the run was stopped")
        number = int(context.words[RunWord.ERROR_STEP // 8])
        step = self.outline.steps[sized.plan.numbers[number]]
        index = context.error_index(int(context.words[RunWord.ERROR_WORKER // 8]))
        reason = fault_reason(int(context.words[RunWord.CODE // 8]))
        message = f"kernel '{step.kernel}': {reason}"
        return KernelError(message, step=number, node=step.label or None, index=index)

    def stop(self) -> None:
        """Make runs that are under way raise KernelError at their next step."""
        for context in self._all:
            context.words[RunWord.STOP // 8] = 1

    def program_for(self, shapes: Shapes, sizes: Mapping[str, int] | None = None) -> Program:
        """The program that inputs of these shapes run."""
        return self.outline.program(sizes_of(self.inputs, shapes, self.outline.guards, sizes))

    def profile(self, values: Sequence[object], runs: int = 1) -> Profile:
        """Times every step for the sizes of these inputs."""
        arrays = self._arrays(values)
        program = self.program_for(tuple(a.shape for a in arrays))
        shared = Shared(self._code, self._states)
        return Executable(program, self.threads, self._hosts, shared).profile(arrays, runs)

    def states(self) -> dict[str, Array]:
        """The state buffers by name: live arrays, to be read or set between runs."""
        names = [spec.name for spec in self.outline.states]
        return dict(zip(names, self._states, strict=True))

    def _arrays(self, values: Sequence[object]) -> list[Array]:
        check_count(values, self.inputs)
        arrays = []
        for i, (value, spec) in enumerate(zip(values, self.inputs, strict=True)):
            array = as_array(value, spec)
            check_dtype(array, spec)
            if not usable_in_place(array):
                if i in self.outline.carried:
                    raise InputError(f"state '{spec.name}' must be a dense array at 16 bytes")
                array = array.copy()
            arrays.append(array)
        return arrays

    def _sized(self, shapes: Shapes, sizes: Mapping[str, int] | None = None) -> _Sized:
        key = (shapes, tuple(sizes.values()) if sizes else ())
        with self._lock:
            found = self._known.get(key)
            if found is None:
                found = self._known[key] = self._new_sized(shapes, sizes)
                while len(self._known) > max(1, config.get("plan_cache")):
                    self._known.popitem(last=False)
            else:
                self._known.move_to_end(key)
            return found

    def _new_sized(self, shapes: Shapes, given: Mapping[str, int] | None) -> _Sized:
        plan = self._planner.plan(sizes_of(self.inputs, shapes, self.outline.guards, given))
        self.plans += 1
        outputs = [
            replace(spec, shape=shape)
            for spec, shape in zip(self.outputs, plan.outputs, strict=True)
        ]
        return _Sized(plan, outputs)

    def _new_context(self) -> OpenContext:
        shared = self.threads > 1 and not self._forked
        pool = pool_for(self.threads).address if shared else 0
        spin = spin_of(self.threads)
        context = OpenContext(self.outline, self._planner, self._states, pool, spin)
        self._all.append(context)
        return context

    def after_fork(self) -> None:
        """In a child: runs of other threads are gone, with their contexts."""
        self._forked = True
        self._reset()


def _overlaps(array: Array, others: Sequence[Array]) -> bool:
    return any(np.may_share_memory(array, other) for other in others)
