"""Control flow over *regions*: global functions of plain dataflow that are run as steps.

OutlineControl makes calls of these; front ends and people write If, let and recursion. A region is
given by name (a GlobalVar argument), takes flat tensors, and returns a tuple of tensors:

``control.branch(cond, @then, @else, (a, b, ...))``
    ``then(a, b, ...)`` where the scalar ``cond`` holds, else ``else(a, b, ...)``.

``control.loop(@head, @body, (s, ...), (k, ...))``
    ``head(s, ..., k, ...)`` gives ``(go, t, ...)``: while ``go`` holds, ``(s, ...)`` becomes
    ``body(s, ..., k, ..., t, ...)``. The result is ``(s, ..., t, ...)`` as they are in the end.

``control.repeat(count, @body, (s, ...), (k, ...))``
    ``(s, ...)`` becomes ``body(s, ..., k, ...)`` ``count`` times (never, for a count below 1).

``control.unset()`` is a tensor nobody looks at: what a branch gives for a result that belongs to
the other way out of a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from ixion.base.dim import Dim
from ixion.base.dtype import to_numpy
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr, GlobalVar, Tuple
from ixion.ir.op import Op
from ixion.ir.types import FuncType, TensorType, TupleType, Type
from ixion.op.compare import Exact
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.rounding import Array

__all__ = ["branch", "is_control", "loop", "regions_of", "repeat", "unset"]

Apply = Callable[[Any, Sequence[Any]], Any]
Step = Generator[Any, Any, Any]
_BOOL = TensorType((), "bool")
_COUNT = TensorType((), "int64")


@register_attrs("ixion.attrs.UnsetAttrs")
class UnsetAttrs(Attrs):
    shape: tuple[Dim, ...] = attr((), "shape of the result")
    dtype: str = attr("float32", "dtype of the result")


def is_control(node: object) -> bool:
    """Whether an expression is a call that runs regions, or a value that was never set."""
    return isinstance(node, Call) and isinstance(node.op, Op) and node.op.name in _NAMES


def regions_of(call: Call) -> tuple[GlobalVar, ...]:
    """The regions that a control call runs, in the order of its arguments."""
    return tuple(arg for arg in call.args if isinstance(arg, GlobalVar))


def branch(cond: Expr, then: GlobalVar, other: GlobalVar, values: Sequence[Expr]) -> Call:
    """A choice between two regions that take ``values``."""
    return Call(Op.get("control.branch"), (cond, then, other, Tuple(tuple(values))))


def loop(head: GlobalVar, body: GlobalVar, state: Sequence[Expr], kept: Sequence[Expr]) -> Call:
    """A loop that runs while its head says so; ``kept`` stays the same throughout."""
    return Call(Op.get("control.loop"), (head, body, Tuple(tuple(state)), Tuple(tuple(kept))))


def repeat(count: Expr, body: GlobalVar, state: Sequence[Expr], kept: Sequence[Expr]) -> Call:
    """A loop of ``count`` (scalar int64) rounds."""
    return Call(Op.get("control.repeat"), (count, body, Tuple(tuple(state)), Tuple(tuple(kept))))


def unset(kind: TensorType) -> Call:
    """A tensor of a type whose elements nobody looks at."""
    return Call(Op.get("control.unset"), (), UnsetAttrs(shape=kind.shape, dtype=kind.dtype))


def _tensors(args: InferArgs, index: int) -> tuple[Type, ...]:
    kind = args.types[index]
    if not isinstance(kind, TupleType) or not all(isinstance(f, TensorType) for f in kind.fields):
        args.fail(f"argument {index} must be a tuple of tensors", found=str(kind))
    return tuple(kind.fields)


def _region(args: InferArgs, index: int, given: Sequence[Type]) -> tuple[Type, ...]:
    """Result types of the region that is argument ``index`` and takes ``given``."""
    kind = args.types[index]
    if not isinstance(kind, FuncType) or not isinstance(kind.ret_type, TupleType):
        args.fail(f"argument {index} must be a function that gives a tuple", found=str(kind))
    if tuple(kind.arg_types) != tuple(given):
        args.fail(
            f"the region that is argument {index} takes other values",
            expected=TupleType(kind.arg_types), found=TupleType(given),
        )  # fmt: skip
    return tuple(kind.ret_type.fields)


def _scalar(args: InferArgs, found: Type, wanted: TensorType) -> None:
    if found != wanted:
        args.fail("a scalar decides here", expected=wanted, found=found)


def _infer_branch(args: InferArgs) -> Type | None:
    if any(kind is None for kind in args.types):
        return None
    _scalar(args, args.tensor(0), _BOOL)
    given = _tensors(args, 3)
    then, other = _region(args, 1, given), _region(args, 2, given)
    if then != other:
        args.fail("both branches must give the same types", expected=then, found=other)
    return TupleType(then)


def _infer_loop(args: InferArgs) -> Type | None:
    if any(kind is None for kind in args.types):
        return None
    state, kept = _tensors(args, 2), _tensors(args, 3)
    go, *passed = _region(args, 0, (*state, *kept)) or (None,)
    _scalar(args, go or TupleType(()), _BOOL)
    _same_state(args, _region(args, 1, (*state, *kept, *passed)), state)
    return TupleType((*state, *passed))


def _infer_repeat(args: InferArgs) -> Type | None:
    if any(kind is None for kind in args.types):
        return None
    _scalar(args, args.tensor(0), _COUNT)
    state, kept = _tensors(args, 2), _tensors(args, 3)
    _same_state(args, _region(args, 1, (*state, *kept)), state)
    return TupleType(state)


def _same_state(args: InferArgs, found: tuple[Type, ...], state: tuple[Type, ...]) -> None:
    if found != state:
        args.fail("the body must keep the state's types", expected=TupleType(state),
                  found=TupleType(found))  # fmt: skip


def _branch_steps(args: Sequence[Any], apply: Apply) -> Step:
    cond, then, other, values = args
    return (yield apply(then if bool(cond) else other, values))


def _loop_steps(args: Sequence[Any], apply: Apply) -> Step:
    head, body, state, kept = args
    while True:
        go, *passed = yield apply(head, (*state, *kept))
        if not bool(go):
            return (*state, *passed)
        state = yield apply(body, (*state, *kept, *passed))


def _repeat_steps(args: Sequence[Any], apply: Apply) -> Step:
    count, body, state, kept = args
    for _ in range(int(count)):
        state = yield apply(body, (*state, *kept))
    return state


def _unset_reference(attrs: UnsetAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    return np.zeros([int(d) for d in attrs.shape], to_numpy(attrs.dtype))  # type: ignore[arg-type]


define(
    "control.branch",
    inputs=("cond", "then", "else", "values"),
    pattern=OpPattern.OPAQUE,
    level=10,
    infer=_infer_branch,
    doc="One of two regions, by a scalar bool.",
    FControl=_branch_steps,
)

define(
    "control.loop",
    inputs=("head", "body", "state", "kept"),
    pattern=OpPattern.OPAQUE,
    level=10,
    infer=_infer_loop,
    doc="A region run again and again on its own result, while another says so.",
    FControl=_loop_steps,
)

define(
    "control.repeat",
    inputs=("count", "body", "state", "kept"),
    pattern=OpPattern.OPAQUE,
    level=10,
    infer=_infer_repeat,
    doc="A region run on its own result a number of times.",
    FControl=_repeat_steps,
)

define(
    "control.unset",
    attrs=UnsetAttrs,
    inputs=(),
    pattern=OpPattern.OPAQUE,
    level=10,
    infer=lambda args: TensorType(args.attrs.shape, args.attrs.dtype),
    reference=_unset_reference,
    compare=Exact(),
    doc="A tensor whose elements nobody looks at.",
)

_NAMES = frozenset(("control.branch", "control.loop", "control.repeat", "control.unset"))
