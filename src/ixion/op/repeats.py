"""Elements repeated or reordered along axes: tile, repeat, reverse, reverse_sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ixion import te
from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op.axes import checked_axis
from ixion.op.call import call, known_ints
from ixion.op.compare import Exact
from ixion.op.create import shape_at
from ixion.op.define import InferArgs, OpPattern, define, moves
from ixion.op.extent import extents, index
from ixion.op.reshapes import index_of_flat
from ixion.op.rounding import Array
from ixion.op.sample import FLOATS, Draw, Sample, array, axis, choice, flag, shape


@register_attrs("relay.attrs.TileAttrs")
class TileAttrs(Attrs):
    reps: tuple[Dim, ...] = attr(doc="copies per axis")


@register_attrs("relay.attrs.RepeatAttrs")
class RepeatAttrs(Attrs):
    repeats: int = attr(doc="copies of every element")
    axis: int | None = attr(None, "the axis; none flattens")


@register_attrs("relay.attrs.ReverseAttrs")
class ReverseAttrs(Attrs):
    axis: int = attr(doc="the axis")


@register_attrs("relay.attrs.ReverseSequenceAttrs")
class ReverseSequenceAttrs(Attrs):
    seq_axis: int = attr(1, "axis that is reversed")
    batch_axis: int = attr(0, "axis that the lengths run along")


def _tiled(shape: Sequence[Dim], reps: Sequence[Dim]) -> list[Dim]:
    rank = max(len(shape), len(reps))
    left = [1] * (rank - len(shape)) + list(shape)
    right = [1] * (rank - len(reps)) + list(reps)
    return [dims.multiply(a, b) for a, b in zip(left, right, strict=True)]


def _tile_compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    x = ins[0]

    def body(*i: te.Expr) -> te.Expr:
        own = i[len(i) - x.ndim :]
        return x(*(at % n for at, n in zip(own, x.shape, strict=True)))

    return te.compute(extents(out_type), body, "tile")


define(
    "tile",
    attrs=TileAttrs,
    inputs=("data",),
    pattern=OpPattern.BROADCAST,
    level=3,
    infer=lambda args: TensorType(
        _tiled(args.tensor().shape, args.attrs.reps), args.tensor().dtype
    ),
    reference=lambda attrs, ins, out: np.tile(ins[0], attrs.reps),
    compute=_tile_compute,
    compare=Exact(),
    symbolic=moves(),
    samples=lambda draw: Sample(
        (array(draw, shape(draw, 0, 3), choice(draw, FLOATS)),),
        {"reps": shape(draw, 1, 3, 1, 3)},
    ),
    doc="The whole tensor repeated along axes.",
)

define(
    "dyn.tile",
    attrs=TileAttrs,
    inputs=("data", "reps"),
    pattern=OpPattern.INJECTIVE,
    level=3,
    infer=lambda args: TensorType(
        _tiled(args.tensor(0).shape, shape_at(args, 1)), args.tensor(0).dtype
    ),
    reference=lambda attrs, ins, out: np.tile(ins[0], [int(n) for n in ins[1]]),
    compute=_tile_compute,
    compare=Exact(),
    symbolic=moves(1),
    samples=lambda draw: Sample(
        (array(draw, shape(draw, 1, 2)), np.array(shape(draw, 1, 3, 1, 3), np.int64)), {"reps": ()}
    ),
    doc="tile with counts computed at run time.",
)


def _infer_repeat(args: InferArgs) -> Type:
    data, attrs = args.tensor(), args.attrs
    if attrs.repeats < 0:
        args.fail("repeats must not be negative", found=attrs.repeats)
    if attrs.axis is None:
        return TensorType((dims.multiply(dims.prod(data.shape), attrs.repeats),), data.dtype)
    out = list(data.shape)
    at = checked_axis(args, attrs.axis, len(out))
    out[at] = dims.multiply(out[at], attrs.repeats)
    return TensorType(out, data.dtype)


def _repeat_compute(attrs: RepeatAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    (x,) = ins

    def body(*i: te.Expr) -> te.Expr:
        if attrs.axis is None:
            return x(*index_of_flat(i[0] // attrs.repeats, x.shape))
        at = attrs.axis % x.ndim
        return x(*i[:at], i[at] // attrs.repeats, *i[at + 1 :])

    return te.compute(extents(out_type), body, "repeat")


def _repeat_samples(draw: Draw) -> Sample:
    x = array(draw, shape(draw, 1), choice(draw, FLOATS))
    return Sample(
        (x,), {"repeats": draw.integer(1, 3), "axis": axis(draw, x.ndim) if flag(draw) else None}
    )


define(
    "repeat",
    attrs=RepeatAttrs,
    inputs=("data",),
    pattern=OpPattern.BROADCAST,
    level=3,
    infer=_infer_repeat,
    reference=lambda attrs, ins, out: np.repeat(ins[0], attrs.repeats, axis=attrs.axis),
    compute=_repeat_compute,
    compare=Exact(),
    symbolic=moves(),
    samples=_repeat_samples,
    doc="Every element repeated along an axis.",
)


def _infer_reverse(args: InferArgs) -> Type:
    checked_axis(args, args.attrs.axis, len(args.tensor().shape))
    return args.tensor()


def _reverse_compute(attrs: ReverseAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    (x,) = ins
    at = attrs.axis % x.ndim

    def body(*i: te.Expr) -> te.Expr:
        return x(*i[:at], index(x.shape[at]) - 1 - i[at], *i[at + 1 :])

    return te.compute(extents(out_type), body, "reverse")


def _reverse_samples(draw: Draw) -> Sample:
    x = array(draw, shape(draw, 1), choice(draw, FLOATS))
    return Sample((x,), {"axis": axis(draw, x.ndim)})


define(
    "reverse",
    attrs=ReverseAttrs,
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=3,
    infer=_infer_reverse,
    reference=lambda attrs, ins, out: np.flip(ins[0], attrs.axis),
    compute=_reverse_compute,
    compare=Exact(),
    symbolic=moves(),
    samples=_reverse_samples,
    doc="An axis read backwards.",
)


def _infer_sequence(args: InferArgs) -> Type:
    data, lengths = args.tensor(0), args.tensor(1)
    rank = len(data.shape)
    checked_axis(args, args.attrs.seq_axis, rank)
    batch = checked_axis(args, args.attrs.batch_axis, rank)
    size, rule = data.shape[batch], "one length per batch entry"
    args.agree_all([size], lengths.shape, rule, expected=size, found=lengths)
    return data


def _sequence_reference(
    attrs: ReverseSequenceAttrs, inputs: tuple[Array, ...], out_type: Any
) -> Array:
    x, lengths = inputs
    seq, batch = attrs.seq_axis % x.ndim, attrs.batch_axis % x.ndim
    out = x.copy()
    for b, length in enumerate(lengths):
        n = min(int(length), x.shape[seq])
        front: list[Any] = [slice(None)] * x.ndim
        front[batch], front[seq] = b, slice(0, n)
        back = list(front)
        back[seq] = slice(n - 1, None, -1) if n else slice(0, 0)
        out[tuple(front)] = x[tuple(back)]
    return out


def _sequence_compute(
    attrs: ReverseSequenceAttrs, ins: tuple[te.Tensor, ...], out_type: Any
) -> te.Tensor:
    x, lengths = ins
    seq, batch = attrs.seq_axis % x.ndim, attrs.batch_axis % x.ndim

    def body(*i: te.Expr) -> te.Expr:
        length = te.minimum(te.cast(lengths(i[batch]), "int64"), x.shape[seq])
        at = te.select(te.compare("lt", i[seq], length), length - 1 - i[seq], i[seq])
        return x(*i[:seq], at, *i[seq + 1 :])

    return te.compute(extents(out_type), body, "reverse_sequence")


def _sequence_samples(draw: Draw) -> Sample:
    x = array(draw, shape(draw, 2, 3))
    seq, batch = choice(draw, ((1, 0), (0, 1)))
    lengths = array(draw, (x.shape[batch],), "int32", 0, x.shape[seq])
    return Sample((x, lengths), {"seq_axis": seq, "batch_axis": batch})


define(
    "reverse_sequence",
    attrs=ReverseSequenceAttrs,
    inputs=("data", "seq_lengths"),
    pattern=OpPattern.INJECTIVE,
    level=3,
    infer=_infer_sequence,
    reference=_sequence_reference,
    compute=_sequence_compute,
    compare=Exact(),
    samples=_sequence_samples,
    doc="The first seq_lengths[b] elements of an axis read backwards, per batch entry.",
)


def tile(data: Expr, reps: Any) -> Call:
    """Relay's builder; counts given as an expression make the dynamic op."""
    reps = known_ints(reps)
    if isinstance(reps, Expr):
        return call("dyn.tile", data, reps, reps=())
    return call("tile", data, reps=[reps] if isinstance(reps, int) else reps)


def repeat(data: Expr, repeats: int, axis: int | None) -> Call:
    return call("repeat", data, repeats=repeats, axis=axis)


def reverse(data: Expr, axis: int) -> Call:
    return call("reverse", data, axis=axis)


def reverse_sequence(data: Expr, seq_lengths: Expr, seq_axis: int = 1, batch_axis: int = 0) -> Call:
    return call("reverse_sequence", data, seq_lengths, seq_axis=seq_axis, batch_axis=batch_axis)
