"""A program bound to memory and machine code, ready to run from any thread."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ixion.base import dtype as dtypes
from ixion.base.abi import Fault, RunWord, Status
from ixion.base.errors import CodegenError, InputError, KernelError
from ixion.base.target import usable_cores
from ixion.runtime import native
from ixion.runtime.arena import address_of, allocate
from ixion.runtime.context import COPY_LIMIT, Array, Binding, Context
from ixion.runtime.hosts import Resolver, resolve, run_host
from ixion.runtime.inputs import check_count, fitting, in_order, usable_in_place
from ixion.runtime.outputs import Out, bind_outputs, check_out, collect, place_of, result_view
from ixion.runtime.pool import checked_threads, default_threads, pool_for, spin_of
from ixion.runtime.profile import Profile, make_profile, new_counters
from ixion.runtime.program import Program, StateSpec
from ixion.runtime.table import build_table

_DONE = int(Status.DONE)
_FAULTS: dict[int, str] = {
    Fault.INDEX: "index out of range",
    Fault.SHAPE: "sizes do not fit",
    Fault.VALUE: "value not accepted",
    Fault.MEMORY: "a buffer is too small",
}


@dataclass(frozen=True)
class Shared:
    """Machine code and state buffers, which programs of one outline have in common."""

    code: native.LoadedCode | None
    states: list[Array]

    @classmethod
    def of(cls, program: Program) -> Shared:
        code = native.load(program.objects) if program.objects else None
        return cls(code, new_states(program.states, program.constants))


def fault_reason(code: int) -> str:
    """A kernel's nonzero result in words."""
    return _FAULTS.get(code, f"fault {code}")


