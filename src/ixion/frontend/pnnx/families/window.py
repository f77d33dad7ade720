"""Convolution and pooling modules and functions, of one to three spatial axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ixion.base.errors import ModelFormatError
from ixion.frontend.build.movement import expand_dims, pad, squeeze
from ixion.frontend.build.window import (
    Window,
    adaptive_tables,
    average_pool,
    convolution,
    max_pool,
    max_pool_with_indices,
    max_with_indices,
    same_padding,
    sum_pool,
    transposed_convolution,
)
from ixion.frontend.pnnx.convert import Site, converts
from ixion.frontend.pnnx.families.padding import PAD_MODES
from ixion.frontend.pnnx.promote import cast
from ixion.frontend.term import Term, static


def _rank(site: Site) -> int:
    """Spatial axes, off the operator's name: nn.Conv2d, F.avg_pool3d."""
    digits = [char for char in site.op.kind if char in "123"]
    return int(digits[-1])


def batched(site: Site, x: Term, rank: int) -> tuple[Term, bool]:
    """A batch of one where torch takes (C, spatial...); whether the batch axis was added."""
    if x.rank == rank + 2:
        return x, False
    if x.rank == rank + 1:
        return expand_dims(site.emit, x, [0]), True
    raise ModelFormatError(f"{site.op.kind} of a tensor of rank {x.rank}")


def unbatched(site: Site, x: Term, added: bool) -> Term:
    """The batch axis taken off again."""
    return squeeze(site.emit, x, [0]) if added else x


def _operands(site: Site) -> tuple[Term, Term, Term | None]:
    """Input, weight and bias, of a module or a function, in the input's dtype."""
    x = site.x
    if site.op.kind.startswith("nn."):
        return x, site.weight("weight", x.dtype), site.optional_weight("bias", x.dtype)
    weight, bias = site.operand("weight"), site.tensor("bias")
    bias = None if bias is None else cast(site.emit, bias, x.dtype)
    return x, cast(site.emit, weight, x.dtype), bias


@converts("nn.Conv1d", "nn.Conv2d", "nn.Conv3d", "F.conv1d", "F.conv2d", "F.conv3d")
def conv(site: Site) -> Term:
    rank = _rank(site)
    x, weight, bias = _operands(site)
    x, narrow = site.narrowed(x)
    x, added = batched(site, x, rank)
    kernel = tuple(static(dim) for dim in weight.shape[2:])
    made = Window(
        kernel, site.ints("stride", rank, 1), site.ints("dilation", rank, 1), (0,) * 2 * rank
    )
    made = made.padded(_padding(site, x, made))
    mode = site.arg("padding_mode", "zeros")
    if mode != "zeros":
        widths = [(0, 0), (0, 0), *((made.before(i), made.after(i)) for i in range(rank))]
        x = pad(site.emit, x, widths, PAD_MODES[mode])
        made = made.padded([0] * 2 * rank)
    out = convolution(site.emit, x, weight, bias, made, int(site.arg("groups", 1)))
    return unbatched(site, site.rounded(out, narrow), added)


def _padding(site: Site, x: Term, window: Window) -> Sequence[int]:
    stated = site.arg("padding", 0)
    if stated == "valid":
        return [0] * 2 * window.rank
    if stated == "same":
        return [static(width) for width in same_padding(x.shape[2:], window, lower=False)]
    each = site.ints("padding", None, 0)
    if len(each) == 2 * window.rank:
        return each
    return site.ints("padding", window.rank, 0) * 2


@converts(
    "nn.ConvTranspose1d", "nn.ConvTranspose2d", "nn.ConvTranspose3d",
    "F.conv_transpose1d", "F.conv_transpose2d", "F.conv_transpose3d",
)  # fmt: skip
def conv_transpose(site: Site) -> Term:
    rank = _rank(site)
    x, weight, bias = _operands(site)
    x, narrow = site.narrowed(x)
    x, added = batched(site, x, rank)
    made = Window(
        tuple(static(dim) for dim in weight.shape[2:]),
        site.ints("stride", rank, 1),
        site.ints("dilation", rank, 1),
        site.ints("padding", rank, 0) * 2,
    )
    extra = site.ints("output_padding", rank, 0)
    groups = int(site.arg("groups", 1))
    out = transposed_convolution(site.emit, x, weight, bias, made, groups, extra)
    return unbatched(site, site.rounded(out, narrow), added)


def _with_indices(site: Site) -> bool:
    """Two results, as two outputs or as one tuple."""
    return len(site.op.outputs) > 1 or site.flag("return_indices")


