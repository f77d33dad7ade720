"""Models with control flow: compiled to machine programs, run, saved and loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ixion.base.errors import CodegenError, IxionError, KernelError
from ixion.base.target import Target
from ixion.driver.executable import Executable, OpenCompiledExecutable
from ixion.op.extent import NoLoopsError
from ixion.runtime.inputs import check_count
from ixion.runtime.machine import Machine, leaf_kinds
from ixion.runtime.machine_program import HostOp, MachineProgram, Segment
from ixion.runtime.value_kind import Gate, Kind, TupleKind, spec_of

if TYPE_CHECKING:
    from ixion.ir import Call, Expr, IRModule

Array = np.ndarray[Any, np.dtype[Any]]
# Compiles a module of tensors.
CompileModule = Callable[["IRModule"], Executable]
Run = Callable[[Sequence[Any]], Sequence[Any]]

__all__ = ["MachineExecutable", "compile_machine", "machine_executable"]


class MachineExecutable(Executable):
    """A model with control flow. Inputs and outputs may be values other than tensors.

    Tuples of results are opened, as in every executable; ``call`` gives the result as it is.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.inputs, self.outputs = machine.inputs, machine.outputs  # type: ignore[assignment]

    @property
    def machine_program(self) -> MachineProgram:
        return self.machine.program

    def run_flat(self, values: Sequence[object]) -> list[Any]:
        return self.machine.run_flat(values)

    def call(self, *values: object) -> Any:
        """The structured result: array, tuple, data type value, closure or reference."""
        return self.machine.call(values)


def compile_machine(
    module: IRModule, compile_module: CompileModule, target: Target, threads: int | None
) -> MachineExecutable:
    """A typed module as a machine program, its segments compiled, ready to run.

    A segment whose sizes are open and that has no program for all of them is kept as IR, and so is
    one without a compiled form.
    """
    from ixion.vm import compile as vm

    compiled = vm.compile_module(module, module.get_attr("output_names") or ())
    program = compiled.program
    program.target_key = target.key()
    names = module.get_attr("input_names")
    if names:
        program.inputs = [
            (str(n), kind) for n, (_, kind) in zip(names, program.inputs, strict=True)
        ]
    segments = [
        _compiled(segment, inner, compile_module)
        if call is None
        else _bounded(segment, inner, call, target, threads)
        for segment, inner, call in zip(
            program.segments, compiled.modules, compiled.bounded, strict=True
        )
    ]
    return _executable(program, segments)


def _compiled(segment: Segment, module: IRModule, compile_module: CompileModule) -> Run:
    from ixion.ir.json import save_json

    try:
        executable = compile_module(module)
    except (CodegenError, NoLoopsError):
        return _by_reference(segment, module)
    if isinstance(executable, OpenCompiledExecutable):
        segment.program = executable.outline
    else:
        segment.program = executable.program
    if segment.program is None:
        segment.mode, segment.source = "specialise", save_json(module)
    return executable.run_flat


def _bounded(
    segment: Segment, module: IRModule, call: Call, target: Target, threads: int | None
) -> Run:
    """A segment of one operator whose results are sized by data."""
    from ixion.driver.bounded import BoundedOp

    try:
        bounded = BoundedOp(call, target, threads)
        native = bounded.executable(tuple(kind.shape for _, kind in segment.inputs))  # type: ignore[misc]
    except (CodegenError, NoLoopsError):
        return _by_reference(segment, module)
    segment.mode, segment.program = "bounded", native.program
    return _cut(native.run_flat)


def _cut(run: Run) -> Run:
    """The results of a bounded program in their true sizes."""
    from ixion.runtime.bounded import cut

    def cut_run(arrays: Sequence[Any]) -> Sequence[Any]:
        *buffers, extents = run(arrays)
        return [result.copy() for result in cut(buffers, extents)]

    return cut_run


def _by_reference(segment: Segment, module: IRModule) -> Run:
    from ixion.ir.json import save_json

    segment.mode, segment.source = "reference", save_json(module)
    return _reference(module)


def machine_executable(
    program: MachineProgram,
    bind: Callable[[Any], Executable],
    compile_module: CompileModule,
) -> MachineExecutable:
    """A program ready to run. ``bind`` makes an executable of a segment's program."""
    return _executable(program, [_runner(s, bind, compile_module) for s in program.segments])


def _executable(program: MachineProgram, segments: Sequence[Run]) -> MachineExecutable:
    return MachineExecutable(Machine(program, segments, [resolve(h) for h in program.hosts]))


def _runner(
    segment: Segment, bind: Callable[[Any], Executable], compile_module: CompileModule
) -> Run:
    if segment.program is not None:
        run = bind(segment.program).run_flat
        return _cut(run) if segment.mode == "bounded" else run
    module = _module(segment.source)
    return compile_module(module).run_flat if segment.mode == "specialise" else _reference(module)


