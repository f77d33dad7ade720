"""Every stage of compilation as text, for people: ``ixion print``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ixion.base.errors import CodegenError, ConfigError, did_you_mean
from ixion.base.target import Target
from ixion.driver import pipeline
from ixion.kernel.sizes import TYPICAL
from ixion.op.extent import NoLoopsError

if TYPE_CHECKING:
    from ixion.ir import IRModule
    from ixion.lower.assemble import Assembled
    from ixion.runtime.outline import Outline
    from ixion.vm.compile import Compiled

STAGES = ("ir", "kernels", "plan", "loops", "llvm", "asm")


def stages(
    model: Any,
    target: str | Target = "native",
    opt_level: int = 3,
    after: str | None = None,
    stage: str = "ir",
) -> str:
    """The text of one stage: ``ir`` (after pass ``after``, else the last), ``kernels`` (formed
    kernels with layouts), ``plan`` (steps and memory), ``loops``, ``llvm`` or ``asm``.

    Raises ConfigError for an unknown stage or pass, and what ``load`` raises for the model.
    """
    if stage not in STAGES:
        raise ConfigError(
            f"unknown stage {stage!r}", expected=", ".join(STAGES), hint=did_you_mean(stage, STAGES)
        )
    chosen = Target.parse(target)
    module = _loaded(model)
    if stage == "ir" and after is None:
        return module.astext(show_meta_data=False)
    if stage != "ir":
        parts = _segments(module, opt_level)
        if parts is not None:
            return _of_segments(parts, chosen, opt_level, stage)
    module = _after(module, chosen, opt_level, after)
    if stage in ("ir", "kernels"):
        return module.astext(show_meta_data=False)
    return _MAKERS[stage](_assembled(module, chosen), chosen)


def _loaded(model: Any) -> IRModule:
    from ixion.driver.compilation import load

    if isinstance(model, (str, Path)):
        return load(model)
    return model  # type: ignore[no-any-return]


def _segments(module: IRModule, opt_level: int) -> Compiled | None:
    """The machine program of a module with control flow; None for a plain one."""
    from ixion.driver.compilation import simplest
    from ixion.transform.infer_type import InferType
    from ixion.vm.compile import compile_module

    module, plain = simplest(InferType()(module), opt_level)
    return None if plain else compile_module(module)


def _of_segments(parts: Compiled, target: Target, opt_level: int, stage: str) -> str:
    """A stage of every segment; the plan begins with the instructions around them."""
    from ixion.runtime.machine_text import machine_text

    texts = [machine_text(parts.program)] if stage == "plan" else []
    for number, inner in enumerate(parts.modules):
        text = f"# segment {number}: {parts.program.segments[number].name}\n"
        try:
            module = _after(inner, target, opt_level, None)
            if stage == "kernels":
                text += module.astext(show_meta_data=False)
            else:
                text += _MAKERS[stage](_assembled(module, target), target)
        except (CodegenError, NoLoopsError) as error:
            text += f"# no compiled form, run by its reference: {error.message}\n"
        texts.append(text)
    return "\n".join(texts)


def _after(module: IRModule, target: Target, opt_level: int, after: str | None) -> IRModule:
    names = [s.name for s in pipeline.COMPILED if s.level <= opt_level]
    if after is not None and after not in names:
        raise ConfigError(
            f"no pass {after!r} runs at opt level {opt_level}", expected=", ".join(names),
            hint=did_you_mean(after, names),
        )  # fmt: skip
    from ixion.driver.compilation import check_first_order

    last = module
    for name, last in pipeline.run(module, pipeline.COMPILED, target, opt_level):
        if name == after and name != "FoldConstant":
            break
        if name == "OutlineControl":
            check_first_order(last)
    return last


def _assembled(module: IRModule, target: Target) -> Assembled:
    from ixion.driver.compilation import interface, regions
    from ixion.lower.assemble import assemble

    function = module["main"]
    ins, outs = interface(module, function)
    names = [s.name for s in ins], [s.name for s in outs]
    return assemble(function, target, *names, regions=regions(module))


def _plan(assembled: Assembled, target: Target) -> str:
    from ixion.runtime.memory import lower_bound

    program, rooms = assembled.outline.program_and_rooms(_example(assembled.outline))
    bound = lower_bound(rooms)
    constants = sum(c.nbytes for c in program.constants)
    arena = f"arena {program.arena_size} bytes (at least {bound} alive at one step)"
    scratch = f"scratch {program.scratch_size} bytes a worker"
    lines = [f"{arena}, constants {constants} bytes, {scratch}"]
    for i, step in enumerate(program.steps):
        slots = " ".join(f"{s.kind}{s.index or ''}+{s.offset}" for s in step.slots)
        what = step.kernel[:14] if step.kind == "call" else step.kind
        label = step.label if step.target < 0 else f"{step.label}, to {step.target}"
        lines.append(f"{i:4d} {what:14s} {step.tasks:5d} tasks  {label}  [{slots}]")
    return "\n".join(lines) + "\n"


def _example(outline: Outline) -> dict[str, int]:
    """Sizes to show an open program with: all as large as schedules take them for."""
    return dict.fromkeys(outline.symbols(), TYPICAL)


def _loops(assembled: Assembled, target: Target) -> str:
    from ixion.te.text import kernel_text

    return "\n".join(f"# {s}\n{kernel_text(k)}" for s, k in assembled.kernels.items())


def _llvm(assembled: Assembled, target: Target) -> str:
    from ixion.codegen.emit import emit_kernel

    return "\n".join(emit_kernel(k, target, s) for s, k in assembled.kernels.items())


def _asm(assembled: Assembled, target: Target) -> str:
    from ixion.codegen.emit import emit_kernel
    from ixion.codegen.llvm import asm_text

    texts = [emit_kernel(k, target, s) for s, k in assembled.kernels.items()]
    return "\n".join(asm_text(t, target) for t in texts)


_MAKERS: dict[str, Callable[[Assembled, Target], str]] = {
    "plan": _plan, "loops": _loops, "llvm": _llvm, "asm": _asm
}  # fmt: skip
