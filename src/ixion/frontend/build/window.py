"""Sliding windows: padding by rule, output sizes, convolution and pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.frontend.build.movement import pad, take
from ixion.frontend.emitter import Emitter
from ixion.frontend.term import Array, Term, at_most, static

Ints = Sequence[int]

#: Pooling with indices visits the cells of a window one by one.
_MOST_CELLS = 1 << 10
_MOST_PLACES = 1 << 26


@dataclass(frozen=True, slots=True)
class Window:
    """Kernel, strides, dilation and padding (all befores, then all afters) of the spatial axes."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.kernel)

    def reach(self, axis: int) -> int:
        """Cells a window spans, holes included."""
        return self.dilation[axis] * (self.kernel[axis] - 1) + 1

    def before(self, axis: int) -> int:
        return self.padding[axis]

    def after(self, axis: int) -> int:
        return self.padding[self.rank + axis]

    def padded(self, padding: Ints) -> Window:
        """The same window with other padding."""
        return Window(self.kernel, self.strides, self.dilation, tuple(padding))


def same_padding(sizes: Sequence[Dim], window: Window, lower: bool) -> tuple[Dim, ...]:
    """Padding after which ceil(size / stride) windows fit; the odd cell goes after (or `lower`)."""
    befores: list[Dim] = []
    afters: list[Dim] = []
    for axis, size in enumerate(sizes):
        stride, total = window.strides[axis], window.reach(axis) - 1
        if stride > 1:
            end = dims.add(dims.multiply(dims.ceil_div(size, stride), stride), total + 1 - stride)
            total = dims.maximum(dims.add(end, dims.multiply(-1, size)), 0)  # type: ignore[assignment]
        small = dims.floordiv(total, 2)
        large = dims.add(total, dims.multiply(-1, small))
        befores.append(large if lower else small)
        afters.append(small if lower else large)
    return (*befores, *afters)


def padded_same(
    emit: Emitter, x: Term, window: Window, lower: bool, fill: float
) -> tuple[Term, Window]:
    """A window with `same_padding`; where that is symbolic, `x` grown by it and no padding."""
    padding = same_padding(x.shape[2:], window, lower)
    widths = [width for width in padding if isinstance(width, int)]
    if len(widths) == len(padding):
        return x, window.padded(widths)
    pairs = [(padding[axis], padding[window.rank + axis]) for axis in range(window.rank)]
    return pad(emit, x, [(0, 0), (0, 0), *pairs], value=fill), window.padded([0] * len(padding))


def convolution(
    emit: Emitter, x: Term, weight: Term, bias: Term | None, window: Window, groups: int
) -> Term:
    """Convolution of (N, C, spatial...) with weights (O, C / groups, spatial...), and the bias."""
    x, window = _without_negative_padding(emit, x, window)
    out = emit.call(
        f"nn.conv{window.rank}d",
        x,
        weight,
        strides=window.strides,
        padding=window.padding,
        dilation=window.dilation,
        groups=groups,
        channels=weight.shape[0],
        kernel_size=window.kernel,
    )
    return out if bias is None else emit.call("nn.bias_add", out, bias, axis=1)


def transposed_convolution(
    emit: Emitter,
    x: Term,
    weight: Term,
    bias: Term | None,
    window: Window,
    groups: int,
    output_padding: Ints,
) -> Term:
    """Transposed convolution with weights (C, O / groups, spatial...), and the bias.

    A negative padding grows the output with what no window reaches: the bias alone.
    """
    cut = window.padded([max(width, 0) for width in window.padding])
    out = emit.call(
        f"nn.conv{window.rank}d_transpose",
        x,
        weight,
        strides=window.strides,
        padding=cut.padding,
        dilation=window.dilation,
        groups=groups,
        channels=static(weight.shape[1]) * groups,
        kernel_size=window.kernel,
        output_padding=tuple(output_padding),
    )
    if cut != window:
        grown = [(-min(window.before(i), 0), -min(window.after(i), 0)) for i in range(window.rank)]
        out = pad(emit, out, [(0, 0), (0, 0), *grown])
    return out if bias is None else emit.call("nn.bias_add", out, bias, axis=1)


def _without_negative_padding(emit: Emitter, x: Term, window: Window) -> tuple[Term, Window]:
    if min(window.padding, default=0) >= 0:
        return x, window
    widths = [
        (min(window.before(axis), 0), min(window.after(axis), 0)) for axis in range(window.rank)
    ]
    x = pad(emit, x, [(0, 0), (0, 0), *widths])
    return x, window.padded([max(width, 0) for width in window.padding])


