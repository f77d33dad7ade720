"""Registers: when values are let go of, and which share one.

Control only goes forward inside a function, so one pass back tells what is still needed and one
forward what is dead and not yet let go of. Registers are cleared where something long or large
comes next: a segment, a host operator, a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from ixion.runtime.machine_program import LEAVES, Instruction
from ixion.vm.draft import Value

__all__ = ["Label", "Line", "laid_out"]

_HEAVY = frozenset(("segment", "host", "call", "invoke"))


@dataclass(eq=False)
class Label:
    """A place to jump to."""

    position: int = -1


@dataclass(eq=False)
class Line:
    """An instruction over values."""

    name: str
    args: list[Value] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    number: int = 0
    targets: list[Label] = field(default_factory=list)
    tags: list[int] = field(default_factory=list)
    label: str = ""
    # Values whose last use this is, on the way here or from here to a target.
    dies: set[Value] = field(default_factory=set)
    unused: set[Value] = field(default_factory=set)
    kills: dict[Label | None, set[Value]] = field(default_factory=dict)
    dead: set[Value] = field(default_factory=set)


Code = Sequence["Line | Label"]


def laid_out(
    code: Code, params: Sequence[Value], constants: dict[Value, int], first: int
) -> tuple[list[Instruction], int]:
    """Instructions over registers, and how many there are.

    Parameters are in the first registers, constants (values by register) after them; ``first`` is
    the first free one.
    """
    _uses(code, constants)
    _deaths(code, params)
    registers, count = _registers(code, params, first)
    registers.update(constants)
    lines = [line for line in code if isinstance(line, Line)]
    position = 0
    for line in code:
        if isinstance(line, Label):
            line.position = position
        else:
            position += 1
    return [_instruction(line, registers) for line in lines], count


def _instruction(line: Line, registers: dict[Value, int]) -> Instruction:
    return Instruction(
        line.name,
        tuple(registers[v] for v in line.args),
        tuple(registers[v] for v in line.results),
        line.number,
        tuple(t.position for t in line.targets),
        tuple(line.tags),
        tuple(sorted(registers[v] for v in line.dead)),
        line.label,
    )


def _uses(code: Code, constants: dict[Value, int]) -> None:
    """Back from the end: what each line is the last to use."""
    live: set[Value] = set()
    at: dict[Label, set[Value]] = {}
    for line in reversed(code):
        if isinstance(line, Label):
            at[line] = set(live)
            continue
        if line.targets:
            ways: dict[Label | None, set[Value]] = {t: at[t] for t in line.targets}
            if line.name not in LEAVES:
                ways[None] = set(live)
            live = set().union(*ways.values())
            line.kills = {t: live - way for t, way in ways.items()}
        elif line.name in LEAVES:
            live = set()
        line.unused = {v for v in line.results if v not in live}
        live.difference_update(line.results)
        used = {v for v in line.args if v not in constants}
        line.dies = used - live
        live |= used


def _deaths(code: Code, params: Iterable[Value]) -> None:
    """Forward: what is let go of where. A value dead on one way waits for the next heavy line."""
    mentioned = {v for line in code if isinstance(line, Line) for v in line.args}
    waiting: set[Value] = {p for p in params if p not in mentioned}
    coming: dict[Label, set[Value]] = {}
    for line in code:
        if isinstance(line, Label):
            waiting = waiting | coming.pop(line, set())
            continue
        gone = waiting | line.dies
        if line.name in _HEAVY:
            line.dead, waiting = gone, set(line.unused)
            continue
        gone |= line.unused
        for target, kills in line.kills.items():
            if target is not None:
                coming.setdefault(target, set()).update(gone, kills)
        waiting = set() if line.name in LEAVES else gone | line.kills.get(None, set())


def _registers(
    code: Code, params: Sequence[Value], first: int
) -> tuple[dict[Value, int], int]:
    """Linear scan over the stretch from a value's first mention to its last."""
    end = _ends(code, params)
    ends: dict[int, list[Value]] = {}
    for value, position in end.items():
        ends.setdefault(position, []).append(value)
    registers = {p: i for i, p in enumerate(params)}
    free = sorted(registers[value] for value in ends.get(-1, ()))
    count = first
    for position, line in enumerate(code):
        if isinstance(line, Label):
            continue
        # A line reads its arguments before it writes, so it may write where they were.
        for value in ends.get(position, ()):
            if value in registers:
                heappush(free, registers[value])
        for value in line.results:
            if value in registers:
                continue
            registers[value] = heappop(free) if free else count
            count += registers[value] == count
            if end[value] == position:
                heappush(free, registers[value])
    return registers, count


def _ends(code: Code, params: Sequence[Value]) -> dict[Value, int]:
    """Where each value is mentioned last."""
    end = dict.fromkeys(params, -1)
    for position, line in enumerate(code):
        if isinstance(line, Line):
            for value in (*line.results, *line.dead, *line.args):
                end[value] = position
    return end
