"""The last step of outlining a loop: which state there is, and the call that stands for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ixion.ir import Call, Expr, GlobalVar, Tuple, TupleGetItem, Var, free_vars, rewrite
from ixion.op import control
from ixion.transform.control_values import (
    Held,
    LeftAlone,
    Region,
    RegionNames,
    tensor_of,
    typed_var,
)
from ixion.transform.loop_count import count_of

__all__ = ["Loop", "finished"]


@dataclass(eq=False)
class Loop:
    """A loop under construction.

    ``variables`` are its state in ``head``, ``start`` what they are at first and ``new`` after a
    round, as expressions of ``body``; ``go`` is the head's; ``exits`` the result in terms of
    ``way_out``.  Body and way out have the head for a parent.
    """

    outer: Region
    head: Region
    body: Region
    way_out: Region
    variables: list[Var]
    start: list[Held]
    go: Expr
    new: list[Expr] = field(default_factory=list)
    exits: list[Expr] = field(default_factory=list)

    def keeps(self, k: int) -> bool:
        """Whether a round leaves state ``k`` as it is."""
        captured = self.body.captured.get(self.variables[k])
        return captured is not None and captured[0] is self.new[k]


def finished(loop: Loop, names: RegionNames) -> list[Held]:
    """The loop's results in the region around it.

    LeftAlone where a round changes a type.
    """
    for var, new in zip(loop.variables, loop.new, strict=True):
        before, after = var.checked_type, tensor_of(new, "the state of a loop")
        if before != after:
            raise LeftAlone(f"a loop's state changes from {before} to {after}", new)
    count = count_of(loop)
    form = _Form(loop, count is None)
    if count is not None and form.passed:
        count, form = None, _Form(loop, True)
    call = form.repeat(names, count) if count is not None else form.loop(names)
    return form.results(call)


class _Form:
    """What of the state is needed, what is passed from head to body, and what is kept."""

    def __init__(self, loop: Loop, asks: bool) -> None:
        self.made = loop
        self.asks = asks  # whether a head decides about every round
        self.number = {var: k for k, var in enumerate(loop.variables)}
        fixed = [k for k in range(len(loop.variables)) if loop.keeps(k)]
        self.out = loop.way_out.needed(loop.exits)
        alive = self._alive()
        self.fixed = [k for k in fixed if k in alive]
        self.state = [k for k in sorted(alive) if k not in fixed]
        self.into_body = loop.body.needed([loop.new[k] for k in self.state])
        self.passed = self._passed()
        self.into_head = loop.head.needed([loop.go, *self.passed]) if asks else {}
        self.kept = self._kept()

    def _alive(self) -> set[int]:
        """State that decides or gives something, at once or in a later round."""
        loop = self.made
        alive: set[int] = set()
        pending: list[Expr] = [*self.out]
        if self.asks:
            pending.append(loop.go)
        while pending:
            for var in free_vars(pending.pop()):
                k = self.number.get(var)
                if k is not None and k not in alive:
                    alive.add(k)
                    pending += self._read_by(loop.new[k])
        return alive

    def _read_by(self, new: Expr) -> list[Expr]:
        return [key for key, (_, value) in self.made.body.needed([new]).items()
                if value.region is self.made.head]  # fmt: skip

    def _passed(self) -> list[Expr]:
        """What the head computes and body or result need."""
        found: dict[Expr, None] = {}
        for key, (_, value) in (*self.into_body.items(), *self.out.items()):
            if value.region is self.made.head and key not in self.number:
                found[key] = None
        return list(found)

    def _kept(self) -> dict[Expr, Held]:
        """Values from around the loop, by the expression that stands for them inside."""
        found: dict[Expr, Held] = {self.made.variables[k]: self.made.start[k] for k in self.fixed}
        for key, (_, value) in (*self.into_head.items(), *self.into_body.items()):
            if value.region is not self.made.head:
                found[key] = value
        return found

    def loop(self, names: RegionNames) -> Call:
        made = self.made
        variables: dict[Expr, Var] = {var: var for var in made.variables}
        head = [*self._params(made.head, variables)]
        head_name = names.close("head", head, [made.go, *self.passed])
        return control.loop(head_name, self._body(names, self.passed), *self._arguments())

    def repeat(self, names: RegionNames, count: Expr) -> Call:
        return control.repeat(count, self._body(names, ()), *self._arguments())

    def _body(self, names: RegionNames, passed: Sequence[Expr]) -> GlobalVar:
        made = self.made
        params = [*self._params(made.body, {}), *(_param(made.body, key) for key in passed)]
        return names.close("body", params, [made.new[k] for k in self.state])

    def _params(self, region: Region, own: dict[Expr, Var]) -> Iterable[Var]:
        for key in (*(self.made.variables[k] for k in self.state), *self.kept):
            yield own.get(key) or _param(region, key)

    def _arguments(self) -> tuple[list[Expr], list[Expr]]:
        outer = self.made.outer
        start = [outer.use(self.made.start[k]) for k in self.state]
        return start, [outer.use(value) for value in self.kept.values()]

    def results(self, call: Call) -> list[Held]:
        """The exits, on what the call gives."""
        made, outer = self.made, self.made.outer
        memo: dict[Expr, Expr] = {}
        for key, (var, value) in self.out.items():
            if value.region is not made.head:
                memo[var] = outer.use(value)
            elif key in self.number and self.number[key] in self.fixed:
                memo[var] = outer.use(made.start[self.number[key]])
            elif key in self.number:
                memo[var] = TupleGetItem(call, self.state.index(self.number[key]))
            else:
                memo[var] = TupleGetItem(call, len(self.state) + self.passed.index(key))
        done = rewrite(Tuple(tuple(made.exits)), lambda old, new: new, memo)
        assert isinstance(done, Tuple)
        return [Held(result, outer) for result in done.fields]


def _param(region: Region, key: Expr) -> Var:
    """The variable of a region for a value from outside, made if it does not use the value."""
    if key in region.captured:
        return region.captured[key][0]
    return typed_var("unused", key.checked_type)