def _module(source: str) -> IRModule:
    from ixion.ir import IRModule
    from ixion.ir.json import load_json

    module = load_json(source)
    if not isinstance(module, IRModule) or "main" not in module:
        raise CodegenError("the IR of a segment is no program", found=type(module).__name__)
    return module


def _reference(module: IRModule) -> Run:
    from ixion.analysis.evaluate import evaluate
    from ixion.driver.executable import flattened
    from ixion.transform.infer_type import InferType

    typed = InferType()(module)

    def run(arrays: Sequence[Any]) -> Sequence[Any]:
        return flattened(evaluate(typed, arrays))

    return run


class ReferenceMachine(Executable):
    """The numpy interpreter for programs whose inputs or outputs are not all tensors."""

    def __init__(self, module: IRModule) -> None:
        from ixion.vm.kinds import constructor_specs, kind_of

        main = module["main"]
        names = module.get_attr("input_names") or [p.name_hint for p in main.params]
        types = [*(p.checked_type for p in main.params), main.body.checked_type]
        kinds = [kind_of(t) for t in types]
        self.module, self._kinds, self._output = module, kinds[:-1], kinds[-1]
        leaves = leaf_kinds(self._output)
        labels = module.get_attr("output_names") or [f"out{i}" for i in range(len(leaves))]
        self.inputs = [spec_of(str(n), k) for n, k in zip(names, kinds, strict=False)]  # type: ignore[misc]
        self.outputs = [spec_of(str(n), k) for n, k in zip(labels, leaves, strict=True)]  # type: ignore[misc]
        self._gate = Gate(constructor_specs(module, (), types), lambda closure: True)

    def call(self, *values: object) -> Any:
        """The structured result."""
        from ixion.analysis.evaluate import evaluate

        check_count(values, self.inputs)
        sizes: dict[str, int] = {}
        arguments = [
            self._gate.accept(spec.name, kind, value, sizes)
            for spec, kind, value in zip(self.inputs, self._kinds, values, strict=True)
        ]
        return evaluate(self.module["main"], arguments, self.module)

    def run_flat(self, values: Sequence[object]) -> list[Any]:
        return _opened(self.call(*values), self._output)


def _opened(value: Any, kind: Kind) -> list[Any]:
    if not isinstance(kind, TupleKind):
        return [value]
    pairs = zip(value, kind.fields, strict=True)
    return [leaf for part, k in pairs for leaf in _opened(part, k)]


def resolve(host: HostOp) -> Run:
    """The function of a host operator: its reference, on arguments of any size.

    The type relation runs on the true sizes, and on values where they decide, so that what it
    refuses is refused here too. RegistryError for an operator that is not registered.
    """
    import ixion.op  # noqa: F401 - registers the built-in operators
    from ixion.analysis.evaluate import call_op
    from ixion.driver.bounded_host import Bounded
    from ixion.ir import Call, Op
    from ixion.ir.json import load_json

    op = Op.get(host.op)
    if op.get_attr("FReference") is None:
        raise CodegenError(f"operator {host.op} has no reference, so a host step cannot run it")
    attrs = load_json(host.attrs) if host.attrs else None
    call = Call(op, _unknown_arguments(host), attrs)
    call._set_checked_type(_declared(host))

    def run(arrays: Sequence[Any]) -> Sequence[Any]:
        try:
            result = call_op(call, _grouped(host, [_read_only(array) for array in arrays]))
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            if isinstance(error, IxionError):
                raise
            raise KernelError(f"operator {host.op} failed: {error}") from error
        return result if isinstance(result, tuple) else (result,)

    bounded = op.get_attr("FResultBound") is not None and all(n < 0 for n in host.groups)
    return Bounded(host.op, attrs, run) if bounded else run


def _unknown_arguments(host: HostOp) -> list[Expr]:
    """Variables for the arguments, of types that say nothing of sizes."""
    from ixion.base import dim as dims
    from ixion.ir import TensorType, Var

    return [Var(f"x{i}", TensorType((dims.Any(),))) for i in range(len(host.groups))]


def _grouped(host: HostOp, arrays: Sequence[Array]) -> list[Any]:
    """Arrays as arguments: tuples where the operator takes tuples."""
    rest = iter(arrays)
    return [
        next(rest) if count < 0 else tuple(next(rest) for _ in range(count))
        for count in host.groups
    ]


def _read_only(array: Array) -> Array:
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def _declared(host: HostOp) -> Any:
    from ixion.base import dim as dims
    from ixion.ir import TensorType, TupleType

    kinds = [
        TensorType([d if isinstance(d, int) else dims.parse(d) for d in k.shape], k.dtype)
        for k in host.outputs
    ]
    return kinds[0] if len(kinds) == 1 else TupleType(kinds)
