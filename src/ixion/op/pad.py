"""Padding: nn.pad, nn.mirror_pad, nn.dilate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ixion import te
from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.base.dim import Dim
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr, const
from ixion.ir.types import TensorType, Type
from ixion.op.call import call, known_ints
from ixion.op.compare import Exact
from ixion.op.conversion import cast_expr, convert
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.extent import Extent, extent, extents, index
from ixion.op.rounding import Array
from ixion.op.sample import FLOATS, Draw, Sample, array, choice, shape

_MODES = ("constant", "edge", "reflect")


@register_attrs("relay.attrs.PadAttrs")
class PadAttrs(Attrs):
    pad_width: tuple[tuple[Dim, ...], ...] = attr(doc="(before, after) per axis")
    pad_mode: str = attr("constant", "what the padding holds", choices=_MODES)


@register_attrs("relay.attrs.MirrorPadAttrs")
class MirrorPadAttrs(Attrs):
    mode: str = attr("SYMMETRIC", "whether the edge itself is repeated",
                     choices=("SYMMETRIC", "REFLECT"))  # fmt: skip
    pad_width: tuple[tuple[int, ...], ...] = attr(doc="(before, after) per axis")


@register_attrs("relay.attrs.DilateAttrs")
class DilateAttrs(Attrs):
    strides: tuple[int, ...] = attr((1, 1), "distance between elements per axis")
    dilation_value: float = attr(0.0, "what fills the gaps")


def _padded_shape(args: InferArgs, shape: Sequence[Dim], widths: Sequence[Any]) -> list[Dim]:
    if len(widths) != len(shape) or any(len(w) != 2 for w in widths):
        args.fail("pad_width has a pair per axis", expected=len(shape), found=widths)
    return [d + w[0] + w[1] for d, w in zip(shape, widths, strict=True)]


def _check_reflection(
    args: InferArgs, shape: Sequence[Dim], widths: Sequence[Any], most: int
) -> None:
    """Reflections reach at most the far edge: ``most`` elements beyond the padding's size."""
    for d, w in zip(shape, widths, strict=True):
        for n in w:
            args.at_most(n, dims.add(d, -most), "a reflection is wider than the axis")


def _infer_pad(args: InferArgs) -> Type:
    data, attrs = args.tensor(0), args.attrs
    for width in (n for w in attrs.pad_width for n in w if not isinstance(n, int)):
        if attrs.pad_mode != "constant":
            args.at_most(0, width, "padding grows the data")
    if attrs.pad_mode == "reflect":
        _check_reflection(args, data.shape, attrs.pad_width, 1)
    return TensorType(_padded_shape(args, data.shape, attrs.pad_width), data.dtype)


def pad_numpy(x: Array, widths: Sequence[Any], mode: str, value: Any) -> Array:
    """``x`` with (before, after) ``widths``; negative ones crop in constant mode."""
    pairs = [(int(w[0]), int(w[1])) for w in widths]
    if mode != "constant":
        return np.asarray(np.pad(x, pairs, mode=mode)) if x.ndim else x  # type: ignore[call-overload]
    fill = convert(np.asarray(value).reshape(()), dtypes.from_numpy(x.dtype))
    crop = tuple(
        slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pairs, x.shape, strict=True)
    )
    wide = [(max(a, 0), max(b, 0)) for a, b in pairs]
    return np.pad(x[crop], wide, constant_values=fill) if x.ndim else x


