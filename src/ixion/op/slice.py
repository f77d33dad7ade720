"""Parts of tensors by position: strided_slice, slice_like, strided_set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ixion import te
from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr, const
from ixion.ir.types import TensorType, Type
from ixion.op.axes import checked_axes, static_sizes
from ixion.op.call import call, known_ints
from ixion.op.compare import Exact
from ixion.op.define import InferArgs, OpPattern, Reference, define
from ixion.op.extent import NoLoopsError, dims_of, extent, extents
from ixion.op.rounding import Array
from ixion.op.sample import FLOATS, Draw, Sample, array, choice, flag, shape
from ixion.op.value import Value, is_concrete

# Bounds at least this large mean "to the end"; exporters write INT32_MAX or INT64_MAX.
FAR = 2**31 - 1


@register_attrs("relay.attrs.StridedSliceAttrs")
class StridedSliceAttrs(Attrs):
    begin: tuple[Dim, ...] | None = attr(None, "first position per axis")
    end: tuple[Dim, ...] | None = attr(None, "position after the last, or sizes")
    strides: tuple[int, ...] | None = attr(None, "step per axis; missing ones are 1")
    slice_mode: str = attr("end", "whether end holds positions or sizes", choices=("end", "size"))
    axes: tuple[int, ...] | None = attr(None, "axes the lists speak of; none means the first ones")


@register_attrs("relay.attrs.SliceLikeAttrs")
class SliceLikeAttrs(Attrs):
    axes: tuple[int, ...] | None = attr(None, "axes to cut; none means all")


# Per axis: first position, number of positions, step.
Cut = tuple[Dim, Dim, int]
_INSIDE = "a slice must lie within its axis"


def cut(args: InferArgs, size: Dim, begin: Any, end: Any, step: int) -> Cut:
    """Numpy's slice of an axis.

    With a symbolic size, a constant end and a start of more than 1 from the end are clamped as
    numpy does; a constant start, one element, an end counted from the end and symbolic bounds are
    taken to lie within the axis, so that ``x[1:]`` has size n - 1, ``x[:1]`` size 1 and
    ``table[:n]`` size n.  What is taken so is guarded.
    """
    if all(isinstance(v, (int, np.integer)) for v in (size, begin, end)):
        window = range(*slice(int(begin), int(end), step).indices(int(size)))  # type: ignore[arg-type]
        return window.start, len(window), step
    if isinstance(size, dims.Any) and step == 1 and _is_whole(begin, end):
        return 0, size, step
    if step < 0:
        return _backwards(args, size, begin, end, step)
    first, last = _first(args, size, begin), _last(args, size, begin, end)
    if step == 1 and _far(end) and _is_negative(begin):
        # n - max(n - k, 0), said in the way that others compute it.
        return first, dims.minimum(size, -int(begin)), step
    args.at_most(first, last, _INSIDE)
    return first, (last - first + (step - 1)) // step, step


def _is_negative(bound: Any) -> bool:
    return isinstance(bound, (int, np.integer)) and int(bound) < -1


def _first(args: InferArgs, size: Dim, begin: Any) -> Dim:
    first = _counted(size, begin)
    if _is_negative(begin) or (isinstance(size, int) and _is_number(begin)):
        return dims.minimum(dims.maximum(first, 0), size)
    args.at_most(0, first, _INSIDE)
    return first


def _last(args: InferArgs, size: Dim, begin: Any, end: Any) -> Dim:
    if _far(end):
        return size
    last = _counted(size, end)
    one = isinstance(size, dims.SymExpr) and _is_number(begin) and _is_number(end)
    if _is_number(end) and end >= 0 and not (one and end == begin + 1):
        return dims.minimum(last, size)
    if isinstance(size, int) and _is_number(end):
        return dims.maximum(last, 0)
    args.at_most(last, size, _INSIDE)
    return last


def _backwards(args: InferArgs, size: Dim, begin: Any, end: Any, step: int) -> Cut:
    first = size - 1 if _far(begin) else _counted(size, begin)
    if _is_number(begin):
        first = dims.minimum(first, size - 1)
    else:
        args.at_most(first, size - 1, _INSIDE)
    last = _counted(size, end)
    if _is_number(end):
        last = -1 if end <= -FAR else dims.maximum(last, -1)
    args.at_most(last, first, _INSIDE)
    return first, (first - last + (-step - 1)) // -step, step


def _is_number(bound: Any) -> bool:
    return isinstance(bound, (int, np.integer))


def _is_whole(begin: Any, end: Any) -> bool:
    return isinstance(begin, int) and begin == 0 and _far(end)


def _far(bound: Any) -> bool:
    """Beyond any axis."""
    return isinstance(bound, (int, np.integer)) and int(bound) >= FAR


def _counted(size: Dim, bound: Any) -> Dim:
    """A bound as a position: a negative one, or one that is so for all sizes, from the end."""
    if _is_number(bound):
        return int(bound) if bound >= 0 else dims.add(size, int(bound))
    highest = dims.lower_bound(0 - bound)
    return dims.add(size, bound) if highest is not None and highest > 0 else bound


def _cuts(
    args: InferArgs, shape: Sequence[Dim], begin: Sequence[Any], end: Sequence[Any],
    strides: Sequence[Any], mode: str, axes: Sequence[int] | None,
) -> list[Cut]:  # fmt: skip
    """One cut per axis of the data; axes that are not mentioned stay whole."""
    listed = range(len(begin)) if axes is None else checked_axes(args, axes, len(shape))
    if len(begin) > len(shape) or len(end) != len(begin) or len(listed) != len(begin):
        args.fail("begin, end and axes must agree in length", expected=len(shape), found=len(begin))
    out: list[Cut] = [(0, d, 1) for d in shape]
    for j, a in enumerate(listed):
        step = int(strides[j]) if j < len(strides) and mode == "end" else 1
        if step == 0:
            args.fail("a stride is 0")
        stop = end[j]
        if mode == "size":
            stop = FAR if isinstance(stop, int) and stop < 0 else begin[j] + stop
        out[a] = cut(args, shape[a], begin[j], stop, step)
    return out


def _filled(
    attrs: StridedSliceAttrs, rank: int
) -> tuple[Sequence[Any], Sequence[Any], Sequence[int]]:
    """begin, end and strides with missing lists and entries filled."""
    count = max(len(attrs.begin or ()), len(attrs.end or ()))
    strides = attrs.strides or ()
    steps = [strides[j] if j < len(strides) else 1 for j in range(count)]
    begin = list(attrs.begin or ())
    begin += [FAR if s < 0 else 0 for s in steps[len(begin) :]]
    end = list(attrs.end or ())
    end += [-FAR - 1 if s < 0 else FAR for s in steps[len(end) :]]
    return begin, end, steps


def _static_cuts(args: InferArgs, attrs: StridedSliceAttrs, shape: Sequence[Dim]) -> list[Cut]:
    begin, end, strides = _filled(attrs, len(shape))
    return _cuts(args, shape, begin, end, strides, attrs.slice_mode, attrs.axes)


def _infer(args: InferArgs) -> Type:
    data = args.tensor()
    found = _static_cuts(args, args.attrs, data.shape)
    return TensorType([length for _, length, _ in found], data.dtype)


def apply_cuts(x: Array, found: Sequence[Cut]) -> Array:
    """The elements at the cuts' positions."""
    parts = []
    for first, length, step in found:
        begin, stop = int(first), int(first) + int(length) * step  # type: ignore[arg-type]
        parts.append(slice(begin, stop if stop >= 0 else None, step))
        if int(length) == 0:  # type: ignore[arg-type]
            parts[-1] = slice(0, 0)
    return x[tuple(parts)]


