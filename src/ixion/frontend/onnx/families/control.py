"""If, Loop and Scan: into the IR's own If, and functions that call themselves.

A branch known now is taken now. Where the number of a loop's rounds is a size, their results are
written into tensors of that size; otherwise what there is so far grows by a row each round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.base.errors import ModelFormatError, UnsupportedOpError
from ixion.frontend.build.loop import Loop, branches, settled
from ixion.frontend.build.movement import reshape
from ixion.frontend.emitter import Emitter
from ixion.frontend.onnx.convert import Site, converts
from ixion.frontend.onnx.model import Graph
from ixion.frontend.term import Term
from ixion.ir import Call, Expr, Op, TensorType

#: A bound on rounds beyond this is none: exporters write the largest number for "while".
_FOREVER = 1 << 62
#: Results of rounds that may not all happen get room for all of them up to so many elements.
_MOST_ROOM = 1 << 24


def _graph(site: Site, name: str) -> Graph:
    graph = site.attr(name)
    if not isinstance(graph, Graph):
        raise ModelFormatError(f"the attribute {name!r} is no graph")
    return graph


@converts("If")
def if_(site: Site) -> Sequence[Term]:
    condition = site.input(0)
    graphs = [_graph(site, name) for name in ("then_branch", "else_branch")]
    if condition.known and condition.array is not None:
        return site.inline(graphs[0 if condition.array.reshape(-1)[0] else 1])
    site.emit.branches += 1
    sides = [site.inline(branch) for branch in graphs]
    site.emit.branches -= 1
    if len(sides[0]) != len(sides[1]) or not sides[0]:
        raise ModelFormatError("the branches of an If have different outputs")
    if [term.type for term in sides[0]] != [term.type for term in sides[1]]:
        site.unsupported("with branches of different types")
    return branches(site.emit, reshape(site.emit, condition, ()), sides)


@dataclass
class _Round:
    """One round of a Loop: what it was given and what it made."""

    number: Term
    cond: Term
    after: Term  # the condition it leaves
    results: list[Term]

    @property
    def decides(self) -> bool:
        """Whether the condition after the round may be another than before it."""
        return _source(self.after.expr) is not self.cond.expr and not _is(self.after, True)


@converts("Loop")
def loop(site: Site) -> Sequence[Term]:
    """Trip count and condition may each be left out."""
    emit, graph = site.emit, _graph(site, "body")
    limit, cond = _limit(site), site.optional(1)
    cond = emit.constant(True) if cond is None else reshape(emit, cond, ())
    values = [site.input(index) for index in range(2, len(site.inputs))]
    _check_body(graph, len(values))
    start = [emit.constant(0, "int64"), cond, *values]
    state, new, last = settled(emit, start, lambda given: _round(site, graph, given))
    made = Loop(emit, start, state, [*new])
    if limit is None and not last.decides and cond.known:
        raise ModelFormatError("a Loop that never ends")
    if limit is not None and not last.decides and not _is(cond, True):
        # The condition stays what it is: all rounds or none.
        limit = emit.call("where", cond, limit, emit.constant(0, "int64"))
    tests = [] if limit is None else [emit.call("less", last.number, limit)]
    if limit is None or last.decides:
        tests.append(last.cond)
    go = tests[0] if len(tests) == 1 else emit.call("logical_and", *tests)
    return _with_results(made, go, limit, last)


def _limit(site: Site) -> Term | None:
    """The most rounds, None where there may be any number."""
    given = site.optional(0)
    limit = None if given is None else reshape(site.emit, given, ())
    if limit is not None and limit.known and int(np.asarray(limit.array)) >= _FOREVER:
        return None
    return limit


def _round(site: Site, graph: Graph, given: Sequence[Term]) -> tuple[list[Term], _Round]:
    """State after a round from number, condition and values."""
    emit = site.emit
    number, before, *values = given
    shaped = [
        reshape(emit, term, (1,)) if value.shape is not None and len(value.shape) == 1 else term
        for term, value in zip((number, before), graph.inputs[:2], strict=True)
    ]
    made = _made(site, graph, [*shaped, *values])
    after = reshape(emit, made[0], ())
    count = 1 + len(values)
    state = [_following(site, number), after, *made[1:count]]
    return state, _Round(number, before, after, made[count:])


def _following(site: Site, number: Term) -> Term:
    return site.emit.call("add", number, site.emit.constant(1, "int64"))


def _made(site: Site, graph: Graph, given: Sequence[Term]) -> list[Term]:
    """What a body gives; UnsupportedOpError where nodes in it were refused, which was noted."""
    made = site.inline(graph, given)
    if len(made) != len(graph.outputs):
        raise UnsupportedOpError([])
    return made


def _check_body(graph: Graph, values: int) -> None:
    """ModelFormatError where a body does not take and give what a Loop needs."""
    if len(graph.inputs) != 2 + values or len(graph.outputs) < 1 + values:
        raise ModelFormatError(
            "a Loop's body must take a number, a condition and each value, and give condition and "
            "values",
            expected=f"{2 + values} inputs, at least {1 + values} outputs",
            found=f"{len(graph.inputs)} inputs, {len(graph.outputs)} outputs",
        )


def _with_results(made: Loop, go: Term, limit: Term | None, last: _Round) -> list[Term]:
    """The loop's values in the end, and what its rounds gave."""
    values = len(made.state) - 2
    sizes = [_room(limit, row.tensor, last.decides) for row in last.results]
    for row, size in zip(last.results, sizes, strict=True):
        made.collect(row, size, last.number)
    cut = [size is not None and last.decides for size in sizes]
    if not any(cut):
        return made.run(go, skip=2)
    count, _, *whole = made.run(go)
    results = [
        _first(made.emit, buffer, count) if too_long else buffer
        for buffer, too_long in zip(whole[values:], cut, strict=True)
    ]
    return [*whole[:values], *results]


