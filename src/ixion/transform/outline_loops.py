"""Functions that call themselves in tail position, as loops over their arguments.

An argument that every such call passes on as it came is no state: it stays where it is. Where the
function decides once whether to go on, that decision is the loop's head and what the call passes
is its body; where it decides in several places, the head runs the whole tree of decisions and says
whether to go on, with what, or else with which result.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ixion.ir import Call, Expr, Function, GlobalVar, If, Let, Var
from ixion.ir.visitor import children, post_order
from ixion.op.call import call as make_call
from ixion.transform.control_scopes import Activation, Frame
from ixion.transform.control_values import (
    Held,
    Known,
    LeftAlone,
    Region,
    Value,
    constant,
    constant_bool,
    flat,
    like,
    tensor_of,
    typed_var,
)
from ixion.transform.loop_form import Loop, finished

if TYPE_CHECKING:
    from ixion.transform.outliner import Outliner, Side

__all__ = ["outline_loop"]

Step = Generator[Any, Any, Any]


def outline_loop(
    outliner: Outliner, callee: Known, known: Known, args: Sequence[Value], region: Region
) -> Step:
    """The value of a first call of a function that calls itself."""
    func = known.func
    name = outliner.self_name(callee, known)
    assert isinstance(func, Function)
    assert name is not None
    maker = _LoopMaker(outliner, _TailCalls(func, name), Region(region, region))
    return (yield maker.run(known, args, region))


class _TailCalls:
    """The calls by which a function goes on, and the Ifs that lead to them.

    LeftAlone if it calls itself anywhere else, or does something else with its name.
    """

    def __init__(self, func: Function, name: Var | GlobalVar) -> None:
        self.calls: dict[Call, None] = {}
        self.deciding: set[Expr] = set()
        self._is_name = _test_of(name)
        self._walk(func.body)
        for node in post_order(func.body):
            if node not in self.calls and any(self._is_name(part) for part in children(node)):
                raise LeftAlone("a function calls itself before the end of its work", node)

    def _walk(self, body: Expr) -> None:
        above: dict[Expr, If | None] = {}
        stack: list[tuple[Expr, If | None]] = [(body, None)]
        while stack:
            expr, parent = stack.pop()
            if isinstance(expr, Let):
                stack.append((expr.body, parent))
            elif isinstance(expr, If):
                above[expr] = parent
                stack += [(expr.false_branch, expr), (expr.true_branch, expr)]
            elif self.goes_on(expr):
                assert isinstance(expr, Call)
                self.calls[expr] = None
                while parent is not None and parent not in self.deciding:
                    self.deciding.add(parent)
                    parent = above[parent]

    def goes_on(self, expr: Expr) -> bool:
        return isinstance(expr, Call) and self._is_name(expr.op)


def _test_of(name: Var | GlobalVar) -> Callable[[Expr], bool]:
    if isinstance(name, GlobalVar):
        return lambda expr: isinstance(expr, GlobalVar) and expr.name_hint == name.name_hint
    return lambda expr: expr is name


@dataclass(eq=False)
class _Decision:
    """Whether the function calls itself, with what, or else its result.

    None where that way is not there.  ``shape`` has the result's tuples.
    """

    go: bool | Held
    state: list[Any] | None = None
    result: list[Any] | None = None
    shape: Value = None


class _LoopMaker:
    def __init__(self, outliner: Outliner, tails: _TailCalls, head: Region) -> None:
        self.outliner, self.tails, self.head = outliner, tails, head
        self.moving: list[int] = []  # which parameters are state
        self.given: list[Value] = []  # what they are at first
        self.variables: list[Var] = []

    def run(self, known: Known, args: Sequence[Value], region: Region) -> Step:
        func = known.func
        assert isinstance(func, Function)
        act = self.outliner.enter(known, self.head)
        for index, (param, arg) in enumerate(zip(func.params, args, strict=True)):
            same = all(call.args[index] is param for call in self.tails.calls)
            act.frame(param).values[param] = arg if same else self._state(index, arg)
        start = [leaf for value in self.given for leaf in flat(value)]
        root = _after_lets(func.body)
        if self._decides_once(root):
            assert isinstance(root, If)
            loop, shape = yield self._plain(root, act, region, start)
        else:
            loop, shape = yield self._tree(func.body, act, region, start)
        return like(shape, finished(loop, self.outliner.names))

    def _state(self, index: int, arg: Value) -> Value:
        """Variables for a parameter that changes."""
        made = []
        for leaf in flat(arg):
            if not isinstance(leaf, Held):
                raise LeftAlone("a loop changes which function it calls", leaf.func)
            kind = tensor_of(leaf.expr, "the state of a loop")
            made.append(Held(typed_var(f"s{len(self.variables)}", kind), self.head))
            self.variables.append(made[-1].expr)  # type: ignore[arg-type]
        self.moving.append(index)
        self.given.append(arg)
        return like(arg, made)

    def _decides_once(self, root: Expr) -> bool:
        if self.tails.deciding != {root} or not isinstance(root, If):
            return False
        sides = [_after_lets(root.true_branch), _after_lets(root.false_branch)]
        return [self.tails.goes_on(side) for side in sides].count(True) == 1

    def _plain(self, root: If, act: Activation, region: Region, start: list[Held]) -> Step:
        head = self.head
        cond = yield self.outliner.value(root.cond, act)
        sides = [root.true_branch, root.false_branch]
        onward = [self.tails.goes_on(_after_lets(side)) for side in sides].index(True)
        body, way_out = Region(head, region), Region(head)
        inner = act.scopes.inner[root]
        act.frames[inner[onward]] = Frame(body)
        act.frames[inner[1 - onward]] = Frame(way_out)
        new = yield self._passed(_after_lets(sides[onward]), act)
        result = yield self.outliner.value(sides[1 - onward], act)
        go = cond if onward == 0 else self._not(cond, head)
        loop = Loop(region, head, body, way_out, self.variables, start, head.use(go))
        loop.new = [body.use(leaf) for leaf in new]
        loop.exits = _used(way_out, flat(result))
        return loop, result

    def _tree(self, root: Expr, act: Activation, region: Region, start: list[Held]) -> Step:
        head = self.head
        decision: _Decision = yield self._decide(root, act, head)
        if decision.result is None:
            raise LeftAlone("a function that always calls itself never ends", root)
        # One that never does, as is known by now, passes nothing on.
        state = decision.state or [Held(var, head) for var in self.variables]
        body, way_out = Region(head), Region(head)
        go = _as_held(decision.go)
        loop = Loop(region, head, body, way_out, self.variables, start, head.use(go))
        loop.new = [body.use(leaf) for leaf in state]
        loop.exits = _used(way_out, decision.result)
        return loop, decision.shape

    def _passed(self, call: Expr, act: Activation) -> Step:
        """The new state that a call passes, as tensors."""
        assert isinstance(call, Call)
        found: list[Held] = []
        for index, old in zip(self.moving, self.given, strict=True):
            value = yield self.outliner.value(call.args[index], act)
            leaves = flat(value)
            if len(leaves) != len(flat(old)) or not all(isinstance(x, Held) for x in leaves):
                raise LeftAlone("the state of a loop changes its form", call)
            found += leaves
        return found

    def _decide(self, expr: Expr, act: Activation, region: Region) -> Step:
        """What ``expr``, in tail position, comes to in a region."""
        expr = _after_lets(expr)
        if self.tails.goes_on(expr):
            state = yield self._passed(expr, act)
            return _Decision(True, state)
        if not isinstance(expr, If) or expr not in self.tails.deciding:
            result = yield self.outliner.value(expr, act)
            return _Decision(False, None, flat(result), result)
        cond = yield self.outliner.value(expr.cond, act)
        sides, scopes = (expr.true_branch, expr.false_branch), act.scopes.inner[expr]
        known = constant_bool(cond)
        if known is not None:
            taken = 0 if known else 1
            act.frames[scopes[taken]] = Frame(region)
            return (yield self._decide(sides[taken], act, region))
        decisions, regions = [], []
        for side, scope in zip(sides, scopes, strict=True):
            inner = Region(region)
            act.frames[scope] = Frame(inner)
            decision = yield self._decide(side, act, inner)
            decisions.append(decision)
            regions.append(inner)
        return self._joined(cond, decisions, regions, region)

    def _joined(
        self,
        cond: Held,
        decisions: Sequence[_Decision],
        regions: Sequence[Region],
        region: Region,
    ) -> _Decision:
        states = [d.state for d in decisions if d.state is not None]
        results = [d.result for d in decisions if d.result is not None]
        shape = next((d.shape for d in decisions if d.result is not None), None)
        sides: list[Side] = []
        for inner, d in zip(regions, decisions, strict=True):
            blank = [[None] * len(found[0]) if found else [] for found in (states, results)]
            sides.append((inner, [_as_held(d.go), *(d.state or blank[0]), *(d.result or blank[1])]))
        known = self._known_go(cond, decisions, region)
        if known is not None:
            sides = [(inner, [None, *leaves[1:]]) for inner, leaves in sides]
        go, *rest = self.outliner.choice(cond, sides, region)
        count = len(states[0]) if states else 0
        return _Decision(
            go if known is None else known,
            rest[:count] if states else None,
            rest[count:] if results else None,
            shape,
        )

    def _known_go(
        self, cond: Held, decisions: Sequence[_Decision], region: Region
    ) -> bool | Held | None:
        """Whether to go on, where that is the condition itself or the same either way."""
        first, second = (d.go for d in decisions)
        if first is second and isinstance(first, bool):
            return first
        if first is True and second is False:
            return cond
        if first is False and second is True:
            return self._not(cond, region)
        return None

    def _not(self, cond: Held, region: Region) -> Held:
        return Held(make_call("logical_not", region.use(cond)), region)


def _after_lets(expr: Expr) -> Expr:
    while isinstance(expr, Let):
        expr = expr.body
    return expr


def _as_held(go: bool | Held) -> Held:
    return go if isinstance(go, Held) else constant(go)


def _used(region: Region, leaves: Sequence[Value]) -> list[Expr]:
    for leaf in leaves:
        if not isinstance(leaf, Held):
            raise LeftAlone("a loop gives a function as its result")
    return [region.use(leaf) for leaf in leaves]