def _reference(attrs: StridedSliceAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x = inputs[0]
    return apply_cuts(x, _static_cuts(InferArgs("strided_slice", ()), attrs, x.shape))


def _read_cuts(x: te.Tensor, found: Sequence[Cut], out_type: Any) -> te.Tensor:
    starts = [extent(first) for first, _, _ in found]

    def body(*i: te.Expr) -> te.Expr:
        return x(*(at * c[2] + s for at, c, s in zip(i, found, starts, strict=True)))

    return te.compute(extents(out_type), body, "strided_slice")


def _compute(attrs: StridedSliceAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    x = ins[0]
    found = _static_cuts(InferArgs("strided_slice", ()), attrs, dims_of(x.shape))
    return _read_cuts(x, found, out_type)


def _value(args: InferArgs, out: Type, reference: Reference | None) -> Value:
    value = args.value(0)
    if value is None or any(v is None for v in (args.attrs.begin, args.attrs.end)):
        return None
    found = _static_cuts(args, args.attrs, value.shape)
    known = all(isinstance(part, int) for one in found for part in one)
    return apply_cuts(value, found) if known else None


def _samples(draw: Draw) -> Sample:
    dims_ = shape(draw, 1, 4, 0, 5)
    count = draw.integer(0, len(dims_))
    begin = [draw.integer(-7, 7) for _ in range(count)]
    end = [choice(draw, (draw.integer(-7, 7), FAR, -FAR - 1)) for _ in range(count)]
    attrs: dict[str, Any] = {"begin": begin, "end": end}
    if flag(draw):
        attrs["strides"] = [choice(draw, (1, 2, 3, -1, -2)) for _ in range(draw.integer(0, count))]
    if flag(draw):
        attrs["axes"] = [
            a - len(dims_) if flag(draw) else a for a in range(len(dims_) - count, len(dims_))
        ]
    if draw.integer(0, 4) == 0:
        attrs |= {"begin": [0] * count, "slice_mode": "size"}
        attrs["end"] = [choice(draw, (-1, 1, 2)) for _ in range(count)]
    return Sample((array(draw, dims_, choice(draw, FLOATS)),), attrs)


define(
    "strided_slice",
    attrs=StridedSliceAttrs,
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=4,
    infer=_infer,
    reference=_reference,
    compute=_compute,
    compare=Exact(),
    symbolic=_value,
    samples=_samples,
    doc="data[begin:end:strides] as numpy cuts it, per axis.",
)


def _dyn_cuts(args: InferArgs, shape: Sequence[Dim], lists: Sequence[Sequence[Any]]) -> list[Cut]:
    attrs = args.attrs
    return _cuts(args, shape, lists[0], lists[1], lists[2], attrs.slice_mode, attrs.axes)


def _infer_dyn(args: InferArgs) -> Type:
    data = args.tensor(0)
    lists = [args.value(i) for i in (1, 2, 3)]
    strides = lists[2]
    if strides is not None and not is_concrete(strides):
        strides = None
    if lists[0] is not None and lists[1] is not None and strides is not None:
        found = _dyn_cuts(args, data.shape, [list(v) for v in (lists[0], lists[1], strides)])
        return TensorType([length for _, length, _ in found], data.dtype)
    count = args.tensor(1).shape
    _check_lists(args, count)
    touched = range(len(data.shape))
    if args.attrs.axes is not None:
        touched = checked_axes(args, args.attrs.axes, len(data.shape))  # type: ignore[assignment]
    elif len(count) == 1 and isinstance(count[0], int):
        touched = range(count[0])
    return TensorType(
        [dims.Any() if i in touched else d for i, d in enumerate(data.shape)], data.dtype
    )


def _check_lists(args: InferArgs, count: Sequence[Dim]) -> None:
    """Begin and end have a number for every axis that is named, at most all of the data's."""
    axes, rank = args.attrs.axes, len(args.tensor(0).shape)
    if len(count) != 1 or dims.same(args.tensor(2).shape[0], count[0]) is False:
        args.fail("begin and end are vectors of one length", found=args.tensor(2))
    named = len(axes) if axes is not None else rank
    size = count[0]
    if isinstance(size, int) and (size > named or (axes is not None and size != named)):
        args.fail("begin, end and axes must agree in length", expected=named, found=size)


def _dyn_reference(attrs: StridedSliceAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    lists = [[int(v) for v in a] for a in inputs[1:4]]
    args = InferArgs("dyn.strided_slice", (), attrs)
    return apply_cuts(inputs[0], _dyn_cuts(args, inputs[0].shape, lists))


def _dyn_compute(attrs: StridedSliceAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    x, begin, _, strides = ins[:4]
    count, given = begin.shape[0], strides.shape[0]
    if not isinstance(count, int) or not isinstance(given, int):
        raise NoLoopsError("dyn.strided_slice: an unknown number of axes")
    listed = [a % x.ndim for a in attrs.axes] if attrs.axes is not None else list(range(count))

    def step(j: int) -> te.Expr:
        # Missing strides are 1, and in mode "size" none count.
        counts = j < given and attrs.slice_mode == "end"
        return te.cast(strides(j), "int64") if counts else te.const(1, "int64")

    def body(*i: te.Expr) -> te.Expr:
        at = list(i)
        for j, a in enumerate(listed):
            at[a] = _position(i[a], te.cast(begin(j), "int64"), step(j), x, a)
        return x(*at)

    return te.compute(extents(out_type), body, "strided_slice")


def _position(i: te.Expr, begin: te.Expr, step: te.Expr, x: te.Tensor, axis: int) -> te.Expr:
    """Where output position ``i`` reads, clamping the start as numpy does."""
    size = te.const(0, "int64") + x.shape[axis]
    start = te.select(te.compare("lt", begin, 0), begin + size, begin)
    top = te.select(te.compare("lt", step, 0), size - 1, size)
    return te.minimum(te.maximum(start, 0), top) + i * step


def _dyn_samples(draw: Draw) -> Sample:
    dims_ = shape(draw, 1, 3)
    begin = [draw.integer(-4, 4) for _ in dims_]
    end = [draw.integer(-4, 6) for _ in dims_]
    step = [choice(draw, (1, 2, -1)) for _ in dims_[: draw.integer(1, len(dims_))]]
    attrs: dict[str, Any] = {}
    if draw.integer(0, 3) == 0:
        attrs["slice_mode"] = "size"
        begin, end = [0 for _ in dims_], [choice(draw, (-1, 1, 2)) for _ in dims_]
    lists = (np.array(v, np.int64) for v in (begin, end, step))
    return Sample((array(draw, dims_), *lists), attrs)


define(
    "dyn.strided_slice",
    attrs=StridedSliceAttrs,
    inputs=("data", "begin", "end", "strides"),
    pattern=OpPattern.INJECTIVE,
    level=4,
    infer=_infer_dyn,
    reference=_dyn_reference,
    compute=_dyn_compute,
    compare=Exact(),
    symbolic=lambda args, out, reference: (
        apply_cuts(
            args.value(0),  # type: ignore[arg-type]
            _dyn_cuts(args, args.tensor(0).shape, [args.value(i) for i in (1, 2, 3)]),  # type: ignore[misc]
        )
        if all(args.ints(i) is not None for i in (1, 2, 3))
        else None
    ),
    samples=_dyn_samples,
    FResultBound=lambda args: (args.tensor(0).shape,),
    doc="strided_slice with bounds computed at run time.",
)


def _infer_like(args: InferArgs) -> Type:
    data, like = args.tensor(0), args.tensor(1)
    rank = len(data.shape)
    axes = args.attrs.axes or range(min(rank, len(like.shape)))
    out = list(data.shape)
    for a in checked_axes(args, list(axes), rank):
        if a >= len(like.shape):
            args.fail("shape_like has too few axes", expected=rank, found=len(like.shape))
        size, wanted = out[a], like.shape[a]
        if isinstance(size, int) and isinstance(wanted, int) and wanted > size:
            args.fail("an axis would grow", expected=size, found=wanted)
        out[a] = wanted
    return TensorType(out, data.dtype)


def _like_reference(attrs: SliceLikeAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    types = tuple(TensorType(x.shape, "int8") for x in inputs)
    kind = _infer_like(InferArgs("slice_like", types, attrs))
    assert isinstance(kind, TensorType)
    cut_to = tuple(slice(0, n) for n in static_sizes(kind.shape))
    return np.asarray(inputs[0][cut_to])


define(
    "slice_like",
    attrs=SliceLikeAttrs,
    inputs=("data", "shape_like"),
    pattern=OpPattern.INJECTIVE,
    level=10,
    infer=_infer_like,
    reference=_like_reference,
    compute=lambda attrs, ins, out: te.compute(extents(out), ins[0], "slice_like"),
    compare=Exact(),
    samples=lambda draw: Sample(
        (array(draw, (4, 5)), array(draw, shape(draw, 2, 2, 1, 4))),
        {"axes": choice(draw, (None, [0], [-1]))},
    ),
    doc="The front part of data in the size of another tensor.",
)


def _set_region(x: Array, lists: Sequence[Array]) -> tuple[slice, ...]:
    begin, end = lists[0], lists[1]
    step = lists[2] if len(lists) > 2 else np.ones_like(begin)
    parts = []
    for j in range(len(begin)):
        stop = int(end[j])
        backwards = int(step[j]) < 0 and stop < -x.shape[j]
        parts.append(slice(int(begin[j]), None if backwards else stop, int(step[j])))
    return tuple(parts)


def _set_reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
    out = inputs[0].copy()
    out[_set_region(out, inputs[2:])] = inputs[1]
    return out


define(
    "strided_set",
    inputs=("data", "v", "begin", "end", "strides"),
    pattern=OpPattern.INJECTIVE,
    level=4,
    infer=lambda args: args.tensor(0),
    reference=_set_reference,
    compare=Exact(),
    samples=lambda draw: Sample(
        (
            array(draw, (4, 5)),
            array(draw, (2, 2)),
            *(np.array(v, np.int64) for v in ([1, 0], [3, 4], [1, 2])),
        )
    ),
    doc="data with a strided region replaced by v.",
)


def strided_slice(
    data: Expr, begin: Any, end: Any, strides: Any = None, axes: Any = None, slice_mode: str = "end"
) -> Call:
    """Relay's builder; a bound given as an expression makes the dynamic op."""
    lists = [known_ints(v) for v in (begin, end, [1] if strides is None else strides)]
    if not any(isinstance(v, Expr) for v in lists):
        return call(
            "strided_slice", data, begin=lists[0], end=lists[1], strides=lists[2] or [1],
            slice_mode=slice_mode, axes=axes,
        )  # fmt: skip
    exprs = [v if isinstance(v, Expr) else const(np.asarray(v, np.int64)) for v in lists]
    return call("dyn.strided_slice", data, *exprs, slice_mode=slice_mode, axes=axes)


def slice_like(data: Expr, shape_like: Expr, axes: Any = None) -> Call:
    return call("slice_like", data, shape_like, axes=axes)


def strided_set(data: Expr, v: Expr, begin: Any, end: Any, strides: Any = None) -> Call:
    lists = [begin, end, [1] if strides is None else strides]
    exprs = [x if isinstance(x, Expr) else const(np.asarray(x, np.int32)) for x in lists]
    return call("strided_set", data, v, *exprs)
