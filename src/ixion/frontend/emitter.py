"""Building IR while importing: every call is typed as it is made, and small constants fold.

Types come from each operator's own type relation, so a converter sees shapes. What only depends on
constants and on sizes (the shape arithmetic of exporters) is evaluated on the spot by the
operators' references and never becomes a call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from ixion import op
from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.base.dim import Dim, SymExpr
from ixion.base.errors import IxionError, ModelFormatError
from ixion.base.guard import Guard
from ixion.base.span import Span
from ixion.frontend.term import Array, Term, at_most, static
from ixion.ir import Call, Expr, Op, TensorType, Tuple, TupleGetItem, TupleType, Type
from ixion.ir.sizes import attrs_symbols
from ixion.op.define import InferArgs
from ixion.op.value import as_objects, is_concrete, is_settled

#: Calls on constants fold while no array has more elements: shape arithmetic, not weights.
_FOLD_LIMIT = 1 << 16
_MOST_ELEMENTS = 1 << 26

Number = int | float | bool
Bound = Number | Dim
Made = TypeVar("Made", bound=Expr)
Argument = Term | Number | Sequence[Term]


class Emitter:
    """Makes typed calls; `span` is the place of the model that what is made now comes from."""

    def __init__(self) -> None:
        self.span: Span | None = None
        self.looks = 0  # bodies of loops that were made again
        self.assumed: list[Guard] = []
        # How many branches that may not be taken are being imported.
        self.branches = 0

    def assume(self, kind: str, a: Dim, b: Dim, what: str, op: str) -> None:
        """Notes a relation of sizes that no operator's type relation asks for; see `Guard`.

        ModelFormatError if it never holds.
        """
        guard = Guard(kind, a, b, what, op, self.span, not self.branches)
        if isinstance(a, int) and isinstance(b, int) and not guard.holds({}):
            raise ModelFormatError(what, expected=str(a), found=str(b))
        if guard.symbols() and not (kind == "equal" and dims.same(a, b)):
            self.assumed.append(guard)

    def constant(self, value: Any, dtype: str | None = None) -> Term:
        """A constant of an array or a (nested) number; a Python number needs its dtype."""
        return Term.constant(np.asarray(value, None if dtype is None else dtypes.to_numpy(dtype)))

    def arange(self, start: Bound, stop: Bound, step: Bound, dtype: str) -> Term:
        """Numpy's `arange`: a constant, or a count whose length is symbolic."""
        open_ends = isinstance(start, SymExpr) or isinstance(stop, SymExpr)
        if open_ends and isinstance(step, int) and step and dims.is_dim(start):
            return self._count(start, stop, step, dtype)
        start, stop, step = (_number(bound) for bound in (start, stop, step))
        count = (stop - start) / step if step else math.inf
        if not math.isfinite(count):
            raise ModelFormatError("a range without end", found=f"{start}, {stop}, {step}")
        at_most(_MOST_ELEMENTS, math.ceil(count), "elements of a range")
        return self.constant(np.arange(start, stop, step), dtype)

    def _count(self, start: Dim, stop: Any, step: int, dtype: str) -> Term:
        if not dims.is_dim(stop):
            stop = _number(stop)
        room = dims.add(stop, dims.multiply(-1, start))
        length = dims.ceil_div(dims.multiply(1 if step > 0 else -1, room), abs(step))
        kind = dtype if dtypes.is_integer(dtype) else "int64"
        made = self.call("iota", length=length, start=start, step=step, dtype=kind)
        return made if kind == dtype else self.call("cast", made, dtype=dtype)

    def full(self, value: Number, shape: Sequence[Dim], dtype: str) -> Term:
        """A tensor of one number: a constant, unless a size is symbolic."""
        known = [size for size in shape if isinstance(size, int)]
        if len(known) != len(shape):
            return self.call("full", self.constant(value, dtype), shape=tuple(shape), dtype=dtype)
        at_most(_MOST_ELEMENTS, math.prod(known), "elements of a constant")
        return Term.constant(np.full(known, value, dtypes.to_numpy(dtype)))

    def sizes(self, value: Any, dtype: str = "int64") -> Term:
        """A small integer tensor of a known value, a constant unless a size in it is a symbol."""
        array = as_objects(value)
        if is_concrete(array):
            return self.constant(array, dtype)
        return self.call("sizes", values=array.reshape(-1).tolist(), shape=array.shape, dtype=dtype)

    def call(self, name: str, *args: Argument, **attrs: Any) -> Term:
        """A call of operator `name`.

        A sequence of terms is a tuple argument; a Python number is a scalar of the first tensor's
        dtype. TypeInferenceError, naming the place, if the type relation does not hold.
        """
        parts = self._arguments(args)
        call = op.call(name, *(_expression(part) for part in parts), **attrs)
        return self._typed(call, parts)

    def apply(self, operator: Op, attrs: Any, args: Sequence[Argument]) -> Term:
        """A call of an operator with attributes made already."""
        parts = self._arguments(args)
        call = Call(operator, [_expression(part) for part in parts], attrs)
        return self._typed(call, parts)

    def pack(self, terms: Sequence[Term]) -> Term:
        """A tuple of terms."""
        made = Tuple([term.expr for term in terms], span=self.span)
        return Term(_with_type(made, TupleType([term.type for term in terms])), made.checked_type)

    def item(self, term: Term, index: int) -> Term:
        """Field `index` of a tuple."""
        if isinstance(term, FoldedTuple):
            return term.terms[index]
        kind = term.type
        assert isinstance(kind, TupleType)
        value = term.value[index] if isinstance(term.value, tuple) else None
        field = kind.fields[index]
        if is_settled(value) and isinstance(field, TensorType) and not _is_float(field):
            return self.sizes(value, field.dtype)
        got = TupleGetItem(term.expr, index, span=self.span)
        return Term(_with_type(got, kind.fields[index]), kind.fields[index], value)

    def items(self, term: Term) -> tuple[Term, ...]:
        """All fields of a tuple."""
        kind = term.type
        assert isinstance(kind, TupleType)
        return tuple(self.item(term, index) for index in range(len(kind.fields)))

    def _arguments(self, args: Sequence[Argument]) -> list[Term | list[Term]]:
        first = next((arg for arg in args if isinstance(arg, Term)), None)
        parts: list[Term | list[Term]] = []
        for arg in args:
            if isinstance(arg, Term):
                parts.append(arg)
            elif isinstance(arg, (int, float)):
                assert first is not None
                parts.append(self.constant(arg, first.dtype))
            else:
                parts.append(list(arg))
        return parts

    def _typed(self, call: Call, parts: list[Term | list[Term]]) -> Term:
        operator = call.op
        assert isinstance(operator, Op)
        infer = operator.get_attr("FInfer")
        args = InferArgs(
            operator.name,
            tuple(_type(part) for part in parts),
            call.attrs,
            tuple(_value(part) for part in parts),
        )
        try:
            found = infer(args)
        except IxionError as error:
            error.where = error.where or self.span
            raise
        if found is None:
            raise ModelFormatError(
                f"the type of {operator.name} cannot be inferred", where=self.span
            )
        if is_settled(found.value) and operator.name != "sizes" and not _is_float(found.type):
            return self.sizes(found.value, found.type.dtype)
        folded = _fold(operator, call.attrs, parts, found.type)
        if folded is not None:
            return folded
        made = call.copy(span=self.span)
        return Term(_with_type(made, found.type), found.type, found.value)


