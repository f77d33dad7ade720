"""Text of one LLVM function, written front to back with code motion as it goes.

The writer keeps a stack of *regions*: the function, each loop, each branch. A pure value is looked
up in the cache of the region its operands belong to, and is placed there: just before the statement
the writer is inside of. So loop-invariant code is hoisted and common subexpressions are shared
while text is made, which leaves LLVM little to do. Arithmetic is not moved out of a branch (it may
be there to be skipped); index arithmetic is.

Register buffers never become memory: the current value of each element is a name, and loops and
branches get phis for the elements they change.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ixion.codegen.emit_types import value_type, zero
from ixion.te.stmt import Buffer

Element = tuple[Buffer, int]  # one vector of a register buffer
LoadKey = tuple[object, ...]
Loaded = tuple[str, int, int]  # value, when last used, fences before it


@dataclass
class Region:
    """A stretch of code whose entry dominates everything inside it."""

    hoist: list[str] = field(default_factory=list)  # lines placed just before the region
    cache: dict[str, str] = field(default_factory=dict)
    registers: dict[Element, str] = field(default_factory=dict)
    conditional: bool = False


@dataclass
class Loop(Region):
    variable: str = ""
    first: str = ""  # value of the variable in the first round
    before: str = ""  # label of the block that enters the loop
    body: str = ""
    after: str = ""
    bound: str = ""
    step: int = 1
    entered: bool = False  # known to run at least once
    header: list[str] = field(default_factory=list)
    carried: dict[Element, tuple[str, str]] = field(default_factory=dict)  # phi and first value
    outer_loads: dict[LoadKey, Loaded] = field(default_factory=dict)
    stores: bool = False


@dataclass
class Branch:
    """A two-way branch being written; ``sides`` are the finished ones."""

    condition: str
    labels: tuple[str, str, str]  # then, else, join
    hoist: list[str]
    outer_loads: dict[LoadKey, Loaded]
    stores: bool
    sides: list[tuple[str | None, dict[Element, str]]] = field(default_factory=list)


class Writer:
    """Builds the body of one function; ``text()`` ends it."""

    def __init__(self) -> None:
        self.out: list[str | list[str]] = []
        self.regions: list[Region] = [Region()]
        self.depth: dict[str, int] = {}
        self.loads: dict[LoadKey, Loaded] = {}
        self.declared: set[str] = set()
        self.functions: dict[str, str] = {}  # text of internal functions that are called
        self.label = "entry"
        self.closed = False  # the current block has its terminator
        self.floor = 0  # innermost branch: arithmetic is not moved above it
        self.register_floor = 0  # register buffers do not outlive this region
        self.names = 0

    def text(self) -> str:
        lines: list[str] = []
        for item in self.out:
            if isinstance(item, str):
                lines.append(item)
            else:
                lines.extend(item)
        return "\n".join(lines)

    # --- values -------------------------------------------------------------------------------

    def fresh(self) -> str:
        self.names += 1
        return f"%v{self.names}"

    def pure(self, code: str, *operands: str) -> str:
        """The name of ``code``'s value, which depends on nothing but ``operands``."""
        level, depth = 0, self.depth
        for operand in operands:
            found = depth.get(operand, 0)
            if found > level:  # noqa: PLR1730 - called for every instruction
                level = found
        if level < self.floor:
            known = self.regions[level].cache.get(code)
            if known is not None:
                return known
            level = self.floor
        return self._placed(code, level)

    def index(self, code: str, *operands: str) -> str:
        """Like ``pure``, for index arithmetic: cheap and safe to compute when not needed."""
        level, depth = 0, self.depth
        for operand in operands:
            found = depth.get(operand, 0)
            if found > level:  # noqa: PLR1730 - as above
                level = found
        return self._placed(code, level)

    def _placed(self, code: str, level: int) -> str:
        top = len(self.regions) - 1
        level = min(level, top)
        cache = self.regions[level].cache
        name = cache.get(code)
        if name is None:
            self.names += 1
            name = cache[code] = f"%v{self.names}"
            self.depth[name] = level
            line = f"  {name} = {code}"
            if level == top:
                self.out.append(line)
            else:
                self.regions[level + 1].hoist.append(line)
        return name

    def here(self, code: str) -> str:
        """The name of a value computed exactly here and not shared."""
        self.names += 1
        name = f"%v{self.names}"
        self.depth[name] = len(self.regions) - 1
        self.out.append(f"  {name} = {code}")
        return name

    def effect(self, code: str) -> None:
        self.out.append("  " + code)

    def declare(self, result: str, name: str, *parameters: str) -> None:
        self.declared.add(f"declare {result} @{name}({', '.join(parameters)})")

    # --- blocks -------------------------------------------------------------------------------

    def block(self, label: str) -> None:
        self.out.append(f"{label}:")
        self.label = label
        self.closed = False

    def fresh_label(self) -> str:
        self.names += 1
        return f"b{self.names}"

    def close(self, terminator: str) -> None:
        self.effect(terminator)
        self.closed = True

    def begin_loop(
        self, lo: str, hi: str, step: int, *, stores: bool, entered: bool, registers: bool = True
    ) -> Loop:
        """A loop from ``lo`` to ``hi``; ``registers`` False: each round starts with fresh ones."""
        loop = Loop(
            variable=self.fresh(), first=lo, before=self.label, body=self.fresh_label(),
            after=self.fresh_label(), bound=hi, step=step, entered=entered,
            outer_loads=self.loads, stores=stores,
        )  # fmt: skip
        self.out.append(loop.hoist)
        if entered:
            self.effect(f"br label %{loop.body}")
        else:
            self._guard(loop, lo, hi)
        self.block(loop.body)
        self.out.append(loop.header)
        self.loads = {} if stores else dict(self.loads)
        self.regions.append(loop)
        if not registers:
            self.register_floor = len(self.regions) - 1
        self.depth[loop.variable] = len(self.regions) - 1
        return loop

    def _guard(self, loop: Loop, lo: str, hi: str) -> None:
        test = self.here(f"icmp slt i64 {lo}, {hi}")
        self.effect(f"br i1 {test}, label %{loop.body}, label %{loop.after}")

    def end_loop(self) -> None:
        loop = self.regions[-1]
        assert isinstance(loop, Loop)
        latch, closed = self.label, self.closed
        following = self.fresh()
        back = "" if closed else f", [ {following}, %{latch} ]"
        phis = [f"  {loop.variable} = phi i64 [ {loop.first}, %{loop.before} ]{back}"]
        for (buffer, at), (name, first) in loop.carried.items():
            kind = value_type(buffer.dtype, buffer.lanes)
            last = "" if closed else f", [ {loop.registers[buffer, at]}, %{latch} ]"
            phis.append(f"  {name} = phi {kind} [ {first}, %{loop.before} ]{last}")
        loop.header[:0] = phis
        if not closed:
            self._advance(loop.variable, following, loop.step)
            test = self.here(f"icmp slt i64 {following}, {loop.bound}")
            self.effect(f"br i1 {test}, label %{loop.body}, label %{loop.after}")
        self.regions.pop()
        self._leave_loop(loop, latch, closed)

    def _advance(self, variable: str, following: str, step: int) -> None:
        """The next value of a loop variable, in a form that no analysis looks through.

        ``expect`` is its operand and makes no code. But it hides the recurrence from LLVM's loop
        strength reduction, which took 70% of all compile time (54 kernels of two networks: 2.3 s of
        code generation with it, 0.73 without) to choose addresses that are well chosen here.
        """
        self.declare("i64", "llvm.expect.i64", "i64", "i64")
        plain = self.here(f"add nuw nsw i64 {variable}, {step}")
        self.effect(f"{following} = call i64 @llvm.expect.i64(i64 {plain}, i64 0)")

    def _leave_loop(self, loop: Loop, latch: str, closed: bool) -> None:
        if closed and loop.entered:
            self.closed = True
            return
        self.block(loop.after)
        self.loads = {} if loop.stores else loop.outer_loads
        if len(self.regions) <= self.register_floor or closed:
            return
        for element, last in loop.registers.items():
            name, first = loop.carried.get(element, ("", ""))
            if last == name:
                continue
            value = last
            if not loop.entered:
                kind = value_type(element[0].dtype, element[0].lanes)
                first = first or self.read_element(element)
                value = self.here(f"phi {kind} [ {first}, %{loop.before} ], [ {last}, %{latch} ]")
            self.depth[value] = len(self.regions) - 1
            self.regions[-1].registers[element] = value

    def begin_branch(self, condition: str, *, stores: bool) -> Branch:
        labels = (self.fresh_label(), self.fresh_label(), self.fresh_label())
        branch = Branch(condition, labels, [], self.loads, stores)
        self.out.append(branch.hoist)
        self.effect(f"br i1 {condition}, label %{labels[0]}, label %{labels[1]}")
        self._enter_side(branch, 0)
        return branch

    def _enter_side(self, branch: Branch, side: int) -> None:
        self.block(branch.labels[side])
        self.regions.append(Region(hoist=branch.hoist, conditional=True))
        self.loads = dict(branch.outer_loads)
        self._find_floor()

    def end_side(self, branch: Branch, *, closed: bool = False) -> None:
        """``closed``: registers are after the branch as they were before it."""
        region = self.regions.pop()
        self._find_floor()
        if self.closed:
            branch.sides.append((None, {}))
        else:
            branch.sides.append((self.label, {} if closed else region.registers))
            self.close(f"br label %{branch.labels[2]}")
        if len(branch.sides) == 1:
            self._enter_side(branch, 1)

    def end_branch(self, branch: Branch) -> None:
        """After both sides: joins them."""
        self.loads = {} if branch.stores else branch.outer_loads
        live = [(label, changed) for label, changed in branch.sides if label is not None]
        if not live:
            self.closed = True
            return
        self.block(branch.labels[2])
        if len(live) == 1:
            self.regions[-1].registers.update(live[0][1])
            for name in live[0][1].values():
                self.depth[name] = min(self.depth.get(name, 0), len(self.regions) - 1)
            return
        for element in {**live[0][1], **live[1][1]}:
            kind = value_type(element[0].dtype, element[0].lanes)
            sides = [
                (changed.get(element) or self.read_element(element), label)
                for label, changed in live
            ]
            incoming = ", ".join(f"[ {value}, %{label} ]" for value, label in sides)
            self.regions[-1].registers[element] = self.here(f"phi {kind} {incoming}")

    def join(self, branch: Branch, kind: str, first: str, second: str) -> str:
        """The value that is ``first`` after the then side and ``second`` after the else side."""
        (a, _), (b, _) = branch.sides
        return self.here(f"phi {kind} [ {first}, %{a} ], [ {second}, %{b} ]")

    def _find_floor(self) -> None:
        conditional = (
            i for i in range(len(self.regions) - 1, -1, -1) if self.regions[i].conditional
        )
        self.floor = next(conditional, 0)

    # --- register buffers ---------------------------------------------------------------------

    def read_element(self, element: Element) -> str:
        """The current value of a register element; zero when nothing was stored yet."""
        top = len(self.regions) - 1
        level = top
        while level >= self.register_floor and element not in self.regions[level].registers:
            level -= 1
        if level < self.register_floor:
            buffer = element[0]
            return self._carry(element, zero(buffer.dtype, buffer.lanes), self.register_floor + 1)
        return self._carry(element, self.regions[level].registers[element], level + 1)

    def _carry(self, element: Element, value: str, level: int) -> str:
        """Phis for ``value`` in every loop from ``level`` inwards."""
        for depth in range(level, len(self.regions)):
            region = self.regions[depth]
            if isinstance(region, Loop):
                name = self.fresh()
                self.depth[name] = depth
                region.carried[element] = (name, value)
                value = region.registers[element] = name
        return value

    def write_element(self, element: Element, value: str) -> None:
        self.regions[-1].registers[element] = value
