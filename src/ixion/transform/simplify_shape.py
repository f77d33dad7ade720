"""SimplifyExpr: chains of reshapes, transposes and layout transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ixion.ir import Call, Expr, Op, TensorType
from ixion.op import layout as layouts
from ixion.op.call import call
from ixion.op.reshapes import reshape_to
from ixion.transform.rewriting import Place
from ixion.transform.type_writer import is_known_type

__all__ = ["drop_transpose", "merge_reshapes", "merge_transposes"]

_RESHAPES = ("reshape", "contrib_reverse_reshape")
_TRANSPOSES = ("transpose", "layout_transform")


def _operand(outer: Call, names: Sequence[str], place: Place) -> Call | None:
    """The first operand, if it is a call of one of the operators and used here only."""
    inner = outer.args[0]
    if isinstance(inner, Call) and isinstance(inner.op, Op) and inner.op.name in names:
        return inner if place.only_here(inner) else None
    return None


def merge_reshapes(outer: Call, place: Place) -> Expr | None:
    """A reshape of a reshape is one reshape."""
    inner = _operand(outer, _RESHAPES, place)
    kind = outer.checked_type
    if inner is None or not isinstance(kind, TensorType):
        return None
    if not is_known_type(kind):
        return None
    return reshape_to(inner.args[0], kind.shape, span=outer.span)


def _axes(transpose: Call, rank: int) -> list[int]:
    """Which input axis each output axis is."""
    attrs: Any = transpose.attrs
    if transpose.op.name == "transpose":  # type: ignore[attr-defined]  # an Op
        if not attrs.axes:
            return list(range(rank))[::-1]
        return [axis + rank if axis < 0 else axis for axis in attrs.axes]
    source, target = layouts.parse(attrs.src_layout), layouts.parse(attrs.dst_layout)
    return [source.parts.index(part) for part in target.parts]


def _changes_rank(transpose: Call) -> bool:
    attrs: Any = transpose.attrs
    if transpose.op.name != "layout_transform":  # type: ignore[attr-defined]  # an Op
        return False
    return _blocks(attrs.src_layout) != _blocks(attrs.dst_layout)


def _blocks(text: str) -> list[tuple[str, int]]:
    return sorted(layouts.parse(text).parts)


def merge_transposes(outer: Call, place: Place) -> Expr | None:
    """A transpose of a transpose is one transpose; layout transforms count as transposes, or take
    a transpose in when they split or join an axis.
    """
    inner = _operand(outer, _TRANSPOSES, place)
    if inner is None:
        return None
    data = inner.args[0]
    if _changes_rank(outer) or _changes_rank(inner):
        return _merge_blocked(outer, inner, data)
    kind = outer.checked_type
    assert isinstance(kind, TensorType)
    rank = len(kind.shape)
    first, second = _axes(inner, rank), _axes(outer, rank)
    return call("transpose", data, axes=[first[axis] for axis in second], span=outer.span)


def _merge_blocked(outer: Call, inner: Call, data: Expr) -> Expr | None:
    out: Any = outer.attrs
    into: Any = inner.attrs
    if _changes_rank(outer) and _changes_rank(inner):
        if into.dst_layout != out.src_layout:
            return None
        source, target = into.src_layout, out.dst_layout
    elif _changes_rank(outer):
        # The layout before the inner transpose: its output axis i is its input axis order[i].
        order = _axes(inner, len(layouts.parse(out.src_layout).parts))
        source = _permuted(out.src_layout, [order.index(i) for i in range(len(order))])
        target = out.dst_layout
    else:
        order = _axes(outer, len(layouts.parse(into.dst_layout).parts))
        source, target = into.src_layout, _permuted(into.dst_layout, order)
    if source == target:
        return data
    return call("layout_transform", data, src_layout=source, dst_layout=target, span=outer.span)


def _permuted(layout: str, order: Sequence[int]) -> str:
    parts = layouts.parse(layout).parts
    chosen = [parts[i] for i in order]
    return "".join(f"{factor or ''}{letter}" for letter, factor in chosen)


def drop_transpose(transpose: Call, place: Place) -> Expr | None:
    """A transpose that leaves every axis where it is."""
    if _changes_rank(transpose):
        return None
    kind = transpose.checked_type
    assert isinstance(kind, TensorType)
    axes = _axes(transpose, len(kind.shape))
    return transpose.args[0] if axes == list(range(len(axes))) else None
