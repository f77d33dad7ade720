"""``compile()``: model in, executable out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ixion.base.errors import (
    CodegenError,
    ConfigError,
    InputError,
    IxionError,
    TypeInferenceError,
    UnsupportedOpError,
    did_you_mean,
)
from ixion.base.target import Target
from ixion.driver import pipeline
from ixion.driver.executable import (
    CompiledExecutable,
    Executable,
    OpenCompiledExecutable,
    ReferenceExecutable,
    ShapeFreeExecutable,
)
from ixion.op.typed import dtype_of
from ixion.runtime.machine_file import AnyProgram
from ixion.runtime.program import TensorSpec

if TYPE_CHECKING:
    from ixion.base.guard import Guard
    from ixion.ir import Function, IRModule
    from ixion.runtime.outline import Outline
    from ixion.runtime.session import Carried

ALIKE = 3  # formed kernels that are equal, about: their code is made once
Model = Any  # a path, a function, or an IRModule
Shapes = Mapping[str, Sequence[int | None]]
Specialise = Callable[[dict[str, tuple[int, ...]]], Executable]


def load(path: str | Path, shapes: Mapping[str, Sequence[int]] | None = None) -> IRModule:
    """A model file as a module: ``.onnx``, ``.pnnx.param`` (``.bin`` beside it) or Relay text.

    ``shapes`` binds open input sizes.  Raises as ``ixion.frontend.load``.
    """
    if Path(path).suffix in (".relay", ".rly"):
        return _load_text(Path(path))
    from ixion import frontend

    return frontend.load(path, shapes)


def _load_text(path: Path) -> IRModule:
    from ixion.base.errors import ModelFormatError
    from ixion.driver.text import parse

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelFormatError("cannot read the program", where=str(path), found=error) from error
    return parse(text, str(path))


def compile(  # noqa: A001 - the verb every user expects
    model: Model,
    target: str | Target = "native",
    opt_level: int = 3,
    threads: int | None = None,
    executor: str = "compiled",
    verify: bool = False,
    inputs: Shapes | None = None,
    states: Mapping[str, str] | None = None,
) -> Executable:
    """A model (path, module or function) ready to run.

    ``target``: native, avx512, avx2, generic.  ``opt_level``: 0 to 3.  ``threads``: at most so
    many (default: the cores this process may use).  ``executor``: ``compiled``, or ``reference``
    for the numpy interpreter.  ``verify`` checks the program's value after every pass.
    ``inputs`` gives shapes to inputs with open sizes; None in a shape leaves a size open.
    ``states`` names inputs that are state, each with the output that is its next value: such a
    model runs in sessions (``executable.session()``).

    Raises ModelFormatError or UnsupportedOpError for the file, InputError for ``inputs``,
    ConfigError for an option, CodegenError for what has no compiled form.
    """
    if executor not in ("compiled", "reference"):
        raise ConfigError(
            f"unknown executor {executor!r}", expected="compiled, reference",
            hint=did_you_mean(executor, ("compiled", "reference")),
        )  # fmt: skip
    chosen = Target.parse(target)
    options = _Options(chosen, int(opt_level), threads, executor, verify, dict(states or {}))
    if isinstance(model, (str, Path)):
        return _from_file(Path(model), options, inputs)
    return _from_module(_as_module(model), options, inputs, None)


class _Options:
    def __init__(
        self,
        target: Target,
        opt_level: int,
        threads: int | None,
        executor: str,
        verify: bool,
        states: dict[str, str] | None = None,
    ) -> None:
        self.target, self.opt_level, self.threads = target, opt_level, threads
        self.executor, self.verify, self.states = executor, verify, states or {}


def _as_module(model: Model) -> IRModule:
    from ixion.ir import IRModule

    return model if isinstance(model, IRModule) else IRModule.from_expr(model)


def _from_file(path: Path, options: _Options, shapes: Shapes | None) -> Executable:
    from ixion.driver import model_cache

    key = None
    if options.executor == "compiled" and not options.verify:
        key = model_cache.model_key(
            path, options.target, options.opt_level, shapes, options.states
        )
        program = model_cache.find(key)
        if program is not None:
            return _bind(program, options)
    known = _known_shapes(shapes)
    try:
        module = load(path, known)
    except (UnsupportedOpError, InputError):
        raise
    except IxionError:
        ins = _open_inputs(path) if not known and path.suffix in (".onnx", ".param") else []
        if not ins:
            raise
        # A model that can be imported only when its sizes are numbers: what it gives is not known
        # before the first run.
        return ShapeFreeExecutable(ins, [], lambda named: _from_file(path, options, named))
    return _from_module(module, options, None if known else shapes, path, key)


def _known_shapes(shapes: Shapes | None) -> dict[str, tuple[int, ...]]:
    """Shapes that leave nothing open, where all of them do; front ends take no others."""
    found = {}
    for name, shape in (shapes or {}).items():
        sizes = tuple(n for n in shape if n is not None)
        if len(sizes) != len(shape):
            return {}
        found[name] = sizes
    return found


def _open_inputs(path: Path) -> list[TensorSpec]:
    """The inputs of a file some of whose sizes are open; empty where all are known."""
    from ixion import frontend

    ins = [TensorSpec(n, _sizes(kind), kind.dtype) for n, kind in frontend.inputs(path).items()]
    return [] if all(_is_static(s.shape) for s in ins) else ins


def _from_module(
    module: IRModule,
    options: _Options,
    shapes: Shapes | None,
    path: Path | None,
    key: str | None = None,
) -> Executable:
    from ixion.transform.infer_type import InferType

    module = InferType()(module)
    if shapes:
        module = _bound(module, shapes)
    module, machine = _with_control(module, options, key)
    if machine is not None:
        return machine
    if options.executor == "reference":
        return _reference(module, options, path)
    carried: list[Carried] = []
    if any_symbols(module):
        module = _named(module)
    if options.states:
        module, carried = _with_states(module, options)
    return _native(module, options, path, key, carried)


def _reference(module: IRModule, options: _Options, path: Path | None) -> Executable:
    function = module["main"]
    ins, outs = interface(module, function)
    if any_symbols(module):
        return ShapeFreeExecutable(ins, outs, _specialiser(module, options, path))
    return ReferenceExecutable(module, function, ins, outs)


def _native(
    module: IRModule,
    options: _Options,
    path: Path | None,
    key: str | None,
    carried: Sequence[Carried],
) -> Executable:
    """Machine code; or, where control flow or open sizes have none, what does them otherwise."""
    from ixion.transform.outline_control import has_control

    function, is_open = module["main"], any_symbols(module)
    try:
        with _paused_collection():
            # An open module is wanted again where it has no compiled form for all sizes.
            consume = path is not None and not options.verify and not is_open
            outline = build(module, options, consume=consume, carried=carried)
            program = outline if is_open or carried else outline.program({})
    except CodegenError:
        if carried or not (is_open or has_control(module)):
            raise
        if has_control(module):
            return _machine(module, options, key)
        ins, outs = interface(module, function)
        return ShapeFreeExecutable(ins, outs, _specialiser(module, options, path))
    if key is not None:
        from ixion.driver import model_cache

        model_cache.keep(key, program)
    exe = _bind(program, options)
    if options.verify and not carried:
        _check_code(exe, function, module)
    return exe


def _with_control(
    module: IRModule, options: _Options, key: str | None
) -> tuple[IRModule, Executable | None]:
    """The module, simplified where that makes it plain, or the executable of one that is not.

    Control flow that becomes steps of the program altogether is plain too.
    """
    from ixion.vm.prepare import is_plain

    if is_plain(module):
        return module, None
    if options.executor == "reference":
        from ixion.driver.machine import ReferenceMachine

        return module, ReferenceMachine(module)
    module, plain = simplest(module, options.opt_level)
    return module, None if plain else _machine(module, options, key)


def simplest(module: IRModule, opt_level: int) -> tuple[IRModule, bool]:
    """A typed module, simplified if it has control flow, and whether it is a plain program."""
    from ixion.ir import TensorType
    from ixion.vm.prepare import becomes_steps, is_plain, simplified

    if is_plain(module):
        return module, True
    module = simplified(module, opt_level)
    if is_plain(module):
        return module, True
    if not all(isinstance(p.checked_type, TensorType) for p in module["main"].params):
        return module, False
    try:
        return module, becomes_steps(_named(module) if any_symbols(module) else module)
    except TypeInferenceError:  # sizes that only some of its branches need
        return module, False


def _machine(module: IRModule, options: _Options, key: str | None) -> Executable:
    """The executable of a program with control flow that kernels cannot do."""
    from ixion.driver.machine import compile_machine

    if options.states:
        raise ConfigError("a program with control flow that no kernel does has no states")
    machine = compile_machine(module, _segment_compiler(options), options.target, options.threads)
    if key is not None:
        from ixion.driver import model_cache

        model_cache.keep(key, machine.machine_program)
    return machine


def _segment_compiler(options: _Options) -> Callable[[IRModule], Executable]:
    """Compiles a segment of a program with control flow.

    Only segments of known sizes are verified: values are made up for them.
    """
    from ixion.ir import is_dynamic

    def compiled(module: IRModule) -> Executable:
        kinds = [param.type_annotation for param in module["main"].params]
        verify = options.verify and not any(k is None or is_dynamic(k) for k in kinds)
        own = _Options(options.target, options.opt_level, options.threads, "compiled", verify)
        return _from_module(module, own, None, None)

    return compiled


def _made_up(module: IRModule, guards: Sequence[Guard]) -> list[Any]:
    """Random inputs, of sizes that the program allows where they are open."""
    from ixion.transform.verify import example_sizes, random_inputs

    function = module["main"]
    sizes = example_sizes(function, guards) if any_symbols(module) else {}
    return random_inputs(function, sizes=sizes)


def _check_code(exe: Executable, function: Function, module: IRModule) -> None:
    """One run of the machine code against the reference; PassError where they differ."""
    from ixion.analysis.evaluate import evaluate
    from ixion.base.errors import PassError
    from ixion.driver.executable import flattened
    from ixion.transform.guards import guards_of
    from ixion.transform.verify import difference

    values = _made_up(module, [g for g in guards_of(module) if g.certain])
    want = flattened(evaluate(function, values, module))
    for spec, got, expected in zip(exe.outputs, exe.run_flat(values), want, strict=True):
        ratio = difference(got, expected)
        if not ratio <= 1.0:
            raise PassError(
                f"verify: machine code gives another value for output {spec.name!r}",
                found=f"{ratio:.3g} times the tolerance",
            )


def _specialiser(module: IRModule, options: _Options, path: Path | None) -> Specialise:
    """What makes an executable for inputs of given shapes."""
    if path is not None:
        return lambda named: _from_file(path, options, named)
    return lambda named: _from_module(_bound(module, named), options, None, None)


def _named(module: IRModule) -> IRModule:
    """The module with a symbol for every size that varies."""
    from ixion.driver.binding import bind_fixed_sizes, name_open_sizes

    return bind_fixed_sizes(name_open_sizes(module))


def _bound(module: IRModule, shapes: Shapes) -> IRModule:
    from ixion.driver.binding import bind_inputs

    return bind_inputs(module, shapes)


@contextmanager
def _paused_collection() -> Iterator[None]:
    """Compilation makes many small objects and no garbage cycles worth looking for meanwhile."""
    import gc

    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _with_states(module: IRModule, options: _Options) -> tuple[IRModule, list[Carried]]:
    from ixion.transform.carry_states import carry_states

    if options.executor != "compiled":
        raise ConfigError("only compiled models have states", found=options.executor)
    module, carried, _ = carry_states(module, options.states)
    return module, carried


def build(
    module: IRModule,
    options: _Options,
    *,
    consume: bool = False,
    carried: Sequence[Carried] = (),
) -> Outline:
    """The compiled outline of a module.

    With ``consume`` the module's weights are freed as they are packed.
    """
    from ixion.analysis.dataflow import calls_inside
    from ixion.driver.build import objects_of
    from ixion.driver.compile_workers import dismiss, start_ahead
    from ixion.lower.assemble import assemble
    from ixion.runtime.arena import give_back
    from ixion.transform.guards import guards_of
    from ixion.transform.verify import VerifyInstrument

    guards = [g for g in guards_of(module) if g.certain] if any_symbols(module) else []
    values = _made_up(module, guards) if options.verify else None
    instruments = [VerifyInstrument(values)] if options.verify else []
    for name, after in pipeline.run(
        module, pipeline.COMPILED, options.target, options.opt_level, instruments
    ):
        module = after
        if name == "OutlineControl":
            check_first_order(module)
    function = module["main"]
    ins, outs = interface(module, function)
    names = [s.name for s in ins], [s.name for s in outs]
    start_ahead(len(calls_inside(function)) // ALIKE)
    try:
        if consume:  # weights that passes replaced are free, but still the process's
            give_back()
        assembled = assemble(
            function, options.target, *names, consume=consume, guards=guards,
            carried=[c.index for c in carried], regions=regions(module),
        )  # fmt: skip
        outline, kernels = assembled.outline, assembled.kernels
        if carried:
            outline.meta["states"] = [c.to_json() for c in carried]
        del assembled, module, function, after  # so that kernels can go one by one
        outline.objects = objects_of(kernels, options.target)
    finally:
        dismiss()
    give_back()
    return outline


def any_symbols(module: IRModule) -> bool:
    """Whether an input of the module has a size that is known at run time only."""
    return any(not _is_static(_sizes(p)) for p in module["main"].params)


def check_first_order(module: IRModule) -> None:
    """Raises CodegenError, saying why, for control flow that did not become steps."""
    from ixion.transform.outline_control import has_control, why_left_alone

    if has_control(module):
        reason = why_left_alone(module)
        raise CodegenError(
            "the program's control flow has no compiled form",
            where=None if reason is None else reason.where,
            found=None if reason is None else reason.reason,
            hint='use executor="reference"',
        )


def regions(module: IRModule) -> dict[str, Function]:
    """The functions that a module's control operators run, by name."""
    return {var.name_hint: func for var, func in module.functions.items()}  # type: ignore[misc]


