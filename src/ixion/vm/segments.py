"""Operators of one slot as a function of tensors, compiled like any model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.ir import (
    Call,
    Expr,
    Function,
    GlobalVar,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    structural_equal,
    structural_hash,
)
from ixion.op.typed import field_types, op_name, tensor_type
from ixion.runtime.value_kind import UNKNOWN, TensorKind
from ixion.vm.draft import Operator, Value
from ixion.vm.naming import plain_names
from ixion.vm.proof import tensor_kind

__all__ = ["SegmentDraft", "SegmentTable"]

_SHOWN = 4


@dataclass(eq=False)
class SegmentDraft:
    """A segment before it is compiled; equal ones are one.

    ``bounded``: the one call in it, of an operator whose result sizes depend on data.
    """

    name: str
    function: Function
    inputs: tuple[tuple[str, TensorKind], ...]
    outputs: tuple[TensorKind, ...]
    bounded: Call | None = None


class SegmentTable:
    """The segments of a program by number."""

    def __init__(self) -> None:
        self.drafts: list[SegmentDraft] = []
        self._known: dict[int, list[int]] = {}

    def add(self, operators: Sequence[Operator]) -> tuple[int, list[Value], list[Value]]:
        """Number, arguments and results of the segment that runs ``operators``."""
        made = _Made(operators)
        results = [v for o in operators for v in o.results if v.leaves]
        return self._number(made.draft(results)), made.inputs, results

    def add_bounded(self, call: Call) -> int:
        """The segment of an operator alone, on variables and constants."""
        params = [a for a in call.args if isinstance(a, Var)]
        inputs = tuple((p.name_hint, tensor_kind(tensor_type(p))) for p in params)
        outputs = tuple(tensor_kind(kind) for kind in field_types(call))
        name = op_name(call)
        return self._number(SegmentDraft(name, Function(params, call), inputs, outputs, call))

    def _number(self, draft: SegmentDraft) -> int:
        key = structural_hash(draft.function)
        for number in self._known.get(key, ()):
            if structural_equal(self.drafts[number].function, draft.function):
                return number
        self._known.setdefault(key, []).append(len(self.drafts))
        self.drafts.append(draft)
        return len(self.drafts) - 1


class _Made:
    """Operators as expressions over variables for what they need from outside."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        self._operators = operators
        self._makers = _with_repeated(operators)
        inside = {v for maker in self._makers for v in maker.results}
        outside = dict.fromkeys(
            v for maker in self._makers for v in maker.operands()
            if v not in inside and v.data is None
        )  # fmt: skip
        self.inputs = list(outside)

    def draft(self, results: Sequence[Value]) -> SegmentDraft:
        kinds, renamed = plain_names([tensor_type(v.kind) for v in self.inputs])
        names = _distinct([v.name for v in self.inputs])
        params = [Var(n, k) for n, k in zip(names, kinds, strict=True)]
        exprs: dict[Value, Expr] = dict(zip(self.inputs, params, strict=True))
        for maker in self._makers:
            _add(maker, exprs)
        fields = [exprs[v] for v in results]
        function = Function(params, fields[0] if len(fields) == 1 else Tuple(fields))
        return SegmentDraft(
            _title(self._operators), function,
            tuple((n, tensor_kind(k)) for n, k in zip(names, kinds, strict=True)),
            tuple(_kind(tensor_type(v.kind), renamed) for v in results),
        )  # fmt: skip


def _with_repeated(operators: Sequence[Operator]) -> list[Operator]:
    """The operators, and before each those that have to be repeated for it."""
    own = set(operators)
    order: dict[Operator, None] = {}
    for operator in operators:
        for maker in operator.again:
            if maker not in own:
                order.setdefault(maker)
        order.setdefault(operator)
    return list(order)


def _add(operator: Operator, exprs: dict[Value, Expr]) -> None:
    """Makes the call of an operator and expressions for its results."""

    def expr(value: Value) -> Expr:
        return value.data if value.data is not None else exprs[value]

    args = [Tuple([expr(v) for v in a]) if isinstance(a, tuple) else expr(a) for a in operator.args]
    call = operator.call
    whole = Call(call.op, args, call.attrs, span=call.span)
    if not isinstance(call.checked_type, TupleType):
        exprs[operator.results[0]] = whole
        return
    for index, value in enumerate(operator.results):
        exprs[value] = TupleGetItem(whole, index)


def _distinct(names: Sequence[str]) -> list[str]:
    """Names as they are where they differ, else with a number."""
    seen: dict[str, int] = {}
    found = []
    for given in names:
        name = given or "x"
        count = seen.get(name, 0)
        seen[name] = count + 1
        while count and f"{name}_{count}" in seen:
            count += 1
        made = f"{name}_{count}" if count else name
        seen.setdefault(made, 1)
        found.append(made)
    return found


def _kind(kind: TensorType, renamed: Mapping[str, Dim]) -> TensorKind:
    """For people: sizes by the names they have inside the segment, ``?`` for other ones."""
    shape: list[int | str] = []
    for size in kind.shape:
        known = dims.free_vars(size) <= renamed.keys()
        inside = dims.substitute(size, renamed) if known else UNKNOWN
        shape.append(inside if isinstance(inside, int) else str(inside))
    return TensorKind(tuple(shape), kind.dtype)


def _name(call: Call) -> str:
    return f"@{call.op.name_hint}" if isinstance(call.op, GlobalVar) else op_name(call)


def _title(operators: Sequence[Operator]) -> str:
    names = [_name(o.call).removeprefix("nn.") for o in operators]
    rest = f"+{len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return "+".join(names[:_SHOWN]) + rest

