"""Reductions over axes: sum, mean, prod, max, min, all, any, variance, argmax, argmin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ixion import te
from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.base.dim import Dim
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op.accumulate import accumulator, raised, widened
from ixion.op.axes import checked_axes, reduced_axes, static_sizes
from ixion.op.call import call
from ixion.op.compare import Accumulation, Exact
from ixion.op.define import InferArgs, OpPattern, Reference, define
from ixion.op.extent import Extent, extents, index, product
from ixion.op.rounding import Array, narrow, wide
from ixion.op.sample import FLOATS, Draw, Sample, Sampler, array, axes, choice, flag, shape
from ixion.op.value import Value


@register_attrs("relay.attrs.ReduceAttrs")
class ReduceAttrs(Attrs):
    axis: tuple[int, ...] | None = attr(None, "axes to reduce; none means all")
    keepdims: bool = attr(False, "keep reduced axes with size 1")
    exclude: bool = attr(False, "reduce the axes that are not listed")


@register_attrs("relay.attrs.ArgReduceAttrs")
class ArgReduceAttrs(Attrs):
    axis: tuple[int, ...] | None = attr(None, "axes to reduce; none means all")
    keepdims: bool = attr(False, "keep reduced axes with size 1")
    select_last_index: bool = attr(False, "among equals take the last")
    exclude: bool = attr(False, "reduce the axes that are not listed")


@register_attrs("relay.attrs.VarianceAttrs")
class VarianceAttrs(Attrs):
    axis: tuple[int, ...] | None = attr(None, "axes to reduce; none means all")
    keepdims: bool = attr(False, "keep reduced axes with size 1")
    exclude: bool = attr(False, "reduce the axes that are not listed")
    unbiased: bool = attr(False, "divide by the count minus one")


def gone(attrs: Any, rank: int) -> tuple[int, ...]:
    """The axes that disappear."""
    return reduced_axes(attrs.axis, attrs.exclude, rank)


def reduced_shape(attrs: Any, shape: Sequence[Dim]) -> list[Dim]:
    axes_gone = gone(attrs, len(shape))
    if attrs.keepdims:
        return [1 if i in axes_gone else d for i, d in enumerate(shape)]
    return [d for i, d in enumerate(shape) if i not in axes_gone]


def _infer(args: InferArgs) -> Type:
    data = args.tensor()
    if args.attrs.axis is not None:
        checked_axes(args, args.attrs.axis, len(data.shape))
    return TensorType(reduced_shape(args.attrs, data.shape), data.dtype)


def _reference(fold: Callable[..., Any]) -> Reference:
    def reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
        x = inputs[0]
        out = fold(widened(x), axis=gone(attrs, x.ndim), keepdims=attrs.keepdims)
        return (
            np.asarray(out).astype(x.dtype) if x.dtype.kind in "iu" else narrow(out, out_type.dtype)
        )

    return reference


def _select(fold: Callable[..., Any]) -> Reference:
    """max, min, all, any: no arithmetic, so on the array as it is."""

    def reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
        x = inputs[0]
        out = fold(x, axis=gone(attrs, x.ndim), keepdims=attrs.keepdims)
        return np.asarray(out).astype(x.dtype)

    return reference


def _mean(x: Array, axis: tuple[int, ...], keepdims: bool) -> Any:
    total = np.sum(x, axis=axis, keepdims=keepdims)
    count = int(np.prod([x.shape[a] for a in axis]))
    return np.trunc(total / count) if x.dtype.kind == "i" else total / count


def over(
    x: te.Tensor, attrs: Any, out_index: Sequence[te.Expr]
) -> tuple[list[te.ReduceAxis], list[te.Expr]]:
    """Reduction axes for ``x``, and the index that reads it in terms of them."""
    axes_gone = gone(attrs, x.ndim)
    folded, at = [], []
    kept = iter(out_index)
    for d, size in enumerate(x.shape):
        if d not in axes_gone:
            at.append(next(kept))
            continue
        if attrs.keepdims:
            next(kept)
        folded.append(te.reduce_axis(size, "rk"))
        at.append(folded[-1].var)
    return folded, at


def _count(attrs: Any, x: te.Tensor) -> te.Expr:
    return index(product(x.shape[a] for a in gone(attrs, x.ndim)))


def _compute(kind: str, mean: bool = False) -> Callable[..., te.Tensor]:
    def compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
        x = ins[0]
        dtype = accumulator(x.dtype) if kind in ("add", "mul") else x.dtype

        def body(*i: te.Expr) -> te.Expr:
            folded, at = over(x, attrs, i)
            value = raised(x(*at), dtype)
            total = te.reduce(kind, value, folded) if folded else value
            if mean:
                total = _quotient(total, te.cast(_count(attrs, x), dtype))
            return te.cast(total, out_type.dtype)

        return te.compute(extents(out_type), body, "reduce")

    return compute


def _quotient(total: te.Expr, count: te.Expr) -> te.Expr:
    if dtypes.is_float(total.dtype):
        return total / count
    return te.binary("truncdiv", total, count)


def _samples(types: Sequence[str], low: float = -3, high: float = 3) -> Sampler:
    def samples(draw: Draw) -> Sample:
        x = array(draw, shape(draw, 0), choice(draw, types), low, high)
        return Sample((x,), draw_axes(draw, x.ndim))

    return samples


def draw_axes(draw: Draw, rank: int) -> dict[str, Any]:
    """Attributes that every reduction has."""
    attrs: dict[str, Any] = {"keepdims": flag(draw)}
    if flag(draw):
        listed = axes(draw, rank)
        attrs["axis"] = [a - rank if flag(draw) else a for a in listed]
        attrs["exclude"] = flag(draw)
    return attrs


def _product_value(args: InferArgs, out: Type, reference: Reference | None) -> Value:
    """Prod of a shape vector: an element count."""
    value = args.value(0)
    if value is None or value.ndim != 1 or not isinstance(out, TensorType):
        return None
    if gone(args.attrs, 1) != (0,):
        return None
    made: Array = np.empty(static_sizes(out.shape), dtype=object)
    made.fill(dims.prod(value))
    return made


_NUMBERS = (*FLOATS, "int32", "int64")

# op: (reference, compute, compare, sample dtypes, doc)
_REDUCTIONS: dict[str, tuple[Reference, Callable[..., te.Tensor], Any, Sequence[str], str]] = {
    "sum": (_reference(np.sum), _compute("add"), Accumulation(), _NUMBERS, "Sum."),
    "prod": (_reference(np.prod), _compute("mul"), Accumulation(24), _NUMBERS, "Product."),
    "mean": (_reference(_mean), _compute("add", mean=True), Accumulation(), _NUMBERS,
             "Arithmetic mean; truncated for integers."),
    "max": (_select(np.max), _compute("max"), Exact(), _NUMBERS, "Largest element; NaN wins."),
    "min": (_select(np.min), _compute("min"), Exact(), _NUMBERS, "Smallest element; NaN wins."),
    "all": (_select(np.all), _compute("and"), Exact(), ("bool",), "Whether every element is true."),
    "any": (_select(np.any), _compute("or"), Exact(), ("bool",), "Whether any element is true."),
}  # fmt: skip

for _name, (_ref, _te, _compare, _types, _doc) in _REDUCTIONS.items():
    define(
        _name,
        attrs=ReduceAttrs,
        inputs=("data",),
        pattern=OpPattern.COMM_REDUCE,
        level=4,
        infer=_infer,
        reference=_ref,
        compute=_te,
        compare=_compare,
        symbolic=_product_value if _name == "prod" else None,
        samples=_samples(_types, *((0.5, 1.5) if _name == "prod" else (-3, 3))),
        doc=_doc,
    )


def _infer_variance(args: InferArgs) -> Type:
    args.tensor(1)
    return _infer(args)


def _variance_reference(attrs: VarianceAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x, mean = wide(inputs[0]), wide(inputs[1])
    axes_gone = gone(attrs, x.ndim)
    total = np.sum((x - mean) ** 2, axis=axes_gone, keepdims=attrs.keepdims)
    count = int(np.prod([x.shape[a] for a in axes_gone])) - int(attrs.unbiased)
    return narrow(np.true_divide(total, count), out_type.dtype)


def _variance_compute(attrs: VarianceAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    x, mean = ins
    dtype = accumulator(x.dtype)

    def body(*i: te.Expr) -> te.Expr:
        folded, at = over(x, attrs, i)
        centre = mean(
            *(te.const(0, "int64") if m == 1 else a for m, a in zip(mean.shape, at, strict=True))
        )
        apart = raised(x(*at), dtype) - raised(centre, dtype)
        total = te.sum(apart * apart, folded) if folded else apart * apart
        count = te.cast(_count(attrs, x), dtype) - te.const(float(attrs.unbiased), dtype)
        return te.cast(total / count, out_type.dtype)

    return te.compute(extents(out_type), body, "variance")


def _variance_scale(attrs: VarianceAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    size = (np.abs(wide(inputs[0])) + np.abs(wide(inputs[1]))) ** 2
    count = int(np.prod([size.shape[a] for a in gone(attrs, size.ndim)])) - int(attrs.unbiased)
    total = np.sum(size, axis=gone(attrs, size.ndim), keepdims=attrs.keepdims)
    return np.asarray(np.true_divide(total, count))


def _variance_samples(draw: Draw) -> Sample:
    x = array(draw, shape(draw, 1), choice(draw, FLOATS))
    attrs = draw_axes(draw, x.ndim) | {"unbiased": flag(draw)}
    axes_gone = reduced_axes(attrs.get("axis"), attrs.get("exclude", False), x.ndim)
    mean = np.mean(wide(x), axis=axes_gone, keepdims=True).astype(x.dtype)
    return Sample((x, mean), attrs)


define(
    "variance",
    attrs=VarianceAttrs,
    inputs=("data", "mean"),
    pattern=OpPattern.COMM_REDUCE,
    level=4,
    infer=_infer_variance,
    reference=_variance_reference,
    compute=_variance_compute,
    compare=Accumulation(16, _variance_scale),
    samples=_variance_samples,
    doc="Mean squared distance from a given mean, which keeps the reduced axes with size 1.",
)


def _infer_arg(args: InferArgs) -> Type:
    found = _infer(args)
    assert isinstance(found, TensorType)
    return TensorType(found.shape, "int32")


def _arg_reference(largest: bool) -> Reference:
    def reference(attrs: ArgReduceAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
        x = inputs[0]
        axes_gone = gone(attrs, x.ndim)
        kept = [d for d in range(x.ndim) if d not in axes_gone]
        rows = x.transpose(*kept, *axes_gone).reshape([x.shape[d] for d in kept] + [-1])
        best = np.argmax if largest else np.argmin
        if attrs.select_last_index:
            found = rows.shape[-1] - 1 - best(rows[..., ::-1], axis=-1)
        else:
            found = best(rows, axis=-1)
        return np.asarray(found).astype(np.int32).reshape(reduced_shape(attrs, x.shape))

    return reference


def _arg_compute(largest: bool) -> Callable[..., te.Tensor]:
    def compute(attrs: ArgReduceAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
        x = ins[0]

        def value(*i: te.Expr) -> te.Expr:
            folded, at = over(x, attrs, i)
            return te.reduce("max" if largest else "min", x(*at), folded)

        best = te.compute(extents(out_type), value, "best")

        def body(*i: te.Expr) -> te.Expr:
            folded, at = over(x, attrs, i)
            position = _flat_position(x, attrs, folded)
            here = te.compare("eq", x(*at), best(*i))
            if dtypes.is_float(x.dtype):
                here = te.logical_or(here, te.intrinsic("isnan", x(*at)))
            none = -1 if attrs.select_last_index else 2**62
            picked = te.select(here, position, te.const(none, "int64"))
            fold = te.max if attrs.select_last_index else te.min
            return te.cast(fold(picked, folded), out_type.dtype)

        return te.compute(extents(out_type), body, "arg")

    return compute


def _flat_position(x: te.Tensor, attrs: Any, folded: Sequence[te.ReduceAxis]) -> te.Expr:
    sizes: list[Extent] = [x.shape[a] for a in gone(attrs, x.ndim)]
    total: te.Expr = te.const(0, "int64")
    for axis, size in zip(folded, sizes, strict=True):
        total = total * size + axis.var
    return total


def _arg_samples(draw: Draw) -> Sample:
    x = array(draw, shape(draw, 1), choice(draw, ("float32", "int32")), -2, 2)
    x = np.round(x) if x.dtype.kind == "f" else x
    attrs = draw_axes(draw, x.ndim) | {"select_last_index": flag(draw)}
    if not reduced_axes(attrs.get("axis"), attrs.get("exclude", False), x.ndim):
        attrs["axis"], attrs["exclude"] = [0], False
    return Sample((x,), attrs)


for _name, _largest in (("argmax", True), ("argmin", False)):
    define(
        _name,
        attrs=ArgReduceAttrs,
        inputs=("data",),
        pattern=OpPattern.COMM_REDUCE,
        level=4,
        infer=_infer_arg,
        reference=_arg_reference(_largest),
        compute=_arg_compute(_largest),
        compare=Exact(),
        samples=_arg_samples,
        doc="int32 position of the extreme element, counted row-major over the reduced axes.",
    )


def _listed(axis: Any) -> Any:
    return [axis] if isinstance(axis, int) else axis


def _builder(name: str) -> Callable[..., Call]:
    def build(data: Expr, axis: Any = None, keepdims: bool = False, exclude: bool = False) -> Call:
        return call(name, data, axis=_listed(axis), keepdims=keepdims, exclude=exclude)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"A call of operator ``{name}``; ``axis`` may be an int."
    return build


def _arg_builder(name: str) -> Callable[..., Call]:
    def build(
        data: Expr,
        axis: Any = None,
        keepdims: bool = False,
        exclude: bool = False,
        select_last_index: bool = False,
    ) -> Call:
        return call(
            name, data, axis=_listed(axis), keepdims=keepdims, exclude=exclude,
            select_last_index=select_last_index,
        )  # fmt: skip

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"A call of operator ``{name}``; ``axis`` may be an int."
    return build


sum, prod, mean = map(_builder, ("sum", "prod", "mean"))
max, min, all, any = map(_builder, ("max", "min", "all", "any"))
argmax, argmin = map(_arg_builder, ("argmax", "argmin"))


def variance(
    data: Expr,
    axis: Any = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
    with_mean: Expr | None = None,
) -> Call:
    """Relay's builder: the mean is computed unless it is given."""
    centre = mean(data, axis, True, exclude) if with_mean is None else with_mean
    return call(
        "variance", data, centre, axis=_listed(axis), keepdims=keepdims, exclude=exclude,
        unbiased=unbiased,
    )  # fmt: skip
