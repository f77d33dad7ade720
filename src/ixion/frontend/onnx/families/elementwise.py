"""Arithmetic, comparison, logic, casts, and activations."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np

from ixion.base import dtype as dtypes
from ixion.frontend.build import activation
from ixion.frontend.emitter import Emitter
from ixion.frontend.onnx.convert import Site, converts, dtype_of
from ixion.frontend.term import Term


@converts("Identity", "Dropout")
def identity(site: Site) -> Term | list[Term]:
    x = site.input(0)
    if not site.wants(1):
        return x
    mask = site.call("ones_like", x)
    return [x, site.call("cast", mask, dtype="bool")]


@converts("Sum")
def total(site: Site) -> Term:
    return reduce(lambda a, b: site.call("add", a, b), site.present())


@converts("Mean")
def mean(site: Site) -> Term:
    terms = site.present()
    return site.call("divide", total(site), float(len(terms)))


@converts("Max")
def largest(site: Site) -> Term:
    return reduce(lambda a, b: site.call("maximum", a, b), site.present())


@converts("Min")
def smallest(site: Site) -> Term:
    return reduce(lambda a, b: site.call("minimum", a, b), site.present())


@converts("Mod")
def mod(site: Site) -> Term:
    name = "trunc_mod" if site.attr("fmod", 0) else "floor_mod"
    return site.call(name, site.input(0), site.input(1))


@converts("Pow")
def power(site: Site) -> Term:
    base, exponent = site.input(0), site.input(1)
    if base.dtype == exponent.dtype:
        return site.call("power", base, exponent)
    if dtypes.is_float(base.dtype):
        return site.call("power", base, site.call("cast", exponent, dtype=base.dtype))
    # An integer to a float power: computed as floats, then truncated to the base's type.
    wide = site.call("cast", base, dtype=exponent.dtype)
    return site.call("cast", site.call("power", wide, exponent), dtype=base.dtype)


@converts("Reciprocal")
def reciprocal(site: Site) -> Term:
    x = site.input(0)
    return site.call("divide", site.emit.constant(1.0, x.dtype), x)


@converts("Neg")
def negative(site: Site) -> Term:
    return site.call("negative", site.input(0))


@converts("BitShift")
def shift(site: Site) -> Term:
    name = "left_shift" if site.attr("direction") == "LEFT" else "right_shift"
    return site.call(name, site.input(0), site.input(1))


@converts("IsInf")
def is_inf(site: Site) -> Term:
    x = site.input(0)
    up, down = site.attr("detect_positive", 1), site.attr("detect_negative", 1)
    if up and down:
        return site.call("isinf", x)
    if not up and not down:
        return site.call("cast", site.call("zeros_like", x), dtype="bool")
    return site.call("equal", x, math.inf if up else -math.inf)


@converts("Cast")
def cast(site: Site) -> Term:
    x, dtype = site.input(0), dtype_of(site.attr("to"))
    return x if x.dtype == dtype else site.call("cast", x, dtype=dtype)


@converts("CastLike")
def cast_like(site: Site) -> Term:
    x, dtype = site.input(0), site.input(1).dtype
    return x if x.dtype == dtype else site.call("cast", x, dtype=dtype)


@converts("Clip", since=1)
def clip_by_attributes(site: Site) -> Term:
    big = float(np.finfo(np.float32).max)
    low, high = site.number("min", -big), site.number("max", big)
    return site.call("clip", site.input(0), a_min=low, a_max=high)


@converts("Clip", since=11)
def clip(site: Site) -> Term:
    x, low, high = site.input(0), site.optional(1), site.optional(2)
    bounds = [_number(bound) for bound in (low, high)]
    if None not in bounds:
        first, last = (float(bound) for bound in bounds if bound is not None)
        return site.call("clip", x, a_min=first, a_max=last)
    if low is not None:
        x = site.call("maximum", x, low)
    return x if high is None else site.call("minimum", x, high)


def _number(bound: Term | None) -> float | int | None:
    """A known scalar; None if there is none or it does not survive as a double."""
    if bound is None or not bound.known or bound.array is None or bound.size != 1:
        return None
    number: float | int = bound.array.reshape(-1)[0].item()
    return number if float(number) == number else None


@converts("Where")
def where(site: Site) -> Term:
    return site.call("where", site.input(0), site.input(1), site.input(2))


@converts("LeakyRelu")
def leaky_relu(site: Site) -> Term:
    x, alpha = site.input(0), site.number("alpha", 0.01)
    if alpha >= 0:
        return site.call("nn.leaky_relu", x, alpha=alpha)
    scaled = site.call("multiply", x, alpha)
    return site.call("where", site.call("greater", x, 0.0), x, scaled)


@converts("PRelu")
def prelu(site: Site) -> Term:
    return activation.prelu(site.emit, site.input(0), site.input(1))


@converts("Elu")
def elu(site: Site) -> Term:
    return activation.elu(site.emit, site.input(0), site.number("alpha", 1.0))


@converts("Celu")
def celu(site: Site) -> Term:
    return activation.celu(site.emit, site.input(0), site.number("alpha", 1.0))


@converts("Selu")
def selu(site: Site) -> Term:
    alpha = site.attr("alpha", 1.67326319217681884765625)
    gamma = site.attr("gamma", 1.05070102214813232421875)
    return activation.selu(site.emit, site.input(0), alpha, gamma)


@converts("Gelu")
@converts("Gelu", domain="com.microsoft")
def gelu(site: Site) -> Term:
    return activation.gelu(site.emit, site.input(0), site.attr("approximate", "none") == "tanh")


@converts("Mish")
def mish(site: Site) -> Term:
    return activation.mish(site.emit, site.input(0))


@converts("Swish")
def swish(site: Site) -> Term:
    x, alpha = site.input(0), site.number("alpha", 1.0)
    inner = x if alpha == 1.0 else site.call("multiply", x, alpha)
    return site.call("multiply", x, site.call("sigmoid", inner))


@converts("HardSigmoid")
def hard_sigmoid(site: Site) -> Term:
    # The slope is given as float32: 0.1666667 means 1/6, and so does torch's export of it.
    alpha, beta = site.attr("alpha", 0.2), site.attr("beta", 0.5)
    return activation.hard_sigmoid(site.emit, site.input(0), alpha, beta)


@converts("HardSwish")
def hard_swish(site: Site) -> Term:
    return activation.hard_swish(site.emit, site.input(0))


@converts("Softplus")
def softplus(site: Site) -> Term:
    return activation.softplus(site.emit, site.input(0))


@converts("Softsign")
def softsign(site: Site) -> Term:
    return activation.softsign(site.emit, site.input(0))


@converts("ThresholdedRelu")
def thresholded_relu(site: Site) -> Term:
    return activation.threshold(site.emit, site.input(0), site.number("alpha", 1.0), 0.0)


@converts("Shrink")
def shrink(site: Site) -> Term:
    limit, bias = site.number("lambd", 0.5), site.number("bias", 0.0)
    return activation.soft_shrink(site.emit, site.input(0), limit, bias)


def softmax_over(emit: Emitter, x: Term, axis: int, log: bool = False) -> Term:
    """Softmax along one axis."""
    return emit.call("nn.log_softmax" if log else "nn.softmax", x, axis=axis)
