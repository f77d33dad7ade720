"""Several tensors into one and back: concatenate, stack, split."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ixion import te
from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr, TupleWrapper
from ixion.ir.types import TensorType, TupleType, Type
from ixion.op.axes import checked_axis, shape_text
from ixion.op.broadcast import same_dtype
from ixion.op.call import as_tuple_expr, call
from ixion.op.compare import Exact
from ixion.op.define import InferArgs, OpPattern, define, moves
from ixion.op.extent import Extent, extents, index
from ixion.op.rounding import Array
from ixion.op.sample import FLOATS, Draw, Sample, array, axis, choice, flag, shape


@register_attrs("relay.attrs.ConcatenateAttrs")
class ConcatenateAttrs(Attrs):
    axis: int = attr(0, "the axis that grows")


@register_attrs("relay.attrs.StackAttrs")
class StackAttrs(Attrs):
    axis: int = attr(0, "place of the new axis")


@register_attrs("relay.attrs.SplitAttrs")
class SplitAttrs(Attrs):
    indices_or_sections: int | tuple[int, ...] = attr(doc="number of parts, or rising cut points")
    axis: int = attr(0, "the axis to cut")


def _same_elsewhere(args: InferArgs, parts: Sequence[TensorType], axis: int | None) -> list[Dim]:
    """The common shape; dims along ``axis`` may differ.  A known dim wins over an unknown one, and
    a simple one over what is computed from it.
    """
    out = list(parts[0].shape)
    for t in parts[1:]:
        if len(t.shape) != len(out):
            args.fail("ranks differ", expected=len(out), found=len(t.shape))
        for i, d in enumerate(t.shape):
            if i == axis:
                continue
            args.agree(
                out[i], d, f"shapes differ in dim {i}",
                expected=shape_text(out), found=shape_text(t.shape),
            )  # fmt: skip
            out[i] = dims.simpler(out[i], d)
    return out


def _infer_concatenate(args: InferArgs) -> Type:
    parts = args.fields()
    dtype = same_dtype(args, *parts)
    at = checked_axis(args, args.attrs.axis, len(parts[0].shape))
    shape = _same_elsewhere(args, parts, at)
    total: Dim = 0
    for t in parts:
        total = dims.add(total, t.shape[at])
    if not isinstance(total, dims.Any):
        # Relay's rule: a size that some input leaves unknown is promised by no other input,
        # unless the result is of unknown size anyway.
        for t in parts:
            shape = [
                dims.Any() if isinstance(own, dims.Any) else joined
                for own, joined in zip(t.shape, shape, strict=True)
            ]
    shape[at] = total
    return TensorType(shape, dtype)


def _pick(reads: Sequence[te.Expr], bounds: Sequence[te.Expr], at: te.Expr) -> te.Expr:
    """The read whose range [bounds[j], bounds[j + 1]) holds ``at``."""
    out = reads[-1]
    for read, bound in zip(reversed(reads[:-1]), reversed(bounds[1:]), strict=True):
        out = te.select(te.compare("lt", at, bound), read, out)
    return out


def _concatenate_compute(
    attrs: ConcatenateAttrs, ins: tuple[te.Tensor, ...], out_type: Any
) -> te.Tensor:
    at = attrs.axis % ins[0].ndim
    starts: list[te.Expr] = [te.const(0, "int64")]
    for x in ins[:-1]:
        starts.append(starts[-1] + index(x.shape[at]))

    def body(*i: te.Expr) -> te.Expr:
        reads = [x(*i[:at], i[at] - s, *i[at + 1 :]) for x, s in zip(ins, starts, strict=True)]
        return _pick(reads, starts, i[at])

    return te.compute(extents(out_type), body, "concatenate")


def _concatenate_samples(draw: Draw) -> Sample:
    base, dtype = shape(draw, 1), choice(draw, (*FLOATS, "int64"))
    at = axis(draw, len(base))
    parts = []
    for _ in range(draw.integer(1, 4)):
        own = list(base)
        own[at] = draw.integer(0, 4)
        parts.append(array(draw, own, dtype))
    return Sample((tuple(parts),), {"axis": at})


define(
    "concatenate",
    attrs=ConcatenateAttrs,
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=1,
    infer=_infer_concatenate,
    reference=lambda attrs, ins, out: np.concatenate(ins, axis=attrs.axis),
    compute=_concatenate_compute,
    compare=Exact(),
    symbolic=moves(),
    samples=_concatenate_samples,
    doc="Tensors of a tuple one after another along an axis.",
)


def _infer_stack(args: InferArgs) -> Type:
    parts = args.fields()
    dtype = same_dtype(args, *parts)
    at = checked_axis(args, args.attrs.axis, len(parts[0].shape) + 1)
    shape = _same_elsewhere(args, parts, None)
    return TensorType((*shape[:at], len(parts), *shape[at:]), dtype)


def _stack_compute(attrs: StackAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    at = attrs.axis % (ins[0].ndim + 1)
    bounds = [te.const(j, "int64") for j in range(len(ins))]

    def body(*i: te.Expr) -> te.Expr:
        return _pick([x(*i[:at], *i[at + 1 :]) for x in ins], bounds, i[at])

    return te.compute(extents(out_type), body, "stack")


def _stack_samples(draw: Draw) -> Sample:
    base, dtype = shape(draw, 0, 3), choice(draw, FLOATS)
    parts = tuple(array(draw, base, dtype) for _ in range(draw.integer(1, 3)))
    return Sample((parts,), {"axis": axis(draw, len(base) + 1)})


define(
    "stack",
    attrs=StackAttrs,
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=3,
    infer=_infer_stack,
    reference=lambda attrs, ins, out: np.stack(ins, axis=attrs.axis),
    compute=_stack_compute,
    compare=Exact(),
    symbolic=moves(),
    samples=_stack_samples,
    doc="Tensors of a tuple along a new axis.",
)


def _cuts(attrs: SplitAttrs, size: Dim) -> list[Dim]:
    """Starts of the parts, then the end."""
    wanted = attrs.indices_or_sections
    if isinstance(wanted, int):
        part = size // wanted
        return [*(part * i for i in range(wanted)), size]
    return [0, *wanted, size]


def _infer_split(args: InferArgs) -> Type:
    data, wanted = args.tensor(), args.attrs.indices_or_sections
    at = checked_axis(args, args.attrs.axis, len(data.shape))
    size = data.shape[at]
    if isinstance(wanted, int):
        if wanted < 1 or (isinstance(size, int) and size % wanted):
            args.fail("the number of parts must divide the axis", expected=size, found=wanted)
    elif list(wanted) != sorted(wanted) or (
        isinstance(size, int) and any(not 0 <= w <= size for w in wanted)
    ):
        args.fail("cut points must rise within the axis", expected=size, found=wanted)
    cuts = _cuts(args.attrs, size)
    parts = [
        TensorType((*data.shape[:at], stop - start, *data.shape[at + 1 :]), data.dtype)
        for start, stop in itertools.pairwise(cuts)
    ]
    return TupleType(parts)


def _split_reference(attrs: SplitAttrs, inputs: tuple[Array, ...], out_type: Any) -> Any:
    x, wanted = inputs[0], attrs.indices_or_sections
    cut = wanted if isinstance(wanted, int) else list(wanted)
    return tuple(np.split(x, cut, axis=attrs.axis))


def _split_compute(attrs: SplitAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> Any:
    (x,) = ins
    at = attrs.axis % x.ndim
    starts: list[Extent] = list(_cuts(attrs, x.shape[at])[:-1])  # type: ignore[arg-type]

    def part(start: Extent, kind: Any) -> te.Tensor:
        return te.compute(
            extents(kind), lambda *i: x(*i[:at], i[at] + start, *i[at + 1 :]), "split"
        )

    return tuple(part(s, t) for s, t in zip(starts, out_type.fields, strict=True))


def _split_samples(draw: Draw) -> Sample:
    dims_ = list(shape(draw, 1))
    at = axis(draw, len(dims_))
    if flag(draw):
        sections: Any = draw.integer(1, 3)
        dims_[at] = sections * draw.integer(1, 3)
    else:
        sections = sorted(draw.integer(0, dims_[at]) for _ in range(draw.integer(1, 3)))
    attrs = {"indices_or_sections": sections, "axis": at}
    return Sample((array(draw, dims_, choice(draw, FLOATS)),), attrs)


def split_count(attrs: SplitAttrs) -> int:
    """Number of parts."""
    wanted = attrs.indices_or_sections
    return wanted if isinstance(wanted, int) else len(wanted) + 1


define(
    "split",
    attrs=SplitAttrs,
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=3,
    infer=_infer_split,
    reference=_split_reference,
    compute=_split_compute,
    compare=Exact(),
    symbolic=moves(),
    samples=_split_samples,
    num_outputs=split_count,
    doc="A tensor cut into parts along an axis.",
)


def concatenate(data: Expr | Sequence[Expr], axis: int) -> Call:
    """Relay's builder; raises ValueError for an empty list."""
    if isinstance(data, (list, tuple)) and not data:
        raise ValueError("relay.concatenate requires data to be non-empty")
    return call("concatenate", as_tuple_expr(data), axis=axis)


def stack(data: Expr | Sequence[Expr], axis: int) -> Call:
    """Relay's builder; raises ValueError for an empty list."""
    if isinstance(data, (list, tuple)) and not data:
        raise ValueError("relay.stack requires data to be non-empty")
    return call("stack", as_tuple_expr(data), axis=axis)


def split(data: Expr, indices_or_sections: Any, axis: int = 0) -> TupleWrapper:
    made = call("split", data, indices_or_sections=indices_or_sections, axis=axis)
    return TupleWrapper(made, split_count(made.attrs))  # type: ignore[arg-type]
