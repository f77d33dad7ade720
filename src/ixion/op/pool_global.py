"""Pooling whose windows follow from the sizes: global and adaptive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ixion import te
from ixion.base import dtype as dtypes
from ixion.base.dim import Dim
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op import layout as layouts
from ixion.op.accumulate import accumulator, raised, widened
from ixion.op.call import call, per_axis
from ixion.op.compare import Accumulation, Exact
from ixion.op.define import Infer, InferArgs, OpPattern, define
from ixion.op.extent import Extent, extents, index
from ixion.op.pool import check_pool_rank, lowest
from ixion.op.rounding import Array, narrow
from ixion.op.sample import Draw, Sample, Sampler, array, choice
from ixion.op.window import SPATIAL


@register_attrs("relay.attrs.GlobalPool2DAttrs")
class GlobalPool2DAttrs(Attrs):
    layout: str = attr("NCHW", "layout of the input")
    out_layout: str = attr("", "layout of the output; empty means the input's")


@register_attrs("relay.attrs.AdaptivePool1DAttrs")
class AdaptivePool1DAttrs(Attrs):
    output_size: tuple[Dim, ...] = attr((), "size per axis; empty keeps, 0 keeps one axis")
    layout: str = attr("NCW", "layout of the input")
    out_layout: str = attr("", "layout of the output; empty means the input's")


@register_attrs("relay.attrs.AdaptivePool2DAttrs")
class AdaptivePool2DAttrs(Attrs):
    output_size: tuple[Dim, ...] = attr((), "size per axis; empty keeps, 0 keeps one axis")
    layout: str = attr("NCHW", "layout of the input")
    out_layout: str = attr("", "layout of the output; empty means the input's")


@register_attrs("relay.attrs.AdaptivePool3DAttrs")
class AdaptivePool3DAttrs(Attrs):
    output_size: tuple[Dim, ...] = attr((), "size per axis; empty keeps, 0 keeps one axis")
    layout: str = attr("NCDHW", "layout of the input")
    out_layout: str = attr("", "layout of the output; empty means the input's")


def _plain(rank: int) -> str:
    return "NC" + SPATIAL[rank]


def _targets(attrs: Any, spatial: Sequence[Any]) -> list[Any]:
    """Output sizes per spatial axis; global pooling has no output_size and gives 1."""
    if isinstance(attrs, GlobalPool2DAttrs):
        return [1] * len(spatial)
    wanted = tuple(attrs.output_size)
    if len(wanted) == 1:
        wanted *= len(spatial)
    return [w or n for w, n in zip(wanted, spatial, strict=True)] if wanted else list(spatial)


def _infer(rank: int) -> Infer:
    def infer(args: InferArgs) -> Type:
        data, attrs = args.tensor(), args.attrs
        check_pool_rank(args, data, attrs.layout)
        x = layouts.to_plain(data.shape, attrs.layout, _plain(rank))
        size = getattr(attrs, "output_size", ())
        if len(size) not in (0, 1, rank):
            args.fail("output_size has one value per spatial axis", expected=rank, found=size)
        for one in size:
            if not isinstance(one, int):
                args.at_most(1, one, "a pooled axis is not empty")
        out = (*x[:2], *_targets(attrs, x[2:]))
        target = attrs.out_layout or attrs.layout
        return TensorType(layouts.from_plain(out, _plain(rank), target), data.dtype)

    return infer


def _segments(size: int, count: int) -> list[tuple[int, int]]:
    """Window i of ``count``: [floor(i * size / count), ceil((i + 1) * size / count))."""
    return [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def _reference(rank: int, average: bool) -> Callable[..., Array]:
    def reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
        x = layouts.array_to_plain(inputs[0], attrs.layout, _plain(rank))
        out = widened(x) if average else x
        cells = np.ones([1] * rank)
        for a, count in enumerate(_targets(attrs, x.shape[2:])):
            parts = _segments(x.shape[2 + a], count)
            fold = np.sum if average else np.max
            strips = [fold(out.take(range(s, e), axis=2 + a), axis=2 + a) for s, e in parts]
            out = np.stack(strips, axis=2 + a)
            line = np.array([e - s for s, e in parts])
            cells = cells * line.reshape([-1 if i == a else 1 for i in range(rank)])
        if average:
            mean = out / cells
            out = narrow(np.trunc(mean) if out.dtype.kind == "i" else mean, out_type.dtype)
        return layouts.array_from_plain(out, _plain(rank), attrs.out_layout or attrs.layout)

    return reference


def _longest(size: Extent, count: Extent) -> Extent:
    """A bound on window lengths, tight where sizes are numbers."""
    if isinstance(size, int) and isinstance(count, int):
        return max((e - s for s, e in _segments(size, count)), default=1)
    if isinstance(count, int) and count == 1:
        return size
    return size // index(count) + 2


def _compute(rank: int, average: bool) -> Callable[..., te.Tensor]:
    def compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
        plain = _plain(rank)
        read = layouts.reader(ins[0], attrs.layout, plain)
        sizes = layouts.to_plain(ins[0].shape, attrs.layout, plain)[2:]
        target = attrs.out_layout or attrs.layout
        counts = layouts.to_plain(extents(out_type), target, plain)[2:]
        dtype = accumulator(out_type.dtype) if average else out_type.dtype
        fill = te.const(0 if average else lowest(dtype), dtype)

        def body(n: te.Expr, c: te.Expr, *at: te.Expr) -> te.Expr:
            axes = [
                te.reduce_axis(_longest(s, m), "rk") for s, m in zip(sizes, counts, strict=True)
            ]
            where, guard, cells = [], None, te.const(1, "int64")
            for i, k, s, m in zip(at, axes, sizes, counts, strict=True):
                start, stop = i * s // m, ((i + 1) * s + (index(m) - 1)) // m
                where.append(start + k.var)
                cells = cells * (stop - start)
                if not (isinstance(s, int) and isinstance(m, int) and s % m == 0) and m != 1:
                    test = te.compare("lt", where[-1], stop)
                    guard = test if guard is None else te.logical_and(guard, test)
            value = raised(read(n, c, *where), dtype)
            value = value if guard is None else te.select(guard, value, fill)
            if not average:
                return te.max(value, axes)
            total, divisor = te.sum(value, axes), te.cast(cells, dtype)
            if dtypes.is_float(dtype):
                return te.cast(total / divisor, out_type.dtype)
            return te.cast(te.binary("truncdiv", total, divisor), out_type.dtype)

        return layouts.compute_as(extents(out_type), target, plain, body, "pool")

    return compute


def _samples(rank: int, is_global: bool) -> Sampler:
    def samples(draw: Draw) -> Sample:
        spatial = [draw.integer(1, 7) for _ in range(rank)]
        dtype = choice(draw, ("float32", "float64", "float16", "int32"))
        x = array(draw, (draw.integer(1, 2), draw.integer(1, 3), *spatial), dtype, -9, 9)
        attrs: dict[str, Any] = {}
        if not is_global:
            sizes = choice(draw, (0, 1, rank))
            attrs["output_size"] = [draw.integer(0, 4) for _ in range(sizes)]
        if rank == 2 and draw.integer(0, 2) == 0:
            attrs["layout"] = "NHWC"
            x = layouts.array_from_plain(x, "NCHW", "NHWC")
        return Sample((x,), attrs)

    return samples


_ADAPTIVE = {1: AdaptivePool1DAttrs, 2: AdaptivePool2DAttrs, 3: AdaptivePool3DAttrs}
_KINDS = [("nn.global_{}_pool2d", 2, 2, GlobalPool2DAttrs)] + [
    (f"nn.adaptive_{{}}_pool{r}d", r, 10, _ADAPTIVE[r]) for r in (1, 2, 3)
]

for _pattern, _rank, _level, _attrs in _KINDS:
    for _short, _average in (("max", False), ("avg", True)):
        define(
            _pattern.format(_short),
            attrs=_attrs,
            inputs=("data",),
            pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
            level=_level,
            infer=_infer(_rank),
            reference=_reference(_rank, _average),
            compute=_compute(_rank, _average),
            compare=Accumulation() if _average else Exact(),
            samples=_samples(_rank, _attrs is GlobalPool2DAttrs),
            doc="Mean of every window." if _average else "Largest element of every window.",
        )


def global_max_pool2d(data: Expr, layout: str = "NCHW", out_layout: str = "") -> Call:
    return call("nn.global_max_pool2d", data, layout=layout, out_layout=out_layout)


def global_avg_pool2d(data: Expr, layout: str = "NCHW", out_layout: str = "") -> Call:
    return call("nn.global_avg_pool2d", data, layout=layout, out_layout=out_layout)


def _adaptive(kind: str, rank: int) -> Callable[..., Call]:
    default = _plain(rank)

    def build(
        data: Expr, output_size: Any = None, layout: str = default, out_layout: str = ""
    ) -> Call:
        size = () if output_size is None else per_axis(output_size, rank)
        name = f"nn.adaptive_{kind}_pool{rank}d"
        return call(name, data, output_size=size, layout=layout, out_layout=out_layout)

    build.__name__ = build.__qualname__ = f"adaptive_{kind}_pool{rank}d"
    build.__doc__ = "Relay's builder; an int stands for every spatial axis, None keeps the sizes."
    return build


def _global(kind: str, rank: int) -> Callable[..., Call]:
    adaptive, default = _adaptive(kind, rank), _plain(rank)

    def build(data: Expr, layout: str = default, out_layout: str = "") -> Call:
        return adaptive(data, (1,) * rank, layout, out_layout)

    build.__name__ = build.__qualname__ = f"global_{kind}_pool{rank}d"
    build.__doc__ = "Relay's builder: an adaptive pool with output size 1."
    return build


adaptive_max_pool1d, adaptive_avg_pool1d = _adaptive("max", 1), _adaptive("avg", 1)
adaptive_max_pool2d, adaptive_avg_pool2d = _adaptive("max", 2), _adaptive("avg", 2)
adaptive_max_pool3d, adaptive_avg_pool3d = _adaptive("max", 3), _adaptive("avg", 3)
global_max_pool1d, global_avg_pool1d = _global("max", 1), _global("avg", 1)
global_max_pool3d, global_avg_pool3d = _global("max", 3), _global("avg", 3)