def _room(limit: Term | None, row: TensorType, decides: bool) -> Dim | None:
    """How many rows a tensor for the results of all rounds has; None if it must grow."""
    known = None if limit is None else limit.dims()
    if known is None:
        return None
    if any(isinstance(dim, dims.Any) for dim in (*known, *row.shape)):
        return None
    most = dims.maximum(known[0], 0)
    sizes = [dim for dim in (most, *row.shape) if isinstance(dim, int)]
    return None if decides and math.prod(sizes) > _MOST_ROOM else most


def _first(emit: Emitter, buffer: Term, count: Term) -> Term:
    """The rows that were written, as many as there were rounds."""
    end = reshape(emit, count, (1,))
    zero, one = emit.constant([0], "int64"), emit.constant([1], "int64")
    return emit.call("dyn.strided_slice", buffer, zero, end, one, axes=(0,))


def _is(term: Term, value: bool) -> bool:
    return term.known and bool(np.asarray(term.array)) is value


def _source(expr: Expr) -> Expr:
    """What an expression is a plain copy of."""
    while isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == "copy":
        expr = expr.args[0]
    return expr


@converts("Scan", since=9)
def scan(site: Site) -> Sequence[Term]:
    """Rounds over the slices of some inputs along an axis each; results along an axis each."""
    made = _Scan(site)
    begin = [site.emit.constant(0, "int64"), *made.start]
    state, new, found = settled(site.emit, begin, made.round)
    whole = Loop(site.emit, begin, state, [*new])
    axes, backward = (
        _list(site, f"scan_output_{what}", len(found)) for what in ("axes", "directions")
    )
    for row, axis, reverse in zip(found, axes, backward, strict=True):
        place = made.place(state[0], reverse)
        whole.collect(row, made.length, place, axis % (row.rank + 1))
    return whole.run(site.emit.call("less", state[0], made.bound), skip=1)


class _Scan:
    """A Scan's inputs: states at first, and what is scanned along which axis, how."""

    def __init__(self, site: Site) -> None:
        self.site, self.graph = site, _graph(site, "body")
        inputs = [site.input(index) for index in range(len(site.inputs))]
        count = int(site.attr("num_scan_inputs"))
        self.states = len(inputs) - count
        fits = count >= 1 and 0 <= self.states <= len(self.graph.outputs)
        if not fits or len(self.graph.inputs) != len(inputs):
            raise ModelFormatError("a Scan whose inputs and body do not fit each other")
        self.start, self.scanned = inputs[: self.states], inputs[self.states :]
        axes = _list(site, "scan_input_axes", count)
        self.axes = [a % x.rank for a, x in zip(axes, self.scanned, strict=True)]
        self.backward = _list(site, "scan_input_directions", count)
        lengths = [x.shape[axis] for x, axis in zip(self.scanned, self.axes, strict=True)]
        if any(dims.same(lengths[0], other) is False for other in lengths):
            raise ModelFormatError("a Scan over axes of different sizes", found=str(lengths))
        self.length = next((n for n in lengths if isinstance(n, int)), lengths[0])
        self.bound = site.emit.sizes(self.length)

    def place(self, number: Term, reverse: int) -> Term:
        """Where a round reads or writes."""
        if not reverse:
            return number
        emit = self.site.emit
        last = emit.call("subtract", self.bound, emit.constant(1, "int64"))
        return emit.call("subtract", last, number)

    def round(self, state: Sequence[Term]) -> tuple[list[Term], list[Term]]:
        """State and results after a round from its number and the states."""
        emit = self.site.emit
        slices = [
            emit.call("take", x, self.place(state[0], reverse), axis=axis, mode="fast")
            for x, axis, reverse in zip(self.scanned, self.axes, self.backward, strict=True)
        ]
        made = _made(self.site, self.graph, [*state[1:], *slices])
        return [_following(self.site, state[0]), *made[: self.states]], made[self.states :]


def _list(site: Site, name: str, count: int) -> list[int]:
    """An attribute with a number for each of ``count`` things, zeros if it is left out."""
    found = [int(v) for v in site.attr(name, [0] * count)]
    if len(found) != count:
        raise ModelFormatError(f"the attribute {name!r} has the wrong length", expected=count)
    return found
