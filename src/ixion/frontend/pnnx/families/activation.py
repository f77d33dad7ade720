"""Activation modules and functions."""

from __future__ import annotations

from ixion.base import dim as dims
from ixion.frontend.build import activation
from ixion.frontend.build.movement import split_at
from ixion.frontend.pnnx.arithmetic import unary
from ixion.frontend.pnnx.convert import Site, converts
from ixion.frontend.pnnx.promote import cast
from ixion.frontend.term import Term, static


@converts("nn.ReLU", "F.relu", "torch.relu")
def relu(site: Site) -> Term:
    return site.call("nn.relu", site.x)


@converts("nn.ReLU6", "F.relu6")
def relu6(site: Site) -> Term:
    return site.call("clip", site.x, a_min=0.0, a_max=6.0)


@converts("nn.Hardtanh", "F.hardtanh")
def hard_tanh(site: Site) -> Term:
    low, high = float(site.number("min_val", -1)), float(site.number("max_val", 1))
    return site.call("clip", site.x, a_min=low, a_max=high)


@converts("nn.Sigmoid", "F.sigmoid", "torch.sigmoid")
def sigmoid(site: Site) -> Term:
    return unary(site.emit, "sigmoid", site.x)


@converts("nn.Tanh", "F.tanh", "torch.tanh")
def tanh(site: Site) -> Term:
    return unary(site.emit, "tanh", site.x)


@converts("nn.SiLU", "F.silu")
def silu(site: Site) -> Term:
    return activation.silu(site.emit, site.x)


@converts("nn.GELU", "F.gelu")
def gelu(site: Site) -> Term:
    return activation.gelu(site.emit, site.x, site.arg("approximate", "none") == "tanh")


@converts("nn.Mish", "F.mish")
def mish(site: Site) -> Term:
    return activation.mish(site.emit, site.x)


@converts("nn.Hardswish", "F.hardswish")
def hard_swish(site: Site) -> Term:
    return activation.hard_swish(site.emit, site.x)


@converts("nn.Hardsigmoid", "F.hardsigmoid")
def hard_sigmoid(site: Site) -> Term:
    return activation.hard_sigmoid(site.emit, site.x, 1 / 6, 0.5)


@converts("nn.ELU", "F.elu")
def elu(site: Site) -> Term:
    return activation.elu(site.emit, site.x, float(site.number("alpha", 1.0)))


@converts("nn.CELU", "F.celu")
def celu(site: Site) -> Term:
    return activation.celu(site.emit, site.x, float(site.number("alpha", 1.0)))


@converts("nn.SELU", "F.selu")
def selu(site: Site) -> Term:
    alpha, gamma = 1.6732632423543772, 1.0507009873554805
    return activation.selu(site.emit, site.x, alpha, gamma)


@converts("nn.LeakyReLU", "F.leaky_relu")
def leaky_relu(site: Site) -> Term:
    return _leaky(site, float(site.number("negative_slope", 0.01)))


def _leaky(site: Site, slope: float) -> Term:
    x = site.x
    if slope >= 0:
        return site.call("nn.leaky_relu", x, alpha=slope)
    return site.call("where", site.call("greater", x, 0.0), x, site.call("multiply", x, slope))


@converts("nn.RReLU", "F.rrelu")
def rrelu(site: Site) -> Term:
    """Without training the slope is the middle of the range."""
    return _leaky(site, (site.number("lower", 1 / 8) + site.number("upper", 1 / 3)) / 2)


@converts("nn.PReLU", "F.prelu")
def prelu(site: Site) -> Term:
    x = site.x
    slope = site.optional_weight("weight", x.dtype) or site.operand("weight")
    slope = cast(site.emit, slope, x.dtype)
    if slope.size != 1:
        # One slope a channel, and channels are axis 1 (axis 0 of a vector).
        count = static(slope.shape[0])
        behind = (1,) * max(0, x.rank - 2)
        slope = site.call("reshape", slope, newshape=(count, *behind))
    return activation.prelu(site.emit, x, slope)


@converts("nn.Softplus", "F.softplus")
def softplus(site: Site) -> Term:
    """log(1 + exp(beta x)) / beta, and x itself where beta x is over the threshold."""
    x, beta = site.x, float(site.number("beta", 1))
    scaled = x if beta == 1 else site.call("multiply", x, beta)
    soft = activation.softplus(site.emit, scaled)
    soft = soft if beta == 1 else site.call("multiply", soft, 1 / beta)
    over = site.call("greater", scaled, float(site.number("threshold", 20)))
    return site.call("where", over, x, soft)


@converts("nn.Softsign", "F.softsign")
def softsign(site: Site) -> Term:
    return activation.softsign(site.emit, site.x)


@converts("nn.LogSigmoid", "F.logsigmoid")
def log_sigmoid(site: Site) -> Term:
    return activation.log_sigmoid(site.emit, site.x)


@converts("nn.Tanhshrink", "F.tanhshrink")
def tanh_shrink(site: Site) -> Term:
    return site.call("subtract", site.x, site.call("tanh", site.x))


@converts("nn.Hardshrink", "F.hardshrink")
def hard_shrink(site: Site) -> Term:
    return activation.hard_shrink(site.emit, site.x, float(site.number("lambd", 0.5)))


@converts("nn.Softshrink", "F.softshrink")
def soft_shrink(site: Site) -> Term:
    return activation.soft_shrink(site.emit, site.x, float(site.number("lambd", 0.5)))


@converts("nn.Threshold", "F.threshold")
def threshold(site: Site) -> Term:
    limit, value = float(site.number("threshold")), float(site.number("value"))
    return activation.threshold(site.emit, site.x, limit, value)


@converts("nn.GLU", "F.glu")
def glu(site: Site) -> Term:
    x = site.x
    axis = site.axis("dim", x.rank, -1)
    half = dims.floordiv(x.shape[axis], 2)
    first, second = split_at(site.emit, x, axis, [half, half])
    return site.call("multiply", first, site.call("sigmoid", second))


def _softmax_axis(site: Site, x: Term) -> int:
    """Follow torch's rule for a missing dim: 0 for ranks 0, 1 and 3, else 1."""
    if site.arg("dim", None) is None:
        return 0 if x.rank in (0, 1, 3) else 1
    return site.axis("dim", x.rank)


@converts("nn.Softmax", "F.softmax", "torch.softmax")
def softmax(site: Site) -> Term:
    return site.call("nn.softmax", site.x, axis=_softmax_axis(site, site.x))


@converts("nn.LogSoftmax", "F.log_softmax", "torch.log_softmax")
def log_softmax(site: Site) -> Term:
    return site.call("nn.log_softmax", site.x, axis=_softmax_axis(site, site.x))


@converts("nn.Softmin", "F.softmin")
def softmin(site: Site) -> Term:
    x = site.call("negative", site.x)
    return site.call("nn.softmax", x, axis=_softmax_axis(site, x))


@converts("nn.Softmax2d")
def softmax2d(site: Site) -> Term:
    return site.call("nn.softmax", site.x, axis=-3)