def _number(bound: Bound) -> Number:
    if isinstance(bound, (int, float)):
        return bound
    return static(bound)


class FoldedTuple(Term):
    """A tuple of constants that never became a call."""

    __slots__ = ("terms",)

    def __init__(self, terms: Sequence[Term]) -> None:
        super().__init__(Tuple([]), TupleType([term.type for term in terms]))
        self.terms = tuple(terms)
        self._expr = None

    @property
    def expr(self) -> Expr:
        if self._expr is None:
            made = Tuple([term.expr for term in self.terms])
            made._set_checked_type(self.type)
            self._expr = made
            return made
        return self._expr


def _is_float(kind: Type) -> bool:
    return isinstance(kind, TensorType) and dtypes.is_float(kind.dtype)


def _with_type(node: Made, kind: Type) -> Made:
    node._set_checked_type(kind)
    return node


def _expression(part: Term | list[Term]) -> Expr:
    if isinstance(part, Term):
        return part.expr
    return _with_type(Tuple([term.expr for term in part]), _type(part))


def _type(part: Term | list[Term]) -> Type:
    return part.type if isinstance(part, Term) else TupleType([term.type for term in part])


def _value(part: Term | list[Term]) -> Any:
    if isinstance(part, Term):
        return part.value
    values = tuple(term.value for term in part)
    return None if any(value is None for value in values) else values


def _fold(operator: Op, attrs: Any, parts: list[Term | list[Term]], kind: Type) -> Term | None:
    terms = [term for part in parts for term in (part if isinstance(part, list) else [part])]
    if not all(term.known and term.size <= _FOLD_LIMIT for term in terms) or attrs_symbols(attrs):
        return None
    reference = operator.get_attr("FReference")
    if reference is None or not _small(kind):
        return None
    arrays: list[Array] = [term.array for term in terms if term.array is not None]
    result = reference(attrs, tuple(arrays), kind)
    if isinstance(result, tuple):
        return FoldedTuple([Term.constant(np.asarray(one)) for one in result])
    return Term.constant(np.asarray(result))


def _small(kind: Type) -> bool:
    fields = kind.fields if isinstance(kind, TupleType) else (kind,)
    total = 0
    for one in fields:
        size = 1
        for dim in getattr(one, "shape", ()):
            size *= dim if isinstance(dim, int) else _FOLD_LIMIT + 1
        total += size
    return total <= _FOLD_LIMIT