class Executable:
    """Runs a program; safe to call from many threads at once.

    Each run has a context of its own, out of as many as there are cores: more runs at once wait. A
    program with states has one context, so its runs follow each other.
    """

    def __init__(
        self,
        program: Program,
        threads: int | None = None,
        hosts: Resolver | None = None,
        shared: Shared | None = None,
    ) -> None:
        """Link `program`'s objects and lay out its memory.

        `threads`: at most so many work on a run (default: option `threads`). `hosts` finds the
        functions of host steps, instead of the installed resolver. The program's constants move
        into one block (see Program.settle).

        Raises CodegenError for a program whose parts don't fit, ConfigError for impossible
        `threads` or unresolved host steps.
        """
        program.check()
        program.settle()
        self.program = program
        self.threads = default_threads() if threads is None else checked_threads(threads)
        self._functions = resolve(program.hosts, hosts)
        shared = shared or Shared.of(program)
        self._code, self._states = shared.code, shared.states
        self._native = native.sequencer()
        table = build_table(program, self._address, self.threads)
        threads = self.threads if table.shared else 1
        self._binding = Binding(program, table, self._states, threads, spin_of(threads))
        self._call = self._native.run
        self._simple = _is_simple(program)
        self._limit = 1 if program.states else max(2, usable_cores())
        self._contexts: list[Context] = []
        self._free: list[Context] = []
        self._waiting = 0
        self._changed = threading.Condition()
        self._forked = False
        self._output_names = [spec.name for spec in program.outputs]
        watch_forks(self)

    def __call__(self, *values: object, **named: object) -> list[Array]:
        """`run_flat` of values in order, the rest by input name."""
        if not named:
            return self.run_flat(values)
        specs = self.program.inputs
        first = {spec.name: value for spec, value in zip(specs, values, strict=False)}
        return self.run_flat(in_order({**first, **named}, specs))

    def run(self, values: Mapping[str, object]) -> dict[str, Array]:
        """Inputs by name to outputs by name. Raises as `run_flat` does."""
        results = self.run_flat(in_order(values, self.program.inputs))
        return dict(zip(self._output_names, results, strict=True))

    def run_flat(self, values: Sequence[object], out: Out | None = None) -> list[Array]:
        """Inputs to outputs, in the program's order. Outputs are new arrays, or those of `out`.

        Values are numpy arrays or have `__dlpack__`; shapes and dtypes must be exact. Large dense
        ones are used where they lie, so they must not change during the run.

        Raises InputError for values that don't fit, KernelError for a fault in a step.
        """
        # Every microsecond here is one of each run of a small model.
        try:
            context = self._free.pop()
        except IndexError:
            context = self._acquire()
        try:
            if self._simple and out is None:
                return self._run_copied(context, values)
            return self._run_bound(context, values, out)
        except BaseException:
            context.reset()
            raise
        finally:
            self._free.append(context)
            if self._waiting:
                self._notify()

    def single_runner(self) -> Callable[[Mapping[str, object]], dict[str, Array]] | None:
        """`run` in one function for small programs with one input and one output, else None.

        It does what `run` does, and calls that where anything is out of the ordinary.
        """
        if not self._simple or len(self.program.inputs) != 1 or len(self.program.outputs) != 1:
            return None
        given, made = self.program.inputs[0].name, self.program.outputs[0].name
        free, call, kind = self._free, self._call, np.ndarray

        def run(values: Mapping[str, object]) -> dict[str, Array]:
            try:
                value = values[given]
                context = free.pop()
            except LookupError:
                return self.run(values)
            copy, shape, dtype, record, result = context.single
            try:
                known = type(value) is kind and value.dtype is dtype and value.shape == shape
                if not known or len(values) != 1:
                    return self.run(values)
                copy[...] = value
                status = call(record)
                if status != _DONE:
                    self._go_on(context, status, call, None)
                return {made: result()}
            except BaseException:
                context.reset()
                raise
            finally:
                free.append(context)
                if self._waiting:
                    self._notify()

        return run

    def profile(self, values: Sequence[object], runs: int = 1) -> Profile:
        """Time every step over `runs` runs. Raises as `run_flat` does."""
        counters = new_counters(self.program)
        host = [0] * len(self.program.steps)
        context = self._acquire()
        try:
            context.words[RunWord.PROFILE // 8] = address_of(counters)
            for _ in range(runs):
                self._run_bound(context, values, None, self._native.run_profiled, host)
        finally:
            context.reset()
            self._free.append(context)
            self._notify()
        return make_profile(self.program.steps, counters, host, runs)

    def stop(self) -> None:
        """Make every run that is under way raise KernelError at its next step."""
        for context in self._contexts:
            context.words[RunWord.STOP // 8] = 1

    def states(self) -> dict[str, Array]:
        """The state buffers by name: live arrays, to be read or set between runs."""
        names = [spec.name for spec in self.program.states]
        return dict(zip(names, self._states, strict=True))

    def _run_copied(self, context: Context, values: Sequence[object]) -> list[Array]:
        copies = context.copies
        if len(values) != len(copies):
            check_count(values, self.program.inputs)
        for index, (copy, shape, dtype) in enumerate(copies):
            value = values[index]
            if type(value) is not np.ndarray or value.dtype != dtype or value.shape != shape:
                value = fitting(value, self.program.inputs[index])
            copy[...] = value
        status = self._call(context.record)
        if status != _DONE:
            self._go_on(context, status, self._call, None)
        return [view.copy() for view in context.results]

    def _run_bound(
        self,
        context: Context,
        values: Sequence[object],
        out: Out | None,
        call: Callable[[int], int] | None = None,
        host: list[int] | None = None,
    ) -> list[Array]:
        check_count(values, self.program.inputs)
        if out is not None:
            check_out(out, self.program.outputs)
        call = call or self._call
        try:
            arrays = [self._place(context, i, value) for i, value in enumerate(values)]
            written = bind_outputs(context, self.program, arrays, out)
            status = call(context.record)
            if status != _DONE:
                self._go_on(context, status, call, host)
            return collect(context, self.program, written, out)
        finally:
            context.unbind()

    def _place(self, context: Context, index: int, value: object) -> Array:
        """Copy an input or bind it; the array the kernels will read."""
        array = fitting(value, self.program.inputs[index])
        copy = context.inputs[index]
        if copy is not None:
            copy[...] = array
            return copy
        if not usable_in_place(array):
            if index in self.program.carried:
                spec = self.program.inputs[index]
                raise InputError(f"state '{spec.name}' must be a dense array at 16 bytes")
            array = array.copy()
        context.bind("input", index, array)
        return array

    def _go_on(
        self,
        context: Context,
        status: int,
        call: Callable[[int], int],
        host: list[int] | None,
    ) -> None:
        """See a run through that came back to Python before its end.

        A YIELD needs nothing done: coming back is what lets signal handlers run.
        """
        while status != _DONE:
            if status >= 0:
                self._host_step(context, status, host)
            elif status != Status.YIELD:
                raise self._fault(context, status)
            status = call(context.record)

    def _host_step(self, context: Context, number: int, spent: list[int] | None) -> None:
        begin = time.perf_counter_ns()
        step = self.program.steps[number]
        function = self._functions[step.host]
        run_host(context, number, step, self.program.hosts[step.host], function)
        if spent is not None:
            spent[number] += time.perf_counter_ns() - begin

    def _fault(self, context: Context, status: int) -> KernelError:
        if status == Status.STOPPED:
            return KernelError("the run was stopped")
        code = int(context.words[RunWord.CODE // 8])
        number = int(context.words[RunWord.ERROR_STEP // 8])
        step = self.program.steps[number]
        index = context.error_index(int(context.words[RunWord.ERROR_WORKER // 8]))
        reason = fault_reason(code)
        message = f"kernel '{step.kernel}': {reason}"
        return KernelError(message, step=number, node=step.label or None, index=index)

    def _address(self, symbol: str) -> int:
        if self._code is None:
            raise CodegenError(f"the program has no object that defines '{symbol}'")
        return self._code.address(symbol)

    def _acquire(self) -> Context:
        """A free context, a new one, or the next to be given back."""
        with self._changed:
            # Counted before looking: whoever gives one back after the look will see the count.
            self._waiting += 1
            try:
                while True:
                    if self._free:
                        with contextlib.suppress(IndexError):
                            return self._free.pop()
                    if len(self._contexts) < self._limit:
                        return self._new_context()
                    self._changed.wait()
            finally:
                self._waiting -= 1

    def _new_context(self) -> Context:
        shared = self._binding.threads > 1 and not self._forked
        pool = pool_for(self._binding.threads).address if shared else 0
        context = Context(self._binding, pool)
        if self._simple:
            specs = self.program.outputs
            context.results = [
                result_view(context, self.program, i, spec) for i, spec in enumerate(specs)
            ]
            if len(context.copies) == len(context.results) == 1:
                context.single = (*context.copies[0], context.record, context.results[0].copy)
        self._contexts.append(context)
        return context

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify()

    def after_fork(self) -> None:
        """In a child: runs of other threads are gone, with their contexts, and so are workers."""
        self._forked = True
        self._changed = threading.Condition()
        self._waiting = 0
        self._contexts = list(self._free)
        for context in self._contexts:
            context.words[RunWord.POOL // 8] = 0


class Watching(Protocol):
    """What has something to forget in a forked child."""

    def after_fork(self) -> None: ...


_ALL: weakref.WeakSet[Watching] = weakref.WeakSet()


def watch_forks(one: Watching) -> None:
    """Have ``after_fork`` called in forked children."""
    _ALL.add(one)


def _after_fork() -> None:
    for one in list(_ALL):
        one.after_fork()


os.register_at_fork(after_in_child=_after_fork)


def new_states(specs: Sequence[StateSpec], constants: Sequence[Array]) -> list[Array]:
    """State buffers, zero or as their initial constant says."""
    states = []
    for spec in specs:
        block = allocate(spec.nbytes)
        array = np.ndarray(spec.shape, dtypes.to_numpy(spec.dtype), buffer=block)
        if spec.initial >= 0:
            array[...] = constants[spec.initial]
        states.append(array)
    return states


def _is_simple(program: Program) -> bool:
    """Whether every input and output is copied to and from a fixed place in the context."""
    if program.carried or any(spec.nbytes > COPY_LIMIT for spec in program.inputs):
        return False
    sizes = enumerate(program.outputs)
    return all(spec.nbytes <= COPY_LIMIT or place_of(program, i) for i, spec in sizes)
