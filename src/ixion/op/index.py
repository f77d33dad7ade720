"""Elements picked by index tensors: take, gather, gather_nd, adv_index, one_hot and their kin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ixion import te
from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.base.dim import Dim
from ixion.base.errors import KernelError
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op.axes import checked_axis
from ixion.op.broadcast import broadcast_shapes, read_broadcast
from ixion.op.call import as_tuple_expr, call, known_ints, unary_builder
from ixion.op.compare import Exact
from ixion.op.define import InferArgs, OpPattern, define, moves
from ixion.op.extent import NoLoopsError, extents, index
from ixion.op.reshapes import index_of_flat
from ixion.op.rounding import Array
from ixion.op.sample import FLOATS, Draw, Sample, array, axis, broadcastable, choice, flag, shape


@register_attrs("relay.attrs.TakeAttrs")
class TakeAttrs(Attrs):
    batch_dims: int = attr(0, "leading axes that data and indices share")
    axis: int | None = attr(None, "axis to pick from; none flattens the data")
    mode: str = attr("clip", "an index outside is clipped, wrapped, or (fast) an error",
                     choices=("clip", "wrap", "fast"))  # fmt: skip


@register_attrs("relay.attrs.GatherAttrs")
class GatherAttrs(Attrs):
    axis: int = attr(doc="axis to pick from")


@register_attrs("relay.attrs.GatherNDAttrs")
class GatherNDAttrs(Attrs):
    batch_dims: int = attr(0, "leading axes that data and indices share")
    index_rank: int | None = attr(None, "length of the first axis of indices, where it is unknown")


@register_attrs("relay.attrs.OneHotAttrs")
class OneHotAttrs(Attrs):
    depth: Dim = attr(1, "size of the new axis")
    axis: int = attr(-1, "place of the new axis")
    dtype: str | None = attr(None, "dtype of the output")


def check_integer(args: InferArgs, *positions: int) -> None:
    for i in positions:
        kind = args.tensor(i)
        if not (dtypes.is_integer(kind.dtype) or dtypes.is_bool(kind.dtype)):
            args.fail(f"argument {i} holds indices", expected="an integer dtype", found=kind.dtype)


def check_range(name: str, indices: Array, size: int, low: int = 0) -> Array:
    """Raises KernelError for an index outside [low, size)."""
    bad = (indices < low) | (indices >= size)
    if np.any(bad):
        at = int(np.flatnonzero(bad)[0])
        value = int(indices.ravel()[at])
        raise KernelError(f"{name}: index {value} is outside [{low}, {size})", index=at)
    return indices


def _infer_take(args: InferArgs) -> Type:
    data, indices, attrs = args.tensor(0), args.tensor(1), args.attrs
    check_integer(args, 1)
    if attrs.axis is None:
        return TensorType(indices.shape, data.dtype)
    at = checked_axis(args, attrs.axis, len(data.shape))
    batch = attrs.batch_dims + (len(indices.shape) if attrs.batch_dims < 0 else 0)
    if not 0 <= batch <= min(at, len(indices.shape)):
        args.fail("batch_dims must not exceed axis nor the indices' rank", found=attrs.batch_dims)
    shape = (*data.shape[:at], *indices.shape[batch:], *data.shape[at + 1 :])
    return TensorType(shape, data.dtype)


def _bounded(indices: Array, size: int, mode: str) -> Array:
    indices = indices.astype(np.int64)
    if mode == "clip":
        return np.asarray(np.clip(indices, 0, max(size - 1, 0)))
    if mode == "wrap":
        return indices % size
    return check_range("take", indices, size)


def _take_reference(attrs: TakeAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    data, indices = inputs
    if attrs.axis is None:
        return data.ravel()[_bounded(indices, data.size, attrs.mode)]
    at = attrs.axis % data.ndim
    batch = attrs.batch_dims % (indices.ndim + 1) if attrs.batch_dims < 0 else attrs.batch_dims
    picked = _bounded(indices, data.shape[at], attrs.mode)
    if batch == 0:
        return np.take(data, picked, axis=at)
    out = np.empty(
        (*data.shape[:at], *indices.shape[batch:], *data.shape[at + 1 :]), dtype=data.dtype
    )
    for lead in np.ndindex(*data.shape[:batch]):
        out[lead] = np.take(data[lead], picked[lead], axis=at - batch)
    return out


def _bounded_expr(position: te.Expr, size: Any, mode: str) -> te.Expr:
    position = te.cast(position, "int64")
    if mode == "clip":
        return te.minimum(te.maximum(position, 0), index(size) - 1)
    return position % size if mode == "wrap" else position


def _take_compute(attrs: TakeAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    data, indices = ins

    def from_flat(*i: te.Expr) -> te.Expr:
        size: Any = 1
        for d in data.shape:
            size = d * size
        return data(*index_of_flat(_bounded_expr(indices(*i), size, attrs.mode), data.shape))

    if attrs.axis is None:
        return te.compute(extents(out_type), from_flat, "take")
    at = attrs.axis % data.ndim
    batch = attrs.batch_dims % (indices.ndim + 1) if attrs.batch_dims < 0 else attrs.batch_dims
    width = indices.ndim - batch

    def body(*i: te.Expr) -> te.Expr:
        where = indices(*i[:batch], *i[at : at + width])
        position = _bounded_expr(where, data.shape[at], attrs.mode)
        return data(*i[:at], position, *i[at + width :])

    return te.compute(extents(out_type), body, "take")


def _take_samples(draw: Draw) -> Sample:
    data = array(draw, shape(draw, 1), choice(draw, (*FLOATS, "int64")))
    mode = choice(draw, ("clip", "wrap", "fast"))
    if flag(draw):
        at = axis(draw, data.ndim)
        size = data.shape[at]
        batch = draw.integer(0, at % data.ndim)
        dims_ = (*data.shape[:batch], *shape(draw, 0, 2))
        attrs: dict[str, Any] = {"axis": at, "batch_dims": batch}
    else:
        size, dims_, attrs = data.size, shape(draw, 0, 3), {}
    low, high = (0, size - 1) if mode == "fast" else (-size, 2 * size)
    return Sample((data, array(draw, dims_, choice(draw, ("int64", "int32")), low, high)),
                  {**attrs, "mode": mode})  # fmt: skip


define(
    "take",
    attrs=TakeAttrs,
    inputs=("data", "indices"),
    pattern=OpPattern.INJECTIVE,
    level=3,
    infer=_infer_take,
    reference=_take_reference,
    compute=_take_compute,
    compare=Exact(),
    symbolic=moves(1),
    samples=_take_samples,
    doc="Slices of data along an axis, picked by an index tensor of any rank.",
)


def _infer_gather(args: InferArgs) -> Type:
    data, indices = args.tensor(0), args.tensor(1)
    check_integer(args, 1)
    if len(data.shape) != len(indices.shape):
        args.fail("data and indices have one rank", expected=len(data.shape), found=indices)
    checked_axis(args, args.attrs.axis, len(data.shape))
    return TensorType(indices.shape, data.dtype)


def _gather_reference(attrs: GatherAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    data, indices = inputs
    at = attrs.axis % data.ndim
    picked = check_range("gather", indices.astype(np.int64), data.shape[at])
    trimmed = data[
        tuple(slice(None) if a == at else slice(0, n) for a, n in enumerate(picked.shape))
    ]
    return np.take_along_axis(trimmed, picked, axis=at)


def _gather_compute(attrs: GatherAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    data, indices = ins
    at = attrs.axis % data.ndim

    def body(*i: te.Expr) -> te.Expr:
        return data(*i[:at], te.cast(indices(*i), "int64"), *i[at + 1 :])

    return te.compute(extents(out_type), body, "gather")


def _gather_samples(draw: Draw) -> Sample:
    data = array(draw, shape(draw, 1), choice(draw, FLOATS))
    at = axis(draw, data.ndim)
    dims_ = [draw.integer(1, n) for n in data.shape]
    dims_[at] = draw.integer(1, 5)
    return Sample((data, array(draw, dims_, "int64", 0, data.shape[at] - 1)), {"axis": at})


define(
    "gather",
    attrs=GatherAttrs,
    inputs=("data", "indices"),
    pattern=OpPattern.INJECTIVE,
    level=3,
    infer=_infer_gather,
    reference=_gather_reference,
    compute=_gather_compute,
    compare=Exact(),
    symbolic=moves(1),
    samples=_gather_samples,
    doc="Elements along an axis, one index per output element.",
)


def _index_depth(args: InferArgs, indices: TensorType) -> int:
    first: Dim | None = indices.shape[0] if indices.shape else None
    if isinstance(first, int):
        return first
    if args.attrs.index_rank is None:
        args.fail("the first axis of indices must have a known size", found=indices)
    return int(args.attrs.index_rank)


def _infer_gather_nd(args: InferArgs) -> Type:
    data, indices = args.tensor(0), args.tensor(1)
    check_integer(args, 1)
    depth, batch = _index_depth(args, indices), args.attrs.batch_dims
    if depth + batch > len(data.shape):
        args.fail("indices are deeper than the data", expected=len(data.shape), found=depth + batch)
    return TensorType((*indices.shape[1:], *data.shape[depth + batch :]), data.dtype)


def _gather_nd_reference(attrs: GatherNDAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    data, indices = inputs
    batch = attrs.batch_dims
    grid = np.indices(indices.shape[1:], sparse=True)
    rows = [
        check_range("gather_nd", indices[m].astype(np.int64), data.shape[batch + m])
        for m in range(indices.shape[0])
    ]
    return np.asarray(data[(*grid[:batch], *rows)])


def _gather_nd_compute(
    attrs: GatherNDAttrs, ins: tuple[te.Tensor, ...], out_type: Any
) -> te.Tensor:
    data, indices = ins
    batch, depth = attrs.batch_dims, indices.shape[0]
    if not isinstance(depth, int):
        raise NoLoopsError("gather_nd: an unknown number of index rows")
    lead = indices.ndim - 1

    def body(*i: te.Expr) -> te.Expr:
        rows = [te.cast(indices(m, *i[:lead]), "int64") for m in range(depth)]
        return data(*i[:batch], *rows, *i[lead:])

    return te.compute(extents(out_type), body, "gather_nd")


def draw_rows(draw: Draw, sizes: Sequence[int], dims_: Sequence[int]) -> Array:
    """Index rows (len(sizes), *dims_), row m inside [0, sizes[m])."""
    rows = [array(draw, dims_, "int64", 0, n - 1) for n in sizes]
    return np.stack(rows) if rows else np.zeros((0, *dims_), np.int64)


def _gather_nd_samples(draw: Draw) -> Sample:
    data = array(draw, shape(draw, 2), choice(draw, FLOATS))
    batch = draw.integer(0, 1)
    depth = draw.integer(1, data.ndim - batch)
    dims_ = (*data.shape[:batch], *shape(draw, 0, 2))
    return Sample((data, draw_rows(draw, data.shape[batch : batch + depth], dims_)),
                  {"batch_dims": batch})  # fmt: skip


define(
    "gather_nd",
    attrs=GatherNDAttrs,
    inputs=("data", "indices"),
    pattern=OpPattern.INJECTIVE,
    level=3,
    infer=_infer_gather_nd,
    reference=_gather_nd_reference,
    compute=_gather_nd_compute,
    compare=Exact(),
    samples=_gather_nd_samples,
    doc="Slices of data picked by index tuples that run along the first axis of indices.",
)


def _infer_adv_index(args: InferArgs) -> Type:
    data, *indices = args.fields()
    if len(indices) > len(data.shape):
        args.fail("more index tensors than axes", expected=len(data.shape), found=len(indices))
    shape = broadcast_shapes(args, *(t.shape for t in indices))
    return TensorType((*shape, *data.shape[len(indices) :]), data.dtype)


def _adv_index_reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
    data, *indices = inputs
    rows = [
        check_range("adv_index", i.astype(np.int64), data.shape[a], -data.shape[a])
        for a, i in enumerate(indices)
    ]
    return data[tuple(rows)]


def _adv_index_compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    data, *indices = ins
    shape = extents(out_type)
    lead = len(shape) - (data.ndim - len(indices))

    def body(*i: te.Expr) -> te.Expr:
        rows = []
        for a, one in enumerate(indices):
            at = te.cast(read_broadcast(one, i[:lead], shape[:lead]), "int64")
            rows.append(te.select(te.compare("lt", at, 0), at + data.shape[a], at))
        return data(*rows, *i[lead:])

    return te.compute(shape, body, "adv_index")


def _adv_index_samples(draw: Draw) -> Sample:
    data = array(draw, shape(draw, 1, 3), choice(draw, FLOATS))
    full = shape(draw, 1, 2)
    count = draw.integer(1, data.ndim)
    indices = [
        array(draw, broadcastable(draw, full), "int64", -n, n - 1) for n in data.shape[:count]
    ]
    return Sample(((data, *indices),))


define(
    "adv_index",
    inputs=("inputs",),
    pattern=OpPattern.INJECTIVE,
    level=3,
    infer=_infer_adv_index,
    reference=_adv_index_reference,
    compute=_adv_index_compute,
    compare=Exact(),
    samples=_adv_index_samples,
    doc="data[i0, i1, ...] with index tensors that broadcast, as in numpy.",
)


def _infer_one_hot(args: InferArgs) -> Type:
    indices, attrs = args.tensor(0), args.attrs
    at = checked_axis(args, attrs.axis, len(indices.shape) + 1)
    shape = (*indices.shape[:at], attrs.depth, *indices.shape[at:])
    return TensorType(shape, attrs.dtype or args.tensor(1).dtype)


def one_hot_at(indices: Array, on: Array, off: Array, depth: int, axis: int) -> Array:
    """On where the position along the new axis is the index, else off."""
    at = axis % (indices.ndim + 1)
    line = [1] * (indices.ndim + 1)
    line[at] = depth
    here = np.expand_dims(indices, at) == np.arange(depth).reshape(line)
    return np.where(here, on, off)


def _one_hot_reference(attrs: OneHotAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    indices, on, off = inputs
    dtype = dtypes.to_numpy(out_type.dtype)
    depth = dims.evaluate(attrs.depth, {})
    return one_hot_at(indices, on.astype(dtype), off.astype(dtype), depth, attrs.axis)


def _one_hot_compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    indices, on, off = ins[:3]
    at = attrs.axis % (indices.ndim + 1)

    def body(*i: te.Expr) -> te.Expr:
        here = te.compare("eq", te.cast(indices(*i[:at], *i[at + 1 :]), "int64"), i[at])
        return te.select(here, te.cast(on(), out_type.dtype), te.cast(off(), out_type.dtype))

    return te.compute(extents(out_type), body, "one_hot")


def _one_hot_samples(draw: Draw) -> Sample:
    indices = array(draw, shape(draw, 0, 3), choice(draw, ("int32", "int64")), -1, 4)
    dtype = choice(draw, ("float32", "int32"))
    pair = (array(draw, (), dtype), array(draw, (), dtype))
    attrs = {"depth": draw.integer(1, 4), "axis": axis(draw, indices.ndim + 1), "dtype": dtype}
    return Sample((indices, *pair), attrs)


define(
    "one_hot",
    attrs=OneHotAttrs,
    inputs=("indices", ("on_value", "Expr"), ("off_value", "Expr")),
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=10,
    infer=_infer_one_hot,
    reference=_one_hot_reference,
    compute=_one_hot_compute,
    compare=Exact(),
    samples=_one_hot_samples,
    doc="A new axis that holds on_value at the index and off_value elsewhere.",
)


def _infer_dyn_one_hot(args: InferArgs) -> Type:
    indices, attrs, depth = args.tensor(0), args.attrs, args.value(3)
    at = checked_axis(args, attrs.axis, len(indices.shape) + 1)
    size = dims.Any() if depth is None else depth.ravel()[0]
    shape = (*indices.shape[:at], size, *indices.shape[at:])
    return TensorType(shape, attrs.dtype or args.tensor(1).dtype)


def _dyn_one_hot_reference(attrs: OneHotAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    indices, on, off, depth = inputs
    dtype = dtypes.to_numpy(out_type.dtype)
    size = int(depth.ravel()[0])
    return one_hot_at(indices, on.astype(dtype), off.astype(dtype), size, attrs.axis)


def _dyn_one_hot_samples(draw: Draw) -> Sample:
    made = _one_hot_samples(draw)
    depth = np.asarray(made.attrs.pop("depth"), np.int64)
    return Sample((*made.args, depth), made.attrs)


define(
    "dyn.one_hot",
    attrs=OneHotAttrs,
    inputs=("indices", ("on_value", "Expr"), ("off_value", "Expr"), ("depth", "Expr")),
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=10,
    infer=_infer_dyn_one_hot,
    reference=_dyn_one_hot_reference,
    compute=_one_hot_compute,
    compare=Exact(),
    samples=_dyn_one_hot_samples,
    doc="one_hot with a depth computed at run time.",
)


def _unravel(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
    flat, sizes = inputs
    rows = np.unravel_index(flat.astype(np.int64), [int(n) for n in sizes])
    return np.stack(rows).astype(flat.dtype)


def _infer_unravel(args: InferArgs) -> Type:
    flat, sizes = args.tensor(0), args.tensor(1)
    return TensorType((sizes.shape[0], *flat.shape), flat.dtype)


define(
    "unravel_index",
    inputs=("data", "shape"),
    pattern=OpPattern.INJECTIVE,
    level=3,
    infer=_infer_unravel,
    reference=_unravel,
    compare=Exact(),
    samples=lambda draw: Sample(
        (array(draw, shape(draw, 0, 1), "int64", 0, 11), np.array([3, 4], np.int64))
    ),
    doc="Flat positions as one row of coordinates per axis.",
)


def _invert(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
    out = np.empty_like(inputs[0])
    out[inputs[0]] = np.arange(len(out), dtype=out.dtype)
    return out


define(
    "invert_permutation",
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=1,
    infer=lambda args: args.tensor(),
    reference=_invert,
    compare=Exact(),
    samples=lambda draw: Sample((np.argsort(array(draw, (draw.integer(1, 6),))).astype(np.int64),)),
    doc="Where each position of a permutation went.",
)


def take(
    data: Expr, indices: Expr, axis: int | None = None, batch_dims: int = 0, mode: str = "clip"
) -> Call:
    return call("take", data, indices, axis=axis, batch_dims=batch_dims, mode=mode)


def gather(data: Expr, axis: int, indices: Expr) -> Call:
    return call("gather", data, indices, axis=axis)


def gather_nd(
    data: Expr, indices: Expr, batch_dims: int = 0, index_rank: int | None = None
) -> Call:
    return call("gather_nd", data, indices, batch_dims=batch_dims, index_rank=index_rank)


def adv_index(inputs: Expr | Sequence[Expr]) -> Call:
    return call("adv_index", as_tuple_expr(inputs))


def one_hot(
    indices: Expr, on_value: Expr, off_value: Expr, depth: Any, axis: int, dtype: str
) -> Call:
    """Relay's builder; a depth given as an expression makes the dynamic op."""
    depth = known_ints(depth)
    if isinstance(depth, Expr):
        return call("dyn.one_hot", indices, on_value, off_value, depth, axis=axis, dtype=dtype)
    return call("one_hot", indices, on_value, off_value, depth=depth, axis=axis, dtype=dtype)


def unravel_index(indices: Expr, shape: Expr) -> Call:
    return call("unravel_index", indices, shape)


invert_permutation = unary_builder("invert_permutation")
