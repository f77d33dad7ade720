"""Instructions become Python functions over a frame's registers.

A block is a run of *steps*, called one after another with the registers, and a way on (``go``),
which gives the registers and the block to go on with: its own, another branch's, a called
function's or the caller's. All that can be looked up before a run is looked up here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from ixion.base.errors import InputError, IxionError, KernelError
from ixion.runtime.machine_program import ENDS, Instruction, MachineFunction, MachineProgram
from ixion.runtime.value_kind import check_tensor
from ixion.runtime.values import Closure, ConstructorValue, RefValue

Registers: TypeAlias = "list[Any]"
Stack: TypeAlias = "list[tuple[Registers, Block | None, int]]"
Step: TypeAlias = Callable[[Registers], None]
Go: TypeAlias = "Callable[[Registers, Stack], tuple[Registers, Block | None]]"
Reader: TypeAlias = Callable[[Registers], Sequence[Any]]
Native: TypeAlias = Callable[[Sequence[Any]], Sequence[Any]]

__all__ = ["Block", "Linked", "Linker"]


class Block:
    """Steps without a jump among them, and how it goes on."""

    __slots__ = ("go", "steps")
    go: Go

    def __init__(self) -> None:
        self.steps: tuple[Step, ...] = ()


class Linked:
    """A function ready to run: ``template`` follows its arguments in a new frame."""

    __slots__ = ("blocks", "code", "name", "owner", "params", "template")

    def __init__(self, code: MachineFunction, owner: object) -> None:
        self.name, self.params, self.code, self.owner = code.name, code.params, code, owner
        starts = sorted(_starts(code.code))
        self.blocks = {start: Block() for start in starts}
        self.template: list[Any] = []

    @property
    def entry(self) -> Block:
        return self.blocks[0]


def _starts(code: Sequence[Instruction]) -> set[int]:
    """Positions where a block begins."""
    found = {0}
    for position, one in enumerate(code):
        found.update(one.targets)
        if one.name in ENDS and position + 1 < len(code):
            found.add(position + 1)
    return found


class Linker:
    """Links the functions of a program; ``segments`` and ``hosts`` run those of that number."""

    def __init__(
        self,
        program: MachineProgram,
        segments: Sequence[Native],
        hosts: Sequence[Native],
        depth: int,
    ) -> None:
        self._program, self._segments, self._hosts = program, segments, hosts
        self._depth = depth
        self._values = [ConstructorValue(c) for c in program.constructors]
        self.functions = [Linked(f, self) for f in program.functions]

    def link(self) -> Linked:
        """The entry function, everything it can reach being linked."""
        for function in self.functions:
            function.template[:] = self._template(function.code)
        for function in self.functions:
            self._link(function)
        return self.functions[self._program.entry]

    def _template(self, code: MachineFunction) -> Iterator[Any]:
        for constant in code.constants:
            if constant.kind == "array":
                yield self._program.arrays[constant.index]
            elif constant.kind == "closure":
                yield Closure(self.functions[constant.index], ())
            elif constant.kind == "value":
                yield self._values[constant.index]
            else:
                yield ()
        yield from [None] * (code.registers - code.params - len(code.constants))

    def _link(self, function: Linked) -> None:
        code = function.code.code
        starts = list(function.blocks)
        for start, end in zip(starts, [*starts[1:], len(code)], strict=True):
            block, last = function.blocks[start], code[end - 1]
            body = code[start : end - 1] if last.name in ENDS else code[start:end]
            block.steps = tuple(step for one in body for step in self._steps(one))
            if last.name in ENDS:
                block.go = _GO[last.name](self, last, function, end)
            else:
                block.go = _onward(function.blocks[end])

    def _steps(self, one: Instruction) -> Iterator[Step]:
        yield _STEPS[one.name](self, one)
        if one.dead and one.name not in ("segment", "host"):
            yield _cleared(one.dead)

    # Steps.

    def _segment(self, one: Instruction) -> Step:
        return _native(self._segments[one.number], one)

    def _host(self, one: Instruction) -> Step:
        return _native(self._hosts[one.number], one)

    def _move(self, one: Instruction) -> Step:
        (source,), (to,) = one.args, one.results

        def move(regs: Registers) -> None:
            regs[to] = regs[source]

        return move

    def _tuple(self, one: Instruction) -> Step:
        read, (to,) = _reader(one.args), one.results

        def make_tuple(regs: Registers) -> None:
            regs[to] = read(regs)

        return make_tuple

    def _item(self, one: Instruction) -> Step:
        (source,), (to,), index = one.args, one.results, one.number

        def item(regs: Registers) -> None:
            regs[to] = regs[source][index]

        return item

    def _adt(self, one: Instruction) -> Step:
        read, (to,) = _reader(one.args), one.results
        constructor, make = self._program.constructors[one.number], ConstructorValue

        def make_value(regs: Registers) -> None:
            regs[to] = make(constructor, read(regs))  # type: ignore[arg-type]

        return make_value

    def _field(self, one: Instruction) -> Step:
        (source,), (to,), index = one.args, one.results, one.number

        def field(regs: Registers) -> None:
            regs[to] = regs[source].fields[index]

        return field

    def _closure(self, one: Instruction) -> Step:
        read, (to,), function = _reader(one.args), one.results, self.functions[one.number]

        def make_closure(regs: Registers) -> None:
            regs[to] = Closure(function, read(regs))

        return make_closure

    def _ref(self, one: Instruction) -> Step:
        (source,), (to,) = one.args, one.results

        def make_ref(regs: Registers) -> None:
            regs[to] = RefValue(regs[source])

        return make_ref

    def _read(self, one: Instruction) -> Step:
        (source,), (to,) = one.args, one.results

        def read(regs: Registers) -> None:
            regs[to] = regs[source].value

        return read

    def _write(self, one: Instruction) -> Step:
        ref, value = one.args

        def write(regs: Registers) -> None:
            regs[ref].value = regs[value]

        return write

    def _check(self, one: Instruction) -> Step:
        read, kinds, label = _reader(one.args), self._program.checks[one.number], one.label

        def check(regs: Registers) -> None:
            sizes: dict[str, int] = {}
            try:
                for value, (name, kind) in zip(read(regs), kinds, strict=True):
                    check_tensor(value, kind, sizes, name)
            except InputError as error:
                raise _fault(error, label) from None

        return check

    # Ways on.

    def _jump(self, one: Instruction, function: Linked, after: int) -> Go:
        return _onward(function.blocks[one.targets[0]])

    def _if(self, one: Instruction, function: Linked, after: int) -> Go:
        (cond,) = one.args
        yes, no = function.blocks[after], function.blocks[one.targets[0]]

        def branch(regs: Registers, stack: Stack) -> tuple[Registers, Block | None]:
            return regs, yes if regs[cond] else no

        return branch

    def _switch(self, one: Instruction, function: Linked, after: int) -> Go:
        (source,) = one.args
        table = {t: function.blocks[at] for t, at in zip(one.tags, one.targets, strict=False)}
        get, other = table.get, function.blocks[one.targets[-1]]

        def switch(regs: Registers, stack: Stack) -> tuple[Registers, Block | None]:
            return regs, get(regs[source].tag, other)

        return switch

    def _call(self, one: Instruction, function: Linked, after: int) -> Go:
        read, callee = _reader(one.args), self.functions[one.number]
        template, entry = callee.template, callee.entry
        back, (to,), dead, limit = function.blocks[after], one.results, one.dead, self._depth

        def call(regs: Registers, stack: Stack) -> tuple[Registers, Block | None]:
            new = [*read(regs), *template]
            for register in dead:
                regs[register] = None
            if len(stack) > limit:
                raise _too_deep(limit, one.label)
            stack.append((regs, back, to))
            return new, entry

        return call

    def _invoke(self, one: Instruction, function: Linked, after: int) -> Go:
        source, read = one.args[0], _reader(one.args[1:])
        back, (to,), dead, limit = function.blocks[after], one.results, one.dead, self._depth

        def invoke(regs: Registers, stack: Stack) -> tuple[Registers, Block | None]:
            closure = regs[source]
            callee = closure.func
            new = [*read(regs), *closure.frame, *callee.template]
            for register in dead:
                regs[register] = None
            if len(stack) > limit:
                raise _too_deep(limit, one.label)
            stack.append((regs, back, to))
            return new, callee.blocks[0]

        return invoke

    def _tailcall(self, one: Instruction, function: Linked, after: int) -> Go:
        read, callee = _reader(one.args), self.functions[one.number]
        template, entry = callee.template, callee.entry

        def tail_call(regs: Registers, stack: Stack) -> tuple[Registers, Block | None]:
            return [*read(regs), *template], entry

        return tail_call

    def _tailinvoke(self, one: Instruction, function: Linked, after: int) -> Go:
        source, read = one.args[0], _reader(one.args[1:])

        def tail_invoke(regs: Registers, stack: Stack) -> tuple[Registers, Block | None]:
            closure = regs[source]
            callee = closure.func
            return [*read(regs), *closure.frame, *callee.template], callee.blocks[0]

        return tail_invoke

    def _return(self, one: Instruction, function: Linked, after: int) -> Go:
        (source,) = one.args

        def leave(regs: Registers, stack: Stack) -> tuple[Registers, Block | None]:
            value = regs[source]
            regs, back, to = stack.pop()
            regs[to] = value
            return regs, back

        return leave

    def _fail(self, one: Instruction, function: Linked, after: int) -> Go:
        (source,) = one.args

        def fail(regs: Registers, stack: Stack) -> tuple[Registers, Block | None]:
            raise _unmatched(regs[source], one.label)

        return fail


def _onward(block: Block) -> Go:
    def onward(regs: Registers, stack: Stack) -> tuple[Registers, Block | None]:
        return regs, block

    return onward


def _reader(registers: Sequence[int]) -> Reader:
    """The values of some registers, as a tuple."""
    if not registers:
        return lambda regs: ()
    if len(registers) == 1:
        (single,) = registers
        return lambda regs: (regs[single],)
    return itemgetter(*registers)


def _cleared(dead: Sequence[int]) -> Step:
    def clear(regs: Registers) -> None:
        for register in dead:
            regs[register] = None

    return clear


def _native(run: Native, one: Instruction) -> Step:
    """A segment or host operator. What it no longer needs goes before the results are stored."""
    read, results, dead = _reader(one.args), one.results, one.dead

    def several(regs: Registers) -> None:
        try:
            values = run(read(regs))
        except IxionError as error:
            raise _fault(error, one.label) from error
        for register in dead:
            regs[register] = None
        for register, value in zip(results, values, strict=True):
            regs[register] = value

    if len(results) != 1:
        return several
    (to,) = results

    def single(regs: Registers) -> None:
        try:
            values = run(read(regs))
        except IxionError as error:
            raise _fault(error, one.label) from error
        for register in dead:
            regs[register] = None
        regs[to] = values[0]

    return single


def _fault(error: IxionError, label: str) -> KernelError:
    """An error on the way, with its place in the program."""
    inner = f"{error.where}" if error.where is not None else None
    node = ", ".join(part for part in (label, inner) if part)
    found = KernelError(error.message, node=node or None, hint=error.hint)
    found.expected, found.found = error.expected, error.found
    return found


def _too_deep(limit: int, label: str) -> KernelError:
    return KernelError(
        f"calls nest deeper than {limit}", node=label or None,
        hint="option call_depth sets the limit; a call whose result is the function's own result"
        " takes no depth",
    )  # fmt: skip


def _unmatched(value: object, label: str) -> KernelError:
    shown = repr(value) if isinstance(value, ConstructorValue) else type(value).__name__
    error = KernelError("no clause of the match fits the value", node=label or None)
    error.found = shown
    return error


_STEPS: dict[str, Callable[[Linker, Instruction], Step]] = {
    "segment": Linker._segment,
    "host": Linker._host,
    "move": Linker._move,
    "tuple": Linker._tuple,
    "item": Linker._item,
    "adt": Linker._adt,
    "field": Linker._field,
    "closure": Linker._closure,
    "ref": Linker._ref,
    "read": Linker._read,
    "write": Linker._write,
    "check": Linker._check,
}
_GO: dict[str, Callable[[Linker, Instruction, Linked, int], Go]] = {
    "jump": Linker._jump,
    "if": Linker._if,
    "switch": Linker._switch,
    "call": Linker._call,
    "invoke": Linker._invoke,
    "tailcall": Linker._tailcall,
    "tailinvoke": Linker._tailinvoke,
    "return": Linker._return,
    "fail": Linker._fail,
}
