"""Normalisation modules and functions."""

from __future__ import annotations

import numpy as np

from ixion.base import dtype as dtypes
from ixion.frontend.build import normalize
from ixion.frontend.build.movement import reshape
from ixion.frontend.pnnx.convert import Site, converts
from ixion.frontend.pnnx.families.window import batched, unbatched
from ixion.frontend.term import Term, static


@converts("nn.BatchNorm1d", "nn.BatchNorm2d", "nn.BatchNorm3d")
def batch(site: Site) -> Term:
    x = site.x
    return normalize.batch_norm(
        site.emit,
        x,
        site.weight("running_mean", x.dtype),
        site.weight("running_var", x.dtype),
        site.optional_weight("weight", x.dtype),
        site.optional_weight("bias", x.dtype),
        site.number("eps", 1e-5),
    )


@converts("F.batch_norm")
def batch_function(site: Site) -> Term:
    mean, variance = site.tensor("running_mean"), site.tensor("running_var")
    if mean is None or variance is None:
        return site.unsupported("without running statistics")
    return normalize.batch_norm(
        site.emit, site.x, mean, variance, site.tensor("weight"), site.tensor("bias"),
        site.number("eps", 1e-5),
    )  # fmt: skip


@converts("nn.InstanceNorm1d", "nn.InstanceNorm2d", "nn.InstanceNorm3d")
def instance(site: Site) -> Term:
    x, epsilon = site.x, site.number("eps", 1e-5)
    weight = site.optional_weight("weight", x.dtype)
    bias = site.optional_weight("bias", x.dtype)
    rank = int(site.op.kind[-2])
    x, added = batched(site, x, rank)
    if site.flag("track_running_stats") and site.has_weight("running_mean"):
        mean, variance = (site.weight(f"running_{key}", x.dtype) for key in ("mean", "var"))
        out = normalize.batch_norm(site.emit, x, mean, variance, weight, bias, epsilon)
    else:
        out = normalize.instance_norm(site.emit, x, weight, bias, epsilon)
    return unbatched(site, out, added)


@converts("F.instance_norm")
def instance_function(site: Site) -> Term:
    weight, bias = site.tensor("weight"), site.tensor("bias")
    mean, variance = site.tensor("running_mean"), site.tensor("running_var")
    epsilon = site.number("eps", 1e-5)
    if mean is not None and variance is not None and not site.flag("use_input_stats", True):
        return normalize.batch_norm(site.emit, site.x, mean, variance, weight, bias, epsilon)
    return normalize.instance_norm(site.emit, site.x, weight, bias, epsilon)


@converts("nn.LayerNorm", "F.layer_norm")
def layer(site: Site) -> Term:
    x = site.x
    axes = len(site.ints("normalized_shape"))
    weight, bias = _weight(site, x, "weight"), _weight(site, x, "bias")
    return normalize.layer_norm(site.emit, x, axes, weight, bias, site.number("eps", 1e-5))


def _weight(site: Site, x: Term, key: str) -> Term | None:
    return site.optional_weight(key, x.dtype) or site.tensor(key)


@converts("nn.RMSNorm", "F.rms_norm")
def rms(site: Site) -> Term:
    x = site.x
    axes = len(site.ints("normalized_shape"))
    epsilon = site.arg("eps", None)
    if epsilon is None:
        epsilon = _smallest_step(x.dtype)
    return normalize.rms_norm(site.emit, x, axes, _weight(site, x, "weight"), float(epsilon))


def _smallest_step(dtype: str) -> float:
    """The distance from 1 to the next number of a float dtype."""
    one = np.ones((), dtypes.to_numpy(dtype))
    bits = one.view(f"u{one.itemsize}") + 1
    return float(bits.view(one.dtype).astype(np.float64) - 1)


@converts("nn.GroupNorm", "F.group_norm")
def group(site: Site) -> Term:
    x = site.x
    groups = int(site.arg("num_groups"))
    weight, bias = _weight(site, x, "weight"), _weight(site, x, "bias")
    return normalize.group_norm(site.emit, x, groups, weight, bias, site.number("eps", 1e-5))


@converts("nn.LocalResponseNorm", "F.local_response_norm")
def local_response(site: Site) -> Term:
    size = int(site.arg("size"))
    window = (size // 2, (size - 1) // 2)
    alpha, beta = site.number("alpha", 1e-4), site.number("beta", 0.75)
    return normalize.local_response(
        site.emit, site.x, window, alpha, beta, float(site.number("k", 1.0))
    )


@converts("F.normalize")
def unit(site: Site) -> Term:
    x = site.x
    axis = site.axis("dim", x.rank, 1)
    size = normalize.norm(site.emit, x, float(site.number("p", 2)), [axis], True)
    return site.call("divide", x, site.call("maximum", size, site.number("eps", 1e-12)))


@converts("nn.ChannelShuffle", "F.channel_shuffle")
def channel_shuffle(site: Site) -> Term:
    x, groups = site.x, int(site.arg("groups"))
    channels = static(x.shape[1])
    split = reshape(site.emit, x, (x.shape[0], groups, channels // groups, *x.shape[2:]))
    order = (0, 2, 1, *range(3, split.rank))
    return reshape(site.emit, site.call("transpose", split, axes=order), x.shape)
