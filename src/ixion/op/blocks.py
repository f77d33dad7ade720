"""Blocks moved between axes: depth/space, batch/space, and layout_transform."""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion import te
from ixion.base import dim as dims
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op import layout as layouts
from ixion.op.call import call
from ixion.op.compare import Exact
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.extent import extents
from ixion.op.pad import pad_numpy
from ixion.op.pool import check_pool_rank
from ixion.op.rounding import Array
from ixion.op.sample import FLOATS, Draw, Sample, Sampler, array, choice


@register_attrs("relay.attrs.SubPixelAttrs")
class SubPixelAttrs(Attrs):
    block_size: int = attr(1, "side of a block")
    layout: str = attr("NCHW", "layout of the input", choices=("NCHW", "NHWC"))
    mode: str = attr(
        "DCR", "whether the block or the channel index is outer", choices=("DCR", "CRD")
    )


@register_attrs("relay.attrs.LayoutTransformAttrs")
class LayoutTransformAttrs(Attrs):
    src_layout: str = attr(doc="layout of the input")
    dst_layout: str = attr(doc="layout of the output")


@register_attrs("relay.attrs.SpaceToBatchNDAttrs")
class SpaceToBatchNDAttrs(Attrs):
    block_shape: tuple[int, ...] = attr((1, 1), "block size per spatial axis")
    paddings: tuple[tuple[int, ...], ...] = attr(doc="(before, after) per spatial axis")
    pad_value: float = attr(0.0, "what the padding holds")


@register_attrs("relay.attrs.BatchToSpaceNDAttrs")
class BatchToSpaceNDAttrs(Attrs):
    block_shape: tuple[int, ...] = attr((1, 1), "block size per spatial axis")
    crops: tuple[tuple[int, ...], ...] = attr(doc="(before, after) per spatial axis")


