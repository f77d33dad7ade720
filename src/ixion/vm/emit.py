"""From drafts to instructions."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ixion.ir.trampoline import run
from ixion.runtime.machine_program import ConstantSpec, MachineFunction
from ixion.runtime.value_kind import TensorKind
from ixion.vm.draft import Act, Block, Scope, Test, Value
from ixion.vm.frame import Label, Line, laid_out
from ixion.vm.proof import checks
from ixion.vm.segments import SegmentTable

__all__ = ["CheckTable", "emitted"]

Step = Generator[Any, Any, None]
# Acts that nobody misses where their result is not used.
_SILENT = frozenset("tuple item adt closure ref read".split())


class CheckTable:
    """The checks of a program, equal ones once."""

    def __init__(self) -> None:
        self.rows: dict[tuple[tuple[str, TensorKind], ...], int] = {}

    def add(self, row: tuple[tuple[str, TensorKind], ...]) -> int:
        return self.rows.setdefault(row, len(self.rows))


def emitted(scope: Scope, segments: SegmentTable, table: CheckTable) -> MachineFunction:
    """The instructions of a function; its segments and checks enter the tables."""
    params = [*scope.params, *scope.captured.values()]
    emitter = _Emitter(scope, segments, table)
    emitter.checks()
    run(emitter.block(scope.root, None, None))
    constants = emitter.constants(len(params))
    first = len(params) + len(emitter.specs)
    code, registers = laid_out(emitter.code, params, constants, first)
    return MachineFunction(scope.name, len(params), registers, tuple(emitter.specs), tuple(code))


class _Emitter:
    def __init__(self, scope: Scope, segments: SegmentTable, table: CheckTable) -> None:
        self.code: list[Line | Label] = []
        self.specs: list[ConstantSpec] = []
        self._scope = scope
        self._segments = segments
        self._checks = table

    def constants(self, first: int) -> dict[Value, int]:
        """A register for every constant that a line mentions, equal ones in one."""
        known: dict[ConstantSpec, int] = {}
        found: dict[Value, int] = {}
        for line in self.code:
            for value in line.args if isinstance(line, Line) else ():
                if value.constant is not None:
                    place = known.setdefault(value.constant, first + len(known))
                    found[value] = place
        self.specs = list(known)
        return found

    def checks(self) -> None:
        """The check of the parameters, where callers may give other sizes than they say."""
        found = checks(self._scope.params) if self._scope.unproven else []
        if found:
            row = tuple((f"parameter %{value.name}", kind) for value, kind in found)
            line = Line("check", [value for value, _ in found], number=self._checks.add(row))
            line.label = self._scope.name
            self.code.append(line)

    def block(self, block: Block, to: Value | None, after: Label | None) -> Step:
        """A block's lines. Its result goes to ``to``, and on to ``after`` unless that comes next;
        without ``to`` the block returns it.
        """
        acts = block.acts
        for position in range(len(acts) + 1):
            if position in block.slots:
                self._segment(block, position)
            if position < len(acts):
                act = acts[position]
                last = position + 1 == len(acts) and to is None
                tail = last and position + 1 not in block.slots and act.results == [block.result]
                if act.name in ("if", "match"):
                    yield self._choice(act, tail)
                elif tail and act.name in ("call", "invoke"):
                    self._plain(act, f"tail{act.name}")
                elif act.name == "bounded":
                    self._bounded(act)
                else:
                    self._plain(act, act.name)
                if tail and act.name in ("if", "match", "call", "invoke"):
                    return
        self._end(block, to, after)

    def _end(self, block: Block, to: Value | None, after: Label | None) -> None:
        assert block.result is not None
        if to is None:
            self.code.append(Line("return", [block.result]))
            return
        if to.used:
            self.code.append(Line("move", [block.result], [to]))
        if after is not None:
            self.code.append(Line("jump", targets=[after]))

    def _segment(self, block: Block, slot: int) -> None:
        operators = block.slots[slot]
        number, args, results = self._segments.add(operators)
        draft = self._segments.drafts[number]
        span = next((o.call.span for o in operators if o.call.span is not None), None)
        label = f"{self._scope.name}: {draft.name}" + (f" at {span}" if span is not None else "")
        self.code.append(Line("segment", args, list(results), number, label=label))

    def _bounded(self, act: Act) -> None:
        assert act.call is not None
        number = self._segments.add_bounded(act.call)
        self.code.append(Line("segment", act.args, act.results, number, label=act.label))

    def _plain(self, act: Act, name: str) -> None:
        if act.name in _SILENT and not act.results[0].used:
            return
        if act.name == "check":
            act.number = self._checks.add(act.kinds)
        args = act.args
        if act.captured_of is not None:
            args = [*args, *act.captured_of.captured.values()]
        results = [] if name.startswith("tail") else act.results
        self.code.append(Line(name, args, results, act.number, label=act.label))

    def _choice(self, act: Act, tail: bool) -> Step:
        to = None if tail else act.results[0]
        end = None if tail else Label()
        if act.name == "if":
            yield self._if(act, to, end)
        else:
            yield self._match(act, to, end)
        if end is not None:
            self.code.append(end)

    def _if(self, act: Act, to: Value | None, end: Label | None) -> Step:
        other = Label()
        self.code.append(Line("if", act.args, targets=[other]))
        yield self.block(act.blocks[0], to, end)
        self.code.append(other)
        yield self.block(act.blocks[1], to, None)

    def _match(self, act: Act, to: Value | None, end: Label | None) -> Step:
        """Clauses in order. Where the first test of most asks for the constructor of the matched
        value, one switch does that for all of them.
        """
        plan = _MatchPlan(act)
        if plan.switch:
            self.code.append(plan.switch_line())
        for number, clause in enumerate(act.clauses):
            after = plan.entries[number + 1]
            if plan.is_entered[number]:
                self.code.append(plan.entries[number])
            _mark(clause.tests)
            for test in plan.tests(number):
                self._test(test, after)
            last = number + 1 == len(act.clauses) and not plan.is_entered[-1]
            yield self.block(clause.block, to, None if last else end)
        if plan.is_entered[-1]:
            self.code.append(plan.entries[-1])
            self.code.append(Line("fail", act.args, label=act.label))

    def _test(self, test: Test | Label, after: Label) -> None:
        if isinstance(test, Label):
            self.code.append(test)
        elif test.name == "tag":
            here = Label()
            line = Line("switch", [test.source], targets=[here, after], tags=[test.tag])
            self.code += [line, here]
        elif test.result is not None and test.result.used:
            self.code.append(Line(test.name, [test.source], [test.result], test.number))


def _mark(tests: list[Test]) -> None:
    """Parts that are needed because of what is taken out of them."""
    for test in reversed(tests):
        if test.name == "tag" or (test.result is not None and test.result.used):
            test.source.used = True


class _MatchPlan:
    """How the clauses of a match are reached.

    ``entries[k]`` is where clause k begins with all its tests, the last where none is left;
    ``is_entered`` whether anything goes there. With ``switch`` one instruction asks for the
    constructor of the matched value first, and goes to ``known[k]``, behind clause k's own question
    for it.
    """

    def __init__(self, act: Act) -> None:
        self._clauses = act.clauses
        self.entries = [Label() for _ in range(len(act.clauses) + 1)]
        self.known = [Label() for _ in act.clauses]
        self._asks_first = [self._asks(k, act) for k in range(len(act.clauses))]
        self.switch = self._asks_first[:2] == [True, True]
        self.is_entered = [False] * (len(act.clauses) + 1)
        if not self.switch:
            self.is_entered[0] = True
        self._jumps = self._switch_jumps() if self.switch else {}
        self._first = {n for tag, n in self._jumps.items() if tag != -1}
        for number in range(len(act.clauses)):
            self._falls(number)

    def _asks(self, number: int, act: Act) -> bool:
        tests = self._clauses[number].tests
        if not act.args or not tests or tests[0].name != "tag":
            return False
        return tests[0].source is act.args[0]

    def _switch_jumps(self) -> dict[int, int]:
        """The first clause that may fit, by tag; -1 stands for every other tag."""
        first_any = len(self._clauses)
        jumps: dict[int, int] = {}
        for number, clause in enumerate(self._clauses):
            if not self._asks_first[number]:
                first_any = number
                break
            jumps.setdefault(clause.tests[0].tag, number)
        jumps[-1] = first_any
        self.is_entered[first_any] = True
        return jumps

    def switch_line(self) -> Line:
        jumps = dict(self._jumps)
        other = self.entries[jumps.pop(-1)]
        source = self._clauses[0].tests[0].source
        targets = [self.known[number] for number in jumps.values()]
        return Line("switch", [source], targets=[*targets, other], tags=list(jumps))

    def _falls(self, number: int) -> None:
        """Marks the next clause where this one's tests may fail."""
        tests = [t for t in self._clauses[number].tests if t.name == "tag"]
        asked = self._asks_first[number] and self.switch and not self.is_entered[number]
        if len(tests) > asked:
            self.is_entered[number + 1] = True

    def tests(self, number: int) -> list[Test | Label]:
        """A clause's tests, with the place behind the first where the switch goes."""
        tests: list[Test | Label] = list(self._clauses[number].tests)
        if number in self._first:
            tests.insert(1, self.known[number])
            if not self.is_entered[number]:
                del tests[0]
        return tests
