"""Batch, instance, layer, group, RMS, local response and Lp normalisation."""

from __future__ import annotations

from ixion.frontend.build import normalize
from ixion.frontend.build.movement import reshape
from ixion.frontend.onnx.convert import Site, converts
from ixion.frontend.term import Term, static


@converts("BatchNormalization")
def batch(site: Site) -> Term:
    if site.attr("training_mode", 0) or site.outputs() > 1:
        site.unsupported("in training mode")
    x, scale, bias, mean, variance = (site.input(index) for index in range(5))
    epsilon = site.number("epsilon", 1e-5)
    return normalize.batch_norm(site.emit, x, mean, variance, scale, bias, epsilon)


@converts("InstanceNormalization")
def instance(site: Site) -> Term:
    x, scale, bias = site.input(0), site.input(1), site.input(2)
    return normalize.instance_norm(site.emit, x, scale, bias, site.number("epsilon", 1e-5))


@converts("LayerNormalization")
def layer(site: Site) -> Term:
    if site.outputs() > 1:
        site.unsupported("with statistics as outputs")
    x, scale, bias = site.input(0), site.input(1), site.optional(2)
    axes = x.rank - site.attr("axis", -1) % x.rank
    epsilon = site.number("epsilon", 1e-5)
    shape = x.shape[x.rank - axes :]
    if scale.shape != shape:
        # A scale that only broadcasts: normalise with ones and zeros, then apply both.
        out = normalize.layer_norm(site.emit, x, axes, None, None, epsilon)
        out = site.call("multiply", out, scale)
        return out if bias is None else site.call("add", out, bias)
    return normalize.layer_norm(site.emit, x, axes, scale, bias, epsilon)


@converts("GroupNormalization")
def group(site: Site) -> Term:
    x, scale, bias = site.input(0), site.input(1), site.input(2)
    groups, epsilon = site.attr("num_groups"), site.number("epsilon", 1e-5)
    channels = static(x.shape[1])
    if static(scale.shape[0]) == groups != channels:
        # Up to opset 20 scale and bias are per group.
        each = channels // groups
        scale, bias = (site.call("repeat", term, repeats=each, axis=0) for term in (scale, bias))
    return normalize.group_norm(site.emit, x, groups, scale, bias, epsilon)


@converts("RMSNormalization")
@converts("SimplifiedLayerNormalization")
def rms(site: Site) -> Term:
    x = site.input(0)
    axes = x.rank - site.attr("axis", -1) % x.rank
    return normalize.rms_norm(site.emit, x, axes, site.input(1), site.number("epsilon", 1e-5))


@converts("LRN")
def local_response(site: Site) -> Term:
    size = site.attr("size")
    window = ((size - 1) // 2, size // 2)
    alpha, beta = site.number("alpha", 1e-4), site.number("beta", 0.75)
    return normalize.local_response(
        site.emit, site.input(0), window, alpha, beta, site.number("bias", 1.0)
    )


@converts("LpNormalization")
def lp(site: Site) -> Term:
    x = site.input(0)
    size = normalize.norm(site.emit, x, float(site.attr("p", 2)), [site.attr("axis", -1)], True)
    zero = site.call("equal", size, 0.0)
    safe = site.call("where", zero, site.emit.constant(1.0, x.dtype), size)
    return site.call("divide", x, safe)


@converts("MeanVarianceNormalization")
def mean_variance(site: Site) -> Term:
    x = site.input(0)
    axes = tuple(axis % x.rank for axis in site.attr("axes", [0, 2, 3]))
    centered = site.call("subtract", x, site.call("mean", x, axis=axes, keepdims=True))
    square = site.call("multiply", centered, centered)
    spread = site.call("sqrt", site.call("mean", square, axis=axes, keepdims=True))
    return reshape(
        site.emit, site.call("divide", centered, site.call("add", spread, 1e-9)), x.shape
    )
