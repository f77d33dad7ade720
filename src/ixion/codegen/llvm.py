"""LLVM behind typed functions; no other file imports llvmlite.

Text in, machine code out, addresses from machine code. What LLVM keeps for a process (one code
generator and one pass builder per target, one LLJIT) is made once and never disposed: every pass
builder and every JIT link leaks a little, and a worker thread may still be running native code
while the interpreter shuts down.
"""

from __future__ import annotations

import platform
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from llvmlite import binding

from ixion.base.errors import CodegenError
from ixion.base.target import Target

T = TypeVar("T")


@dataclass(frozen=True)
class _Generator:
    """Code generator, pass builder and pass pipeline of one target."""

    machine: Any
    builder: Any
    passes: Any


@dataclass
class _Jit:
    """The process's LLJIT and how many libraries it has linked (their names must differ)."""

    engine: Any
    count: int = 0


_LOCK = threading.RLock()
_GENERATORS: dict[Target, _Generator] = {}
_JITS: list[_Jit] = []
_INLINE_ASM = re.compile(r"^[^;\n]*\bcall\b[^\n]*\basm\b", re.MULTILINE)


def compile_text(ir_text: str, target: Target) -> bytes:
    """Object file (position independent, small code model) of a module in LLVM text.

    Raises CodegenError when the text does not parse or verify.
    """
    generator = _generator(target)
    image = _with_module(ir_text, target, generator, generator.machine.emit_object)
    return bytes(image)


def asm_text(ir_text: str, target: Target) -> str:
    """Assembly of the machine code `compile_text` makes. Raises CodegenError as it does."""
    generator = _generator(target)
    return str(_with_module(ir_text, target, generator, generator.machine.emit_assembly))


def optimised_text(ir_text: str, target: Target) -> str:
    """LLVM text as it stands after the passes of `compile_text`. Raises CodegenError as it does."""
    return _with_module(ir_text, target, _generator(target), str)


class Library:
    """Loaded machine code; its addresses are valid while the library is referenced."""

    def __init__(self, engine: Any, name: str, tracker: Any) -> None:
        self._engine = engine
        self._name = name
        self._trackers = [tracker]
        self._addresses: dict[str, int] = {}
        self._forever = False

    def address(self, symbol: str) -> int:
        """Address of `symbol`. Raises CodegenError when no object of the library defines it."""
        known = self._addresses.get(symbol)
        return self._look_up(symbol) if known is None else known

    def keep_forever(self) -> None:
        """Never unload this code: a thread may be in it as long as the process lives."""
        with _LOCK:
            self._forever = True
            for tracker in self._trackers:
                tracker.detach()

    def _look_up(self, symbol: str) -> int:
        with _LOCK:
            try:
                tracker = self._engine.lookup(self._name, symbol)
            except RuntimeError as error:
                raise CodegenError(f"cannot load symbol '{symbol}': {error}") from error
            self._trackers.append(tracker)
            address = self._addresses.setdefault(symbol, int(tracker[symbol]))
            if self._forever:
                tracker.detach()
            return address


def load_objects(objects: Sequence[bytes]) -> Library:
    """Link object files into this process as one library.

    The objects may use each other's symbols and the process's. An object made for another CPU
    loads, and faults when it runs: whoever stores objects ties them to a target.

    Raises CodegenError for a broken object or a symbol defined twice.
    """
    linker = binding.JITLibraryBuilder()
    for image in objects:
        linker.add_object_img(image)
    linker.add_current_process()
    with _LOCK:
        jit = _jit()
        jit.count += 1
        name = f"ixion{jit.count}"
        try:
            return Library(jit.engine, name, linker.link(jit.engine, name))
        except RuntimeError as error:
            raise CodegenError(f"cannot link {len(objects)} objects: {error}") from error


def _with_module(ir_text: str, target: Target, generator: _Generator, use: Callable[[Any], T]) -> T:
    """Parse, verify and optimise `ir_text`, then apply `use` to the module.

    Text without stack variables is compiled as it stands. The kernel emitter folds, shares and
    hoists as it writes, and code generation does the rest: over 54 kernels of two networks the
    passes cost 131 ms of 850 (instruction combining 112) and made nothing faster.
    """
    _refuse_foreign_asm(ir_text, target)
    # A context of its own: types and constants of finished modules pile up in the global one.
    with binding.create_context() as context:
        try:
            with binding.parse_assembly(ir_text, context) as module:
                module.triple = target.triple
                module.data_layout = str(generator.machine.target_data)
                module.verify()
                if "= alloca " in ir_text:
                    generator.passes.run(module, generator.builder)
                return use(module)
        except RuntimeError as error:
            raise CodegenError(f"LLVM refused a module: {error}") from error


def _refuse_foreign_asm(ir_text: str, target: Target) -> None:
    """LLVM ends the process at inline assembly of a machine whose parser is not loaded."""
    if target.triple.split("-")[0] == platform.machine() or not _INLINE_ASM.search(ir_text):
        return
    raise CodegenError(f"inline assembly cannot be compiled for {target.triple} on this machine")


def _generator(target: Target) -> _Generator:
    with _LOCK:
        made = _GENERATORS.get(target)
        if made is None:
            made = _GENERATORS[target] = _make_generator(target)
        return made


def _make_generator(target: Target) -> _Generator:
    _initialise()
    try:
        machine = binding.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=_feature_text(target), opt=3, reloc="pic", codemodel="small"
        )
    except RuntimeError as error:
        raise CodegenError(f"LLVM has no target '{target.triple}': {error}") from error
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options())
    passes = binding.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    return _Generator(machine, builder, passes)


def _feature_text(target: Target) -> str:
    """LLVM feature string. Without the last one LLVM splits 512-bit operations on some CPUs."""
    names = [name if name[0] in "+-" else f"+{name}" for name in target.features if name]
    if target.vector_bits >= 512:
        names.append("-prefer-256-bit")
    return ",".join(names)


def _jit() -> _Jit:
    """The process's JIT; JITLink keeps code and data together, as the small code model needs."""
    if not _JITS:
        _initialise()
        host = binding.Target.from_default_triple()
        machine = host.create_target_machine(reloc="pic", codemodel="small", jit=True)
        _JITS.append(_Jit(binding.create_lljit_compiler(machine, use_jit_link=True)))
    return _JITS[0]


def _initialise() -> None:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    binding.initialize_native_target()
    binding.initialize_native_asmparser()