def _infer_depth_to_space(args: InferArgs) -> Type:
    data, attrs = args.tensor(), args.attrs
    check_pool_rank(args, data, attrs.layout)
    n, c, h, w = layouts.to_plain(data.shape, attrs.layout, "NCHW")
    block = attrs.block_size
    if block < 1 or (isinstance(c, int) and c % (block * block)):
        args.fail("block_size squared must divide the channels", expected=c, found=block)
    out = (n, c // (block * block), h * block, w * block)
    return TensorType(layouts.from_plain(out, "NCHW", attrs.layout), data.dtype)


def _depth_index(
    attrs: SubPixelAttrs, c: te.Expr, y: te.Expr, x: te.Expr, channels: Any
) -> te.Expr:
    """The deep channel that holds channel ``c`` at offset (y, x) of a block."""
    block = attrs.block_size
    offset = y * block + x
    return offset * channels + c if attrs.mode == "DCR" else c * (block * block) + offset


def _depth_to_space_reference(
    attrs: SubPixelAttrs, inputs: tuple[Array, ...], out_type: Any
) -> Array:
    x = layouts.array_to_plain(inputs[0], attrs.layout, "NCHW")
    n, c, h, w = x.shape
    b = attrs.block_size
    if attrs.mode == "DCR":
        folded = x.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        folded = x.reshape(n, c // (b * b), b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    out = folded.reshape(n, c // (b * b), h * b, w * b)
    return layouts.array_from_plain(out, "NCHW", attrs.layout)


def _depth_to_space_compute(
    attrs: SubPixelAttrs, ins: tuple[te.Tensor, ...], out_type: Any
) -> te.Tensor:
    read, b = layouts.reader(ins[0], attrs.layout, "NCHW"), attrs.block_size
    channels = layouts.to_plain(extents(out_type), attrs.layout, "NCHW")[1]

    def body(n: te.Expr, c: te.Expr, y: te.Expr, x: te.Expr) -> te.Expr:
        return read(n, _depth_index(attrs, c, y % b, x % b, channels), y // b, x // b)

    return layouts.compute_as(extents(out_type), attrs.layout, "NCHW", body, "depth_to_space")


def _infer_space_to_depth(args: InferArgs) -> Type:
    data, attrs = args.tensor(), args.attrs
    check_pool_rank(args, data, attrs.layout)
    n, c, h, w = layouts.to_plain(data.shape, attrs.layout, "NCHW")
    block = attrs.block_size
    if block < 1 or any(isinstance(d, int) and d % block for d in (h, w)):
        args.fail("block_size must divide height and width", expected=f"{h}, {w}", found=block)
    out = (n, c * (block * block), h // block, w // block)
    return TensorType(layouts.from_plain(out, "NCHW", attrs.layout), data.dtype)


def _space_to_depth_reference(
    attrs: SubPixelAttrs, inputs: tuple[Array, ...], out_type: Any
) -> Array:
    x = layouts.array_to_plain(inputs[0], attrs.layout, "NCHW")
    n, c, h, w = x.shape
    b = attrs.block_size
    order = (0, 3, 5, 1, 2, 4) if attrs.mode == "DCR" else (0, 1, 3, 5, 2, 4)
    folded = x.reshape(n, c, h // b, b, w // b, b).transpose(order)
    return layouts.array_from_plain(
        folded.reshape(n, c * b * b, h // b, w // b), "NCHW", attrs.layout
    )


def _space_to_depth_compute(
    attrs: SubPixelAttrs, ins: tuple[te.Tensor, ...], out_type: Any
) -> te.Tensor:
    read, b = layouts.reader(ins[0], attrs.layout, "NCHW"), attrs.block_size
    channels = layouts.to_plain(ins[0].shape, attrs.layout, "NCHW")[1]

    def body(n: te.Expr, d: te.Expr, y: te.Expr, x: te.Expr) -> te.Expr:
        if attrs.mode == "DCR":
            offset, c = d // channels, d % channels
        else:
            c, offset = d // (b * b), d % (b * b)
        return read(n, c, y * b + offset // b, x * b + offset % b)

    return layouts.compute_as(extents(out_type), attrs.layout, "NCHW", body, "space_to_depth")


def _subpixel_samples(deep: bool) -> Sampler:
    def samples(draw: Draw) -> Sample:
        b, layout = draw.integer(1, 3), choice(draw, ("NCHW", "NHWC"))
        c, h, w = (draw.integer(1, 3) for _ in range(3))
        dims_ = (1, c * b * b, h, w) if deep else (2, c, h * b, w * b)
        x = layouts.array_from_plain(array(draw, dims_, choice(draw, FLOATS)), "NCHW", layout)
        attrs = {"block_size": b, "layout": layout, "mode": choice(draw, ("DCR", "CRD"))}
        return Sample((x,), attrs)

    return samples


define(
    "nn.depth_to_space",
    attrs=SubPixelAttrs,
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=5,
    infer=_infer_depth_to_space,
    reference=_depth_to_space_reference,
    compute=_depth_to_space_compute,
    compare=Exact(),
    samples=_subpixel_samples(deep=True),
    doc="Channels moved into blocks of pixels (pixel shuffle is mode CRD).",
)

define(
    "nn.space_to_depth",
    attrs=SubPixelAttrs,
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=5,
    infer=_infer_space_to_depth,
    reference=_space_to_depth_reference,
    compute=_space_to_depth_compute,
    compare=Exact(),
    samples=_subpixel_samples(deep=False),
    doc="Blocks of pixels moved into channels.",
)


def _infer_layout(args: InferArgs) -> Type:
    data, attrs = args.tensor(), args.attrs
    check_pool_rank(args, data, attrs.src_layout)
    if sorted(layouts.parse(attrs.src_layout).axes) != sorted(layouts.parse(attrs.dst_layout).axes):
        args.fail("layouts have the same axes", expected=attrs.src_layout, found=attrs.dst_layout)
    shape = layouts.convert_shape(data.shape, attrs.src_layout, attrs.dst_layout)
    return TensorType(shape, data.dtype)


def _layout_compute(
    attrs: LayoutTransformAttrs, ins: tuple[te.Tensor, ...], out_type: Any
) -> te.Tensor:
    plain = layouts.parse(attrs.src_layout).axes
    read = layouts.reader(ins[0], attrs.src_layout, plain)
    return layouts.compute_as(extents(out_type), attrs.dst_layout, plain, read, "layout_transform")


def _layout_samples(draw: Draw) -> Sample:
    source, target = choice(
        draw, (("NCHW", "NHWC"), ("NCHW", "NCHW4c"), ("NCHW4c", "NCHW"), ("NHWC", "NCHW2c"),
               ("OIHW", "OIHW2i4o"), ("OIHW2i4o", "HWIO"), ("NCHW2c", "NCHW4c")),
    )  # fmt: skip
    plain = (4, 8, 2, 3)
    x = array(draw, plain, choice(draw, FLOATS))
    return Sample(
        (layouts.array_from_plain(x, layouts.parse(source).axes, source),)
        if source[0] != "N" or source[1] == "C"
        else (x.transpose(0, 2, 3, 1),),
        {"src_layout": source, "dst_layout": target},
    )


define(
    "layout_transform",
    attrs=LayoutTransformAttrs,
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=5,
    infer=_infer_layout,
    reference=lambda attrs, ins, out: layouts.convert_array(
        ins[0], attrs.src_layout, attrs.dst_layout
    ),
    compute=_layout_compute,
    compare=Exact(),
    samples=_layout_samples,
    doc="The same elements in another layout.",
)


def _infer_to_batch(args: InferArgs) -> Type:
    data, attrs = args.tensor(), args.attrs
    out, blocks = list(data.shape), dims.prod(attrs.block_shape)
    for i, (block, pad) in enumerate(zip(attrs.block_shape, attrs.paddings, strict=True)):
        size = out[i + 1] + pad[0] + pad[1]
        if isinstance(size, int) and size % block:
            args.fail("the block does not divide the padded axis", expected=block, found=size)
        out[i + 1] = size // block
    out[0] = out[0] * blocks
    return TensorType(out, data.dtype)


def _to_batch_reference(
    attrs: SpaceToBatchNDAttrs, inputs: tuple[Array, ...], out_type: Any
) -> Array:
    x, block = inputs[0], attrs.block_shape
    m = len(block)
    widths = [(0, 0), *attrs.paddings, *[(0, 0)] * (x.ndim - m - 1)]
    padded = pad_numpy(x, widths, "constant", attrs.pad_value)
    split: list[int] = [x.shape[0]]
    for i, b in enumerate(block):
        split += [padded.shape[i + 1] // b, b]
    rest = x.shape[m + 1 :]
    folded = padded.reshape(*split, *rest)
    order = [2 * i + 2 for i in range(m)] + [0] + [2 * i + 1 for i in range(m)]
    order += list(range(2 * m + 1, folded.ndim))
    sizes = [padded.shape[i + 1] // b for i, b in enumerate(block)]
    return folded.transpose(order).reshape(x.shape[0] * int(np.prod(block)), *sizes, *rest)


def _to_batch_samples(draw: Draw) -> Sample:
    block = (draw.integer(1, 2), draw.integer(1, 3))
    sizes = [b * draw.integer(1, 3) for b in block]
    pads = [(draw.integer(0, 1), 0) for _ in block]
    x = array(draw, (2, *(max(s - p[0], 1) for s, p in zip(sizes, pads, strict=True)), 3))
    pads = [(s - n, 0) for s, n in zip(sizes, x.shape[1:3], strict=True)]
    return Sample((x,), {"block_shape": block, "paddings": pads, "pad_value": 1.5})


define(
    "nn.space_to_batch_nd",
    attrs=SpaceToBatchNDAttrs,
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=5,
    infer=_infer_to_batch,
    reference=_to_batch_reference,
    compare=Exact(),
    samples=_to_batch_samples,
    doc="Blocks of spatial axes moved into the batch axis.",
)


def _infer_to_space(args: InferArgs) -> Type:
    data, attrs = args.tensor(), args.attrs
    out, blocks = list(data.shape), dims.prod(attrs.block_shape)
    if isinstance(out[0], int) and isinstance(blocks, int) and out[0] % blocks:
        args.fail("the blocks do not divide the batch", expected=blocks, found=out[0])
    out[0] = out[0] // blocks
    for i, (block, crop) in enumerate(zip(attrs.block_shape, attrs.crops, strict=True)):
        out[i + 1] = out[i + 1] * block - crop[0] - crop[1]
    return TensorType(out, data.dtype)


def _to_space_reference(
    attrs: BatchToSpaceNDAttrs, inputs: tuple[Array, ...], out_type: Any
) -> Array:
    x, block = inputs[0], attrs.block_shape
    m, batch = len(block), inputs[0].shape[0] // int(np.prod(block))
    folded = x.reshape(*block, batch, *x.shape[1:])
    order = [m]
    for i in range(m):
        order += [m + 1 + i, i]
    order += list(range(2 * m + 1, folded.ndim))
    sizes = [n * b for n, b in zip(x.shape[1:], block, strict=False)]
    full = folded.transpose(order).reshape(batch, *sizes, *x.shape[m + 1 :])
    crops = [slice(c[0], n - c[1]) for c, n in zip(attrs.crops, sizes, strict=True)]
    return full[(slice(None), *crops)]


define(
    "nn.batch_to_space_nd",
    attrs=BatchToSpaceNDAttrs,
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=5,
    infer=_infer_to_space,
    reference=_to_space_reference,
    compare=Exact(),
    samples=lambda draw: Sample(
        (array(draw, (12, 2, 3, 2)),),
        {"block_shape": (2, 3), "crops": ((0, 1), (draw.integer(0, 2), 0))},
    ),
    doc="Blocks of the batch axis moved into spatial axes.",
)


def space_to_batch_nd(data: Expr, block_shape: Any, paddings: Any, pad_value: float = 0) -> Call:
    return call(
        "nn.space_to_batch_nd", data, block_shape=block_shape, paddings=paddings,
        pad_value=pad_value,
    )  # fmt: skip


def batch_to_space_nd(data: Expr, block_shape: Any, crops: Any) -> Call:
    return call("nn.batch_to_space_nd", data, block_shape=block_shape, crops=crops)


def depth_to_space(data: Expr, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> Call:
    return call("nn.depth_to_space", data, block_size=block_size, layout=layout, mode=mode)


def space_to_depth(data: Expr, block_size: int, layout: str = "NCHW") -> Call:
    return call("nn.space_to_depth", data, block_size=block_size, layout=layout)


def layout_transform(data: Expr, src_layout: str, dst_layout: str) -> Call:
    return call("layout_transform", data, src_layout=src_layout, dst_layout=dst_layout)
