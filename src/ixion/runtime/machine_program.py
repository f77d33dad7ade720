"""A program with control flow, as data: functions of instructions over registers.

What is plain dataflow of tensors has become *segments*, each compiled like a model of its own. The
instructions between them do what no kernel can: call and return, choose, make and take apart
tuples, data type values, closures and references, and run operators whose result sizes depend on
data. `machine.py` runs such a program, `machine_file.py` saves it, `machine_text.py` prints it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy.typing as npt

from ixion.base.errors import CodegenError
from ixion.runtime.outline import Outline
from ixion.runtime.program import Program
from ixion.runtime.value_kind import ConstructorSpec, Kind, TensorKind

Array = npt.NDArray[Any]
ConstantKind = Literal["array", "closure", "value", "empty"]

#: Instructions after which control may go elsewhere: they end a block.
ENDS = frozenset("jump if switch call tailcall invoke tailinvoke return fail".split())
#: Those that never go on to the next instruction.
LEAVES = frozenset("jump switch tailcall tailinvoke return fail".split())
#: What `number` counts in, for instructions that have one.
NUMBERED = {
    "segment": "segments",
    "host": "hosts",
    "adt": "constructors",
    "closure": "functions",
    "call": "functions",
    "tailcall": "functions",
    "check": "checks",
}


@dataclass(frozen=True)
class Instruction:
    """One instruction: registers read, registers written, and what else it says.

    - "segment", "host": run segment or host operator `number`.
    - "move": copy a register. "tuple": a tuple of the arguments. "item": field `number` of one.
    - "adt": a value of constructor `number`. "field": its field `number`.
    - "closure": function `number` with its last parameters set to the arguments.
    - "ref", "read", "write": a reference made, read, written (reference, value).
    - "check": arguments are tensors of the kinds in check `number`.
    - "jump": to `targets[0]`. "if": go on where the argument is true, else to `targets[0]`.
    - "switch": to the target of the argument's constructor tag, the last target where there is
      none.
    - "call": function `number`; "invoke": the closure in the first argument. Their result goes
      into `results[0]`. "tailcall", "tailinvoke": the same, in place of the frame.
    - "return": the argument. "fail": no clause of a match fits the argument.

    `dead` registers are let go of: after the arguments were read, before anything is called.
    `label` says what it is in the model.
    """

    name: str
    args: tuple[int, ...] = ()
    results: tuple[int, ...] = ()
    number: int = 0
    targets: tuple[int, ...] = ()
    tags: tuple[int, ...] = ()
    dead: tuple[int, ...] = ()
    label: str = ""


@dataclass(frozen=True)
class ConstantSpec:
    """What a register holds when its function begins: array, function or constructor `index`."""

    kind: ConstantKind
    index: int = 0


@dataclass(frozen=True)
class MachineFunction:
    """A function. Registers: parameters, then constants, then what instructions write."""

    name: str
    params: int
    registers: int
    constants: tuple[ConstantSpec, ...]
    code: tuple[Instruction, ...]


@dataclass
class Segment:
    """Plain dataflow of tensors: compiled as `program`, or kept as an IR module in `source` (JSON).

    `mode` says what runs it where there is no program: "specialise" compiles it for the sizes it
    meets, "reference" evaluates it. The results of a "bounded" program are buffers and the shapes
    of what lies in them (`bounded.py`).
    """

    name: str
    inputs: tuple[tuple[str, TensorKind], ...]
    outputs: tuple[TensorKind, ...]
    program: Program | Outline | None = None
    source: str = ""
    mode: Literal["compiled", "bounded", "specialise", "reference"] = "compiled"


@dataclass(frozen=True)
class HostOp:
    """An operator done by its reference: attributes as JSON text, results of kinds.

    `groups` tells tuple arguments: for each argument -1 for a tensor, else how many it holds.
    """

    op: str
    attrs: str
    groups: tuple[int, ...]
    outputs: tuple[TensorKind, ...]


@dataclass
class MachineProgram:
    """Everything a run needs. Function `entry` gets the inputs.

    `output` is the kind of the result; `output_names` name its leaves, tuples opened.
    """

    functions: list[MachineFunction]
    entry: int
    arrays: list[Array]
    constructors: list[ConstructorSpec]
    segments: list[Segment]
    hosts: list[HostOp]
    checks: list[tuple[tuple[str, TensorKind], ...]]
    inputs: list[tuple[str, Kind]]
    output: Kind
    output_names: list[str]
    target_key: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """Raise CodegenError where a part refers to something that is not there."""
        _check_index(self.entry, self.functions, "entry")
        if self.functions[self.entry].params != len(self.inputs):
            raise CodegenError("the entry function and the inputs differ in number")
        for function in self.functions:
            self._check_function(function)

    def _check_function(self, function: MachineFunction) -> None:
        where, code = f"function {function.name}", function.code
        if not 0 <= function.params <= function.params + len(function.constants) <= (
            function.registers
        ):
            raise CodegenError("parameters and constants have no registers", where=where)
        for constant in function.constants:
            self._check_constant(constant, where)
        if not code or code[-1].name not in LEAVES:
            raise CodegenError("a function must end by leaving", where=where)
        for number, one in enumerate(code):
            self._check_instruction(one, function, f"{where}, instruction {number} ({one.name})")

    def _check_constant(self, constant: ConstantSpec, where: str) -> None:
        tables: dict[str, Sequence[Any]] = {
            "array": self.arrays,
            "closure": self.functions,
            "value": self.constructors,
        }
        if constant.kind != "empty":
            _check_index(constant.index, tables[constant.kind], where)

    def _check_instruction(self, one: Instruction, inside: MachineFunction, where: str) -> None:
        arity = _ARITY.get(one.name)
        if arity is None:
            raise CodegenError("unknown instruction", where=where)
        if (arity[0] >= 0 and len(one.args) != arity[0]) or (
            arity[1] >= 0 and len(one.results) != arity[1]
        ):
            raise CodegenError("wrong number of registers", where=where)
        if one.name.endswith("invoke") and not one.args:
            raise CodegenError("no function to invoke", where=where)
        registers: Iterable[int] = (*one.args, *one.results, *one.dead)
        if not all(0 <= r < inside.registers for r in registers):
            raise CodegenError("register outside the frame", where=where)
        if not all(0 <= t < len(inside.code) for t in one.targets):
            raise CodegenError("jump out of the function", where=where)
        if len(one.targets) != _TARGETS.get(one.name, len(one.tags) + (one.name == "switch")):
            raise CodegenError("wrong number of jump targets", where=where)
        if one.name in NUMBERED:
            _check_index(one.number, getattr(self, NUMBERED[one.name]), where)
            self._check_operands(one, where)

    def _check_operands(self, one: Instruction, where: str) -> None:
        """Whether as many registers are given as the callee takes."""
        given, wanted = len(one.args), len(one.args)
        if one.name == "segment":
            segment = self.segments[one.number]
            wanted = len(segment.inputs)
            if len(one.results) != len(segment.outputs):
                raise CodegenError("results and registers differ in number", where=where)
        elif one.name == "host":
            wanted = sum(1 if g < 0 else g for g in self.hosts[one.number].groups)
        elif one.name in ("call", "tailcall"):
            wanted = self.functions[one.number].params
        elif one.name == "check":
            wanted = len(self.checks[one.number])
        elif one.name == "closure" and given > self.functions[one.number].params:
            wanted = self.functions[one.number].params
        if given != wanted:
            raise CodegenError(
                "wrong number of arguments", where=where, expected=wanted, found=given
            )


# Registers read and written; -1: any number.
_ARITY: dict[str, tuple[int, int]] = {
    "segment": (-1, -1),
    "host": (-1, -1),
    "move": (1, 1),
    "tuple": (-1, 1),
    "item": (1, 1),
    "adt": (-1, 1),
    "field": (1, 1),
    "closure": (-1, 1),
    "ref": (1, 1),
    "read": (1, 1),
    "write": (2, 0),
    "check": (-1, 0),
    "jump": (0, 0),
    "if": (1, 0),
    "switch": (1, 0),
    "call": (-1, 1),
    "tailcall": (-1, 0),
    "invoke": (-1, 1),
    "tailinvoke": (-1, 0),
    "return": (1, 0),
    "fail": (1, 0),
}
_TARGETS = {"jump": 1, "if": 1}


def _check_index(index: int, table: Sequence[Any], where: str) -> None:
    if not 0 <= index < len(table):
        raise CodegenError("refers to something that is not there", where=where, found=index)


