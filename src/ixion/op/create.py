"""Tensors from nothing or from scalars: full, zeros, ones, arange, shape_of, trilu, meshgrid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ixion import te
from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.base.dim import Dim
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Constant, Expr, TupleWrapper, const
from ixion.ir.types import TensorType, TupleType, Type
from ixion.op.axes import shape_text
from ixion.op.call import as_tuple_expr, call, known_ints
from ixion.op.compare import Accumulation, Exact
from ixion.op.conversion import convert
from ixion.op.define import InferArgs, Inferred, Names, OpPattern, define
from ixion.op.extent import extents
from ixion.op.rounding import Array
from ixion.op.sample import Draw, Sample, array, choice, flag, shape
from ixion.op.value import Value


@register_attrs("relay.attrs.InitOpAttrs")
class InitOpAttrs(Attrs):
    shape: tuple[Dim, ...] | None = attr(None, "shape of the result")
    dtype: str | None = attr(None, "dtype of the result")


@register_attrs("relay.attrs.ArangeAttrs")
class ArangeAttrs(Attrs):
    start: Any = attr(None, "first value, as Relay stores it beside the argument")
    stop: Any = attr(None, "bound, as Relay stores it beside the argument")
    step: Any = attr(None, "step, as Relay stores it beside the argument")
    dtype: str = attr("float32", "dtype of the result")


@register_attrs("relay.attrs.ShapeOfAttrs")
class ShapeOfAttrs(Attrs):
    dtype: str = attr("int32", "dtype of the result")


@register_attrs("relay.attrs.NdarraySizeAttrs")
class NdarraySizeAttrs(Attrs):
    dtype: str = attr("int32", "dtype of the result")


@register_attrs("relay.attrs.MeshgridAttrs")
class MeshgridAttrs(Attrs):
    indexing: str = attr("ij", "ij, or xy with the first two axes exchanged", choices=("ij", "xy"))


@register_attrs("relay.attrs.TriluAttrs")
class TriluAttrs(Attrs):
    upper: bool = attr(True, "keep the upper triangle, else the lower")


def _dims_of(value: Array | None) -> list[Dim] | None:
    """A shape argument's value as dims."""
    return None if value is None else list(value.ravel())


def shape_at(args: InferArgs, index: int) -> list[Dim]:
    """The shape held by argument ``index``: its value, or unknown dims of a known number."""
    known = _dims_of(args.value(index))
    if known is not None:
        return known
    kind = args.tensor(index)
    if len(kind.shape) != 1 or not isinstance(kind.shape[0], int):
        args.fail("a shape must be a vector of known length", found=shape_text(kind.shape))
    return [dims.Any()] * kind.shape[0]


def _filled(shape: Sequence[Dim], dtype: str, value: Any) -> Value:
    """The symbolic value of a constant tensor."""
    if not dims.is_static(shape) or not dtype.startswith(("int", "uint", "bool")):
        return None
    if math.prod(shape) > 1024:
        return None
    return np.full(shape, value, dtype=object)


def _infer_full(args: InferArgs) -> Inferred:
    fill = args.tensor(0)
    shape = tuple(args.attrs.shape or ())
    dtype = args.attrs.dtype or fill.dtype
    value = args.value(0)
    return Inferred(
        TensorType(shape, dtype), None if value is None else _filled(shape, dtype, value.ravel()[0])
    )


