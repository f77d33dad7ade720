"""Unfold (im2col) and Fold (its transpose)."""

from __future__ import annotations

import math

import numpy as np

from ixion.frontend.build.movement import concatenate, expand_dims, pad, reshape, slices
from ixion.frontend.build.window import Window, output_size, transposed_convolution
from ixion.frontend.pnnx.convert import Site, converts
from ixion.frontend.pnnx.families.window import batched, unbatched
from ixion.frontend.term import Term, at_most, static


def _window(site: Site) -> Window:
    return Window(
        site.ints("kernel_size", 2),
        site.ints("stride", 2, 1),
        site.ints("dilation", 2, 1),
        site.ints("padding", 2, 0) * 2,
    )


@converts("nn.Unfold", "F.unfold")
def unfold(site: Site) -> Term:
    """(N, C, H, W) to (N, C * cells, windows): one strided slice a kernel cell."""
    x, added = batched(site, site.x, 2)
    window = _window(site)
    counts = [output_size(static(x.shape[2 + i]), window, i, False) for i in (0, 1)]
    widths = [(0, 0), (0, 0), *((window.before(i), window.after(i)) for i in (0, 1))]
    padded = pad(site.emit, x, widths)
    parts = []
    at_most(1 << 12, math.prod(window.kernel), "cells of a kernel")
    for cell in np.ndindex(*window.kernel):
        begins = [at * step for at, step in zip(cell, window.dilation, strict=True)]
        ends = [b + (n - 1) * s + 1 for b, n, s in zip(begins, counts, window.strides, strict=True)]
        part = slices(site.emit, padded, [2, 3], begins, ends, window.strides)
        parts.append(expand_dims(site.emit, part, [2]))
    stacked = concatenate(site.emit, parts, 2)
    rows = static(x.shape[1]) * math.prod(window.kernel)
    return unbatched(
        site, reshape(site.emit, stacked, (x.shape[0], rows, math.prod(counts))), added
    )


@converts("nn.Fold", "F.fold")
def fold(site: Site) -> Term:
    """(N, C * cells, windows) to (N, C, H, W): a transposed convolution with one-hot kernels."""
    x = site.x
    added = x.rank == 2
    x = expand_dims(site.emit, x, [0]) if added else x
    window, size = _window(site), site.ints("output_size", 2)
    cells = at_most(1 << 12, math.prod(window.kernel), "cells of a kernel")
    channels = static(x.shape[1]) // cells
    counts = [output_size(size[i], window, i, False) for i in (0, 1)]
    planes = reshape(site.emit, x, (x.shape[0], channels * cells, *counts))
    kernels = np.tile(np.eye(cells).reshape(cells, 1, *window.kernel), (channels, 1, 1, 1))
    reached = [
        (counts[i] - 1) * window.strides[i] + window.reach(i) - window.before(i) - window.after(i)
        for i in (0, 1)
    ]
    extra = [size[i] - reached[i] for i in (0, 1)]
    weight = site.emit.constant(kernels, x.dtype)
    out = transposed_convolution(site.emit, planes, weight, None, window, channels, extra)
    return unbatched(site, out, added)
