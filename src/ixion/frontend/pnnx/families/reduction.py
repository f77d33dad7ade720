"""Sums, means, extremes, norms, cumulative and sorting operators."""

from __future__ import annotations

from typing import Any

from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.frontend.build import normalize
from ixion.frontend.build.movement import reshape
from ixion.frontend.pnnx.arithmetic import number
from ixion.frontend.pnnx.convert import Site, converts
from ixion.frontend.pnnx.promote import cast, promoted
from ixion.frontend.term import Term, static


def _over(site: Site, x: Term) -> tuple[int, ...]:
    axes = site.axes("dim", x.rank)
    return tuple(range(x.rank)) if not axes else tuple(axes)


def _reduced(site: Site, name: str, x: Term) -> Term:
    if x.rank == 0:
        return x
    return site.call(name, x, axis=_over(site, x), keepdims=site.flag("keepdim"))


def _summable(site: Site) -> Term:
    """Bools and small integers are summed as int64."""
    x = site.x
    if dtypes.is_bool(x.dtype) or dtypes.is_integer(x.dtype):
        return cast(site.emit, x, "int64")
    return x


@converts("torch.sum", "torch.prod")
def total(site: Site) -> Term:
    return _reduced(site, site.op.kind.removeprefix("torch."), _summable(site))


@converts("torch.mean")
def mean(site: Site) -> Term:
    return _reduced(site, "mean", site.x)


@converts("torch.amax", "torch.amin")
def extreme(site: Site) -> Term:
    return _reduced(site, site.op.kind[-3:], site.x)


@converts("torch.all", "torch.any")
def truth(site: Site) -> Term:
    x = site.x if site.x.dtype == "bool" else site.call("not_equal", site.x, 0)
    return _reduced(site, site.op.kind[-3:], x)


@converts("torch.max", "torch.min")
def extreme_with_place(site: Site) -> Any:
    """One output: the value over everything or an axis. Two: values and their int64 places."""
    name = site.op.kind.removeprefix("torch.")
    x = site.x
    other = site.arg("other", None)
    if other is not None:
        return site.call(
            "maximum" if name == "max" else "minimum", *promoted(site.emit, [x, other])
        )
    values = _reduced(site, name, x)
    if len(site.op.outputs) == 1:
        return values
    axis = site.axis("dim", x.rank)
    return values, _place(site, f"arg{name}", x, axis, site.flag("keepdim"))


def _place(site: Site, name: str, x: Term, axis: int, keep: bool) -> Term:
    found = site.call(name, x, axis=(axis,), keepdims=keep)
    return cast(site.emit, found, "int64")


@converts("torch.argmax", "torch.argmin")
def place(site: Site) -> Term:
    x, name = site.x, site.op.kind.removeprefix("torch.")
    if site.arg("dim", None) is None:
        found = _place(site, name, reshape(site.emit, x, (-1,)), 0, False)
        keep = site.flag("keepdim")
        return reshape(site.emit, found, (1,) * x.rank) if keep else found
    return _place(site, name, x, site.axis("dim", x.rank), site.flag("keepdim"))


def _variance(site: Site, x: Term) -> Term:
    """Mean square distance from the mean, over n - correction (nan for one element of one)."""
    over = _over(site, x)
    correction = site.arg("correction", None)
    if correction is None:
        correction = 1 if site.flag("unbiased", True) else 0
    count = dims.prod(x.shape[axis] for axis in over)
    centered = site.call("subtract", x, site.call("mean", x, axis=over, keepdims=True))
    square = site.call("multiply", centered, centered)
    total = site.call("sum", square, axis=over, keepdims=site.flag("keepdim"))
    less = number(correction)
    if isinstance(count, int):
        return site.call("divide", total, max(0.0, float(count - less)))
    if less != int(less):
        static(count)
    left = site.emit.sizes(dims.maximum(dims.add(count, -int(less)), 0))
    return site.call("divide", total, cast(site.emit, left, total.dtype))


@converts("torch.var")
def variance(site: Site) -> Term:
    return _variance(site, site.x)


@converts("torch.std")
def deviation(site: Site) -> Term:
    return site.call("sqrt", _variance(site, site.x))


@converts("torch.norm", "torch.linalg.norm", "torch.linalg.vector_norm")
def norm(site: Site) -> Term:
    p = site.arg("p", 2)
    power = 2.0 if p in ("fro", None) else float(number(p))
    return normalize.norm(
        site.emit, site.x, power, site.axes("dim", site.x.rank), site.flag("keepdim")
    )


@converts("torch.logsumexp")
def log_sum_exp(site: Site) -> Term:
    x = site.x
    over = _over(site, x)
    top = site.call("max", x, axis=over, keepdims=True)
    rest = site.call("exp", site.call("subtract", x, top))
    total = site.call("log", site.call("sum", rest, axis=over, keepdims=True))
    out = site.call("add", total, top)
    return out if site.flag("keepdim") else site.call("squeeze", out, axis=over)


@converts("torch.cumsum", "torch.cumprod")
def cumulative(site: Site) -> Term:
    x = _summable(site)
    name = site.op.kind.removeprefix("torch.")
    return site.call(name, x, axis=site.axis("dim", x.rank), dtype=x.dtype, exclusive=False)


@converts("F.pairwise_distance")
def pairwise_distance(site: Site) -> Term:
    a, b = promoted(site.emit, [site.arg("x1"), site.arg("x2")])
    gap = site.call("add", site.call("subtract", a, b), site.number("eps", 1e-6))
    return normalize.norm(
        site.emit, gap, float(site.number("p", 2)), [gap.rank - 1], site.flag("keepdim")
    )