def _full_reference(attrs: InitOpAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    shape = attrs.shape or () if len(inputs) == 1 else inputs[1]
    return np.full([int(d) for d in shape], convert(inputs[0].reshape(()), out_type.dtype))  # type: ignore[arg-type]


def _full_compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    fill = ins[0]
    zero = [te.const(0, "int64")] * fill.ndim
    return te.compute(extents(out_type), lambda *i: te.cast(fill(*zero), out_type.dtype), "full")


define(
    "full",
    attrs=InitOpAttrs,
    inputs=(("fill_value", "double"),),
    pattern=OpPattern.ELEMWISE,
    level=3,
    infer=_infer_full,
    reference=_full_reference,
    compute=_full_compute,
    compare=Exact(),
    samples=lambda draw: Sample(
        (array(draw, (), choice(draw, ("float32", "int64"))),), {"shape": shape(draw, 0)}
    ),
    doc="A tensor of one value.",
)


def _infer_dyn_full(args: InferArgs) -> Type:
    return TensorType(shape_at(args, 1), args.attrs.dtype or args.tensor(0).dtype)


define(
    "dyn.full",
    attrs=InitOpAttrs,
    inputs=(("fill_value", "double"), "shape"),
    pattern=OpPattern.ELEMWISE,
    level=3,
    infer=_infer_dyn_full,
    reference=_full_reference,
    compute=_full_compute,
    compare=Exact(),
    symbolic=lambda args, out, reference: (
        _filled(out.shape, out.dtype, args.value(0).ravel()[0])  # type: ignore[union-attr, attr-defined]
        if args.value(0) is not None else None
    ),
    samples=lambda draw: Sample((array(draw, ()), np.array(shape(draw, 1), np.int64))),
    doc="full with a shape computed at run time.",
)  # fmt: skip


def _constant(name: str, value: int) -> None:
    def infer(args: InferArgs) -> Inferred:
        dims_ = tuple(args.attrs.shape or ())
        dtype = args.attrs.dtype or "float32"
        return Inferred(TensorType(dims_, dtype), _filled(dims_, dtype, value))

    def infer_dyn(args: InferArgs) -> Inferred:
        dims_, dtype = shape_at(args, 0), args.attrs.dtype or "float32"
        return Inferred(TensorType(dims_, dtype), _filled(dims_, dtype, value))

    def reference(attrs: InitOpAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
        dims_ = inputs[0] if inputs else attrs.shape or ()
        return np.full([int(d) for d in dims_], value, dtypes.to_numpy(out_type.dtype))  # type: ignore[arg-type]

    def compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
        return te.compute(extents(out_type), lambda *i: te.const(value, out_type.dtype), name)

    def samples(draw: Draw) -> Sample:
        attrs = {"shape": shape(draw, 0), "dtype": choice(draw, ("float32", "int32", "bool"))}
        return Sample((), attrs)

    def dyn_samples(draw: Draw) -> Sample:
        return Sample((np.array(shape(draw, 1), np.int64),), {"dtype": "float32"})

    for prefix, inputs, rule, sampler in (
        ("", (), infer, samples), ("dyn.", ("shape",), infer_dyn, dyn_samples)
    ):  # fmt: skip
        define(
            prefix + name, attrs=InitOpAttrs, inputs=inputs, pattern=OpPattern.ELEMWISE, level=3,
            infer=rule, reference=reference, compute=compute, compare=Exact(), samples=sampler,
            doc=f"A tensor of {name}.",
        )  # fmt: skip


_constant("zeros", 0)
_constant("ones", 1)

define(
    "full_like",
    inputs=("data", ("fill_value", "double")),
    pattern=OpPattern.ELEMWISE,
    level=3,
    infer=lambda args: args.tensor(0),
    reference=lambda attrs, ins, out: np.full_like(ins[0], convert(ins[1].reshape(()), out.dtype)),
    compute=lambda attrs, ins, out: _full_compute(attrs, ins[1:], out),
    compare=Exact(),
    samples=lambda draw: Sample((array(draw, shape(draw)), array(draw, ()))),
    doc="A tensor like data filled with one value.",
)


def _arange_size(start: Any, stop: Any, step: Any) -> int:
    return max(math.ceil((float(stop) - float(start)) / float(step)), 0)


def _infer_arange(args: InferArgs) -> Inferred:
    dtype = args.attrs.dtype
    bounds = [args.value(i) for i in range(3)]
    if any(b is None for b in bounds):
        literals = [getattr(args.attrs, n) for n in ("start", "stop", "step")]
        if all(isinstance(b, Constant) and b.data.size == 1 for b in literals):
            size = _arange_size(*(b.data.item() for b in literals))
            return Inferred(TensorType((size,), dtype))
        return Inferred(TensorType((dims.Any(),), dtype))
    start, stop, step = (b.ravel()[0] for b in bounds)  # type: ignore[union-attr]
    if not isinstance(step, int) or step == 0:
        return Inferred(TensorType((dims.Any(),), dtype))
    room = stop - start if step > 0 else start - stop
    length = (room + (abs(step) - 1)) // abs(step)
    if isinstance(length, int):
        length = max(length, 0)
    args.at_most(0, length, "a range ends before it starts")
    value = None
    if isinstance(length, int) and length <= 1024 and isinstance(start, int):
        value = np.array([start + i * step for i in range(length)], dtype=object)
    return Inferred(TensorType((length,), dtype), value)


def _arange_reference(attrs: ArangeAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    start, stop, step = (v.reshape(()).astype(np.float64) for v in inputs)
    if all(v.dtype.kind in "iu" for v in inputs):
        start, stop, step = (int(v.ravel()[0]) for v in inputs)  # type: ignore[assignment]
    steps = np.arange(_arange_size(start, stop, step))
    return convert(np.asarray(start + steps * step), out_type.dtype)


def _arange_compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    zero = te.const(0, "int64")
    start, _, step = (x(*[zero] * x.ndim) for x in ins)
    return te.compute(
        extents(out_type),
        lambda i: te.cast(start + te.cast(i, start.dtype) * step, out_type.dtype),
        "arange",
    )


def _arange_scale(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
    start, stop, step = (abs(float(v.ravel()[0])) for v in inputs)
    size = _arange_reference(attrs, inputs, out_type)
    return np.full(size.shape, start + stop + step)


def _arange_samples(draw: Draw) -> Sample:
    dtype = choice(draw, ("int64", "int32", "float32"))
    step = choice(draw, (1, 2, 3, -1))
    start = draw.integer(-3, 3)
    bounds = (start, start + step * draw.integer(0, 5) + draw.integer(0, 1), step)
    return Sample(tuple(np.array(b, dtypes.to_numpy(dtype)) for b in bounds), {"dtype": dtype})


define(
    "arange",
    attrs=ArangeAttrs,
    inputs=(("start", "Expr"), ("end", "Expr"), ("step", "Expr")),
    pattern=OpPattern.OPAQUE,
    level=3,
    infer=_infer_arange,
    reference=_arange_reference,
    compute=_arange_compute,
    compare=Accumulation(4, _arange_scale),
    samples=_arange_samples,
    doc="start, start + step, ... below stop.",
)


def _infer_shape_of(args: InferArgs) -> Inferred:
    data = args.tensor()
    value = np.empty(len(data.shape), dtype=object)
    value[:] = data.shape
    return Inferred(TensorType((len(data.shape),), args.attrs.dtype), value)


define(
    "shape_of",
    attrs=ShapeOfAttrs,
    inputs=("data",),
    pattern=OpPattern.OPAQUE,
    level=10,
    infer=_infer_shape_of,
    reference=lambda attrs, ins, out: np.array(ins[0].shape, dtypes.to_numpy(out.dtype)),
    compare=Exact(),
    names=Names("Shape"),
    samples=lambda draw: Sample((array(draw, shape(draw, 0)),), {"dtype": "int64"}),
    doc="The sizes of the axes as a vector.",
)


def _infer_size(args: InferArgs) -> Inferred:
    value = np.empty((), dtype=object)
    value[()] = dims.prod(args.tensor().shape)
    return Inferred(TensorType((), args.attrs.dtype), value)


define(
    "ndarray_size",
    attrs=NdarraySizeAttrs,
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=10,
    infer=_infer_size,
    reference=lambda attrs, ins, out: np.array(ins[0].size, dtypes.to_numpy(out.dtype)),
    compare=Exact(),
    names=Names("Size"),
    samples=lambda draw: Sample((array(draw, shape(draw, 0)),), {"dtype": "int32"}),
    doc="The number of elements as a scalar.",
)


def _trilu_reference(attrs: TriluAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x, k = inputs[0], int(inputs[1].ravel()[0])
    return np.triu(x, k) if attrs.upper else np.tril(x, k)


def _trilu_compute(attrs: TriluAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    x, k = ins

    def body(*i: te.Expr) -> te.Expr:
        diagonal = i[-2] + te.cast(k(*[te.const(0, "int64")] * k.ndim), "int64")
        inside = te.compare("ge" if attrs.upper else "le", i[-1], diagonal)
        return te.select(inside, x(*i), te.const(0, x.dtype))

    return te.compute(extents(out_type), body, "trilu")


define(
    "trilu",
    attrs=TriluAttrs,
    inputs=("data", "k"),
    pattern=OpPattern.ELEMWISE,
    level=3,
    infer=lambda args: args.tensor(0),
    reference=_trilu_reference,
    compute=_trilu_compute,
    compare=Exact(),
    samples=lambda draw: Sample(
        (array(draw, shape(draw, 2, 3), choice(draw, ("float32", "int64", "bool"))),
         np.array(draw.integer(-3, 3), np.int64)),
        {"upper": flag(draw)},
    ),
    doc="Matrices with one triangle, above or below the k-th diagonal, set to 0.",
)  # fmt: skip


def _infer_meshgrid(args: InferArgs) -> Type:
    parts = args.fields()
    sizes = [t.shape[0] if t.shape else 1 for t in parts]
    if args.attrs.indexing == "xy" and len(sizes) > 1:
        sizes[0], sizes[1] = sizes[1], sizes[0]
    return TupleType([TensorType(sizes, t.dtype) for t in parts])


def _meshgrid_compute(attrs: MeshgridAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> Any:
    order = list(range(len(ins)))
    if attrs.indexing == "xy" and len(ins) > 1:
        order[0], order[1] = 1, 0

    def grid(x: te.Tensor, at: int, kind: Any) -> te.Tensor:
        return te.compute(extents(kind), lambda *i: x(i[at]) if x.ndim else x(), "meshgrid")

    return tuple(grid(x, at, t) for x, at, t in zip(ins, order, out_type.fields, strict=True))


define(
    "meshgrid",
    attrs=MeshgridAttrs,
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=3,
    infer=_infer_meshgrid,
    reference=lambda attrs, ins, out: tuple(np.meshgrid(*ins, indexing=attrs.indexing)),
    compute=_meshgrid_compute,
    compare=Exact(),
    samples=lambda draw: Sample(
        (tuple(array(draw, (draw.integer(1, 4),)) for _ in range(draw.integer(1, 3))),),
        {"indexing": choice(draw, ("ij", "xy"))},
    ),
    num_outputs=0,
    doc="Coordinate grids from vectors.",
)


def _init(name: str, shape: Any, dtype: str | None) -> Call:
    shape = known_ints(shape)
    if isinstance(shape, Expr):
        return call(f"dyn.{name}", shape, dtype=dtype or None)
    return call(name, shape=[shape] if isinstance(shape, int) else shape, dtype=dtype or None)


def zeros(shape: Any, dtype: str) -> Call:
    """Relay's builder; a shape given as an expression makes the dynamic op."""
    return _init("zeros", shape, dtype)


def ones(shape: Any, dtype: str) -> Call:
    """Relay's builder; a shape given as an expression makes the dynamic op."""
    return _init("ones", shape, dtype)


def full(fill_value: Expr, shape: Any = (), dtype: str = "") -> Call:
    """Relay's builder; a shape given as an expression makes the dynamic op."""
    shape = known_ints(shape)
    if isinstance(shape, Expr):
        return call("dyn.full", fill_value, shape, dtype=dtype or None)
    sizes = [shape] if isinstance(shape, int) else shape
    return call("full", fill_value, shape=sizes, dtype=dtype or None)


def full_like(data: Expr, fill_value: Expr) -> Call:
    return call("full_like", data, fill_value)


def arange(start: Any, stop: Any = None, step: Any = None, dtype: str = "float32") -> Call:
    """Relay's builder: with one bound it counts from 0, as Python's range."""
    if stop is None:
        start, stop = 0, start
    bounds = [const(0 if v is None else v, dtype) if not isinstance(v, Expr) else v
              for v in (start, stop, 1 if step is None else step)]  # fmt: skip
    return call("arange", *bounds, start=bounds[0], stop=bounds[1], step=bounds[2], dtype=dtype)


def shape_of(data: Expr, dtype: str = "int32") -> Call:
    return call("shape_of", data, dtype=dtype)


def ndarray_size(data: Expr, dtype: str = "int32") -> Call:
    return call("ndarray_size", data, dtype=dtype)


def trilu(data: Expr, k: Any, upper: bool = True) -> Call:
    return call("trilu", data, k if isinstance(k, Expr) else const(k, "int32"), upper=upper)


def meshgrid(data: Any, indexing: str = "ij") -> TupleWrapper:
    """Relay's builder; ``data`` is a list of vectors or a tuple expression."""
    parts = as_tuple_expr(data)
    fields = getattr(parts, "fields", None)
    count = len(fields) if fields is not None else len(parts.checked_type.fields)  # type: ignore[attr-defined]
    return TupleWrapper(call("meshgrid", parts, indexing=indexing), count)
