"""Activation functions that Relay has no operator for.

Where the textbook form cancels (exp(x) - 1, log(1 + x) near 0) an equivalent without cancellation
is used: expm1(x) = 2t / (1 - t) with t = tanh(x / 2), and log1p(x) = 2 atanh(x / (2 + x)).
"""

from __future__ import annotations

import math

from ixion.frontend.emitter import Emitter
from ixion.frontend.term import Term


def gelu(emit: Emitter, x: Term, tanh: bool = False) -> Term:
    """`x * Phi(x)`, by erf or by the tanh approximation of Hendrycks and Gimpel."""
    if tanh:
        cube = emit.call("multiply", emit.call("multiply", x, x), x)
        inner = emit.call("add", x, emit.call("multiply", cube, 0.044715))
        gate = emit.call("tanh", emit.call("multiply", inner, math.sqrt(2 / math.pi)))
    else:
        gate = emit.call("erf", emit.call("multiply", x, math.sqrt(0.5)))
    half = emit.call("multiply", x, 0.5)
    return emit.call("multiply", half, emit.call("add", gate, 1.0))


def silu(emit: Emitter, x: Term) -> Term:
    """`x * sigmoid(x)`."""
    return emit.call("multiply", x, emit.call("sigmoid", x))


def hard_sigmoid(emit: Emitter, x: Term, alpha: float, beta: float) -> Term:
    """clip(alpha * x + beta, 0, 1)."""
    line = emit.call("add", emit.call("multiply", x, alpha), beta)
    return emit.call("clip", line, a_min=0.0, a_max=1.0)


def hard_swish(emit: Emitter, x: Term) -> Term:
    """`x * clip(x + 3, 0, 6) / 6`."""
    gate = emit.call("clip", emit.call("add", x, 3.0), a_min=0.0, a_max=6.0)
    return emit.call("multiply", emit.call("multiply", x, gate), 1 / 6)


def expm1(emit: Emitter, x: Term) -> Term:
    """exp(x) - 1, as 2t / (1 - t) for x up to 1 and as written above it."""
    half = emit.call("tanh", emit.call("multiply", x, 0.5))
    one = emit.constant(1.0, x.dtype)
    small = emit.call("divide", emit.call("multiply", half, 2.0), emit.call("subtract", one, half))
    large = emit.call("subtract", emit.call("exp", x), 1.0)
    return emit.call("where", emit.call("less", x, 1.0), small, large)


def log1p(emit: Emitter, x: Term) -> Term:
    """log(1 + x), as 2 atanh(x / (2 + x)) near 0."""
    ratio = emit.call("divide", x, emit.call("add", x, 2.0))
    small = emit.call("multiply", emit.call("atanh", ratio), 2.0)
    large = emit.call("log", emit.call("add", x, 1.0))
    near = emit.call("less", emit.call("abs", x), 0.5)
    return emit.call("where", near, small, large)


def elu(emit: Emitter, x: Term, alpha: float) -> Term:
    """Keep x > 0, elsewhere alpha * (exp(x) - 1)."""
    below = emit.call("minimum", x, 0.0)
    half = emit.call("tanh", emit.call("multiply", below, 0.5))
    one = emit.constant(1.0, x.dtype)
    grown = emit.call("divide", emit.call("multiply", half, 2.0), emit.call("subtract", one, half))
    scaled = emit.call("multiply", grown, alpha)
    return emit.call("where", emit.call("greater", x, 0.0), x, scaled)


def celu(emit: Emitter, x: Term, alpha: float) -> Term:
    """max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))."""
    inner = elu(emit, emit.call("multiply", x, 1 / alpha), 1.0)
    scaled = emit.call("multiply", inner, alpha)
    return emit.call("where", emit.call("greater", x, 0.0), x, scaled)


def selu(emit: Emitter, x: Term, alpha: float, gamma: float) -> Term:
    """`gamma * elu(x, alpha)`."""
    return emit.call("multiply", elu(emit, x, alpha), gamma)


def softplus(emit: Emitter, x: Term) -> Term:
    """log(1 + exp(x)), as max(x, 0) + log1p(exp(-|x|)): right for any x."""
    tail = emit.call("exp", emit.call("negative", emit.call("abs", x)))
    ratio = emit.call("divide", tail, emit.call("add", tail, 2.0))
    rest = emit.call("multiply", emit.call("atanh", ratio), 2.0)
    return emit.call("add", emit.call("nn.relu", x), rest)


def log_sigmoid(emit: Emitter, x: Term) -> Term:
    """log(sigmoid(x)) = -softplus(-x)."""
    return emit.call("negative", softplus(emit, emit.call("negative", x)))


def mish(emit: Emitter, x: Term) -> Term:
    """`x * tanh(softplus(x))`."""
    return emit.call("multiply", x, emit.call("tanh", softplus(emit, x)))


def softsign(emit: Emitter, x: Term) -> Term:
    """`x / (1 + |x|)`."""
    return emit.call("divide", x, emit.call("add", emit.call("abs", x), 1.0))


def threshold(emit: Emitter, x: Term, limit: float, value: float) -> Term:
    """Keep x above `limit`, elsewhere `value`."""
    return emit.call("where", emit.call("greater", x, limit), x, emit.constant(value, x.dtype))


def hard_shrink(emit: Emitter, x: Term, limit: float) -> Term:
    """0 where |x| <= limit, else x."""
    far = emit.call("greater", emit.call("abs", x), limit)
    return emit.call("where", far, x, emit.constant(0.0, x.dtype))


def soft_shrink(emit: Emitter, x: Term, limit: float, bias: float | None = None) -> Term:
    """Move x towards 0 by `bias` (default `limit`) where |x| > limit, else 0."""
    step = limit if bias is None else bias
    zero = emit.constant(0.0, x.dtype)
    above = emit.call("subtract", x, step)
    below = emit.call("add", x, step)
    inner = emit.call("where", emit.call("less", x, -limit), below, zero)
    return emit.call("where", emit.call("greater", x, limit), above, inner)


def prelu(emit: Emitter, x: Term, slope: Term) -> Term:
    """Keep x > 0, elsewhere slope * x; the slope broadcasts to x as numpy's rule says."""
    per_channel = slope.rank == x.rank - 1 and all(dim == 1 for dim in slope.shape[1:])
    if x.rank >= 2 and per_channel and slope.rank and slope.shape[0] == x.shape[1]:
        vector = emit.call("reshape", slope, newshape=(-1,))
        return emit.call("nn.prelu", x, vector, axis=1)
    scaled = emit.call("multiply", x, slope)
    return emit.call("where", emit.call("greater", x, 0.0), x, scaled)