def _pad_reference(attrs: PadAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    widths: Any = attrs.pad_width if len(inputs) == 2 else inputs[1]
    return pad_numpy(inputs[0], widths, attrs.pad_mode, inputs[-1])


def _mirrored(at: te.Expr, size: Extent, mode: str) -> te.Expr:
    """An index outside [0, size) moved inside."""
    last = index(size) - 1
    if mode == "edge":
        return te.minimum(te.maximum(at, 0), last)
    # The edge element is its own mirror image for reflect, and is repeated for symmetric.
    extra = 0 if mode == "reflect" else 1
    low = te.select(te.compare("lt", at, 0), te.const(0, "int64") - at - extra, at)
    return te.select(te.compare("gt", low, last), last * 2 - low + extra, low)


def _pad_body(
    x: te.Tensor, before: Sequence[Any], out: Sequence[Extent], mode: str, fill: te.Expr | None
) -> te.Tensor:
    def body(*i: te.Expr) -> te.Expr:
        at = [a - b for a, b in zip(i, before, strict=True)]
        if fill is None:
            return x(*(_mirrored(a, n, mode) for a, n in zip(at, x.shape, strict=True)))
        inside: te.Expr | None = None
        for a, n, b, full in zip(at, x.shape, before, out, strict=True):
            for test in _bounds(a, n, b, full):
                inside = test if inside is None else te.logical_and(inside, test)
        return x(*at) if inside is None else te.select(inside, x(*at), fill)

    return te.compute(out, body, "pad")


def _bounds(at: te.Expr, size: Extent, before: Any, full: Extent) -> list[te.Expr]:
    """Tests that ``at`` is inside, as far as they can fail."""
    out = []
    if not (isinstance(before, int) and before <= 0):
        out.append(te.compare("ge", at, 0))
    if not all(isinstance(v, int) for v in (size, before, full)) or full - before > size:
        out.append(te.compare("lt", at, size))
    return out


def _pad_compute(attrs: PadAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    x, value = ins
    zero = [te.const(0, "int64")] * value.ndim
    fill = cast_expr(value(*zero), x.dtype) if attrs.pad_mode == "constant" else None
    before = [extent(w[0]) for w in attrs.pad_width]
    return _pad_body(x, before, extents(out_type), attrs.pad_mode, fill)


def _pad_samples(draw: Draw) -> Sample:
    mode = choice(draw, _MODES)
    dims_ = shape(draw, 1, 4, 2 if mode == "reflect" else 1, 5)
    most = min(dims_) - 1 if mode == "reflect" else 3
    low = -1 if mode == "constant" and min(dims_) > 1 else 0
    widths = [(draw.integer(low, most), draw.integer(0, most)) for _ in dims_]
    x = array(draw, dims_, choice(draw, (*FLOATS, "int32")))
    return Sample((x, array(draw, (), x.dtype.name)), {"pad_width": widths, "pad_mode": mode})


define(
    "nn.pad",
    attrs=PadAttrs,
    inputs=("data", "pad_val"),
    pattern=OpPattern.INJECTIVE,
    level=2,
    infer=_infer_pad,
    reference=_pad_reference,
    compute=_pad_compute,
    compare=Exact(),
    samples=_pad_samples,
    doc="Elements added around data: a value, the edge, or a reflection. Constant ones may crop.",
)


def _infer_dyn_pad(args: InferArgs) -> Type:
    data, widths = args.tensor(0), args.value(1)
    if widths is None:
        return TensorType([dims.Any()] * len(data.shape), data.dtype)
    return TensorType(_padded_shape(args, data.shape, list(widths.reshape(-1, 2))), data.dtype)


def _dyn_pad_compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    x, widths, value = ins
    zero = [te.const(0, "int64")] * value.ndim
    fill = cast_expr(value(*zero), x.dtype) if attrs.pad_mode == "constant" else None
    before = [te.cast(widths(a, 0), "int64") for a in range(x.ndim)]
    return _pad_body(x, before, extents(out_type), attrs.pad_mode, fill)


def _dyn_pad_samples(draw: Draw) -> Sample:
    made = _pad_samples(draw)
    widths = np.array(made.attrs["pad_width"], np.int64)
    return Sample(
        (made.args[0], widths, made.args[1]),
        {"pad_width": (), "pad_mode": made.attrs["pad_mode"]},
    )


define(
    "dyn.nn.pad",
    attrs=PadAttrs,
    inputs=("data", "pad_width", ("pad_val", "double")),
    pattern=OpPattern.INJECTIVE,
    level=2,
    infer=_infer_dyn_pad,
    reference=_pad_reference,
    compute=_dyn_pad_compute,
    compare=Exact(),
    samples=_dyn_pad_samples,
    doc="nn.pad with widths computed at run time.",
)


def _infer_mirror(args: InferArgs) -> Type:
    data, attrs = args.tensor(), args.attrs
    out = _padded_shape(args, data.shape, attrs.pad_width)
    _check_reflection(args, data.shape, attrs.pad_width, int(attrs.mode == "REFLECT"))
    return TensorType(out, data.dtype)


def _mirror_samples(draw: Draw) -> Sample:
    mode = choice(draw, ("SYMMETRIC", "REFLECT"))
    dims_ = shape(draw, 1, 4, 2, 5)
    widths = [(draw.integer(0, n - 1), draw.integer(0, n - 1)) for n in dims_]
    return Sample((array(draw, dims_, choice(draw, FLOATS)),), {"mode": mode, "pad_width": widths})


define(
    "nn.mirror_pad",
    attrs=MirrorPadAttrs,
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=2,
    infer=_infer_mirror,
    reference=lambda attrs, ins, out: np.pad(ins[0], attrs.pad_width, mode=attrs.mode.lower()),
    compute=lambda attrs, ins, out: _pad_body(
        ins[0], [w[0] for w in attrs.pad_width], extents(out), attrs.mode.lower(), None
    ),
    compare=Exact(),
    samples=_mirror_samples,
    doc="Mirror images of data around it, with or without the edge repeated.",
)


def _infer_dilate(args: InferArgs) -> Type:
    data, strides = args.tensor(), args.attrs.strides
    if len(strides) != len(data.shape):
        args.fail("one stride per axis", expected=len(data.shape), found=strides)
    return TensorType(
        [(d - 1) * s + 1 for d, s in zip(data.shape, strides, strict=True)], data.dtype
    )


def _dilate_reference(attrs: DilateAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x = inputs[0]
    size = [(d - 1) * s + 1 for d, s in zip(x.shape, attrs.strides, strict=True)]
    out = np.full(size, convert(np.float64(attrs.dilation_value), out_type.dtype))  # type: ignore[arg-type]
    out[tuple(slice(None, None, s) for s in attrs.strides)] = x
    return out


def _dilate_compute(attrs: DilateAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    (x,) = ins
    fill = te.const(attrs.dilation_value, x.dtype)

    def body(*i: te.Expr) -> te.Expr:
        on: te.Expr | None = None
        for a, s in zip(i, attrs.strides, strict=True):
            if s > 1:
                test = te.compare("eq", a % s, 0)
                on = test if on is None else te.logical_and(on, test)
        value = x(*(a // s for a, s in zip(i, attrs.strides, strict=True)))
        return value if on is None else te.select(on, value, fill)

    return te.compute(extents(out_type), body, "dilate")


def _dilate_samples(draw: Draw) -> Sample:
    x = array(draw, shape(draw, 1), choice(draw, FLOATS))
    strides = [draw.integer(1, 3) for _ in x.shape]
    return Sample((x,), {"strides": strides, "dilation_value": 0.5})


define(
    "nn.dilate",
    attrs=DilateAttrs,
    inputs=(("x", "1D Tensor"),),
    pattern=OpPattern.INJECTIVE,
    level=10,
    infer=_infer_dilate,
    reference=_dilate_reference,
    compute=_dilate_compute,
    compare=Exact(),
    samples=_dilate_samples,
    doc="Elements spread out with a value between them.",
)


def pad(data: Expr, pad_width: Any, pad_value: Any = 0, pad_mode: str = "constant") -> Call:
    """Relay's builder; widths given as an expression make the dynamic op."""
    pad_width = known_ints(pad_width)
    fill = pad_value if isinstance(pad_value, Expr) else const(pad_value)
    if isinstance(pad_width, Expr):
        return call("dyn.nn.pad", data, pad_width, fill, pad_width=(), pad_mode=pad_mode)
    return call("nn.pad", data, fill, pad_width=pad_width, pad_mode=pad_mode)


def mirror_pad(data: Expr, pad_width: Any, mode: str = "SYMMETRIC") -> Call:
    return call("nn.mirror_pad", data, mode=mode, pad_width=pad_width)


def dilate(data: Expr, strides: Sequence[int], dilation_value: float = 0.0) -> Call:
    return call("nn.dilate", data, strides=strides, dilation_value=dilation_value)
