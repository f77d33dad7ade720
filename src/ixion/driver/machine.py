"""Models with control flow: compiled to machine programs, run, saved and loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ixion.base.errors import CodegenError, KernelError
from ixion.driver.executable import Executable, OpenCompiledExecutable
from ixion.runtime.inputs import check_count
from ixion.runtime.machine import Machine, leaf_kinds
from ixion.runtime.machine_program import HostOp, MachineProgram, Segment
from ixion.runtime.value_kind import Gate, Kind, TupleKind, spec_of

if TYPE_CHECKING:
    from ixion.ir import Function, IRModule

Array = np.ndarray[Any, np.dtype[Any]]
# Compiles a function of tensors, or binds a program.
CompileFunction = Callable[["Function"], Executable]
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
    module: IRModule, compile_function: CompileFunction, target_key: str
) -> MachineExecutable:
    """A typed module as a machine program, its segments compiled, ready to run.

    A segment whose sizes are open and that has no program for all of them is kept as IR, and so is
    one without a compiled form.
    """
    from ixion.vm.compile import compile_module

    compiled = compile_module(module, module.get_attr("output_names") or ())
    program = compiled.program
    program.target_key = target_key
    names = module.get_attr("input_names")
    if names:
        program.inputs = [
            (str(n), kind) for n, (_, kind) in zip(names, program.inputs, strict=True)
        ]
    segments = [
        _compiled(segment, function, compile_function)
        for segment, function in zip(program.segments, compiled.functions, strict=True)
    ]
    return _executable(program, segments)


def _compiled(segment: Segment, function: Function, compile_function: CompileFunction) -> Run:
    from ixion.ir.json import save_json
    from ixion.op.extent import NoLoopsError

    try:
        executable = compile_function(function)
    except (CodegenError, NoLoopsError):
        segment.mode, segment.source = "reference", save_json(function)
        return _reference(function)
    if isinstance(executable, OpenCompiledExecutable):
        segment.program = executable.outline
    else:
        segment.program = executable.program
    if segment.program is None:
        segment.mode, segment.source = "specialise", save_json(function)
    return executable.run_flat


def machine_executable(
    program: MachineProgram,
    bind: Callable[[Any], Executable],
    compile_function: CompileFunction,
) -> MachineExecutable:
    """A program ready to run. ``bind`` makes an executable of a segment's program."""
    return _executable(program, [_runner(s, bind, compile_function) for s in program.segments])


def _executable(program: MachineProgram, segments: Sequence[Run]) -> MachineExecutable:
    return MachineExecutable(Machine(program, segments, [resolve(h) for h in program.hosts]))


def _runner(
    segment: Segment, bind: Callable[[Any], Executable], compile_function: CompileFunction
) -> Run:
    if segment.program is not None:
        return bind(segment.program).run_flat
    function = _function(segment.source)
    if segment.mode == "specialise":
        return compile_function(function).run_flat
    return _reference(function)


def _function(source: str) -> Function:
    from ixion.ir import Function, IRModule
    from ixion.ir.json import load_json
    from ixion.transform.infer_type import InferType

    function = load_json(source)
    if not isinstance(function, Function):
        raise CodegenError("the IR of a segment is no function", found=type(function).__name__)
    typed = InferType()(IRModule.from_expr(function))["main"]
    assert isinstance(typed, Function)
    return typed


def _reference(function: Function) -> Run:
    from ixion.analysis.evaluate import evaluate
    from ixion.driver.executable import flattened

    def run(arrays: Sequence[Any]) -> Sequence[Any]:
        return flattened(evaluate(function, arrays))

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
    from ixion.driver.bounded_host import Bounded
    from ixion.ir import Op
    from ixion.ir.json import load_json

    op = Op.get(host.op)
    reference = op.get_attr("FReference")
    if reference is None:
        raise CodegenError(f"operator {host.op} has no reference, so a host step cannot run it")
    attrs = load_json(host.attrs) if host.attrs else None
    infer = op.get_attr("FInfer")
    declared = _declared(host)

    def run(arrays: Sequence[Any]) -> Sequence[Any]:
        inputs = [_read_only(array) for array in arrays]
        kind = _inferred(host, infer, attrs, inputs) or declared
        try:
            results = reference(attrs, tuple(inputs), kind)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise KernelError(f"operator {host.op} failed: {error}") from error
        flat = results if isinstance(results, tuple | list) else (results,)
        return [np.asarray(r, dtype=d) for r, d in zip(flat, dtypes, strict=True)]

    from ixion.base.dtype import to_numpy

    dtypes = [to_numpy(kind.dtype) for kind in host.outputs]
    bounded = op.get_attr("FResultBound") is not None and all(n < 0 for n in host.groups)
    return Bounded(host.op, attrs, run) if bounded else run


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


def _all_or_none(values: Sequence[Any]) -> Any:
    return None if any(v is None for v in values) else tuple(values)


def _inferred(host: HostOp, infer: Any, attrs: Any, inputs: Sequence[Array]) -> Any:
    """The result type for these arguments; None where it depends on more than their sizes."""
    from ixion.base.dtype import from_numpy
    from ixion.ir import TensorType, TupleType
    from ixion.op.define import InferArgs
    from ixion.vm.naming import constant_value

    kinds: list[Any] = []
    values: list[Any] = []
    rest = list(inputs)
    for count in host.groups:
        taken, rest = rest[: abs(count)], rest[abs(count) :]
        types = [TensorType(a.shape, from_numpy(a.dtype)) for a in taken]
        known = [constant_value(a) for a in taken]
        kinds.append(types[0] if count < 0 else TupleType(types))
        values.append(known[0] if count < 0 else _all_or_none(known))
    found = infer(InferArgs(host.op, tuple(kinds), attrs, tuple(values)))
    return getattr(found, "type", found)

