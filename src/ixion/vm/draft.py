"""A function on its way to instructions: values, operators and acts in blocks.

A *block* is what runs in a row: a function's body, a branch, a clause. In it *acts* (calls,
choices, allocations, effects) stay in order; tensor *operators* between them have no order but
their operands', and get a *slot*: slot k lies before act k. The operators of one slot become one
segment.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ixion.ir import Call, Constant, Type, Var
from ixion.runtime.machine_program import ConstantSpec
from ixion.runtime.value_kind import TensorKind

__all__ = ["Act", "Block", "Clause", "Known", "Operator", "Scope", "Test", "Value"]

NEVER = 1 << 60


@dataclass(eq=False, slots=True)
class Value:
    """What an expression stands for while its function is compiled.

    ``fields``: a tuple known by its parts, made only where something wants it whole. ``function``:
    a function known by name, made into a closure only where something wants a value. ``number``:
    the symbolic value of a small integer tensor. ``ready``: the first slot of its block where it
    is there; ``need``: the last before something other than an operator of its block uses it.
    """

    name: str
    kind: Type
    block: Block | None = None
    ready: int = 0
    need: int = NEVER
    used: bool = False
    leaves: bool = False
    operator: Operator | None = None
    fields: tuple[Value, ...] | None = None
    function: Known | None = None
    constant: ConstantSpec | None = None
    data: Constant | None = None
    number: Any = None


@dataclass(eq=False, slots=True)
class Known:
    """A function known at compile time and the values it closes over.

    ``captured`` None: the function itself, from inside; what it closes over are its parameters.
    """

    scope: Scope
    captured: list[Value] | None


@dataclass(eq=False, slots=True)
class Operator:
    """A call of an operator, or a function, on tensors; ``args`` have tuples for tuple arguments.

    ``again``: operators to repeat in the same segment, because the result's type follows from
    their values.
    """

    call: Call
    args: tuple[Value | tuple[Value, ...], ...]
    block: Block
    ready: int = 0
    slot: int = -1
    results: tuple[Value, ...] = ()
    again: tuple[Operator, ...] = ()

    def operands(self) -> Iterator[Value]:
        for arg in self.args:
            if isinstance(arg, tuple):
                yield from arg
            else:
                yield arg


@dataclass(frozen=True)
class Test:
    """Part of a clause's pattern: ``tag`` asks for constructor ``number`` (its tag in ``tag``),
    ``item`` and ``field`` take field ``number`` of ``source`` out as ``result``.
    """

    __test__ = False  # no test case, whatever pytest makes of the name

    name: str
    source: Value
    number: int
    tag: int = 0
    result: Value | None = None


@dataclass(eq=False)
class Clause:
    tests: list[Test]
    block: Block


@dataclass(eq=False)
class Act:
    """What becomes an instruction, or several for a choice (``blocks`` or ``clauses``)."""

    name: str
    args: list[Value] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    number: int = 0
    blocks: list[Block] = field(default_factory=list)
    clauses: list[Clause] = field(default_factory=list)
    label: str = ""
    # A function whose closed-over values, its parameters here, are arguments too.
    captured_of: Scope | None = None
    # For "bounded": the operator's call. For "check": what the arguments must be.
    call: Call | None = None
    kinds: tuple[tuple[str, TensorKind], ...] = ()


@dataclass(eq=False)
class Block:
    """``open`` while it is built; the open blocks of a function lie inside each other."""

    scope: Scope
    acts: list[Act] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    result: Value | None = None
    open: bool = True
    slots: dict[int, list[Operator]] = field(default_factory=dict)

    def close(self, result: Value) -> None:
        """Ends the block and gives every operator that is needed its slot."""
        self.result = result
        self.open = False
        latest = _latest(self)
        fixed = sorted({o.ready for o, late in latest.items() if o.ready == late})
        users: dict[Operator, int] = {}
        for operator in reversed(self.operators):
            if operator not in latest:
                continue
            limit = min([users.get(operator, NEVER), *(r.need for r in operator.results)])
            operator.slot = _chosen(fixed, operator.ready, min(limit, len(self.acts)))
            for value in operator.operands():
                maker = value.operator
                if maker is not None and maker.block is self:
                    users[maker] = min(users.get(maker, NEVER), operator.slot)
        for operator in self.operators:
            if operator.slot >= 0:
                self.slots.setdefault(operator.slot, []).append(operator)
        self._mark_results()

    def _mark_results(self) -> None:
        """Values that a segment has to give back: used in another slot or by anything else."""
        for operator in self.operators:
            if operator.slot < 0:
                continue
            for value in operator.results:
                value.leaves = value.leaves or value.need < NEVER
            for maker in (operator, *operator.again):
                for value in maker.operands():
                    made = value.operator
                    if made is not None and made.block is self and made.slot != operator.slot:
                        value.leaves = True


def _latest(block: Block) -> dict[Operator, int]:
    """The last slot each operator could have; operators nobody needs are left out."""
    latest: dict[Operator, int] = {}
    for operator in reversed(block.operators):
        needs = [r.need for r in operator.results if r.need < NEVER]
        if operator in latest:
            needs.append(latest[operator])
        if not needs:
            continue
        latest[operator] = late = min(needs)
        for value in operator.operands():
            maker = value.operator
            if maker is not None and maker.block is block:
                latest[maker] = min(latest.get(maker, NEVER), late)
    return latest


def _chosen(fixed: list[int], first: int, last: int) -> int:
    """The last slot in a range that has operators anyway; else the last, which has from now on.

    Late rather than early: operators meet what uses them, and large values live shorter.
    """
    at = bisect_right(fixed, last) - 1
    if at >= 0 and fixed[at] >= first:
        return fixed[at]
    insort(fixed, last)
    return last


@dataclass(eq=False)
class Scope:
    """A function of the program: its parameters, what it closes over (outer value and the
    parameter that has it here), and its body.
    """

    name: str
    number: int
    outer: Scope | None = None
    params: list[Value] = field(default_factory=list)
    captured: dict[Value, Value] = field(default_factory=dict)
    env: dict[Var, Value] = field(default_factory=dict)
    root: Block = field(init=False)
    # Tuples and closures made whole, fields taken out, by the value they belong to.
    made: dict[object, Value] = field(default_factory=dict)
    # Whether callers may give tensors of other sizes than the parameters' types say.
    unproven: bool = False

    def __post_init__(self) -> None:
        self.root = Block(self)
