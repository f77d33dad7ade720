"""Loops as functions that call themselves in tail position, and results written row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.base.errors import ModelFormatError
from ixion.frontend.build.movement import concatenate, expand_dims
from ixion.frontend.emitter import Emitter
from ixion.frontend.term import Term, at_most
from ixion.ir import Call, Function, FuncType, If, Let, TensorType, Tuple, TupleType, Var

__all__ = ["Loop", "branches", "rows", "settled", "variable", "with_row"]

Made = TypeVar("Made")
Body = Callable[[Sequence[Term]], tuple[Sequence[Term], Made]]
#: Bodies of loops looked at again in one model: nested loops whose sizes change multiply.
_MOST_LOOKS = 100


def variable(name: str, kind: TensorType) -> Term:
    """A term that is a variable."""
    var = Var(name, kind)
    var._set_checked_type(kind)
    return Term(var, kind)


def settled(
    emit: Emitter, start: Sequence[Term], body: Body[Made]
) -> tuple[list[Term], Sequence[Term], Made]:
    """Variables for a loop's state, and what ``body`` makes of them: a new state of their types,
    and more.

    A size that a round changes becomes unknown. ModelFormatError where rank or dtype change.
    """
    kinds = [term.tensor for term in start]
    while True:
        state = [variable(f"s{i}", kind) for i, kind in enumerate(kinds)]
        new, more = body(state)
        found = [_common(old, term.tensor) for old, term in zip(kinds, new, strict=True)]
        if found == kinds:
            return state, new, more
        kinds = found
        emit.looks = at_most(_MOST_LOOKS, emit.looks + 1, "loops whose values change their sizes")


def _common(old: TensorType, new: TensorType) -> TensorType:
    """The type of what is one at first and the other later."""
    if old.dtype != new.dtype or len(old.shape) != len(new.shape):
        raise ModelFormatError(
            "a loop gives back a value of another kind", expected=str(old), found=str(new)
        )
    return TensorType([_same(a, b) for a, b in zip(old.shape, new.shape, strict=True)], old.dtype)


def _same(a: Dim, b: Dim) -> Dim:
    if isinstance(a, dims.Any) or dims.same(a, b):
        return a
    return dims.Any()


@dataclass(eq=False)
class Loop:
    """Variables ``state``, what they are at first and after a round."""

    emit: Emitter
    start: list[Term]
    state: list[Term]
    new: list[Term]

    def collect(self, row: Term, count: Dim | None, index: Term, axis: int = 0) -> None:
        """One more state: the rounds' values ``row`` along a new axis, each at its ``index``.

        There are ``count`` of them; with None the tensor grows by one each round.
        """
        first = rows(self.emit, count, row.tensor, axis)
        at = None if count is None else index
        held, after, _ = settled(
            self.emit, [first], lambda b: ([with_row(self.emit, b[0], row, at, axis)], None)
        )
        self.start.append(first)
        self.state += held
        self.new += after

    def run(self, go: Term, skip: int = 0) -> list[Term]:
        """The state in the end, but for the first ``skip``: rounds go on while ``go`` holds."""
        params = [term.expr for term in self.state]
        kinds = [term.type for term in self.state]
        result, span = TupleType(kinds[skip:]), self.emit.span
        name = Var("loop", FuncType(kinds, result))
        again = Call(name, [term.expr for term in self.new], span=span)
        choice = If(go.expr, again, Tuple(params[skip:]), span=span)
        function = Function(params, choice, result, span=span)
        first = Call(name, [term.expr for term in self.start], span=span)
        return list(self.emit.items(Term(Let(name, function, first, span=span), result)))


def branches(emit: Emitter, cond: Term, sides: Sequence[Sequence[Term]]) -> list[Term]:
    """One of two lists of values, which have equal types, by a scalar bool."""
    packed = [terms[0] if len(terms) == 1 else emit.pack(terms) for terms in sides]
    made = If(cond.expr, packed[0].expr, packed[1].expr, span=emit.span)
    whole = Term(made, packed[0].type)
    return [whole] if len(sides[0]) == 1 else list(emit.items(whole))


def rows(emit: Emitter, count: Dim | None, like: TensorType, axis: int = 0) -> Term:
    """A tensor that takes ``count`` values of a type along a new axis; None: one to be grown."""
    shape = list(like.shape)
    shape.insert(axis, 0 if count is None else count)
    if any(isinstance(dim, dims.Any) for dim in shape):
        raise ModelFormatError(
            "the results of a loop's rounds have sizes that depend on data", found=str(like)
        )
    zero = emit.constant(0, like.dtype)
    return emit.call("full", zero, shape=tuple(shape), dtype=like.dtype)


def with_row(emit: Emitter, buffer: Term, row: Term, index: Term | None, axis: int = 0) -> Term:
    """``buffer`` with the value of a round in its place; with none, after the others."""
    if buffer.shape[axis] == 0 and index is not None:
        return buffer  # there are no rounds
    one = expand_dims(emit, row, [axis])
    if index is None:
        return concatenate(emit, [buffer, one], axis)
    return emit.call("put_slice", buffer, one, index, axis=axis)
