"""QuantizeLinear, DequantizeLinear and the operators written with them.

They are taken apart into arithmetic, whose rounding is ONNX's: half to even, then saturation.
"""

from __future__ import annotations

import numpy as np

from ixion.base import dtype as dtypes
from ixion.frontend.build.movement import reshape
from ixion.frontend.onnx.convert import Site, converts, dtype_of
from ixion.frontend.term import Term


def _along(site: Site, x: Term, scale: Term) -> Term:
    """A scale or zero point per channel, shaped to broadcast along the node's axis."""
    if scale.rank == 0 or scale.size == 1:
        return reshape(site.emit, scale, ())
    if scale.rank != 1:
        return site.unsupported("in blocks")
    shape = [1] * x.rank
    shape[site.attr("axis", 1) % x.rank] = -1
    return site.call("reshape", scale, newshape=tuple(shape))


def quantize(site: Site, x: Term, scale: Term, zero: Term | None, dtype: str) -> Term:
    """round(x / scale) + zero, saturated to an integer dtype."""
    steps = site.call("divide", x, _along(site, x, scale))
    if not dtypes.is_integer(dtype):
        return site.call("cast", steps, dtype=dtype)
    # numpy's round, as Relay's, is half to even.
    whole = site.call("round", steps)
    if zero is not None:
        offset = site.call("cast", _along(site, x, zero), dtype=x.dtype)
        whole = site.call("add", whole, offset)
    info = np.iinfo(dtype)
    inside = site.call("clip", whole, a_min=float(info.min), a_max=float(info.max))
    return site.call("cast", inside, dtype=dtype)


def dequantize(site: Site, x: Term, scale: Term, zero: Term | None) -> Term:
    """(x - zero) * scale in the scale's dtype."""
    wide = site.call("cast", x, dtype="int32" if dtypes.is_integer(x.dtype) else scale.dtype)
    if zero is not None:
        wide = site.call(
            "subtract", wide, site.call("cast", _along(site, x, zero), dtype=wide.dtype)
        )
    number = wide if wide.dtype == scale.dtype else site.call("cast", wide, dtype=scale.dtype)
    return site.call("multiply", number, _along(site, x, scale))


@converts("QuantizeLinear")
def quantize_linear(site: Site) -> Term:
    zero = site.optional(2)
    dtype = "uint8"
    if zero is not None:
        dtype = zero.dtype
    elif site.attr("output_dtype", 0):
        dtype = dtype_of(site.attr("output_dtype"))
    return quantize(site, site.input(0), site.input(1), zero, dtype)


@converts("DequantizeLinear")
def dequantize_linear(site: Site) -> Term:
    return dequantize(site, site.input(0), site.input(1), site.optional(2))


@converts("DynamicQuantizeLinear")
def dynamic_quantize(site: Site) -> list[Term]:
    x = site.input(0)
    top = site.call("maximum", site.call("max", x, axis=tuple(range(x.rank))), 0.0)
    bottom = site.call("minimum", site.call("min", x, axis=tuple(range(x.rank))), 0.0)
    scale = site.call("divide", site.call("subtract", top, bottom), 255.0)
    place = site.call("round", site.call("divide", site.call("negative", bottom), scale))
    inside = site.call("clip", place, a_min=0.0, a_max=255.0)
    zero = site.call("cast", inside, dtype="uint8")
    return [quantize(site, x, scale, zero, "uint8"), scale, zero]


@converts("QLinearAdd", domain="com.microsoft")
def quantized_add(site: Site) -> Term:
    a = dequantize(site, site.input(0), site.input(1), site.optional(2))
    b = dequantize(site, site.input(3), site.input(4), site.optional(5))
    total = site.call("add", a, b)
    return quantize(site, total, site.input(6), site.optional(7), site.input(0).dtype)
