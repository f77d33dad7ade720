"""Running sums and products, and results whose size depends on data: unique, argwhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ixion import te
from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr, TupleWrapper
from ixion.ir.types import TensorType, TupleType, Type
from ixion.op.accumulate import widened
from ixion.op.axes import checked_axis
from ixion.op.bounds import Shapes
from ixion.op.call import call, unary_builder
from ixion.op.compare import Accumulation, Exact
from ixion.op.conversion import convert
from ixion.op.define import InferArgs, OpPattern, Reference, define
from ixion.op.extent import extents
from ixion.op.rounding import Array
from ixion.op.sample import FLOATS, Draw, Sample, array, axis, choice, flag, shape
from ixion.op.scheduled import numbered, plain_tensors


@register_attrs("relay.attrs.ScanopAttrs")
class ScanopAttrs(Attrs):
    axis: int | None = attr(None, "the axis; none flattens")
    dtype: str | None = attr(None, "dtype of the result; none means the input's")
    exclusive: bool = attr(False, "leave the element itself out")


@register_attrs("relay.attrs.UniqueAttrs")
class UniqueAttrs(Attrs):
    sorted: bool = attr(True, "in rising order, else in order of first appearance")
    return_counts: bool = attr(False, "also give how often each occurs")


@register_attrs("relay.attrs.SequenceMaskAttrs")
class SequenceMaskAttrs(Attrs):
    mask_value: float = attr(0.0, "what replaces masked elements")
    axis: int = attr(0, "the time axis, 0 or 1; the other is the batch")


def _infer_scan(args: InferArgs) -> Type:
    data, attrs = args.tensor(), args.attrs
    if attrs.axis is None:
        return TensorType((dims.prod(data.shape),), attrs.dtype or data.dtype)
    checked_axis(args, attrs.axis, len(data.shape))
    return TensorType(data.shape, attrs.dtype or data.dtype)


def _scan(fold: Callable[..., Any], identity: int) -> Reference:
    def reference(attrs: ScanopAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
        x = inputs[0].ravel() if attrs.axis is None else inputs[0]
        at = 0 if attrs.axis is None else attrs.axis
        if dtypes.is_float(out_type.dtype) or x.dtype.kind == "f":
            values = x.astype(np.float64)
        else:
            values = widened(x)
        out = fold(values, axis=at)
        if attrs.exclusive:
            out = np.roll(out, 1, axis=at)
            first: list[Any] = [slice(None)] * out.ndim
            first[at] = 0
            if out.size:
                out[tuple(first)] = identity
        return convert(out, out_type.dtype)

    return reference


def _scan_samples(low: float, high: float) -> Callable[[Draw], Sample]:
    def samples(draw: Draw) -> Sample:
        x = array(draw, shape(draw, 1), choice(draw, (*FLOATS, "int32")), low, high)
        at = axis(draw, x.ndim) if flag(draw) else None
        return Sample((x,), {"axis": at, "exclusive": flag(draw)})

    return samples


for _name, _fold, _identity, _range in (
    ("cumsum", np.cumsum, 0, (-3, 3)), ("cumprod", np.cumprod, 1, (0.5, 1.5))
):  # fmt: skip
    define(
        _name,
        attrs=ScanopAttrs,
        inputs=("data",),
        pattern=OpPattern.OPAQUE,
        level=3,
        infer=_infer_scan,
        reference=_scan(_fold, _identity),
        compare=Accumulation(),
        samples=_scan_samples(*_range),
        FScheduled=plain_tensors,
        doc=f"Running {'sum' if _name == 'cumsum' else 'product'} along an axis.",
    )


def _infer_unique(args: InferArgs) -> Type:
    data = args.tensor()
    if len(data.shape) != 1:
        args.fail("data must be a vector", found=data)
    some = TensorType((dims.Any(),), "int32")
    parts = [
        TensorType((dims.Any(),), data.dtype), some, TensorType(data.shape, "int32"),
        TensorType((1,), "int32"),
    ]  # fmt: skip
    return TupleType([*parts, some] if args.attrs.return_counts else parts)


def _unique_bound(args: InferArgs) -> Shapes:
    size = args.tensor().shape
    return (size, size, size, (1,), size)[: 5 if args.attrs.return_counts else 4]


def _unique_reference(attrs: UniqueAttrs, inputs: tuple[Array, ...], out_type: Any) -> Any:
    values, first, inverse, counts = np.unique(
        inputs[0], return_index=True, return_inverse=True, return_counts=True
    )
    if not attrs.sorted:
        order = np.argsort(first, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        values, first, counts = values[order], first[order], counts[order]
        inverse = place[inverse]
    out = (
        values, first.astype(np.int32), inverse.reshape(-1).astype(np.int32),
        np.array([len(values)], np.int32),
    )  # fmt: skip
    return (*out, counts.astype(np.int32)) if attrs.return_counts else out


define(
    "unique",
    attrs=UniqueAttrs,
    inputs=("data",),
    pattern=OpPattern.OPAQUE,
    level=3,
    infer=_infer_unique,
    reference=_unique_reference,
    compare=Exact(),
    samples=lambda draw: Sample(
        (array(draw, (draw.integer(1, 9),), choice(draw, ("int32", "int64", "float32"))).round(),),
        {"sorted": flag(draw), "return_counts": flag(draw)},
    ),
    num_outputs=lambda attrs: 5 if attrs.return_counts else 4,
    FScheduled=numbered,
    FResultBound=_unique_bound,
    doc="Distinct values, where each first occurs, which one each element is, and how many.",
)

define(
    "argwhere",
    inputs=("condition",),
    pattern=OpPattern.OPAQUE,
    level=10,
    infer=lambda args: TensorType((dims.Any(), len(args.tensor().shape)), "int32"),
    reference=lambda attrs, ins, out: np.argwhere(ins[0]).astype(np.int32),
    compare=Exact(),
    samples=lambda draw: Sample(
        (array(draw, shape(draw, 0, 3), choice(draw, ("bool", "int32")), -1, 1),)
    ),
    FScheduled=numbered,
    FResultBound=lambda args: ((dims.prod(args.tensor().shape), len(args.tensor().shape)),),
    doc="Index tuples of nonzero elements, one per row.",
)


def _infer_mask(args: InferArgs) -> Type:
    data, lengths = args.tensor(0), args.tensor(1)
    batch = 1 - checked_axis(args, args.attrs.axis, 2)
    size, rule = data.shape[batch], "one length per batch entry"
    args.agree_all([size], lengths.shape, rule, expected=size, found=lengths)
    return data


def _mask_reference(attrs: SequenceMaskAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x, lengths = inputs
    time = np.arange(x.shape[attrs.axis])
    live = time[None] < lengths[:, None]
    live = live.T if attrs.axis == 0 else live
    return np.where(
        live.reshape(*live.shape, *[1] * (x.ndim - 2)), x, np.asarray(attrs.mask_value, x.dtype)
    )


def _mask_compute(attrs: SequenceMaskAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    x, lengths = ins

    def body(*i: te.Expr) -> te.Expr:
        length = te.cast(lengths(i[1 - attrs.axis]), "int64")
        live = te.compare("lt", i[attrs.axis], length)
        return te.select(live, x(*i), te.const(attrs.mask_value, x.dtype))

    return te.compute(extents(out_type), body, "sequence_mask")


def _mask_samples(draw: Draw) -> Sample:
    x, at = array(draw, shape(draw, 2, 3)), draw.integer(0, 1)
    lengths = array(draw, (x.shape[1 - at],), "int32", 0, x.shape[at])
    return Sample((x, lengths), {"axis": at, "mask_value": -1.0})


define(
    "sequence_mask",
    attrs=SequenceMaskAttrs,
    inputs=("data", "valid_length"),
    pattern=OpPattern.INJECTIVE,
    level=10,
    infer=_infer_mask,
    reference=_mask_reference,
    compute=_mask_compute,
    compare=Exact(),
    samples=_mask_samples,
    doc="Elements at or after each sequence's length replaced.",
)


def cumsum(
    data: Expr, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None
) -> Call:
    return call("cumsum", data, axis=axis, dtype=dtype, exclusive=bool(exclusive))


def cumprod(
    data: Expr, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None
) -> Call:
    return call("cumprod", data, axis=axis, dtype=dtype, exclusive=bool(exclusive))


def unique(data: Expr, is_sorted: bool = True, return_counts: bool = False) -> TupleWrapper:
    made = call("unique", data, sorted=is_sorted, return_counts=return_counts)
    return TupleWrapper(made, 5 if return_counts else 4)


argwhere = unary_builder("argwhere")


def sequence_mask(data: Expr, valid_length: Expr, mask_value: float = 0, axis: int = 0) -> Call:
    return call("sequence_mask", data, valid_length, mask_value=mask_value, axis=axis)
