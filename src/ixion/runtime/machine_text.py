"""Machine programs as text, for people."""

from __future__ import annotations

from collections.abc import Iterator

from ixion.runtime.machine_program import (
    NUMBERED,
    ConstantSpec,
    HostOp,
    Instruction,
    MachineFunction,
    MachineProgram,
    Segment,
)
from ixion.runtime.value_kind import ConstructorSpec

__all__ = ["machine_text"]


def machine_text(program: MachineProgram) -> str:
    """Functions with their instructions, the entry first, then segments and host operators.

    Registers are ``%n``; ``drop`` tells those let go of.
    """
    order = [program.entry, *(i for i in range(len(program.functions)) if i != program.entry)]
    parts = ["\n".join(_function(program, program.functions[i])) for i in order]
    parts += [_segment(i, s) for i, s in enumerate(program.segments)]
    for number, host in enumerate(program.hosts):
        results = ", ".join(map(str, host.outputs))
        parts.append(f"host {number}: {host.op} -> {results}")
    return "\n\n".join(parts) + "\n"


def _function(program: MachineProgram, function: MachineFunction) -> Iterator[str]:
    params = ", ".join(f"%{i}" for i in range(function.params))
    yield f"function {function.name}({params}), {function.registers} registers"
    for offset, constant in enumerate(function.constants):
        yield f"       %{function.params + offset} = {_constant(program, constant)}"
    for position, one in enumerate(function.code):
        yield f"{position:5d}  {_instruction(program, one)}"


def _constant(program: MachineProgram, constant: ConstantSpec) -> str:
    if constant.kind == "array":
        array = program.arrays[constant.index]
        shown = f" {array.item()}" if array.size == 1 else ""
        return f"constant {array.dtype}{list(array.shape)}{shown}"
    if constant.kind == "closure":
        return f"closure {program.functions[constant.index].name}"
    if constant.kind == "value":
        return program.constructors[constant.index].name_hint
    return "()"


def _instruction(program: MachineProgram, one: Instruction) -> str:
    what = one.name
    if one.name in NUMBERED and one.name != "check":
        what += f" {_name(getattr(program, NUMBERED[one.name])[one.number], one.number)}"
    elif one.name in ("item", "field"):
        what += f" {one.number}"
    results = "".join(f"%{r} " for r in one.results)
    text = f"{results}= {what}" if results else what
    text += "".join(f" %{r}" for r in one.args)
    return text + _ways(program, one) + "".join(f" drop %{r}" for r in one.dead)


def _name(what: MachineFunction | Segment | HostOp | ConstructorSpec, number: int) -> str:
    if isinstance(what, HostOp):
        return f"{number} ({what.op})"
    if isinstance(what, Segment):
        return f"{number} ({what.name})"
    return what.name_hint if isinstance(what, ConstructorSpec) else what.name


def _ways(program: MachineProgram, one: Instruction) -> str:
    if one.name == "switch":
        names = {c.tag: c.name_hint for c in program.constructors}
        cases = zip(one.tags, one.targets, strict=False)
        shown = "".join(f" {names.get(tag, tag)}: {at}," for tag, at in cases)
        return f"{shown} else {one.targets[-1]}"
    if one.name == "if":
        return f" else {one.targets[0]}"
    return f" {one.targets[0]}" if one.targets else ""


def _segment(number: int, segment: Segment) -> str:
    inputs = ", ".join(f"{name}: {kind}" for name, kind in segment.inputs)
    outputs = ", ".join(map(str, segment.outputs))
    text = f"segment {number}: {segment.name} ({inputs}) -> {outputs}"
    return text if segment.mode == "compiled" else f"{text}; {segment.mode}"
