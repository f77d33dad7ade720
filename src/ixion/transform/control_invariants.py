"""Where calls inside a loop are computed that no round changes: before it."""

from __future__ import annotations

from collections.abc import Sequence

from ixion.base import dim as dims
from ixion.ir import Call, Constant, Op, TensorType, get_attr_map
from ixion.op.define import OpPattern
from ixion.transform.control_values import Held, Region, Value, flat

__all__ = ["outermost"]

_PATTERN = get_attr_map("TOpPattern")
_STATEFUL = get_attr_map("TOpIsStateful")
# Moves of elements to places that are known: no index can be wrong.
_MOVES = frozenset(("transpose", "reshape", "squeeze", "expand_dims", "strided_slice", "reverse"))


def outermost(call: Call, given: Sequence[Value], region: Region) -> Region:
    """The region for an operator's call: outside of all loops that change none of its operands.

    What may fail stays where it is, for the loop may have no rounds; so does what is larger than
    its operands.
    """
    leaves = [leaf for value in given for leaf in flat(value)]
    if not _is_safe(call) or not any(_is_computed(leaf) for leaf in leaves):
        return region
    while (around := _around(region, leaves)) is not None:
        region = around
    return region


def _around(region: Region, leaves: Sequence[Value]) -> Region | None:
    """The region around the loop that ``region`` is part of, if all leaves are from there."""
    outer = region.rounds
    if outer is None:
        return None
    inside: list[Region | None] = []
    step: Region | None = region
    while step is not outer:
        assert step is not None
        inside.append(step)
        step = step.parent
    here = any(isinstance(x, Held) and _is_computed(x) and x.region in inside for x in leaves)
    return None if here else outer


def _is_computed(leaf: Value) -> bool:
    return isinstance(leaf, Held) and not isinstance(leaf.expr, Constant)


def _is_safe(call: Call) -> bool:
    op = call.op
    if not isinstance(op, Op) or _STATEFUL.get(op, False):
        return False
    pattern = _PATTERN.get(op)
    if op.name not in _MOVES and (pattern is None or pattern == OpPattern.INJECTIVE):
        return False
    if pattern is not None and pattern > OpPattern.OUT_ELEMWISE_FUSABLE:
        return False
    made = _size(call.checked_type_or_none)
    taken = [_size(arg.checked_type_or_none) for arg in call.args]
    return made is not None and any(made is n or (n is not None and _at_most(made, n))
                                    for n in taken)  # fmt: skip


def _size(kind: object) -> dims.Dim | None:
    if not isinstance(kind, TensorType) or any(isinstance(d, dims.Any) for d in kind.shape):
        return None
    return dims.prod(kind.shape)


def _at_most(a: dims.Dim, b: dims.Dim) -> bool:
    room = dims.lower_bound(dims.add(b, dims.multiply(-1, a)))
    return room is not None and room >= 0
