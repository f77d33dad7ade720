"""Conv, ConvTranspose and pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.base.errors import ModelFormatError
from ixion.frontend.build.movement import reshape
from ixion.frontend.build.window import (
    Window,
    average_pool,
    convolution,
    max_pool,
    max_pool_with_indices,
    padded_same,
    same_padding,
    sum_pool,
    transposed_convolution,
)
from ixion.frontend.onnx.convert import Site, converts
from ixion.frontend.term import Term, static


def window(site: Site, x: Term, kernel: Sequence[int], auto: str | None = None) -> Window:
    """The node's window, its automatic padding (or that of `auto`) worked out."""
    rank = x.rank - 2
    kernel = tuple(int(size) for size in kernel)
    if len(kernel) != rank or rank < 1:
        raise ModelFormatError(
            "a kernel of another rank than the input", expected=rank, found=str(kernel)
        )
    ones = [1] * rank
    made = Window(
        kernel,
        tuple(site.attr("strides", ones)),
        tuple(site.attr("dilations", ones)),
        tuple(site.attr("pads", [0] * 2 * rank)),
    )
    if (len(made.strides), len(made.dilation), len(made.padding)) != (rank, rank, 2 * rank):
        raise ModelFormatError("strides, dilations or pads of another rank than the input")
    if min(made.strides) < 1 or min(made.dilation) < 1 or min(kernel) < 1:
        raise ModelFormatError("a stride, dilation or kernel size below 1")
    auto = site.attr("auto_pad", "NOTSET") if auto is None else auto
    if auto == "VALID":
        return made.padded([0] * 2 * rank)
    if auto.startswith("SAME") and site.node.op_type != "ConvTranspose":
        padding = same_padding(x.shape[2:], made, auto == "SAME_LOWER")
        return made.padded([static(width) for width in padding])
    return made


def fitted(site: Site, x: Term, kernel: Sequence[int], fill: float) -> tuple[Term, Window]:
    """As `window`, with automatic padding of open sizes made of cells that hold `fill`."""
    auto = site.attr("auto_pad", "NOTSET")
    if not auto.startswith("SAME") or dims.is_static(x.shape[2:]):
        return x, window(site, x, kernel)
    plain = window(site, x, kernel, "NOTSET")
    return padded_same(site.emit, x, plain, auto == "SAME_LOWER", fill)


def _kernel(site: Site, weight: Term) -> list[int]:
    return [static(dim) for dim in weight.shape[2:]]


@converts("Conv")
def conv(site: Site) -> Term:
    x, weight = site.input(0), site.input(1)
    x, made = fitted(site, x, _kernel(site, weight), 0.0)
    return convolution(site.emit, x, weight, site.optional(2), made, site.attr("group", 1))


@converts("ConvTranspose")
def conv_transpose(site: Site) -> Term:
    x, weight = site.input(0), site.input(1)
    made = window(site, x, _kernel(site, weight))
    extra = list(site.attr("output_padding", [0] * made.rank))
    made, extra = _fit_output(site, x, made, extra)
    groups = site.attr("group", 1)
    return transposed_convolution(site.emit, x, weight, site.optional(2), made, groups, extra)


def _fit_output(site: Site, x: Term, made: Window, extra: list[int]) -> tuple[Window, list[int]]:
    """Padding for a stated output_shape or automatic padding: the total split in two halves."""
    auto = site.attr("auto_pad", "NOTSET")
    shape = site.attr("output_shape", None)
    if shape is None and not auto.startswith("SAME"):
        return made, extra
    befores, afters = [], []
    for axis in range(made.rank):
        size, stride = x.shape[2 + axis], made.strides[axis]
        cells = dims.multiply(size, stride)
        wanted = shape[len(shape) - made.rank + axis] if shape else cells
        more = extra[axis] + made.reach(axis) - stride
        total = static(dims.add(dims.add(cells, more), dims.multiply(-1, wanted)))
        if total < 0:
            extra[axis] -= total
            total = 0
        half = total // 2
        # ONNX: the odd cell goes to the end for SAME_UPPER, to the beginning otherwise.
        upper = auto == "SAME_UPPER"
        befores.append(half if upper else total - half)
        afters.append(total - half if upper else half)
    return made.padded([*befores, *afters]), extra


@converts("MaxPool")
def pool_max(site: Site) -> Term | list[Term]:
    x = site.input(0)
    ceil = bool(site.attr("ceil_mode", 0))
    if not site.wants(1):
        lowest = -math.inf if dtypes.is_float(x.dtype) else float(np.iinfo(x.dtype).min)
        grown, made = fitted(site, x, site.attr("kernel_shape"), lowest)
        return max_pool(site.emit, grown, made, ceil)
    made = window(site, x, site.attr("kernel_shape"))
    if site.attr("storage_order", 0):
        site.unsupported("with column-major indices")
    best, index = max_pool_with_indices(site.emit, x, made, ceil)
    return [best, _across_batch(site, x, index)]


def _across_batch(site: Site, x: Term, index: Term) -> Term:
    """ONNX counts indices through the whole tensor, not within one plane."""
    planes = static(x.shape[0]) * static(x.shape[1])
    size = 1
    for dim in x.shape[2:]:
        size *= static(dim)
    shape = (static(x.shape[0]), static(x.shape[1]), *[1] * (x.rank - 2))
    starts = site.emit.constant([plane * size for plane in range(planes)], "int64")
    return site.call("add", index, reshape(site.emit, starts, shape))


@converts("AveragePool")
def pool_average(site: Site) -> Term:
    x = site.input(0)
    made = window(site, x, site.attr("kernel_shape"))
    ceil = bool(site.attr("ceil_mode", 0))
    return average_pool(site.emit, x, made, ceil, bool(site.attr("count_include_pad", 0)))


@converts("LpPool")
def pool_lp(site: Site) -> Term:
    x = site.input(0)
    made = window(site, x, site.attr("kernel_shape"))
    power = float(site.attr("p", 2))
    raised = site.call("power", site.call("abs", x), power)
    total = sum_pool(site.emit, raised, made, bool(site.attr("ceil_mode", 0)))
    return site.call("power", total, 1.0 / power)


@converts("GlobalAveragePool")
def global_average(site: Site) -> Term:
    x = site.input(0)
    if x.rank == 4:
        return site.call("nn.global_avg_pool2d", x)
    return site.call("mean", x, axis=tuple(range(2, x.rank)), keepdims=True)


@converts("GlobalMaxPool")
def global_max(site: Site) -> Term:
    x = site.input(0)
    if x.rank == 4:
        return site.call("nn.global_max_pool2d", x)
    return site.call("max", x, axis=tuple(range(2, x.rank)), keepdims=True)


@converts("GlobalLpPool")
def global_lp(site: Site) -> Term:
    x = site.input(0)
    power = float(site.attr("p", 2))
    raised = site.call("power", site.call("abs", x), power)
    total = site.call("sum", raised, axis=tuple(range(2, x.rank)), keepdims=True)
    return site.call("power", total, 1.0 / power)
