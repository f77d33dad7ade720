"""Fourier transforms, sliding windows, fixed point products, diagonals, a FIFO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ixion import te
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr, TupleWrapper
from ixion.ir.types import TensorType, TupleType, Type
from ixion.op.axes import checked_axis
from ixion.op.broadcast import elementwise
from ixion.op.call import call
from ixion.op.compare import Accumulation, Exact
from ixion.op.create import ones
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.extent import extents
from ixion.op.rounding import Array, narrow, wide
from ixion.op.sample import Draw, Sample, array, choice, flag, shape


@register_attrs("relay.attrs.StftAttrs")
class StftAttrs(Attrs):
    n_fft: int = attr(-1, "size of a transform")
    hop_length: int = attr(-1, "distance between frames")
    win_length: int = attr(-1, "size of the window")
    normalized: bool = attr(False, "divide by sqrt(n_fft)")
    onesided: bool = attr(True, "only the frequencies up to half")


@register_attrs("relay.attrs.DFTAttrs")
class DFTAttrs(Attrs):
    inverse: bool = attr(False, "the inverse transform")


@register_attrs("relay.attrs.SlidingWindowAttrs")
class SlidingWindowAttrs(Attrs):
    axis: int = attr(doc="first axis the window slides along")
    window_shape: tuple[int, ...] = attr(doc="size of the window")
    strides: tuple[int, ...] = attr(doc="distance between windows")


@register_attrs("relay.attrs.FixedPointMultiplyAttrs")
class FixedPointMultiplyAttrs(Attrs):
    multiplier: int = attr(doc="factor with 31 fractional bits")
    shift: int = attr(doc="power of two")


@register_attrs("relay.attrs.FixedPointMultiplyPerAxisAttrs")
class FixedPointMultiplyPerAxisAttrs(Attrs):
    is_lshift_required: bool = attr(False, "left shifts are not all 0")
    is_rshift_required: bool = attr(False, "right shifts are not all 0")
    axes: tuple[int, ...] = attr(doc="axes of data that the parameters run along")


@register_attrs("relay.attrs.MatrixSetDiagAttrs")
class MatrixSetDiagAttrs(Attrs):
    k1: int = attr(0, "lowest diagonal")
    k2: int = attr(0, "highest diagonal")
    super_diag_right_align: bool = attr(True, "short upper diagonals stand right")
    sub_diag_right_align: bool = attr(False, "short lower diagonals stand right")


@register_attrs("relay.attrs.FIFOBufferAttrs")
class FIFOBufferAttrs(Attrs):
    axis: int = attr(0, "axis along which the buffer moves")


def _infer_stft(args: InferArgs) -> Type:
    data, attrs = args.tensor(0), args.attrs
    if len(data.shape) not in (1, 2):
        args.fail("data is (samples) or (batch, samples)", found=data)
    bins = attrs.n_fft // 2 + 1 if attrs.onesided else attrs.n_fft
    frames = (data.shape[-1] - attrs.n_fft) // attrs.hop_length + 1
    return TensorType((*data.shape[:-1], bins, frames, 2), data.dtype)


def _stft_reference(attrs: StftAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x, window = wide(inputs[0]), wide(inputs[1]).astype(np.float64)
    left = (attrs.n_fft - len(window)) // 2
    full = np.zeros(attrs.n_fft)
    full[left : left + len(window)] = window
    frames = np.lib.stride_tricks.sliding_window_view(x, attrs.n_fft, axis=-1)
    frames = frames[..., :: attrs.hop_length, :] * full
    found = (np.fft.rfft if attrs.onesided else np.fft.fft)(frames, axis=-1)
    found = found / np.sqrt(attrs.n_fft) if attrs.normalized else found
    pair = np.stack([found.real, found.imag], axis=-1)
    return narrow(np.moveaxis(pair, -2, -3), out_type.dtype)


def _total_scale(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Any:
    """A bound on every output: the sum of all magnitudes."""
    size = float(sum(np.abs(wide(x)).sum() for x in inputs)) + 1.0
    kinds: tuple[Any, ...] = out_type.fields if isinstance(out_type, TupleType) else (out_type,)
    scales = tuple(np.full(k.concrete_shape, size) for k in kinds)
    return scales if isinstance(out_type, TupleType) else scales[0]


define(
    "stft",
    attrs=StftAttrs,
    inputs=("data", "window"),
    pattern=OpPattern.OPAQUE,
    level=3,
    infer=_infer_stft,
    reference=_stft_reference,
    compare=Accumulation(8, _total_scale),
    samples=lambda draw: Sample(
        (array(draw, (2, 12)), array(draw, (4,), "float32", 0, 1)),
        {"n_fft": 4, "hop_length": draw.integer(1, 3), "win_length": 4,
         "normalized": flag(draw), "onesided": flag(draw)},
    ),
    doc="Fourier transforms of overlapping windows: (batch, frequencies, frames, 2).",
)  # fmt: skip


def _dft_reference(attrs: DFTAttrs, inputs: tuple[Array, ...], out_type: Any) -> Any:
    signal = wide(inputs[0]) + 1j * wide(inputs[1])
    found = (np.fft.ifft if attrs.inverse else np.fft.fft)(signal, axis=-1)
    dtype = out_type.fields[0].dtype
    return narrow(found.real, dtype), narrow(found.imag, dtype)


def _infer_dft(args: InferArgs) -> Type:
    return TupleType((args.tensor(0), args.tensor(1)))


def _dft_samples(draw: Draw) -> Sample:
    dims_ = shape(draw, 1, 2)
    return Sample((array(draw, dims_), array(draw, dims_)), {"inverse": flag(draw)})


define(
    "dft",
    attrs=DFTAttrs,
    inputs=("re_data", "im_data"),
    pattern=OpPattern.OPAQUE,
    level=3,
    infer=_infer_dft,
    reference=_dft_reference,
    compare=Accumulation(8, _total_scale),
    samples=_dft_samples,
    num_outputs=2,
    doc="Discrete Fourier transform of the last axis, real and imaginary parts apart.",
)


def _infer_window(args: InferArgs) -> Type:
    data, attrs = args.tensor(), args.attrs
    at = checked_axis(args, attrs.axis, len(data.shape))
    if (
        len(attrs.window_shape) != len(data.shape) - at
        or len(attrs.strides) != len(data.shape) - at
    ):
        args.fail("the window has one size per axis", expected=len(data.shape) - at)
    places = [
        (d - w) // s + 1
        for d, w, s in zip(data.shape[at:], attrs.window_shape, attrs.strides, strict=True)
    ]
    return TensorType((*data.shape[:at], *places, *attrs.window_shape), data.dtype)


def _window_reference(attrs: SlidingWindowAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x = inputs[0]
    at = attrs.axis % x.ndim
    axes = tuple(range(at, x.ndim))
    view = np.lib.stride_tricks.sliding_window_view(x, attrs.window_shape, axis=axes)
    steps = (slice(None, None, s) for s in attrs.strides)
    return np.asarray(view[(*[slice(None)] * at, *steps)])


def _window_compute(
    attrs: SlidingWindowAttrs, ins: tuple[te.Tensor, ...], out_type: Any
) -> te.Tensor:
    (x,) = ins
    at = attrs.axis % x.ndim
    count = x.ndim - at

    def body(*i: te.Expr) -> te.Expr:
        places, inside = i[at : at + count], i[at + count :]
        moved = (p * s + w for p, s, w in zip(places, attrs.strides, inside, strict=True))
        return x(*i[:at], *moved)

    return te.compute(extents(out_type), body, "sliding_window")


define(
    "sliding_window",
    attrs=SlidingWindowAttrs,
    inputs=("data",),
    pattern=OpPattern.OPAQUE,
    level=10,
    infer=_infer_window,
    reference=_window_reference,
    compute=_window_compute,
    compare=Exact(),
    samples=lambda draw: Sample(
        (array(draw, (2, 3, 5, 6)),),
        {"axis": 1, "window_shape": (3, 2, 3), "strides": (1, draw.integer(1, 2), 2)},
    ),
    doc="Every placement of a window, its elements in trailing axes.",
)


def _fixed_point(x: Array, multiplier: Any, left: Any, right: Any) -> Array:
    """X * multiplier * 2 ** (left - right - 31), halves up, as int32."""
    product = (x.astype(np.int64) << left) * multiplier
    total = np.asarray(31 + right)
    return np.asarray((product + (np.int64(1) << (total - 1))) >> total).astype(np.int32)


def _fixed_reference(
    attrs: FixedPointMultiplyAttrs, inputs: tuple[Array, ...], out_type: Any
) -> Array:
    left, right = max(attrs.shift, 0), max(-attrs.shift, 0)
    return _fixed_point(inputs[0], np.int64(attrs.multiplier), left, right)


def _fixed_compute(
    attrs: FixedPointMultiplyAttrs, ins: tuple[te.Tensor, ...], out_type: Any
) -> te.Tensor:
    left, total = max(attrs.shift, 0), 31 + max(-attrs.shift, 0)

    def body(x: te.Expr) -> te.Expr:
        product = te.cast(x, "int64") * (attrs.multiplier << left)
        return te.cast(te.binary("shr", product + (1 << (total - 1)), total), "int32")

    return elementwise(body)(attrs, ins, out_type)


define(
    "fixed_point_multiply",
    attrs=FixedPointMultiplyAttrs,
    inputs=("data",),
    pattern=OpPattern.ELEMWISE,
    level=10,
    infer=lambda args: args.tensor(0),
    reference=_fixed_reference,
    compute=_fixed_compute,
    compare=Exact(),
    samples=lambda draw: Sample(
        (array(draw, shape(draw), "int32", -9000, 9000),),
        {"multiplier": draw.integer(1 << 30, (1 << 31) - 1), "shift": draw.integer(-4, 3)},
    ),
    doc="int32 data times multiplier * 2 ** (shift - 31), halves up.",
)


def _per_axis_reference(
    attrs: FixedPointMultiplyPerAxisAttrs, inputs: tuple[Array, ...], out_type: Any
) -> Array:
    x, multiplier, left, right = inputs
    line = [n if a in [b % x.ndim for b in attrs.axes] else 1 for a, n in enumerate(x.shape)]
    m, lo, hi = (v.astype(np.int64).reshape(line) for v in (multiplier, left, right))
    return _fixed_point(
        x, m, lo if attrs.is_lshift_required else 0, hi if attrs.is_rshift_required else 0
    )


define(
    "fixed_point_multiply_per_axis",
    attrs=FixedPointMultiplyPerAxisAttrs,
    inputs=("data", "fp_multiplier", "left_shift", "right_shift"),
    pattern=OpPattern.BROADCAST,
    level=10,
    infer=lambda args: args.tensor(0),
    reference=_per_axis_reference,
    compare=Exact(),
    samples=lambda draw: Sample(
        (array(draw, (2, 3, 2), "int32", -900, 900),
         array(draw, (3,), "int32", 1 << 30, (1 << 31) - 2),
         array(draw, (3,), "int32", 0, 2), array(draw, (3,), "int32", 0, 3)),
        {"axes": (1,), "is_lshift_required": flag(draw), "is_rshift_required": flag(draw)},
    ),
    doc="fixed_point_multiply with parameters along axes.",
)  # fmt: skip


def _infer_diagonal(args: InferArgs) -> Type:
    data, attrs = args.tensor(0), args.attrs
    if attrs.k1 > attrs.k2 or len(data.shape) < 2:
        args.fail("data holds matrices and k1 <= k2", found=f"{data}, {attrs.k1}, {attrs.k2}")
    return data


def _diagonal_reference(
    attrs: MatrixSetDiagAttrs, inputs: tuple[Array, ...], out_type: Any
) -> Array:
    out, values = inputs[0].copy(), inputs[1]
    rows, columns = out.shape[-2:]
    single = attrs.k1 == attrs.k2
    for k in range(attrs.k1, attrs.k2 + 1):
        length = min(columns - max(k, 0), rows + min(k, 0))
        right = attrs.super_diag_right_align if k >= 0 else attrs.sub_diag_right_align
        start = values.shape[-1] - length if right and not single else 0
        line = values if single else values[..., attrs.k2 - k, :]
        i = np.arange(length)
        out[..., i + max(-k, 0), i + max(k, 0)] = line[..., start : start + length]
    return out


def _diagonal_samples(draw: Draw) -> Sample:
    rows, columns = draw.integer(2, 4), draw.integer(2, 4)
    low = draw.integer(-1, 1)
    high = draw.integer(low, 1)
    longest = max(min(columns - max(k, 0), rows + min(k, 0)) for k in range(low, high + 1))
    lead = () if low == high else (high - low + 1,)
    attrs = {"k1": low, "k2": high, "super_diag_right_align": flag(draw),
             "sub_diag_right_align": flag(draw)}  # fmt: skip
    return Sample((array(draw, (2, rows, columns)), array(draw, (2, *lead, longest))), attrs)


define(
    "matrix_set_diag",
    attrs=MatrixSetDiagAttrs,
    inputs=("input", "diagonal"),
    pattern=OpPattern.INJECTIVE,
    level=10,
    infer=_infer_diagonal,
    reference=_diagonal_reference,
    compare=Exact(),
    samples=_diagonal_samples,
    doc="Matrices with one or several diagonals replaced.",
)


def _infer_fifo(args: InferArgs) -> Type:
    data, buffer = args.tensor(0), args.tensor(1)
    checked_axis(args, args.attrs.axis, len(buffer.shape))
    if len(data.shape) != len(buffer.shape):
        args.fail("data and buffer have one rank", expected=buffer, found=data)
    return buffer


def _fifo_reference(attrs: FIFOBufferAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    data, buffer = inputs
    size = buffer.shape[attrs.axis]
    joined = np.concatenate([buffer, data], axis=attrs.axis)
    return joined.take(range(joined.shape[attrs.axis] - size, joined.shape[attrs.axis]), attrs.axis)


define(
    "nn.fifo_buffer",
    attrs=FIFOBufferAttrs,
    inputs=("data", "buffer"),
    pattern=OpPattern.OPAQUE,
    level=3,
    infer=_infer_fifo,
    reference=_fifo_reference,
    compare=Exact(),
    samples=lambda draw: Sample(
        (array(draw, (2, draw.integer(1, 2))), array(draw, (2, 4))), {"axis": choice(draw, (1, -1))}
    ),
    doc="The buffer with data appended and as much dropped at the front.",
)


def stft(
    data: Expr,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Expr | None = None,
    normalized: bool = False,
    onesided: bool = True,
) -> Call:
    """Relay's builder; no window means ones."""
    made = ones([n_fft], "int32") if window is None else window
    return call(
        "stft", data, made, n_fft=n_fft, hop_length=hop_length or n_fft // 4,
        win_length=win_length or n_fft, normalized=normalized, onesided=onesided,
    )  # fmt: skip


def dft(re_data: Expr, im_data: Expr, inverse: bool | None = False) -> TupleWrapper:
    return TupleWrapper(call("dft", re_data, im_data, inverse=bool(inverse)), 2)


def sliding_window(
    data: Expr, axis: int, window_shape: Sequence[int], strides: Sequence[int]
) -> Call:
    return call("sliding_window", data, axis=axis, window_shape=window_shape, strides=strides)


def fixed_point_multiply(data: Expr, multiplier: int, shift: int) -> Call:
    return call("fixed_point_multiply", data, multiplier=multiplier, shift=shift)


def matrix_set_diag(
    data: Expr, diagonal: Expr, k: int | Sequence[int] = 0, align: str = "RIGHT_LEFT"
) -> Call:
    low, high = (k, k) if isinstance(k, int) else (k[0], k[-1])
    return call(
        "matrix_set_diag", data, diagonal, k1=low, k2=high,
        super_diag_right_align=align[:5] == "RIGHT", sub_diag_right_align=align[-5:] == "RIGHT",
    )  # fmt: skip


def fifo_buffer(data: Expr, buffer: Expr, axis: int) -> Call:
    return call("nn.fifo_buffer", data, buffer, axis=axis)