def _pool_window(site: Site, rank: int, dilated: bool = False) -> Window:
    kernel = site.ints("kernel_size", rank)
    stride = site.arg("stride", None)
    return Window(
        kernel,
        kernel if stride is None else site.ints("stride", rank),
        site.ints("dilation", rank, 1) if dilated else (1,) * rank,
        site.ints("padding", rank, 0) * 2,
    )


@converts(
    "nn.MaxPool1d", "nn.MaxPool2d", "nn.MaxPool3d",
    "F.max_pool1d", "F.max_pool2d", "F.max_pool3d",
)  # fmt: skip
def pool_max(site: Site) -> Any:
    rank = _rank(site)
    x, added = batched(site, site.x, rank)
    window = _pool_window(site, rank, dilated=True)
    ceil = site.flag("ceil_mode")
    if not _with_indices(site):
        return unbatched(site, max_pool(site.emit, x, window, ceil), added)
    pair = max_pool_with_indices(site.emit, x, window, ceil)
    return tuple(unbatched(site, one, added) for one in pair)


@converts(
    "nn.AvgPool1d", "nn.AvgPool2d", "nn.AvgPool3d",
    "F.avg_pool1d", "F.avg_pool2d", "F.avg_pool3d",
)  # fmt: skip
def pool_average(site: Site) -> Term:
    rank = _rank(site)
    x, added = batched(site, site.x, rank)
    window = _pool_window(site, rank)
    ceil = site.flag("ceil_mode")
    divisor = site.arg("divisor_override", None)
    if divisor is not None:
        total = sum_pool(site.emit, x, window, ceil)
        return unbatched(site, site.call("multiply", total, 1.0 / divisor), added)
    counted = site.flag("count_include_pad", True)
    return unbatched(site, average_pool(site.emit, x, window, ceil, counted), added)


@converts("nn.LPPool1d", "nn.LPPool2d", "nn.LPPool3d", "F.lp_pool1d", "F.lp_pool2d", "F.lp_pool3d")
def pool_lp(site: Site) -> Term:
    """(sum of x^p)^(1/p), without the absolute value: negative sums give 0, as torch does."""
    rank = _rank(site)
    x, added = batched(site, site.x, rank)
    window, power = _pool_window(site, rank), float(site.number("norm_type"))
    raised = site.call("multiply", x, x) if power == 2 else site.call("power", x, power)
    mean = average_pool(site.emit, raised, window, site.flag("ceil_mode"), True)
    total = site.call("multiply", site.call("nn.relu", mean), float(math.prod(window.kernel)))
    root = site.call("sqrt", total) if power == 2 else site.call("power", total, 1.0 / power)
    return unbatched(site, root, added)


@converts(
    "nn.AdaptiveAvgPool1d", "nn.AdaptiveAvgPool2d", "nn.AdaptiveAvgPool3d",
    "F.adaptive_avg_pool1d", "F.adaptive_avg_pool2d", "F.adaptive_avg_pool3d",
)  # fmt: skip
def adaptive_average(site: Site) -> Term:
    return _adaptive(site, "avg")


@converts(
    "nn.AdaptiveMaxPool1d", "nn.AdaptiveMaxPool2d", "nn.AdaptiveMaxPool3d",
    "F.adaptive_max_pool1d", "F.adaptive_max_pool2d", "F.adaptive_max_pool3d",
)  # fmt: skip
def adaptive_max(site: Site) -> Any:
    if not _with_indices(site):
        return _adaptive(site, "max")
    rank = _rank(site)
    x, added = batched(site, site.x, rank)
    size = _adaptive_size(site, x, rank)
    own = [static(dim) for dim in x.shape[2:]]
    tables = adaptive_tables(own, [static(one) for one in size])
    pair = max_with_indices(site.emit, x, tables)
    return tuple(unbatched(site, one, added) for one in pair)


def _adaptive_size(site: Site, x: Term, rank: int) -> tuple[Any, ...]:
    """Output sizes; 0 (torch's None) keeps the input's."""
    found = site.arg("output_size")
    each = [found] * rank if isinstance(found, int) else list(site.dims("output_size"))
    if len(each) == 1:
        each = each * rank
    return tuple(
        own if isinstance(size, int) and size == 0 else size
        for size, own in zip(each, x.shape[2:], strict=True)
    )


def _adaptive(site: Site, kind: str) -> Term:
    rank = _rank(site)
    x, added = batched(site, site.x, rank)
    size = _adaptive_size(site, x, rank)
    if rank == 2 and all(isinstance(one, int) and one == 1 for one in size):
        return unbatched(site, site.call(f"nn.global_{kind}_pool2d", x), added)
    out = site.call(f"nn.adaptive_{kind}_pool{rank}d", x, output_size=size)
    return unbatched(site, out, added)