def output_size(size: int, window: Window, axis: int, ceil: bool) -> int:
    """Windows along an axis. Rounded up, the last one must start in the input or before it.

    That is the rule of ONNX (opset 19) and torch: a window that starts in the padding behind the
    input is dropped.
    """
    stride = window.strides[axis]
    slack = size + window.before(axis) + window.after(axis) - window.reach(axis)
    if not ceil:
        return slack // stride + 1
    count = -(-slack // stride) + 1
    return count - 1 if (count - 1) * stride >= size + window.before(axis) else count


def _fitted(x: Term, window: Window, ceil: bool) -> tuple[Window, list[int]]:
    """Padding with which a rounded-down pool has the right size, and the cells it adds behind."""
    if not ceil:
        return window, [0] * window.rank
    padding, extra = list(window.padding), []
    for axis in range(window.rank):
        size = static(x.shape[2 + axis])
        count = output_size(size, window, axis, ceil)
        end = (count - 1) * window.strides[axis] + window.reach(axis)
        needed = max(0, end - size - window.before(axis))
        extra.append(max(0, needed - window.after(axis)))
        padding[window.rank + axis] = needed
    return window.padded(padding), extra


def _is_open(x: Term) -> bool:
    return not dims.is_static(x.shape[2:])


def max_pool(emit: Emitter, x: Term, window: Window, ceil: bool) -> Term:
    """Largest value of each window; cells outside the input never win."""
    if ceil and _is_open(x):
        return _pool(emit, f"nn.max_pool{window.rank}d", x, window, ceil)
    fitted, _ = _fitted(x, window, ceil)
    return _pool(emit, f"nn.max_pool{window.rank}d", x, fitted)


def average_pool(emit: Emitter, x: Term, window: Window, ceil: bool, count_padding: bool) -> Term:
    """Mean of each window, over the cells in the input, or over those in the padded input too.

    Cells that only rounding up adds behind the padding never count.
    """
    name = f"nn.avg_pool{window.rank}d"
    if ceil and _is_open(x) and not count_padding:
        return _pool(emit, name, x, window, ceil, count_include_pad=False)
    fitted, extra = _fitted(x, window, ceil)
    if count_padding and any(extra):
        inner = [(window.before(axis), window.after(axis)) for axis in range(window.rank)]
        x = pad(emit, x, [(0, 0), (0, 0), *inner])
        fitted = fitted.padded([*[0] * window.rank, *extra])
        count_padding = False
    return _pool(emit, name, x, fitted, count_include_pad=count_padding)


def sum_pool(emit: Emitter, x: Term, window: Window, ceil: bool) -> Term:
    """Sum of each window, cells outside the input counting 0."""
    fitted, _ = _fitted(x, window, ceil)
    mean = _pool(emit, f"nn.avg_pool{window.rank}d", x, fitted, count_include_pad=True)
    return emit.call("multiply", mean, float(math.prod(window.kernel)))


def _pool(
    emit: Emitter, name: str, x: Term, window: Window, ceil: bool = False, **more: bool
) -> Term:
    return emit.call(
        name,
        x,
        pool_size=window.kernel,
        strides=window.strides,
        dilation=window.dilation,
        padding=window.padding,
        ceil_mode=ceil,
        **more,
    )


def max_pool_with_indices(emit: Emitter, x: Term, window: Window, ceil: bool) -> tuple[Term, Term]:
    """Largest value of each window and its flat int64 index in the plane of spatial axes."""
    tables = []
    for axis in range(window.rank):
        size = static(x.shape[2 + axis])
        count = at_most(_MOST_PLACES, output_size(size, window, axis, ceil), "pooling windows")
        at_most(_MOST_CELLS, window.kernel[axis], "cells in a pooling window")
        starts = np.arange(count) * window.strides[axis] - window.before(axis)
        steps = np.arange(window.kernel[axis]) * window.dilation[axis]
        tables.append(_inside(starts[:, None] + steps, size))
    return max_with_indices(emit, x, tables)


def adaptive_tables(sizes: Sequence[int], outputs: Sequence[int]) -> list[Array]:
    """Cells of torch's adaptive windows, from floor(i * in / out) to ceil((i + 1) * in / out)."""
    tables = []
    for size, count in zip(sizes, outputs, strict=True):
        index = np.arange(count)
        starts, ends = index * size // count, -(-(index + 1) * size // count)
        cells = starts[:, None] + np.arange(int((ends - starts).max()))
        tables.append(np.minimum(cells, ends[:, None] - 1))
    return tables


def _inside(cells: Array, size: int) -> Array:
    """Cells outside the axis replaced by the first one of their window that is inside."""
    valid = (cells >= 0) & (cells < size)
    first = cells[np.arange(len(cells)), valid.argmax(axis=1)]
    return np.where(valid, cells, first[:, None])


def max_with_indices(emit: Emitter, x: Term, tables: Sequence[Array]) -> tuple[Term, Term]:
    """Largest of each window's cells, and which: `tables` gives an axis' cells, (windows, cells).

    The first largest wins, and NaN wins over numbers. Cells are visited one by one, each a `take`
    of the input, so a cell may stand in a window twice.
    """
    spatial = tuple(static(dim) for dim in x.shape[2:])
    at_most(_MOST_CELLS, math.prod(table.shape[1] for table in tables), "cells in a pooling window")
    at_most(_MOST_PLACES, math.prod(spatial), "places in a pooled plane")
    plane = np.arange(math.prod(spatial), dtype=np.int64).reshape((1, 1, *spatial))
    best: Term | None = None
    index: Term | None = None
    for cell in np.ndindex(*(table.shape[1] for table in tables)):
        value, place = x, plane
        for axis, (table, column) in enumerate(zip(tables, cell, strict=True), 2):
            value = take(emit, value, emit.constant(table[:, column], "int64"), axis)
            place = place.take(table[:, column], axis)
        if best is None or index is None:
            best = value
            index = emit.call("broadcast_to", emit.constant(place), shape=value.shape)
            continue
        wins = emit.call("greater", value, best)
        if x.dtype.startswith(("float", "bfloat")):
            wins = emit.call("logical_or", wins, emit.call("isnan", value))
        best = emit.call("where", wins, value, best)
        index = emit.call("where", wins, emit.constant(place), index)
    assert best is not None
    assert index is not None
    return best, index
