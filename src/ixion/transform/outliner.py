"""Runs a first-order program on values that are not known yet, and writes down what it computes.

Functions are known wherever they are called, so their bodies are put in place of the calls; lets
become sharing; an If becomes a call of ``control.branch``; a function that calls itself in tail
position becomes ``control.loop`` or ``control.repeat`` (outline_loops). What cannot be told this
way raises LeftAlone. Nothing recurses in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from ixion.ir import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Var,
)
from ixion.op import control
from ixion.transform.control_invariants import outermost
from ixion.transform.control_scopes import Activation, Frame, Scopes
from ixion.transform.control_values import (
    Held,
    Known,
    LeftAlone,
    Region,
    RegionNames,
    Value,
    constant_bool,
    flat,
    held,
    like,
    tensor_of,
    typed_var,
)
from ixion.transform.outline_emit import applied, expression, is_opaque, opaque
from ixion.transform.remove_unused_functions import called_globals

__all__ = ["Outliner", "Side"]

Step = Generator[Any, Any, Any]
Side = tuple[Region, Sequence["Held | Known | None"]]
# Calls put in place: a bound on how much larger than its text a program may become.
_MOST_CALLS = 20_000


class Outliner:
    """Works for one module; ``names`` collects the regions."""

    def __init__(self, mod: IRModule, prefix: str) -> None:
        self.mod = mod
        self.names = RegionNames(prefix, lambda name: name in mod)
        self._scopes: dict[Expr, Scopes] = {}
        self._calls = 0

    def function(self, func: Function) -> Step:
        """The function with dataflow for a body."""
        region = Region(None)
        act = self._activation(func, None, region)
        for param in func.params:
            act.frame(param).values[param] = held(param, region)
        result = yield self.value(func.body, act)
        return func.copy(body=expression(result, region))

    def scopes(self, func: Function) -> Scopes:
        if func not in self._scopes:
            self._scopes[func] = Scopes(func)
        return self._scopes[func]

    def _activation(self, func: Function, outer: Activation | None, region: Region) -> Activation:
        scopes = self.scopes(func) if outer is None else outer.scopes
        act = Activation(scopes, outer)
        act.frames[scopes.inner[func][0]] = Frame(region)
        return act

    def enter(self, known: Known, region: Region) -> Activation:
        """An activation of a function whose body goes into ``region``; parameters have no value."""
        func = known.func
        assert isinstance(func, Function)
        return self._activation(func, known.made_in, region)

    def value(self, root: Expr, act: Activation) -> Step:
        """The value of an expression."""
        stack = [root]
        while stack:
            expr = stack[-1]
            frame = act.frame(expr)
            if expr in frame.values:
                stack.pop()
                continue
            parts = _parts(expr, act)
            missing = [part for part in parts if part not in act.frame(part).values]
            if missing:
                stack.extend(reversed(missing))
                continue
            given = [act.frame(part).values[part] for part in parts]
            if isinstance(expr, If):
                result = yield self._if(expr, given[0], act)
            elif isinstance(expr, Call) and not isinstance(expr.op, Op):
                result = yield self._call(expr, given[0], given[1:], frame.region)
            else:
                result = self._simple(expr, given, act)
            frame.values[expr] = result
            stack.pop()
        return act.frame(root).values[root]

    def _simple(self, expr: Expr, given: Sequence[Value], act: Activation) -> Value:
        if isinstance(expr, Constant):
            return Held(expr, None)
        if isinstance(expr, (Let, Var)):
            return given[0]
        if isinstance(expr, Tuple):
            return tuple(given)
        if isinstance(expr, TupleGetItem):
            return given[0][expr.index]
        if isinstance(expr, Call):
            return applied(expr, given, outermost(expr, given, act.frame(expr).region))
        if isinstance(expr, Function):
            return Known(expr, act.home(expr))
        return Known(expr)

    def _if(self, expr: If, cond: Value, act: Activation) -> Step:
        region = act.frame(expr).region
        branches, scopes = (expr.true_branch, expr.false_branch), act.scopes.inner[expr]
        known = constant_bool(cond)
        if known is not None:
            taken = 0 if known else 1
            act.frames[scopes[taken]] = Frame(region)
            return (yield self.value(branches[taken], act))
        shapes: list[Value] = []
        sides: list[Side] = []
        for branch, scope in zip(branches, scopes, strict=True):
            inner = Region(region)
            act.frames[scope] = Frame(inner)
            shapes.append((yield self.value(branch, act)))
            sides.append((inner, flat(shapes[-1])))
        return like(shapes[0], self.choice(cond, sides, region))

    def choice(self, cond: Held, sides: Sequence[Side], region: Region) -> list[Any]:
        """One of two lists of values; None in a list stands for a value nobody looks at."""
        (first, left), (second, right) = sides
        if len(left) != len(right):
            raise LeftAlone("two branches give tuples of different lengths", cond.expr)
        found: list[Any] = list(left)
        apart = [
            i for i, (a, b) in enumerate(zip(left, right, strict=True))
            if not _alike(a, b, (first, second))
        ]  # fmt: skip
        for i in apart:
            if isinstance(left[i], Known) or isinstance(right[i], Known):
                raise LeftAlone("which function is called depends on data", cond.expr)
        if not apart:
            return found
        results = [_settled(left[i], right[i], first, second) for i in apart]
        call = self._branch(cond, sides, [a for a, _ in results], [b for _, b in results], region)
        for place, i in enumerate(apart):
            found[i] = Held(TupleGetItem(call, place), region)
        return found

    def _branch(
        self,
        cond: Held,
        sides: Sequence[Side],
        then: Sequence[Expr],
        other: Sequence[Expr],
        region: Region,
    ) -> Call:
        (first, _), (second, _) = sides
        needed = [first.needed(then), second.needed(other)]
        values = {key: pair for each in needed for key, pair in each.items()}
        names = []
        for what, own, results in (("then", needed[0], then), ("else", needed[1], other)):
            params = [
                own[key][0] if key in own else typed_var(var.name_hint, var.checked_type)
                for key, (var, _) in values.items()
            ]
            names.append(self.names.close(what, params, results))
        args = [region.use(value) for _, value in values.values()]
        return control.branch(region.use(cond), names[0], names[1], args)

    def _call(self, call: Call, callee: Value, args: Sequence[Value], region: Region) -> Step:
        from ixion.transform.outline_loops import outline_loop

        if not isinstance(callee, Known):
            raise LeftAlone("which function is called depends on data", call)
        known = self._resolved(callee, call)
        func = known.func
        if not isinstance(func, Function):
            return applied(call.copy(op=func), args, region)
        if is_opaque(func):
            return opaque(call, func, args, region)
        if self.self_name(callee, known) is not None:
            return (yield outline_loop(self, callee, known, args, region))
        self._calls += 1
        if self._calls > _MOST_CALLS:
            raise LeftAlone("functions call one another too often to be put in place", call)
        act = self.enter(known, region)
        for param, arg in zip(func.params, args, strict=True):
            act.frame(param).values[param] = arg
        return (yield self.value(func.body, act))

    def _resolved(self, callee: Known, call: Call) -> Known:
        """The function behind a global name."""
        func = callee.func
        if isinstance(func, Constructor):
            raise LeftAlone("a value of a data type is made", call)
        if not isinstance(func, GlobalVar):
            return callee
        if func.name_hint not in self.mod or not isinstance(self.mod[func.name_hint], Function):
            raise LeftAlone(f"@{func.name_hint} is no function of this module", call)
        if self._calls_through_others(func):
            raise LeftAlone(f"@{func.name_hint} calls itself through other functions", call)
        return Known(self.mod[func.name_hint])

    def self_name(self, callee: Known, known: Known) -> Var | GlobalVar | None:
        """The name by which a function calls itself; None if it does not."""
        func = known.func
        assert isinstance(func, Function)
        if isinstance(callee.func, GlobalVar):
            own = callee.func.name_hint in called_globals(func)
            return callee.func if own else None
        assert known.made_in is not None
        return known.made_in.scopes.recursive.get(func)

    def _calls_through_others(self, name: GlobalVar) -> bool:
        """Whether a function reaches itself by way of another one."""
        start = name.name_hint
        seen = {start}
        pending = [n for n in called_globals(self.mod[start]) if n != start]
        while pending:
            each = pending.pop()
            if each in seen or each not in self.mod:
                continue
            seen.add(each)
            func = self.mod[each]
            reached = called_globals(func) if isinstance(func, Function) else []
            if start in reached:
                return True
            pending.extend(reached)
        return False


def _parts(expr: Expr, act: Activation) -> Sequence[Expr]:
    """What must have a value before ``expr`` can have one."""
    rule = _PARTS.get(type(expr))
    if rule is not None:
        return rule(expr)
    if isinstance(expr, Var) and expr in act.scopes.bound:
        return (act.scopes.bound[expr],)
    what = f"variable %{expr.name_hint}" if isinstance(expr, Var) else f"a {type(expr).__name__}"
    raise LeftAlone(f"{what} is no first-order dataflow", expr)


def _call_parts(call: Call) -> Sequence[Expr]:
    return call.args if isinstance(call.op, Op) else (call.op, *call.args)


_PARTS: dict[type, Callable[[Any], Sequence[Expr]]] = {
    Call: _call_parts,
    Tuple: lambda expr: expr.fields,
    TupleGetItem: lambda expr: (expr.tuple_value,),
    If: lambda expr: (expr.cond,),
    Let: lambda expr: (expr.body,),
    **dict.fromkeys((Constant, Function, GlobalVar, Constructor, Op), lambda expr: ()),
}


def _alike(a: Any, b: Any, sides: Sequence[Region]) -> bool:
    """Whether two branches give one and the same value, which needs no result."""
    if a is None or b is None:
        return a is b
    if isinstance(a, Known) or isinstance(b, Known):
        return a is b
    if isinstance(a.expr, Constant) and isinstance(b.expr, Constant) and not a.expr.data.ndim:
        same = a.expr.data.dtype == b.expr.data.dtype
        return same and a.expr.data.tobytes() == b.expr.data.tobytes()
    return a.expr is b.expr and all(a.region is not side for side in sides)


def _settled(a: Any, b: Any, first: Region, second: Region) -> tuple[Expr, Expr]:
    """A value of each branch, of one type."""
    one = None if a is None else first.use(a)
    two = None if b is None else second.use(b)
    kind = tensor_of(two if one is None else one, "the value of a branch")  # type: ignore[arg-type]
    if one is not None and two is not None:
        other = tensor_of(two, "the value of a branch")
        if other != kind:
            raise LeftAlone(f"two branches give different types, {kind} and {other}", one)
    return one or control.unset(kind), two or control.unset(kind)