def interface(module: IRModule, function: Function) -> tuple[list[TensorSpec], list[TensorSpec]]:
    """Names, shapes and dtypes of a function's inputs and flattened outputs."""
    from ixion.ir import TensorType, TupleType, Type
    from ixion.op.typed import tensor_type

    names = module.get_attr("input_names") or [p.name_hint for p in function.params]
    ins = [
        TensorSpec(str(n), _sizes(p), dtype_of(p))
        for n, p in zip(names, function.params, strict=True)
    ]
    kinds: list[TensorType] = []
    stack: list[Type] = [function.body.checked_type]
    while stack:
        kind = stack.pop()
        if isinstance(kind, TupleType):
            stack.extend(reversed(kind.fields))
        else:
            kinds.append(tensor_type(kind))
    labels = module.get_attr("output_names") or [f"out{i}" for i in range(len(kinds))]
    outs = [TensorSpec(str(n), _sizes(k), k.dtype) for n, k in zip(labels, kinds, strict=True)]
    return ins, outs


def _sizes(node: Any) -> tuple[Any, ...]:
    """A shape, open sizes included."""
    from ixion.op.typed import tensor_type

    return tuple(tensor_type(node).shape)


def _is_static(shape: Sequence[object]) -> bool:
    return all(isinstance(d, int) for d in shape)


def _bind(program: AnyProgram, options: _Options) -> Executable:
    from ixion.driver.build import install_native
    from ixion.driver.hosts import resolve_host
    from ixion.runtime.executable import Executable as Native
    from ixion.runtime.machine_program import MachineProgram
    from ixion.runtime.open_executable import OpenExecutable
    from ixion.runtime.outline import Outline

    if isinstance(program, MachineProgram):
        from ixion.driver.machine import machine_executable

        bind = lambda segment: _bind(segment, options)  # noqa: E731
        return machine_executable(program, bind, _segment_compiler(options))
    install_native()
    if isinstance(program, Outline):
        return OpenCompiledExecutable(OpenExecutable(program, options.threads, resolve_host))
    return CompiledExecutable(Native(program, options.threads, resolve_host))
